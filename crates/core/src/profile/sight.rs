//! What the watcher was allowed to see, what it missed, and what it cost.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// How much the kernel lets us see. Each tier includes those before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// No rights: `/proc` counters, the function each thread sleeps in, switches where they may be recorded.
    #[default]
    None,
    /// Kernel stacks of the program's own threads.
    Stacks,
    /// A clock on every CPU, which tells the truth about programs that sleep often.
    Clock,
    /// Block requests and system calls.
    Observer,
}

impl Tier {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Tier::None => "none",
            Tier::Stacks => "stacks",
            Tier::Clock => "clock",
            Tier::Observer => "observer",
        }
    }
}

/// What could be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sight {
    /// The tier that was used.
    pub tier: Tier,
    /// What was not possible. Empty in the best case.
    pub limitations: Vec<Limitation>,
}

/// One thing that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limitation {
    /// Stable identifier such as `kernel-stacks`.
    pub id: String,
    /// What is missing and why, with the present setting: "no kernel stacks: kernel.perf_event_paranoid is 3".
    pub sentence: String,
    /// The exact command that changes it, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Limitation {
    /// The command may not be watched at all: of the profile only run time, CPU time and end are known.
    pub const ONLY_RUN_TIME: &str = "only-run-time";
}

/// What watching cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// CPU time of the watcher itself.
    pub own_cpu_ns: u64,
    /// Estimated CPU time that recording took out of the program: events times the cost of each kind. Costs are
    /// measured on threads of iowhy; that of a switch by the observer itself, in the run, where it tells of switches.
    pub in_program_ns: f64,
    /// Records that were read.
    pub events: u64,
    /// Records that the kernel says it lost.
    pub lost: u64,
    /// Part of the run in which every switch was recorded with its stack (1 unless the program switches so often that
    /// it would cost too much).
    pub switch_duty: f64,
    /// System calls that were recorded in their order, of those that were counted.
    pub recorded_calls: u64,
    /// Greatest resident memory of the watcher.
    pub peak_memory_bytes: Option<u64>,
    /// Cost of one recorded switch (out and in, with stack); absent where it could not be measured.
    pub switch_cost_ns: Option<f64>,
}
