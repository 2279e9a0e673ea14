//! What limits ranks as their number grows: the server that they share, or each rank's own CPU.
//!
//! Non-goal: which part of the server. Invariant: a verdict needs whole 95 % intervals on one side of one half; else it is undecided,
//! with the reason.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats::bootstrap_median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;

/// What limits the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleVerdict {
    /// More ranks bring less than half of what they would in proportion, and each of them mostly waits.
    ServerBound,
    /// The ranks mostly run, or wait for a CPU.
    ClientBound,
    /// Neither is certain.
    Undecided,
}

impl ScaleVerdict {
    /// `server-bound`
    pub fn id(self) -> &'static str {
        match self {
            ScaleVerdict::ServerBound => "server-bound",
            ScaleVerdict::ClientBound => "client-bound",
            ScaleVerdict::Undecided => "undecided",
        }
    }
}

/// From one number of ranks to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GrowthOfRanks")]
pub struct Growth {
    /// The smaller number of ranks.
    pub fewer: u64,
    /// The greater.
    pub more: u64,
    /// Throughput of more over that of fewer in the same round: median over rounds.
    pub factor: Option<Estimate>,
    /// Share of the growth in proportion to the ranks: 1 where each rank reaches what it did before, 0 where nothing is added.
    pub efficiency: Option<Estimate>,
}

/// How throughput grows with the number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScaleOfRanks")]
pub struct Scale {
    /// What limits them at the greatest number.
    pub verdict: ScaleVerdict,
    /// Why that is so, or what is missing.
    pub reason: ScaleReason,
    /// From each number of ranks to the next.
    pub growth: Vec<Growth>,
}

/// Why a verdict was given, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleReason {
    /// Growth stopped, and the ranks wait.
    StoppedAndWaits,
    /// The ranks run, or wait for a CPU.
    Runs,
    /// The ranks wait, and their throughput still grows: the end of it was not reached.
    StillGrows,
    /// The ranks wait, and the interval of the growth holds one half.
    GrowthUnsure,
    /// The interval of the time that they wait holds one half.
    WaitsUnsure,
    /// Too few rounds for an interval.
    TooFewRounds,
    /// One number of ranks shows no growth.
    OneStep,
}

/// The share from which something is most of a whole.
const MOST: f64 = 0.5;

impl Scale {
    /// Judges steps in ascending order of their ranks.
    pub fn new(steps: &[Step], seed: u64) -> Scale {
        let growth: Vec<Growth> = steps.windows(2).map(|pair| growth(&pair[0], &pair[1], seed)).collect();
        let (verdict, reason) = judge(growth.last(), steps.last().and_then(|step| step.waits));
        Scale { verdict, reason, growth }
    }
}

fn growth(fewer: &Step, more: &Step, seed: u64) -> Growth {
    let (one, other) = (fewer.by_round(), more.by_round());
    let factors: Vec<f64> = one.iter().filter_map(|(round, fewer)| Some(other.get(round)? / fewer)).collect();
    let factor = bootstrap_median(&factors, seed, Unit::Ratio);
    let added = more.ranks as f64 / fewer.ranks as f64 - 1.0;
    let part = |factor: f64| (factor - 1.0) / added;
    let efficiency = factor.map(|factor| Estimate {
        value: part(factor.value),
        low: part(factor.low),
        high: part(factor.high),
        ..factor
    });
    Growth { fewer: fewer.ranks, more: more.ranks, factor, efficiency }
}

fn judge(last: Option<&Growth>, waits: Option<Estimate>) -> (ScaleVerdict, ScaleReason) {
    let undecided = |reason| (ScaleVerdict::Undecided, reason);
    let Some(last) = last else { return undecided(ScaleReason::OneStep) };
    let (Some(efficiency), Some(waits)) = (last.efficiency, waits) else {
        return undecided(ScaleReason::TooFewRounds);
    };
    if waits.high < MOST {
        return (ScaleVerdict::ClientBound, ScaleReason::Runs);
    }
    if waits.low <= MOST {
        return undecided(ScaleReason::WaitsUnsure);
    }
    if efficiency.high < MOST {
        return (ScaleVerdict::ServerBound, ScaleReason::StoppedAndWaits);
    }
    undecided(if efficiency.low > MOST { ScaleReason::StillGrows } else { ScaleReason::GrowthUnsure })
}
