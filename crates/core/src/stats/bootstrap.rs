//! Seeded bootstrap intervals (Efron 1979) of medians and of ratios of medians.
//!
//! The 95 % interval is the percentile interval of [`RESAMPLES`] resamples of the rounds. For the median it comes
//! close to the exact interval between order statistics and does not depend on the shape of the distribution.
//!
//! With 3 or 4 rounds there is no 95 % interval of a median: even from the smallest to the largest value only
//! 1 - 2^(1-n) of all intervals hold the true median, that is 75 % and 87.5 % (93.75 % with 5 rounds, where the
//! bootstrap also gives the full range). That widest interval is returned.

use super::{finite, quantile_of_sorted, select_median};
use crate::estimate::{Estimate, Unit};
use crate::rng::Rng;

/// Resamples behind an interval: 50 of them lie beyond each end.
pub const RESAMPLES: usize = 2000;

/// Rounds without which no interval is given.
pub const MIN_SAMPLES: usize = 3;

/// Rounds from which the bootstrap takes over from the full range.
pub(super) const MIN_BOOTSTRAP: usize = 5;

/// Draws `n` of `n` rounds with replacement, [`RESAMPLES`] times; hands each list of round indices to `statistic` and
/// returns its results in ascending order, without values that are not finite.
pub fn resample(n: usize, seed: u64, mut statistic: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let mut rounds = vec![0; n];
    let mut results: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            rounds.fill_with(|| rng.below(n as u64) as usize);
            statistic(&rounds)
        })
        .filter(|v| v.is_finite())
        .collect();
    results.sort_unstable_by(f64::total_cmp);
    results
}

/// The median of the rounds with its 95 % interval. With 3 or 4 rounds it is the full range instead, which holds the
/// true median in 75 % and 87.5 % of all cases. `None` below [`MIN_SAMPLES`] finite values.
pub fn bootstrap_median(samples: &[f64], seed: u64, unit: Unit) -> Option<Estimate> {
    let mut values = finite(samples);
    if values.len() < MIN_SAMPLES {
        return None;
    }
    let value = select_median(&mut values);
    let resampled = if values.len() < MIN_BOOTSTRAP {
        values.clone()
    } else {
        let mut drawn = Vec::with_capacity(values.len());
        resample(values.len(), seed, |rounds| {
            drawn.clear();
            drawn.extend(rounds.iter().map(|&round| values[round]));
            select_median(&mut drawn)
        })
    };
    interval(value, resampled, values.len(), unit)
}

/// The median over rounds of `a / b` within the round, with its 95 % interval. Drift that both share cancels.
/// `a[i]` and `b[i]` are of the same round; rounds beyond the shorter list, and rounds without a finite ratio,
/// are left out. `None` below [`MIN_SAMPLES`] ratios.
pub fn paired_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    bootstrap_median(&ratios, seed, Unit::Ratio)
}

/// The median of `a` over the median of `b`, with its 95 % interval, for measurements that share no rounds: both are
/// resampled independently. `None` when either has fewer than [`MIN_SAMPLES`] finite values or the median of `b`
/// is 0.
pub fn ratio_of_medians(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    let (mut a, mut b) = (finite(a), finite(b));
    let n = a.len().min(b.len());
    if n < MIN_SAMPLES {
        return None;
    }
    let value = select_median(&mut a) / select_median(&mut b);
    if !value.is_finite() {
        return None;
    }
    let resampled = if n < MIN_BOOTSTRAP {
        a.iter().flat_map(|a| b.iter().map(move |b| a / b)).collect()
    } else {
        let mut rng = Rng::new(seed);
        let mut drawn = Vec::new();
        let mut median_of_draw = |values: &[f64]| {
            drawn.clear();
            drawn.extend((0..values.len()).map(|_| values[rng.below(values.len() as u64) as usize]));
            select_median(&mut drawn)
        };
        (0..RESAMPLES).map(|_| median_of_draw(&a) / median_of_draw(&b)).collect()
    };
    interval(value, resampled, n, Unit::Ratio)
}

/// As many values as there are, drawn with replacement.
pub(super) fn redraw<T: Copy>(values: &[T], rng: &mut Rng) -> Vec<T> {
    (0..values.len()).map(|_| values[rng.below(values.len() as u64) as usize]).collect()
}

/// The estimate with the interval that the resampled values span: all of it below `MIN_BOOTSTRAP` rounds, else the
/// percentiles that leave 2.5 % on each side. `n` is the number of rounds behind `value`. `None` without a finite value
/// among the resampled.
pub fn interval(value: f64, mut resampled: Vec<f64>, n: usize, unit: Unit) -> Option<Estimate> {
    resampled.retain(|v| v.is_finite());
    resampled.sort_unstable_by(f64::total_cmp);
    let tail = if n < MIN_BOOTSTRAP { 0.0 } else { 0.025 };
    let low = quantile_of_sorted(&resampled, tail)?;
    let high = quantile_of_sorted(&resampled, 1.0 - tail)?;
    // A percentile interval may miss its own estimate when a ratio's denominators came close to 0.
    Some(Estimate { value, low: low.min(value), high: high.max(value), unit, n: n as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skewed like latencies: a floor plus an exponential tail. Median: 100 + 20 ln 2.
    fn skewed(rng: &mut Rng, n: usize) -> Vec<f64> {
        (0..n).map(|_| 100.0 - 20.0 * (1.0 - rng.unit()).ln()).collect()
    }

    #[test]
    fn few_rounds_give_the_range_and_fewer_give_nothing() {
        assert_eq!(bootstrap_median(&[1.0, 2.0], 1, Unit::Nanoseconds), None);
        assert_eq!(bootstrap_median(&[1.0, 2.0, f64::NAN], 1, Unit::Nanoseconds), None);
        let e = bootstrap_median(&[5.0, 1.0, 2.0], 1, Unit::Nanoseconds).unwrap();
        assert_eq!((e.value, e.low, e.high, e.n), (2.0, 1.0, 5.0, 3));
        let r = ratio_of_medians(&[2.0, 4.0, 6.0], &[1.0, 2.0, 4.0], 1).unwrap();
        assert_eq!((r.value, r.low, r.high, r.n), (2.0, 0.5, 6.0, 3));
        let five = bootstrap_median(&[1.0, 2.0, 3.0, 4.0, 5.0], 1, Unit::Ratio).unwrap();
        assert_eq!((five.low, five.value, five.high), (1.0, 3.0, 5.0));
    }

    #[test]
    fn constant_rounds_have_an_interval_of_no_width() {
        let e = bootstrap_median(&[7.0; 12], 3, Unit::PerSecond).unwrap();
        assert_eq!((e.value, e.low, e.high, e.n, e.unit), (7.0, 7.0, 7.0, 12, Unit::PerSecond));
    }

    #[test]
    fn the_seed_decides_and_the_order_of_rounds_does_not_bias() {
        let samples = skewed(&mut Rng::new(1), 15);
        let of = |seed| bootstrap_median(&samples, seed, Unit::Nanoseconds).unwrap();
        assert_eq!(of(1), of(1));
        let width = of(1).high - of(1).low;
        assert!((2..20).all(|seed| (of(seed).low - of(1).low).abs() < width / 4.0));
    }

    #[test]
    fn one_wild_round_does_not_move_the_estimate() {
        let mut samples = vec![100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5, 101.5, 98.5, 100.2, 99.8];
        samples.push(1e9);
        let e = bootstrap_median(&samples, 1, Unit::Nanoseconds).unwrap();
        assert!(e.value < 101.0 && e.high < 103.0, "{e:?}");
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let truth = 100.0 + 20.0 * 2f64.ln();
        let mut rng = Rng::new(11);
        for (n, low, high) in
            [(3, 0.70, 0.80), (4, 0.83, 0.92), (5, 0.90, 0.97), (9, 0.90, 0.99), (25, 0.90, 0.99)]
        {
            const RUNS: u64 = 600;
            let held = (0..RUNS)
                .filter(|&seed| {
                    let e = bootstrap_median(&skewed(&mut rng, n), seed, Unit::Nanoseconds).unwrap();
                    (e.low..=e.high).contains(&truth)
                })
                .count();
            let coverage = held as f64 / RUNS as f64;
            assert!((low..=high).contains(&coverage), "{n} rounds: {coverage}");
        }
    }

    #[test]
    fn ratios_hold_the_truth_about_as_often_as_they_say() {
        let mut rng = Rng::new(12);
        const RUNS: u64 = 400;
        let (mut paired, mut unpaired) = (0, 0);
        for seed in 0..RUNS {
            let (b, independent) = (skewed(&mut rng, 15), skewed(&mut rng, 15));
            let a: Vec<f64> = skewed(&mut rng, 15).iter().map(|v| v * 2.0).collect();
            // The same drift in both arms: only the paired ratio may be given it.
            let drifting = |v: &[f64]| v.iter().zip(1..).map(|(v, i)| v * f64::from(i)).collect::<Vec<_>>();
            let holds = |e: Estimate| usize::from((e.low..=e.high).contains(&2.0));
            paired += holds(paired_ratio(&drifting(&a), &drifting(&b), seed).unwrap());
            unpaired += holds(ratio_of_medians(&a, &independent, seed).unwrap());
        }
        for held in [paired, unpaired] {
            let coverage = held as f64 / RUNS as f64;
            assert!((0.90..=0.99).contains(&coverage), "{coverage}");
        }
    }

    #[test]
    fn pairs_without_a_ratio_are_left_out() {
        let e = paired_ratio(&[2.0, 4.0, 6.0, 1.0, 9.0], &[1.0, 2.0, 3.0, 0.0], 1).unwrap();
        assert_eq!((e.value, e.n), (2.0, 3));
        assert_eq!(ratio_of_medians(&[1.0; 3], &[0.0; 3], 1), None);
    }
}
