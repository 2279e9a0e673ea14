//! What a proof found: the baseline replay and a verdict on each finding, as the record keeps it. Plain data.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId, Gain};
use iowhy_core::replay::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parts::Parts;
use crate::verdict::Verdict;

/// A proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Seed of the order of the arms and of the intervals.
    pub seed: u64,
    /// Replay of the unchanged run; absent where it could not be replayed.
    pub baseline: Option<BaselineReplay>,
    /// Why there is no baseline, or why it does not reproduce the run.
    pub reason: Option<String>,
    /// Next command for that reason, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Each finding with a repair; contradicted ones last.
    pub findings: Vec<FindingProof>,
    /// All mechanical repairs in one run; absent below two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Changes of `--what-if`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub what_if: Vec<WhatIf>,
}

/// Replay of the unchanged run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineReplay {
    /// BaselineReplay I/O time over the program's; 1 is the same.
    pub fidelity: Option<Estimate>,
    /// Whether the fidelity is near enough to 1 for a verdict.
    pub reproduces: bool,
    /// Wall time of the program in these calls, without the profiling overhead.
    pub program_io_s: f64,
    /// Calls of the program over calls of one replay run.
    pub scale: f64,
    /// Calls of one replay run.
    pub calls: u64,
    /// I/O time, round by round.
    pub io_ns: Vec<f64>,
    /// Recorded time in the calls of one replay run, by kind and without the profiling overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Parts>,
    /// Time of the replay in these calls, round by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayed: Vec<Parts>,
    /// Assumptions of the replay.
    pub notes: Vec<String>,
    /// The calls.
    pub plan: Plan,
}

/// The proof of one finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingProof {
    /// The finding.
    pub id: FindingId,
    /// Predicted gain of the finding: old wall time over new.
    pub predicted: Option<Gain>,
    /// Gain of the whole run by what the replays save in calls.
    pub measured: Option<Estimate>,
    /// The same with the program's own time around removed calls, and with what it may leave out beside its calls; both are modelled.
    /// Where there is any of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Estimate>,
    /// The verdict on the measured gain.
    pub verdict: Verdict,
    /// The repair, in a few words.
    pub how: Option<String>,
    /// Why there is no measured gain, or no verdict on it.
    pub reason: Option<String>,
    /// Whether a replay failed; the exit code is 1 then.
    #[serde(default)]
    pub failed: bool,
    /// I/O time of the repaired run, round by round.
    pub io_ns: Vec<f64>,
    /// Other repairs of this finding, which gained less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
    /// Baseline of this finding where it is not [`Proof::baseline`]: small files beside other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineReplay>,
}

impl FindingProof {
    /// A finding without a measurement.
    pub(crate) fn not_measured(finding: &Finding, reason: &str) -> FindingProof {
        FindingProof {
            id: finding.id,
            predicted: finding.gain,
            measured: None,
            modelled: None,
            verdict: Verdict::Inconclusive,
            how: None,
            reason: Some(reason.to_owned()),
            failed: false,
            io_ns: Vec::new(),
            others: Vec::new(),
            baseline: None,
        }
    }
}

/// Several findings repaired in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    /// The findings.
    pub ids: Vec<FindingId>,
    /// The repairs, in a few words.
    pub how: String,
    /// Gain of the whole run by what the replays save in calls.
    pub measured: Option<Estimate>,
    /// As [`FindingProof::modelled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Estimate>,
    /// The verdict on the measured gain.
    pub verdict: Verdict,
    /// Why there is no measured gain, or no verdict on it.
    pub reason: Option<String>,
    /// I/O time, round by round.
    pub io_ns: Vec<f64>,
}

/// Another repair of a finding, or a change of `--what-if`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Other {
    /// The change, in a few words; empty where it could not be made.
    pub how: String,
    /// Gain of the whole run by the replays.
    pub measured: Option<Estimate>,
    /// The verdict on the measured gain.
    pub verdict: Verdict,
    /// Why there is no measured gain.
    pub reason: Option<String>,
}

/// A change of `--what-if`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// Its name on the command line.
    pub id: String,
    /// Its replay.
    #[serde(flatten)]
    pub tried: Other,
}
