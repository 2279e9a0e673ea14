//! Effect of a change in one part on the whole, with its interval, and whether an event occurs in more runs than before.
//!
//! An effect is written as a ratio: the whole with only that part changed, relative to before. A part of 1 %
//! of the time that doubles has the effect 1.01, so that it is judged by its weight, with the rule and the threshold
//! of the whole ([`verdict_of_ratio`](super::verdict_of_ratio)).

use super::bootstrap::{MIN_BOOTSTRAP, MIN_SAMPLES, interval, redraw};
use super::select_median;
use crate::estimate::{Estimate, Unit};
use crate::rng::Rng;

/// The effect from two estimates with intervals of their own: `1 + (after - before) / whole`.
///
/// The interval of the difference is recovered from those of its parts by adding arms as squares (Zou and Donner 2008,
/// the MOVER method; Newcombe 1998 for shares), which keeps skewed arms skewed and asks for no common rounds. `whole` is
/// taken as exact: its own error scales the effect, and does not turn it round. `None` where the whole is not above 0.
pub fn effect_of_estimates(before: &Estimate, after: &Estimate, whole: f64) -> Option<Estimate> {
    let change = after.value - before.value;
    let down = (after.value - after.low).hypot(before.high - before.value);
    let up = (after.high - after.value).hypot(before.value - before.low);
    let effect = |change: f64| 1.0 + change / whole;
    let n = before.n.min(after.n);
    let (value, low, high) = (effect(change), effect(change - down), effect(change + up));
    let usable = whole > 0.0 && low.is_finite() && high.is_finite();
    usable.then_some(Estimate { value, low, high, unit: Unit::Ratio, n })
}

/// The effect of a part on the whole, over runs: `before[i]` is the part and `whole_before[i]` the whole of the same run,
/// `after` the part of other runs. Medians; both sides are resampled independently, part and whole of a run together
/// (bootstrap, Efron 1979). `None` below [`MIN_SAMPLES`] runs on a side, or where the whole is 0.
pub fn effect_of_part(before: &[f64], whole_before: &[f64], after: &[f64], seed: u64) -> Option<Estimate> {
    let runs: Vec<(f64, f64)> = before.iter().copied().zip(whole_before.iter().copied()).collect();
    let n = runs.len().min(after.len());
    if n < MIN_SAMPLES {
        return None;
    }
    let effect = |runs: &[(f64, f64)], after: &[f64]| {
        let median = |values: &mut dyn Iterator<Item = f64>| select_median(&mut values.collect::<Vec<f64>>());
        let part = median(&mut runs.iter().map(|run| run.0));
        let whole = median(&mut runs.iter().map(|run| run.1));
        1.0 + (median(&mut after.iter().copied()) - part) / whole
    };
    let value = effect(&runs, after);
    if !value.is_finite() {
        return None;
    }
    let resampled = if n < MIN_BOOTSTRAP {
        // The full range, as for a median alone.
        let each = |run: &(f64, f64)| after.iter().map(|a| effect(&[*run], &[*a])).collect::<Vec<f64>>();
        runs.iter().flat_map(each).collect()
    } else {
        let mut rng = Rng::new(seed);
        (0..super::RESAMPLES).map(|_| effect(&redraw(&runs, &mut rng), &redraw(after, &mut rng))).collect()
    };
    interval(value, resampled, n, Unit::Ratio)
}

/// Probability that counts differ at least this much under pure chance, where something happens in `a` of `n` runs and
/// in `b` of `m` others: Fisher's exact test (1922), two-sided by adding all tables that are no more likely.
pub fn chance_of_counts(a: u64, n: u64, b: u64, m: u64) -> f64 {
    let both = a + b;
    let likely = |a: u64| (ln_choose(n, a) + ln_choose(m, both - a) - ln_choose(n + m, both)).exp();
    let seen = likely(a);
    let tables = both.saturating_sub(m)..=both.min(n);
    // A trifle more: tables that mirror each other must not differ by rounding.
    tables.map(likely).filter(|p| *p <= seen * (1.0 + 1e-9)).sum::<f64>().min(1.0)
}

fn ln_choose(n: u64, k: u64) -> f64 {
    let k = k.min(n - k.min(n));
    (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Verdict, bootstrap_median, verdict_of_ratio};

    fn of(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high, unit: Unit::Nanoseconds, n: 9 }
    }

    #[test]
    fn a_part_counts_by_what_it_is_of_the_whole() {
        // 1 % of the whole that doubles matters by 1 %, half of it by 50 %.
        let small = effect_of_estimates(&of(1.0, 0.99, 1.01), &of(2.0, 1.99, 2.01), 100.0).unwrap();
        assert!((small.value - 1.01).abs() < 1e-12);
        assert_eq!(verdict_of_ratio(&small, 0.05), Verdict::WithinNoise);
        let large = effect_of_estimates(&of(50.0, 49.0, 51.0), &of(100.0, 99.0, 101.0), 100.0).unwrap();
        assert!((large.value - 1.5).abs() < 1e-12);
        assert_eq!(verdict_of_ratio(&large, 0.05), Verdict::Regressed);
        assert_eq!(effect_of_estimates(&of(1.0, 1.0, 1.0), &of(1.0, 1.0, 1.0), 0.0), None);
    }

    #[test]
    fn arms_add_as_squares_each_on_its_side() {
        // Zou and Donner: L = d - sqrt((a - la)^2 + (ub - b)^2), U = d + sqrt((ua - a)^2 + (b - lb)^2).
        let e = effect_of_estimates(&of(10.0, 6.0, 13.0), &of(20.0, 16.0, 32.0), 10.0).unwrap();
        assert!((e.value - 2.0).abs() < 1e-12);
        assert!((e.low - (2.0 - 0.5)).abs() < 1e-12, "arms 4 and 3 make 5 of 10");
        assert!((e.high - (2.0 + 160f64.sqrt() / 10.0)).abs() < 1e-12, "arms 12 and 4");
    }

    /// Two independent estimates of skewed rounds: the interval covers the difference about as often as its level says.
    #[test]
    fn recovered_intervals_hold_the_truth_about_as_often_as_they_say() {
        let mut rng = Rng::new(21);
        let mut skewed = |by: f64| -> Vec<f64> {
            (0..11).map(|_| by * (100.0 - 20.0 * (1.0 - rng.unit()).ln())).collect()
        };
        const RUNS: u64 = 600;
        let median = 100.0 + 20.0 * 2f64.ln();
        let held = (0..RUNS)
            .filter(|&seed| {
                let of = |rounds: &[f64]| bootstrap_median(rounds, seed, Unit::Nanoseconds).unwrap();
                let (before, after) = (of(&skewed(1.0)), of(&skewed(1.5)));
                let e = effect_of_estimates(&before, &after, median).unwrap();
                (e.low..=e.high).contains(&1.5)
            })
            .count();
        let coverage = held as f64 / RUNS as f64;
        assert!((0.92..=1.0).contains(&coverage), "{coverage}");
    }

    #[test]
    fn the_effect_over_runs_is_that_of_the_medians() {
        let whole = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0];
        let before = [20.0, 20.1, 19.9, 20.2, 19.8, 20.0];
        let after = [40.0, 40.2, 39.8, 40.1, 39.9, 40.0];
        let e = effect_of_part(&before, &whole, &after, 1).unwrap();
        assert!((e.value - 1.2).abs() < 1e-9 && e.low > 1.19 && e.high < 1.21, "{e:?}");
        assert_eq!(e, effect_of_part(&before, &whole, &after, 1).unwrap(), "the seed decides");
        assert_eq!(effect_of_part(&before[..2], &whole, &after, 1), None);
        let few = effect_of_part(&before[..3], &whole[..3], &after[..3], 1).unwrap();
        assert_eq!(few.n, 3);
        assert!(few.low < e.low && few.high > e.high, "the full range of three runs");
        // A part that was not there has an effect, though no ratio.
        let new = effect_of_part(&[0.0; 5], &whole, &[10.0; 5], 1).unwrap();
        assert!((new.value - 1.1).abs() < 1e-9, "{new:?}");
    }

    #[test]
    fn the_exact_test_as_published() {
        // Fisher's lady tasting tea: all four of four right has 2 of 70 on both sides.
        assert!((chance_of_counts(4, 4, 0, 4) - 2.0 / 70.0).abs() < 1e-12);
        // R: fisher.test(matrix(c(3, 1, 1, 3), 2)) is 0.4857.
        assert!((chance_of_counts(3, 4, 1, 4) - 34.0 / 70.0).abs() < 1e-12);
        // R: fisher.test(matrix(c(5, 0, 0, 5), 2)) is 0.007937, of 3 and 3 it is 0.1.
        assert!((chance_of_counts(5, 5, 0, 5) - 2.0 / 252.0).abs() < 1e-12);
        assert!((chance_of_counts(0, 3, 3, 3) - 0.1).abs() < 1e-12);
        assert_eq!((chance_of_counts(1, 1, 0, 1), chance_of_counts(5, 5, 5, 5)), (1.0, 1.0));
        assert_eq!(chance_of_counts(0, 4, 0, 7), 1.0);
    }
}
