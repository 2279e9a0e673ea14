//! SHARDS (Waldspurger, Park, Garthwaite, Ahmad, FAST 2015): the LRU curve from a sample of blocks, in little memory.
//!
//! With a fixed rate, blocks whose hash is below a threshold are followed; distances are scaled by the rate. With a fixed size,
//! the threshold sinks to bound the number of followed blocks. The adjustment of the paper is made: references that
//! the sample has too many or too few count as hits in the smallest cache. The error is that of [`super::sample`].

use std::collections::BinaryHeap;

use super::ids::IdTable;
use super::sample::{GROUPS, HASHES, error_of, hash};
use super::stack::{COLD, Stack};

/// Buckets of scaled distances for each doubling: a size is off by at most 0.8 %.
const STEPS: u64 = 128;

/// Blocks below which the error of a sample is unknown: its parts hold less than eight each.
pub const MIN_FOLLOWED: u64 = 64;

/// How much is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// This share of the blocks, above 0 and up to 1.
    Rate(f64),
    /// Bound on followed blocks.
    Blocks(u32),
}

/// A sampled LRU curve in the making: the whole sample, and its parts for the error.
#[derive(Debug)]
pub struct Shards {
    whole: Follower,
    parts: Vec<Follower>,
    references: u64,
}

impl Shards {
    /// Nothing yet.
    pub fn new(sampling: Sampling) -> Self {
        let part = match sampling {
            Sampling::Rate(rate) => Sampling::Rate(rate),
            Sampling::Blocks(blocks) => Sampling::Blocks((blocks / GROUPS as u32).max(1)),
        };
        Shards {
            whole: Follower::new(sampling, 1.0),
            parts: (0..GROUPS).map(|_| Follower::new(part, 1.0 / GROUPS as f64)).collect(),
            references: 0,
        }
    }

    /// References to blocks, in order.
    pub fn references(&mut self, keys: &[u64]) {
        self.references += keys.len() as u64;
        for &key in keys {
            let (hash, group) = hash(key);
            if hash < self.whole.threshold {
                self.whole.reference(key, hash);
            }
            if let Some(part) = self.parts.get_mut(group).filter(|part| hash < part.threshold) {
                part.reference(key, hash);
            }
        }
    }

    /// The curve so far.
    pub fn finish(self) -> SampledCurve {
        SampledCurve {
            references: self.references,
            rate: self.whole.rate(),
            followed: u64::from(self.whole.stack.held()),
            whole: self.whole.finish(self.references),
            parts: self.parts.into_iter().map(|part| part.finish(self.references)).collect(),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        std::iter::once(&self.whole).chain(&self.parts).map(Follower::memory_bytes).sum()
    }
}

/// One sample: the blocks whose hash is below the threshold.
#[derive(Debug)]
struct Follower {
    threshold: u64,
    /// The share of all blocks that may come here at all.
    share: f64,
    most: usize,
    /// Hash and number of those followed, the highest hash first. Only where `most` limits them.
    highest: BinaryHeap<(u64, u32)>,
    ids: IdTable,
    stack: Stack,
    /// Weight of references by bucket of scaled distance.
    weights: Vec<f64>,
    /// Weight of all references followed.
    total: f64,
    /// Weight of one reference now. It grows as the threshold sinks, which equals shrinking the old weights.
    unit: f64,
}

impl Follower {
    fn new(sampling: Sampling, share: f64) -> Self {
        let (threshold, most) = match sampling {
            Sampling::Rate(rate) => {
                ((rate.clamp(0.0, 1.0) * HASHES as f64).ceil().max(1.0) as u64, usize::MAX)
            }
            Sampling::Blocks(blocks) => (HASHES, blocks.max(1) as usize),
        };
        Follower {
            threshold,
            share,
            most,
            highest: BinaryHeap::new(),
            ids: IdTable::default(),
            stack: Stack::new(),
            weights: Vec::new(),
            total: 0.0,
            unit: 1.0,
        }
    }

    /// The share of all blocks that is followed.
    fn rate(&self) -> f64 {
        self.threshold as f64 / HASHES as f64 * self.share
    }

    fn reference(&mut self, key: u64, hash: u64) {
        // A sample of more blocks than can be told apart stops growing; its rate was chosen far too high.
        let Ok(id) = self.ids.number(key) else { return };
        let distance = self.stack.distance(id);
        self.total += self.unit;
        if distance != COLD {
            let bucket = bucket((f64::from(distance) / self.rate()) as u64);
            if bucket >= self.weights.len() {
                self.weights.resize(bucket + 1, 0.0);
            }
            self.weights[bucket] += self.unit;
        } else if self.most != usize::MAX {
            self.highest.push((hash, id));
            if self.highest.len() > self.most {
                self.sink();
            }
        }
    }

    /// Lowers the threshold to the highest hash, and forgets those that are no longer below.
    fn sink(&mut self) {
        let Some(&(highest, _)) = self.highest.peek() else { return };
        let lowered = highest.max(1);
        self.unit *= self.threshold as f64 / lowered as f64;
        self.threshold = lowered;
        while let Some(&(hash, id)) = self.highest.peek() {
            if hash < lowered {
                break;
            }
            self.highest.pop();
            self.stack.forget(id);
        }
    }

    fn finish(self, references: u64) -> Hits {
        let expected = references as f64 * self.rate() * self.unit;
        // Too few or too many: the adjustment, counted as hits at once.
        let mut hits = expected - self.total;
        let within = self
            .weights
            .iter()
            .map(|weight| {
                hits += weight;
                hits
            })
            .collect();
        Hits { any: self.total > 0.0, within, expected, at_once: expected - self.total }
    }

    fn memory_bytes(&self) -> u64 {
        self.ids.memory_bytes()
            + self.stack.memory_bytes()
            + (self.highest.capacity() * 16 + self.weights.capacity() * 8) as u64
    }
}

/// Hits by bucket, summed up.
#[derive(Clone, Debug)]
struct Hits {
    /// Whether anything was followed: nothing says nothing, not that everything hits.
    any: bool,
    within: Vec<f64>,
    expected: f64,
    at_once: f64,
}

impl Hits {
    fn miss_ratio(&self, room: u64) -> f64 {
        if !self.any || self.expected <= 0.0 {
            return f64::NAN;
        }
        // A bucket counts when its lowest distance fits: sizes between the edges of one are off by at most a step.
        let hits = match self.within.len() {
            0 => self.at_once,
            length => self.within[bucket(room).min(length - 1)],
        };
        (1.0 - hits / self.expected).clamp(0.0, 1.0)
    }
}

/// Log-linear: [`STEPS`] buckets for each doubling, exact up to there.
fn bucket(distance: u64) -> usize {
    if distance < STEPS {
        return distance as usize;
    }
    let doublings = u64::from(distance.ilog2() - STEPS.ilog2());
    (doublings * STEPS + (distance >> doublings)) as usize
}

/// An LRU curve from a sample.
#[derive(Clone, Debug)]
pub struct SampledCurve {
    references: u64,
    rate: f64,
    followed: u64,
    whole: Hits,
    parts: Vec<Hits>,
}

impl SampledCurve {
    /// Miss ratio of a cache with room for `blocks` blocks; `None` when the sample is empty.
    pub fn miss_ratio(&self, room: u64) -> Option<f64> {
        Some(self.whole.miss_ratio(room)).filter(|ratio| ratio.is_finite())
    }

    /// Half the width of its 95 % interval; `None` when the sample is too small to tell ([`MIN_FOLLOWED`]).
    pub fn error(&self, room: u64) -> Option<f64> {
        if self.followed < MIN_FOLLOWED {
            return None;
        }
        let parts: Vec<f64> = self.parts.iter().map(|part| part.miss_ratio(room)).collect();
        error_of(&parts)
    }

    /// All references, sampled or not.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The share of blocks that was followed at the end.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Blocks that were followed at the end.
    pub fn followed(&self) -> u64 {
        self.followed
    }

    /// Distinct blocks of the trace, estimated.
    pub fn distinct(&self) -> f64 {
        if self.rate > 0.0 { self.followed as f64 / self.rate } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;
    use crate::curve::lru::LruCounter;

    /// Skewed references: the product of two uniform numbers, some of them scattered.
    fn trace(seed: u64, length: usize) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        (0..length).map(|_| (rng.below(400) + 1) * rng.below(400)).collect()
    }

    fn exact(keys: &[u64]) -> crate::curve::lru::LruCurve {
        let mut table = IdTable::default();
        let mut ids = Vec::new();
        table.numbers(keys, &mut ids).unwrap();
        let mut counter = LruCounter::new();
        counter.references(&ids);
        counter.finish()
    }

    #[test]
    fn a_sample_of_everything_is_exact_up_to_its_buckets() {
        let keys = trace(1, 50_000);
        let exact = exact(&keys);
        let mut shards = Shards::new(Sampling::Rate(1.0));
        shards.references(&keys);
        let sampled = shards.finish();
        assert_eq!(sampled.followed(), exact.distinct());
        for room in [1, 10, 127] {
            assert!((sampled.miss_ratio(room).unwrap() - exact.miss_ratio(room)).abs() < 1e-9);
        }
        for room in [1000, 5000, 20_000] {
            let between = exact.miss_ratio(room + room / 100)..=exact.miss_ratio(room);
            let ratio = sampled.miss_ratio(room).unwrap();
            assert!(between.contains(&ratio), "{ratio} {between:?}");
        }
    }

    #[test]
    fn samples_come_near_and_their_errors_mostly_cover() {
        let mut covered = 0;
        let mut asked = 0;
        for seed in 0..12 {
            let keys = trace(seed, 200_000);
            let exact = exact(&keys);
            for sampling in [Sampling::Rate(0.05), Sampling::Blocks(2000)] {
                let mut shards = Shards::new(sampling);
                // Another trace each time has other keys: shift them, or the same blocks would be chosen.
                let moved: Vec<u64> = keys.iter().map(|key| key + (seed << 32)).collect();
                shards.references(&moved);
                let sampled = shards.finish();
                for room in [500, 2000, 8000, 20_000] {
                    let off = (sampled.miss_ratio(room).unwrap() - exact.miss_ratio(room)).abs();
                    assert!(off < 0.2, "seed {seed} {sampling:?} room {room}: off by {off}");
                    asked += 1;
                    covered += usize::from(off <= sampled.error(room).unwrap());
                }
            }
        }
        // 95 % intervals of dependent answers: eight in ten is what a broken error would not reach.
        assert!(covered * 10 >= asked * 8, "{covered} of {asked}");
    }

    #[test]
    fn a_fixed_size_is_kept() {
        let keys: Vec<u64> = (0..200_000).collect();
        let mut shards = Shards::new(Sampling::Blocks(1000));
        shards.references(&keys);
        assert!(shards.whole.stack.held() <= 1000);
        let sampled = shards.finish();
        assert!((sampled.distinct() - 200_000.0).abs() < 40_000.0, "{}", sampled.distinct());
        assert_eq!(sampled.miss_ratio(100_000), Some(1.0));
    }

    #[test]
    fn an_empty_trace_has_no_ratio() {
        let sampled = Shards::new(Sampling::Rate(0.1)).finish();
        assert_eq!(sampled.miss_ratio(10), None);
        assert_eq!(sampled.error(10), None);
    }

    #[test]
    fn a_sample_of_nothing_says_nothing_and_one_of_little_not_how_far_off_it_is() {
        let keys: Vec<u64> = (0..1000).map(|i| i % 5).collect();
        let of = |rate| {
            let mut shards = Shards::new(Sampling::Rate(rate));
            shards.references(&keys);
            shards.finish()
        };
        let nothing = of(1e-9);
        assert_eq!((nothing.followed(), nothing.miss_ratio(3), nothing.error(3)), (0, None, None));
        let all = of(1.0);
        assert_eq!((all.followed(), all.error(3)), (5, None));
        assert!(all.miss_ratio(3).is_some());
    }

    #[test]
    fn buckets_go_up_without_gaps() {
        let mut last = 0;
        for distance in 0..100_000 {
            let here = bucket(distance);
            assert!(here == last || here == last + 1, "{distance}");
            last = here;
        }
        assert!(bucket(u64::MAX) < 10_000);
    }
}
