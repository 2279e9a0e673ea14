//! Which of the simulated interleaves is recommended, and how sure that is.

use serde::{Deserialize, Serialize};

use crate::simulate::Simulated;

/// Interleaves within this factor of the fastest count as equal for the load; the single stream decides between them.
const AS_GOOD: f64 = 1.03;
/// Greatest loss against another interleave when the curve is off, for a firm and a fair pick.
const FIRM: f64 = 1.05;
const FAIR: f64 = 1.15;
/// A disk is left out where that is faster by more than this factor.
pub const WORTH_LEAVING_OUT: f64 = 1.03;

/// How sure a pick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It stays within 5 % of the best when the curve is off by a quarter.
    Firm,
    /// Within 15 %.
    Fair,
    /// Beyond.
    Weak,
}

impl Confidence {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Confidence::Firm => "firm",
            Confidence::Fair => "fair",
            Confidence::Weak => "weak",
        }
    }
}

/// What is recommended.
#[derive(Clone, Debug)]
pub struct Pick {
    /// Which of the points.
    pub index: usize,
    /// Those that are as good for the workload.
    pub as_good: Vec<usize>,
    /// How sure.
    pub confidence: Confidence,
}

/// Chooses: the fastest for the workload; among those as good the one that is kindest to a single stream, then the one with
/// the least to lose, then the larger.
pub fn pick(simulated: &Simulated, good_fit: bool) -> Option<Pick> {
    let points = &simulated.points;
    let best = points.iter().map(|point| point.cost_s).fold(f64::INFINITY, f64::min);
    let as_good: Vec<usize> = (0..points.len()).filter(|at| points[*at].cost_s <= best * AS_GOOD).collect();
    let kindest = as_good.iter().map(|at| points[*at].stream_bytes_per_second).fold(0.0, f64::max);
    let index = as_good
        .iter()
        .copied()
        .filter(|at| points[*at].stream_bytes_per_second * AS_GOOD >= kindest)
        .min_by(|a, b| {
            let loss = |at: usize| (simulated.regret[at] * 100.0).round();
            loss(*a).total_cmp(&loss(*b)).then(points[*b].interleave_bytes.cmp(&points[*a].interleave_bytes))
        })?;
    let mut confidence = match simulated.regret.get(index) {
        Some(loss) if *loss <= FIRM => Confidence::Firm,
        Some(loss) if *loss <= FAIR => Confidence::Fair,
        _ => Confidence::Weak,
    };
    if !good_fit {
        confidence = match confidence {
            Confidence::Firm => Confidence::Fair,
            _ => Confidence::Weak,
        };
    }
    Some(Pick { index, as_good, confidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::tests::point;

    #[test]
    fn among_equals_the_single_stream_decides_and_then_the_larger() {
        let points = vec![
            point(8, 20.0, 60.0),
            point(64, 10.2, 60.0),
            point(128, 10.1, 60.0),
            point(1024, 10.0, 20.0),
        ];
        let simulated = Simulated {
            regret: vec![2.0, 1.02, 1.02, 1.0],
            points,
            by_disks: Vec::new(),
            slowest: None,
            warnings: Vec::new(),
        };
        let pick = pick(&simulated, true).unwrap();
        assert_eq!((pick.index, pick.as_good.clone(), pick.confidence), (2, vec![1, 2, 3], Confidence::Firm));
        assert_eq!(super::pick(&simulated, false).unwrap().confidence, Confidence::Fair);
        let none = Simulated { points: Vec::new(), regret: Vec::new(), ..simulated };
        assert!(super::pick(&none, true).is_none());
    }
}
