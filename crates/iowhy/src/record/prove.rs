//! The record of a proof: the replays, their fidelity, and the verdict of each finding.

use crate::record::Kind;
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{FindingId, Gain};
use iowhy_core::replay::Plan;
use iowhy_core::warning::Warning;
use iowhy_explain::replay::verdict::Word;
use serde::{Deserialize, Serialize};

/// A proof with the run it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProveRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The program whose run was replayed.
    pub subject: String,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// The proof.
    #[serde(flatten)]
    pub proof: Proof,
}

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Seed of the order of the arms and of the intervals.
    pub seed: u64,
    /// The baseline replay; absent where the run could not be replayed.
    pub replay: Option<Replayed>,
    /// Why nothing could be replayed, or why the replay is inconclusive.
    pub reason: Option<String>,
    /// What to do about the reason, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Each finding, those that are not contradicted first.
    pub findings: Vec<Proved>,
    /// All that have a mechanical repair, repaired in one run; absent where there are fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Changes that were asked for beside the findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub what_if: Vec<WhatIf>,
}

/// A change that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// Its word on the command line.
    pub id: String,
    /// What became of it; `how` is empty where it could not be made.
    #[serde(flatten)]
    pub tried: Other,
}

/// Several findings repaired in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Which.
    pub ids: Vec<FindingId>,
    /// What was repaired, in a few words.
    pub how: String,
    /// What the replay gives for the whole run.
    pub measured: Option<Estimate>,
    /// The verdict.
    pub verdict: Word,
    /// Why there is no measured gain, or why it is inconclusive.
    pub reason: Option<String>,
    /// Time in the calls, round by round.
    pub io_ns: Vec<f64>,
}

/// Another repair of a cause, tried beside the one that did best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// What was repaired, in a few words.
    pub how: String,
    /// What the replay gives for the whole run.
    pub measured: Option<Estimate>,
    /// The verdict.
    pub verdict: Word,
    /// Why there is no measured gain.
    pub reason: Option<String>,
}

/// A baseline replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Its time in the calls over that of the program; 1 is the same.
    pub fidelity: Option<Estimate>,
    /// Whether that is near enough to believe the rest.
    pub faithful: bool,
    /// Wall time of the program in the calls that are replayed, without what recording them took.
    pub program_io_s: f64,
    /// Calls of the program for each replayed call.
    pub scale: f64,
    /// Calls of one run.
    pub calls: u64,
    /// Time in the calls, round by round.
    pub io_ns: Vec<f64>,
    /// What the replay takes for granted, in words.
    pub notes: Vec<String>,
    /// The calls.
    pub plan: Plan,
}

/// The verdict of one finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proved {
    /// Which.
    pub id: FindingId,
    /// Predicted gain: old over new wall time.
    pub predicted: Option<Gain>,
    /// What the replay gives for the whole run; what its interval holds: [`iowhy_explain::replay::verdict::measured`].
    pub measured: Option<Estimate>,
    /// The verdict.
    pub verdict: Word,
    /// What was repaired, in a few words.
    pub how: Option<String>,
    /// Why there is no measured gain, or why it is inconclusive.
    pub reason: Option<String>,
    /// Whether a replay of it failed, so that the exit code says so.
    #[serde(default)]
    pub failed: bool,
    /// Time in the calls of the repaired run, round by round.
    pub io_ns: Vec<f64>,
    /// Other repairs that were tried and did less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
    /// Its baseline, where that is not [`Proof::replay`]: many small files beside other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replayed>,
}
