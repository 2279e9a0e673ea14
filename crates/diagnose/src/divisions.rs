//! Where counts in steps of time change.
//!
//! Steps are divided where the sums of ranks before and behind a step differ more than in 199 random orders of the same steps (a permutation
//! test at 1 % on the maximum over all places; no law of the values is assumed), then their parts again. Steps that follow each other are not
//! independent, so a division is no proof of a cause: who uses it asks that it matters as well.

use std::ops::Range;

use iowhy_core::rng::Rng;

/// Fewest steps of a part: fewer tell no rate.
pub(crate) const MIN_STEPS: usize = 5;
/// The level of a change: it must stand out among all orders.
pub(crate) const LEVEL: f64 = 0.01;
/// Orders of the steps that it is compared with.
const ORDERS: usize = 199;

/// The parts of the steps of two series, in their order.
pub(crate) fn parts(series: &[Vec<f64>; 2]) -> Vec<Range<usize>> {
    let steps = series[0].len();
    let mut places = vec![0, steps];
    let mut open = vec![(0, steps)];
    while let Some((first, end)) = open.pop() {
        if let Some(at) = change(series, first, end) {
            places.push(at);
            open.extend([(first, at), (at, end)]);
        }
    }
    places.sort_unstable();
    places.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Where the steps change most, if that stands out.
fn change(rates: &[Vec<f64>; 2], first: usize, end: usize) -> Option<usize> {
    let n = end - first;
    if n < 2 * MIN_STEPS {
        return None;
    }
    let ranks = [ranks(&rates[0][first..end]), ranks(&rates[1][first..end])];
    let mut order: Vec<usize> = (0..n).collect();
    let (at, most) = strongest(&ranks, &order);
    let mut rng = Rng::new(n as u64);
    let mut as_strong = 1;
    for _ in 0..ORDERS {
        rng.shuffle(&mut order);
        as_strong += usize::from(strongest(&ranks, &order).1 >= most);
    }
    (most > 0.0 && as_strong as f64 / (ORDERS + 1) as f64 <= LEVEL).then_some(first + at)
}

/// The place with the largest difference of ranks before and behind it, in units of its variance (a two-sample rank statistic at
/// each place, both series added).
fn strongest(ranks: &[Vec<f64>; 2], order: &[usize]) -> (usize, f64) {
    let n = order.len() as f64;
    let mut sums = [0.0; 2];
    let mut found = (0, 0.0);
    for (at, step) in order.iter().enumerate() {
        let before = at + 1;
        for (sum, ranks) in sums.iter_mut().zip(ranks) {
            *sum += ranks[*step];
        }
        if before < MIN_STEPS || order.len() - before < MIN_STEPS {
            continue;
        }
        let k = before as f64;
        let value: f64 = sums.iter().map(|sum| sum * sum).sum::<f64>() * n / (k * (n - k));
        if value > found.1 {
            found = (before, value);
        }
    }
    found
}

/// Ranks about 0, equal ones shared, in units of their deviation; all 0 where all values are equal.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let centre = (values.len() - 1) as f64 / 2.0;
    let mut at = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let shared = at as f64 + (equal.len() - 1) as f64 / 2.0 - centre;
        equal.iter().for_each(|step| ranks[*step] = shared);
        at += equal.len();
    }
    let deviation = (ranks.iter().map(|rank| rank * rank).sum::<f64>() / values.len() as f64).sqrt();
    if deviation > 0.0 {
        ranks.iter_mut().for_each(|rank| *rank /= deviation);
    }
    ranks
}
