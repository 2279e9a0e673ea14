//! The record of `bench --ranks` and `--scale`: cells that ranks measured together.

use iowhy_core::cell::StateCheck;
use iowhy_core::environment::Environment;
use iowhy_core::warning::Warning;
use iowhy_core::workload::Direction;
use iowhy_path::ranks::Step;
use iowhy_path::ranks::scale::Scale;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Kind;

/// Ranks that measured together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredRanksRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line of rank 0.
    pub command: String,
    /// The machine of rank 0.
    pub environment: Environment,
    /// The directory with the scratch file of each rank.
    pub target: String,
    /// The job, as its launcher names it; `null` where it names none.
    pub job: Option<String>,
    /// Whether iowhy started the ranks itself, on one machine.
    pub started_here: bool,
    /// The options or variables by which rank 0 was numbered.
    pub believed: Vec<String>,
    /// Rounds.
    pub rounds: u32,
    /// Seed of orders and intervals.
    pub seed: u64,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// The ranks, by number.
    pub ranks: Vec<MemberOfRun>,
    /// Their hosts, in the order of their first ranks.
    pub hosts: Vec<HostOfMeasuredRanks>,
    /// The cells.
    pub cells: Vec<CellOfRanks>,
}

/// A rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberOfRun {
    /// Its number.
    pub rank: u64,
    /// Its host.
    pub host: String,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostOfMeasuredRanks {
    /// Its name.
    pub host: String,
    /// Random identifier of the run of its kernel.
    pub boot_id: Option<String>,
    /// Its ranks.
    pub ranks: Vec<u64>,
    /// How far its clock is ahead of that of rank 0, by the messages between them; starts are corrected by it.
    pub clock_lead_ns: i64,
    /// How far that may be off.
    pub clock_error_ns: u64,
    /// Whether the messages contradict each other, as after a clock was set.
    pub clock_was_set: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellOfRanks {
    /// Access method.
    pub method: String,
    /// Order of blocks.
    pub pattern: String,
    /// Reads, writes or a mix.
    pub direction: Direction,
    /// Claimed state of the page cache.
    pub state: String,
    /// Whether it was so, in all ranks.
    pub state_check: StateCheck,
    /// The rank in which it was not, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Bytes of each rank's file that are used.
    pub region_bytes: u64,
    /// Threads of each rank.
    pub threads: u64,
    /// Queue depth of each thread.
    pub depth: u64,
    /// For each number of ranks, in ascending order.
    pub steps: Vec<Step>,
    /// How throughput grows with the number of ranks; absent for one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}
