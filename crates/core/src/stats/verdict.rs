//! Whether a change helped, in four words. A verdict of change needs both: an interval that excludes "no change", and
//! a size that matters.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use super::ratio_of_medians;
use crate::estimate::Estimate;

/// Verdict on a cost (such as a time) after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ChangeVerdict")]
pub enum Verdict {
    /// Surely smaller, by at least the threshold.
    Improved,
    /// Surely larger, by at least the threshold.
    Regressed,
    /// If anything changed, then by less than the threshold.
    WithinNoise,
    /// The interval allows both no change and one beyond the threshold: more rounds would tell.
    Inconclusive,
}

impl Verdict {
    /// `1 regressed, 3 within noise`; empty without verdicts.
    pub fn counted(all: impl Iterator<Item = Verdict> + Clone) -> String {
        let counts = [Verdict::Regressed, Verdict::Improved, Verdict::WithinNoise, Verdict::Inconclusive]
            .map(|verdict| (all.clone().filter(|other| *other == verdict).count(), verdict));
        let counts = counts.into_iter().filter(|(n, _)| *n > 0);
        counts.map(|(n, v)| format!("{n} {}", v.id().replace('-', " "))).collect::<Vec<_>>().join(", ")
    }

    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Verdict::Improved => "improved",
            Verdict::Regressed => "regressed",
            Verdict::WithinNoise => "within-noise",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// The verdict on samples of a cost that were not taken in common rounds. `threshold` is the share from which a
/// difference matters, e.g. 0.02. With common rounds, use [`paired_ratio`](super::paired_ratio) and
/// [`verdict_of_ratio`].
pub fn verdict(old: &[f64], new: &[f64], threshold: f64, seed: u64) -> Verdict {
    ratio_of_medians(new, old, seed)
        .map_or(Verdict::Inconclusive, |ratio| verdict_of_ratio(&ratio, threshold))
}

/// The verdict on a ratio new / old of a cost. An estimate of fewer than 5 rounds does not decide, because its
/// interval is not a 95 % interval.
pub fn verdict_of_ratio(ratio: &Estimate, threshold: f64) -> Verdict {
    let (least, greatest) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    let matters = ratio.value <= least || ratio.value >= greatest;
    let sure = ratio.high < 1.0 || ratio.low > 1.0;
    let surely_small = ratio.low > least && ratio.high < greatest;
    if ratio.n < 5 || !ratio.value.is_finite() {
        Verdict::Inconclusive
    } else if sure && matters {
        if ratio.value < 1.0 { Verdict::Improved } else { Verdict::Regressed }
    } else if sure || surely_small {
        Verdict::WithinNoise
    } else {
        Verdict::Inconclusive
    }
}

/// The smallest relative change that would have been reported: the longer arm of the interval, and no less than `threshold`.
/// `None` where no change would have been, below 5 rounds.
pub fn smallest_visible(ratio: &Estimate, threshold: f64) -> Option<f64> {
    let arm = (ratio.high - ratio.value).max(ratio.value - ratio.low) / ratio.value;
    (ratio.n >= 5 && arm.is_finite()).then(|| arm.max(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Unit;

    #[test]
    fn both_a_sure_and_a_large_difference_are_needed() {
        let of = |value, low, high, n| {
            verdict_of_ratio(&Estimate { value, low, high, unit: Unit::Ratio, n }, 0.02)
        };
        assert_eq!(of(0.90, 0.85, 0.95, 9), Verdict::Improved);
        assert_eq!(of(1.10, 1.05, 1.15, 9), Verdict::Regressed);
        assert_eq!(of(0.99, 0.985, 0.995, 9), Verdict::WithinNoise, "sure, but too small to matter");
        assert_eq!(of(1.00, 0.99, 1.01, 9), Verdict::WithinNoise);
        assert_eq!(of(0.90, 0.70, 1.05, 9), Verdict::Inconclusive, "large, but not sure");
        assert_eq!(of(1.00, 0.90, 1.10, 9), Verdict::Inconclusive);
        assert_eq!(of(0.90, 0.85, 0.95, 4), Verdict::Inconclusive, "too few rounds");
    }

    #[test]
    fn samples_are_judged_as_a_cost() {
        let old: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 5)).collect();
        let scaled = |by: f64| old.iter().map(|v| v * by).collect::<Vec<_>>();
        assert_eq!(verdict(&old, &scaled(0.5), 0.02, 1), Verdict::Improved);
        assert_eq!(verdict(&old, &scaled(2.0), 0.02, 1), Verdict::Regressed);
        assert_eq!(verdict(&old, &old, 0.10, 1), Verdict::WithinNoise);
        assert_eq!(verdict(&old, &old[..2], 0.02, 1), Verdict::Inconclusive);
        assert_eq!(serde_json::to_string(&Verdict::WithinNoise).unwrap(), "\"within-noise\"");
    }

    #[test]
    fn a_change_of_the_smallest_visible_size_is_reported_and_half_of_it_is_not() {
        for (arm, threshold) in [(0.08, 0.05), (0.01, 0.05)] {
            let around =
                |value: f64| Estimate { value, low: value - arm, high: value + arm, unit: Unit::Ratio, n: 9 };
            let visible = smallest_visible(&around(1.0), threshold).unwrap();
            assert!((visible - f64::max(arm, threshold)).abs() < 1e-12, "{visible}");
            assert_eq!(verdict_of_ratio(&around(1.001 + visible), threshold), Verdict::Regressed);
            assert_ne!(verdict_of_ratio(&around(1.0 + visible / 2.0), threshold), Verdict::Regressed);
        }
        let few = Estimate { value: 1.0, low: 0.9, high: 1.1, unit: Unit::Ratio, n: 4 };
        assert_eq!(smallest_visible(&few, 0.05), None);
    }
}
