//! What the recorded calls of a run take on several file systems, as the record keeps it. Plain data.

use iowhy_core::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parts::Parts;

/// The calls of a run on several file systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// Seed of the order of the replays and of the intervals.
    pub seed: u64,
    /// Calls of one replay.
    pub calls: u64,
    /// Calls of the program over calls of one replay.
    pub scale: f64,
    /// Wall time of the program in these calls, without the profiling overhead.
    pub program_io_s: f64,
    /// Wall time of the program, without the profiling overhead.
    pub program_s: f64,
    /// Assumptions of the replay, and what is not replayed.
    pub notes: Vec<String>,
    /// The place where the program ran, then the directories in their order.
    pub places: Vec<Place>,
}

/// One file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The directory; absent where the program ran, on its own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Type of its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Time in the calls of one replay; absent where it was not replayed.
    pub io: Option<Estimate>,
    /// That time over the recorded time of the same calls.
    pub over_recorded: Option<Estimate>,
    /// That time over the time of the replay where the program ran, in the same rounds.
    pub over_here: Option<Estimate>,
    /// Wall time of the whole run there: what is not in the replayed calls stays the same.
    pub wall: Option<Estimate>,
    /// Time in calls by kind, the median of the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Time in the calls, round by round, in nanoseconds.
    pub io_ns: Vec<f64>,
    /// What differs there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it was not replayed, or why no wall time is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Next command for that reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether a replay failed; the exit code is 1 then.
    #[serde(default)]
    pub failed: bool,
}
