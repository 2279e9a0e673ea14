//! Shape of an LRU curve: steep falls, and the size from which more room brings little.
//!

use super::lru::LruCurve;

/// A steep fall: a little more room, and many misses are gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    /// The largest room before the fall.
    pub from: u64,
    /// The smallest room behind it.
    pub to: u64,
    /// The room at which half of the fall is done.
    pub middle: u64,
    /// Miss ratio before.
    pub before: f64,
    /// Miss ratio behind.
    pub behind: f64,
}

impl Cliff {
    /// Whether the fall is so narrow that it is most likely one loop over as many blocks as `middle`: all of its references
    /// have about the same distance.
    pub fn is_loop(&self) -> bool {
        self.to as f64 <= self.from as f64 * LOOP_WIDTH + 1.0
    }
}

/// A fall counts when the miss ratio drops by so much ...
const MIN_FALL: f64 = 0.05;
/// ... within this factor of room ...
const WIDEST: f64 = 1.35;
/// ... and at least this many times faster than the whole curve falls for the same factor of room.
const STEEPER: f64 = 4.0;
/// Edges narrower than this factor are one loop.
const LOOP_WIDTH: f64 = 1.15;
/// Share of the fall that is left to either side of the edges.
const TAIL: f64 = 0.05;
/// Maximum number of cliffs reported.
const MOST: usize = 3;
/// Sizes looked at for each doubling.
const STEPS: f64 = 16.0;

/// The steepest falls of a curve, in order of size.
pub fn cliffs(curve: &LruCurve) -> Vec<Cliff> {
    let enough = curve.enough();
    let mut sizes: Vec<u64> =
        (0..).map(|i| (f64::from(i) / STEPS).exp2() as u64).take_while(|size| *size <= enough).collect();
    sizes.push(enough.max(1));
    sizes.push(enough.saturating_add(enough / 4).max(2));
    sizes.dedup();
    let mut found: Vec<Cliff> = Vec::new();
    while found.len() < MOST {
        let free = |from: u64, to: u64| found.iter().all(|c| to <= c.from || from >= c.to);
        let best = sizes
            .iter()
            .filter_map(|&from| {
                let to = *sizes.iter().take_while(|size| **size as f64 <= from as f64 * WIDEST).last()?;
                (to > from && free(from, to))
                    .then(|| (curve.miss_ratio(from) - curve.miss_ratio(to), from, to))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((fall, from, to)) = best else { break };
        let whole = curve.miss_ratio(0) - curve.miss_ratio(enough);
        let doublings = (enough.max(2) as f64).log2();
        let even = whole / doublings * (to as f64 / from as f64).log2();
        if fall < MIN_FALL || fall < even * STEEPER {
            break;
        }
        found.push(narrowed(curve, from, to));
    }
    found.sort_by_key(|cliff| cliff.from);
    found
}

/// The same fall between the sizes where it really happens.
fn narrowed(curve: &LruCurve, from: u64, to: u64) -> Cliff {
    let (high, low) = (curve.misses(from) as f64, curve.misses(to) as f64);
    // Found for sure: at `to` there are as few misses.
    let reached = |share: f64| {
        let misses = (high - (high - low) * share).floor() as u64;
        curve.smallest(misses).unwrap_or(to).clamp(from, to)
    };
    let (first, last) = (reached(TAIL).saturating_sub(1).max(from), reached(1.0 - TAIL));
    Cliff {
        from: first,
        to: last,
        middle: reached(0.5),
        before: curve.miss_ratio(first),
        behind: curve.miss_ratio(last),
    }
}

/// The smallest room with which an LRU cache saves this share of the misses that any LRU cache can save. `None` when there is
/// nothing to save.
pub fn saves(curve: &LruCurve, share: f64) -> Option<u64> {
    let (all, best) = (curve.references(), curve.misses(u64::MAX));
    if all == best {
        return None;
    }
    curve.smallest((all as f64 - (all - best) as f64 * share).floor() as u64)
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;
    use crate::curve::lru::LruCounter;

    fn curve(ids: impl IntoIterator<Item = u32>) -> LruCurve {
        let mut counter = LruCounter::new();
        counter.references(&ids.into_iter().collect::<Vec<u32>>());
        counter.finish()
    }

    #[test]
    fn a_loop_is_a_cliff_of_its_own_length() {
        let found = cliffs(&curve((0..100_000).map(|i| i % 700)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].from == 699 && found[0].to == 700 && found[0].middle == 700 && found[0].is_loop());
        assert!(found[0].before == 1.0 && found[0].behind < 0.01);
    }

    #[test]
    fn two_loops_are_two_cliffs_and_the_larger_one_lies_behind_both() {
        // A loop of 100 twice in a row, then once through 2000 others.
        let pass = || (0..100).chain(0..100).chain(1000..3000);
        let found = cliffs(&curve((0..50).flat_map(|_| pass())));
        assert!(found.iter().any(|c| c.middle == 2100 && c.is_loop()), "{found:?}");
    }

    #[test]
    fn an_even_curve_has_no_cliff() {
        let mut rng = Rng::new(2);
        // Popularity that falls off evenly over all doublings.
        let ids = (0..200_000).map(|_| (rng.unit() * 13.0).exp2() as u32);
        assert_eq!(cliffs(&curve(ids)), []);
        assert_eq!(cliffs(&curve([])), []);
        assert_eq!(cliffs(&curve(0..1000)), []);
    }

    #[test]
    fn what_saves_how_much() {
        let loop_of_ten = curve((0..1000).map(|i| i % 10));
        assert_eq!(saves(&loop_of_ten, 0.9), Some(10));
        assert_eq!(saves(&curve(0..100), 0.9), None);
        assert_eq!(saves(&curve([]), 0.9), None);
    }
}
