//! Whether a measurement moved while it ran.

use super::{finite, median, select_median};

/// A trend over the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change from the first round to the last as a share of the median: the slope of Theil (1950) and Sen (1968),
    /// the median over all pairs of rounds, which a third of wild rounds cannot move far.
    pub slope_share_over_run: f64,
    /// Whether the trend stands out: Mann-Kendall test (normal approximation with correction for ties and
    /// continuity), two-sided at 1 %. Needs at least 6 rounds, and all in order then.
    pub significant: bool,
}

/// Two-sided 1 % quantile of the normal distribution. Not 5 %: dozens of cells are tested in one run.
const CRITICAL_Z: f64 = 2.576;

/// Rounds looked at: the number of pairs grows with the square, so of longer runs an even selection is taken.
const MAX_ROUNDS: usize = 400;

/// The drift of samples in the order they were taken. `None` below 3 finite values or when their median is 0.
pub fn drift(samples: &[f64]) -> Option<Drift> {
    let all = finite(samples);
    if all.len() < 3 {
        return None;
    }
    let step = all.len().div_ceil(MAX_ROUNDS);
    let values: Vec<f64> = all.iter().copied().step_by(step).collect();
    let centre = median(&values).filter(|m| *m != 0.0)?;

    let pairs = || (1..values.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let mut slopes: Vec<f64> = pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let slope = select_median(&mut slopes);
    let score: i64 = pairs().map(|(i, j)| values[j].total_cmp(&values[i]) as i64).sum();
    Some(Drift {
        slope_share_over_run: slope * (values.len() - 1) as f64 / centre.abs(),
        significant: z(score, &values) > CRITICAL_Z,
    })
}

/// How far the Mann-Kendall score is from 0, in its standard deviations under no trend.
fn z(score: i64, values: &[f64]) -> f64 {
    let term = |n: usize| (n * n.saturating_sub(1) * (2 * n + 5)) as f64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|group| term(group.len())).sum();
    let variance = (term(values.len()) - ties) / 18.0;
    if variance <= 0.0 { 0.0 } else { (score.abs() - 1).max(0) as f64 / variance.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn known_answers() {
        let rising: Vec<f64> = (0..11).map(|i| 95.0 + f64::from(i)).collect();
        assert_eq!(drift(&rising), Some(Drift { slope_share_over_run: 0.1, significant: true }));
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert_eq!(drift(&falling).unwrap().slope_share_over_run, -0.1);
        assert_eq!(drift(&[4.0; 20]), Some(Drift { slope_share_over_run: 0.0, significant: false }));
        assert_eq!(drift(&[1.0, 2.0]), None);
    }

    /// Gilbert (1987), table of the normal score: n = 10 without ties has variance 125.
    #[test]
    fn the_variance_is_the_published_one() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        assert!((z(45, &values) - 44.0 / 125f64.sqrt()).abs() < 1e-12);
        let tied = [1.0, 1.0, 2.0, 3.0];
        assert!((z(5, &tied) - 4.0 / ((156.0 - 18.0) / 18.0f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn six_ordered_rounds_suffice_and_five_do_not() {
        let ordered: Vec<f64> = (1..=6).map(f64::from).collect();
        assert!(drift(&ordered).unwrap().significant);
        assert!(!drift(&ordered[..5]).unwrap().significant);
    }

    #[test]
    fn wild_rounds_are_no_drift_and_false_alarms_are_rare() {
        let mut samples = vec![10.0; 30];
        samples[29] = 1e6;
        samples[28] = 1e6;
        assert_eq!(drift(&samples).unwrap().slope_share_over_run, 0.0);
        let mut rng = Rng::new(5);
        let alarms = (0..1000)
            .filter(|_| drift(&(0..15).map(|_| rng.unit()).collect::<Vec<_>>()).unwrap().significant)
            .count();
        assert!(alarms <= 25, "{alarms} of 1000 at a level of 1 %");
    }

    #[test]
    fn long_runs_are_thinned_and_keep_their_trend() {
        let samples: Vec<f64> = (0..5000).map(|i| 1000.0 + f64::from(i) / 10.0).collect();
        let d = drift(&samples).unwrap();
        assert!(d.significant && (d.slope_share_over_run - 0.4).abs() < 0.01, "{d:?}");
    }
}
