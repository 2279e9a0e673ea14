//! Robust statistics over rounds: medians, quantiles, seeded bootstrap intervals, drift, noise, stop rule, verdicts.
//!
//! Goal: intervals that may be printed beside a number. Non-goal: parametric tests; latencies are not normal.
//! Invariants: pure functions, all randomness from the caller's seed, so that an analysis can be repeated exactly;
//! values that are not finite are left out and do not count in `n`; too few values give `None`, never a guess.
//!
//! The unit of sampling is the round: requests of one round share their disturbances and are not independent.

mod apart;
mod bootstrap;
mod drift;
mod effect;
pub mod nnls;
mod stop;
mod verdict;

pub use self::apart::apart;
pub use self::bootstrap::{
    MIN_SAMPLES, RESAMPLES, bootstrap_median, interval, paired_ratio, ratio_of_medians, resample,
};
pub use self::drift::{Drift, drift};
pub use self::effect::{chance_of_counts, effect_of_estimates, effect_of_part};
pub use self::stop::{Stop, StopRule};
pub use self::verdict::{Verdict, smallest_visible, verdict, verdict_of_ratio};

/// The median; the mean of the middle two for an even number. `None` when no value is finite.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut values = finite(samples);
    (!values.is_empty()).then(|| select_median(&mut values))
}

/// The quantile of share `p` (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman and Fan
/// (1996), the default of R and NumPy. `None` when no value is finite.
pub fn quantile(samples: &[f64], p: f64) -> Option<f64> {
    let mut values = finite(samples);
    values.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&values, p)
}

/// Noise of repeated measurements: the median absolute deviation as a share of the median. (For a normal
/// distribution that is 0.67 standard deviations.) One wild round does not move it. `None` when no value is finite
/// or the median is 0.
pub fn noise(samples: &[f64]) -> Option<f64> {
    let centre = median(samples)?;
    let deviations: Vec<f64> = finite(samples).iter().map(|v| (v - centre).abs()).collect();
    let spread = median(&deviations)?;
    (centre != 0.0).then(|| spread / centre.abs())
}

fn finite(samples: &[f64]) -> Vec<f64> {
    samples.iter().copied().filter(|v| v.is_finite()).collect()
}

/// The median of a slice that is not empty, which it reorders.
fn select_median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd { upper } else { f64::midpoint(below.iter().copied().fold(f64::NEG_INFINITY, f64::max), upper) }
}

fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let (low, share) = (position as usize, position.fract());
    let (a, b) = (sorted[low.min(last)], sorted[(low + 1).min(last)]);
    Some(a + share * (b - a))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN, 7.0, f64::INFINITY]), Some(7.0));
        assert_eq!(median(&[]), None);
        // R: quantile(c(1, 2, 3, 4, 10), c(.1, .25, .9)) is 1.4, 2.0, 7.6.
        let x = [10.0, 2.0, 3.0, 4.0, 1.0];
        for (p, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.9, 7.6), (1.0, 10.0)] {
            assert!((quantile(&x, p).unwrap() - expected).abs() < 1e-12);
        }
        assert_eq!(quantile(&[f64::NAN], 0.5), None);
    }

    #[test]
    fn noise_ignores_one_wild_round_and_scales_with_the_median() {
        assert_eq!(noise(&[9.0, 10.0, 11.0, 12.0, 8.0]), Some(0.1));
        assert_eq!(noise(&[9.0, 10.0, 11.0, 12.0, 8e9]), Some(1.0 / 11.0));
        assert_eq!(noise(&[5.0; 4]), Some(0.0));
        assert_eq!(noise(&[-1.0, 0.0, 1.0]), None);
    }

    proptest! {
        #[test]
        fn the_median_is_the_middle_quantile(samples in prop::collection::vec(-1e6..1e6f64, 1..60)) {
            let (m, q) = (median(&samples).unwrap(), quantile(&samples, 0.5).unwrap());
            prop_assert!((m - q).abs() <= 1e-9 * m.abs().max(1.0), "{m} {q}");
        }
    }
}
