//! Whether the largest of many values stand apart from the others: a test without replicates, for ranks of one job.
//!
//! Nothing but the values is known, so a law of theirs must be assumed: independent draws of one distribution whose failure rate
//! does not fall (exponential, normal, uniform, gamma with shape 1 or more, logistic). Heavier tails, such as the log-normal's, name more than the level says.

use super::finite;

/// Values that stand apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// How many of the largest values do.
    pub count: usize,
    /// Probability of such a gap, or of one as unlikely among all gaps looked at, where no value stands apart.
    pub chance: f64,
}

/// How many of the largest values stand apart from the others, fewer than half of them; `None` where such gaps are likelier than
/// `level` without any that do.
///
/// Of `n` values in order, let `D_j = (n - j + 1) (x_j - x_(j-1))`. For exponential values these spacings are independent and of
/// one exponential law (Sukhatme 1937, Rényi 1953), so that a spacing divided by the sum of `m` others exceeds `r` with the
/// probability `(1 + r)^-m`. A law with a failure rate that does not fall is a concave image of the exponential one (Barlow and
/// Proschan 1966): every spacing above is then at most what it would be, relative to those below it, and the level holds as
/// a bound. The `m` spacings next below the gap are used, `2 sqrt(n)` of them: their number affects what is found, not the level.
/// A gap below the `k` largest values gets the part `1 / (k (k + 1))` of the level, which sums to all of it (Bonferroni with
/// weights). The unlikeliest gap is taken; the values below it are looked at again without those above, which they would be
/// measured by, until nothing is found.
pub fn apart(values: &[f64], level: f64) -> Option<Apart> {
    let mut sorted = finite(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let most = sorted.len().saturating_sub(1) / 2;
    let mut found = Apart { count: 0, chance: 0.0 };
    while let Some(next) = unlikeliest(&sorted[..sorted.len() - found.count], most - found.count)
        && next.chance <= level
    {
        found.count += next.count;
        found.chance = found.chance.max(next.chance);
    }
    (found.count > 0).then_some(found)
}

/// The gap that is least likely where nothing stands apart, among those below at most `most` of the largest values.
fn unlikeliest(sorted: &[f64], most: usize) -> Option<Apart> {
    let n = sorted.len();
    let groups = most.min(n.saturating_sub(1) / 2);
    let spacing = |j: usize| (n - j + 1) as f64 * (sorted[j - 1] - sorted[j - 2]);
    let weights = groups as f64 / (groups + 1) as f64;
    let chance = |k: usize| {
        let gap = n - k + 1;
        let below = (gap - 2).min((2.0 * (n as f64).sqrt()).ceil() as usize);
        let others: f64 = (gap - below..gap).map(spacing).sum();
        let alone = match (spacing(gap) > 0.0, others > 0.0) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => (1.0 + spacing(gap) / others).powf(-(below as f64)),
        };
        (alone * (k * (k + 1)) as f64 * weights).min(1.0)
    };
    let gaps = (1..=groups).map(|k| Apart { count: k, chance: chance(k) });
    gaps.min_by(|a, b| a.chance.total_cmp(&b.chance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const LEVEL: f64 = 0.05;

    fn normal(rng: &mut Rng) -> f64 {
        // Box and Muller 1958.
        (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
    }

    /// Share of draws without anything apart in which something is named.
    fn false_alarms(n: usize, runs: u64, draw: &dyn Fn(&mut Rng) -> f64) -> f64 {
        let mut rng = Rng::new(n as u64);
        let named = (0..runs)
            .filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| 100.0 + draw(&mut rng)).collect();
                apart(&values, LEVEL).is_some()
            })
            .count();
        named as f64 / runs as f64
    }

    #[test]
    fn equal_ranks_are_named_no_more_often_than_the_level_says() {
        type Draw<'a> = &'a dyn Fn(&mut Rng) -> f64;
        let laws: [(&str, Draw<'_>); 4] = [
            ("normal", &|rng| normal(rng)),
            ("uniform", &|rng| rng.unit()),
            ("exponential", &|rng| -(1.0 - rng.unit()).ln()),
            ("gamma 3", &|rng| (0..3).map(|_| -(1.0 - rng.unit()).ln()).sum()),
        ];
        for (law, draw) in laws {
            for n in [3, 4, 5, 8, 16, 64, 500] {
                let runs = if n > 100 { 400 } else { 4000 };
                let alarms = false_alarms(n, runs, draw);
                // Three standard errors of a share of 5 % of so many runs.
                let noise = 3.0 * (LEVEL * (1.0 - LEVEL) / runs as f64).sqrt();
                assert!(alarms <= LEVEL + noise, "{law}, {n} ranks: {alarms}");
            }
        }
    }

    /// Of exponential values the level is reached, not only kept: with one gap to look at it is exact.
    #[test]
    fn the_level_is_exact_for_exponential_values() {
        let alarms = false_alarms(4, 20_000, &|rng| -(1.0 - rng.unit()).ln());
        assert!((0.045..=0.055).contains(&alarms), "{alarms}");
    }

    #[test]
    fn slow_ones_are_found_alone_in_groups_and_among_many() {
        let mut rng = Rng::new(3);
        for (n, slow, by) in
            [(4, 1, 100.0), (8, 1, 20.0), (16, 3, 15.0), (64, 8, 10.0), (10_000, 1, 8.0), (10_000, 100, 9.0)]
        {
            let mut values: Vec<f64> = (0..n).map(|_| 100.0 + normal(&mut rng)).collect();
            values.iter_mut().take(slow).for_each(|value| *value += by);
            let found = apart(&values, LEVEL).unwrap_or_else(|| panic!("{n} {slow} {by}"));
            assert_eq!(found.count, slow, "{n}: {found:?}");
        }
    }

    #[test]
    fn slow_ones_of_different_times_do_not_hide_each_other() {
        let mut values: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 5)).collect();
        values.extend([200.0, 1000.0, 50_000.0]);
        assert_eq!(apart(&values, LEVEL).map(|found| found.count), Some(3));
    }

    #[test]
    fn too_few_values_and_equal_ones_name_nothing() {
        assert_eq!(apart(&[], LEVEL), None);
        assert_eq!(apart(&[1.0, 9e9], LEVEL), None);
        assert_eq!(apart(&[7.0; 50], LEVEL), None);
        assert_eq!(apart(&[1.0, 1.1, 1.2, 1.3], LEVEL), None);
        // Half of them are no exception.
        assert_eq!(apart(&[1.0, 1.0, 9.0, 9.0], LEVEL), None);
        // One of many that are exactly equal.
        assert_eq!(apart(&[0.0, 0.0, 0.0, 0.0, 5.0], LEVEL), Some(Apart { count: 1, chance: 0.0 }));
    }
}
