//! Which record a file holds. Every record says it in its key `kind`; nothing is guessed from other keys.

use clap::ValueEnum;
use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Cells measured in rounds: the path report and `bench`.
    Measurement,
    /// A profiled program.
    WatchedProgram,
    /// `--all` and `--cgroup`: the whole machine.
    WholeMachine,
    /// `attach --when`: the calls of a program by their time, and its slow calls.
    Tails,
    /// Run time and end of a program that may not be profiled.
    RunTime,
    /// Verdicts of `prove`.
    Proof,
    /// `replay`: the calls of a run on several file systems.
    Replay,
    /// `compare` of measured cells.
    Comparison,
    /// `compare` of profiled programs.
    ComparisonOfPrograms,
    /// `merge`: the ranks of a parallel job.
    MergedRanks,
    /// `bench --ranks` and `--scale`: cells that ranks measured together.
    MeasuredRanks,
    /// `doctor --try`.
    TrialOfASetting,
    /// `doctor`.
    Doctor,
    /// `sim`: a point or a sweep.
    Simulation,
    /// `mrc`.
    MissRatios,
    /// One published experiment.
    Classic,
    /// Several published experiments (`classic all`).
    Classics,
    /// `tree`.
    SmallFiles,
    /// `stripe advise`.
    StripeAdvice,
    /// `stripe lint`.
    StripeCheck,
    /// `trace stat`, `trace head` and `trace convert`.
    Trace,
    /// `history`.
    History,
    /// What a command offers: formats, machines, policies, experiments, manual pages.
    List,
    /// Files that were removed (`tree --remove`).
    Removal,
}

impl Kind {
    /// `watched-program`
    pub fn id(self) -> String {
        let id = serde_json::to_value(self).unwrap_or_default();
        id.as_str().unwrap_or_default().to_owned()
    }

    /// `watched program`
    pub fn words(self) -> String {
        self.id().replace('-', " ")
    }
}
