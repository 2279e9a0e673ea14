//! The LRU curve, exact at every size, from one pass: how many references had which stack distance.
//!
//! What may not enter: sampling (see [`super::shards`]).

use super::stack::{COLD, Stack};

/// Collects the distances of a trace.
#[derive(Debug, Default)]
pub struct LruCounter {
    stack: Stack,
    /// References by distance; entry 0 counts first uses.
    counts: Vec<u64>,
    /// The same in bytes, where sizes are given and differ.
    bytes: Vec<u64>,
    references: u64,
    /// The bytes that the first reference moved.
    size: Option<u64>,
    total_bytes: u64,
}

impl LruCounter {
    /// Nothing yet.
    pub fn new() -> Self {
        LruCounter::default()
    }

    /// References to dense numbers, in order.
    pub fn references(&mut self, ids: &[u32]) {
        let counts = &mut self.counts;
        self.stack.distances(ids, |distance| count(counts, distance, 1));
        self.references += ids.len() as u64;
    }

    /// The same with the bytes that each reference moves. As long as all move equally many, bytes need no counts of their own.
    pub fn references_of_sizes(&mut self, ids: &[u32], bytes: &[u64]) {
        let one = self.size.or(bytes.first().copied()).unwrap_or(0);
        self.size = Some(one);
        self.total_bytes = bytes.iter().fold(self.total_bytes, |sum, bytes| sum.saturating_add(*bytes));
        if self.bytes.is_empty() {
            if bytes.iter().all(|bytes| *bytes == one) {
                self.references(ids);
                return;
            }
            self.bytes = self.counts.iter().map(|count| count.saturating_mul(one)).collect();
        }
        let (counts, sums) = (&mut self.counts, &mut self.bytes);
        let mut sizes = bytes.iter();
        self.stack.distances(ids, |distance| {
            count(counts, distance, 1);
            count(sums, distance, sizes.next().copied().unwrap_or(0));
        });
        self.references += ids.len() as u64;
    }

    /// The curve so far.
    pub fn finish(self) -> LruCurve {
        LruCurve {
            distinct: u64::from(self.stack.held()),
            references: self.references,
            misses: remaining(self.counts, self.references),
            total_bytes: self.total_bytes,
            missed_bytes: remaining(self.bytes, self.total_bytes),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        self.stack.memory_bytes() + (self.counts.capacity() + self.bytes.capacity()) as u64 * 8
    }
}

#[inline]
fn count(counts: &mut Vec<u64>, distance: u32, weight: u64) {
    let at = distance as usize;
    if at >= counts.len() {
        counts.resize((at + 1).next_power_of_two(), 0);
    }
    counts[at] = counts[at].saturating_add(weight);
}

/// From counts by distance to what misses at each size: entry `s` is the whole less all hits up to distance `s`.
fn remaining(mut counts: Vec<u64>, whole: u64) -> Vec<u64> {
    if let Some(cold) = counts.get_mut(COLD as usize) {
        *cold = 0;
    }
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    counts.truncate(last + 1);
    let mut left = whole;
    for entry in &mut counts {
        left = left.saturating_sub(*entry);
        *entry = left;
    }
    counts
}

/// The LRU curve of a trace, exact at every size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LruCurve {
    distinct: u64,
    references: u64,
    /// Misses with room for so many blocks, up to where nothing changes any more.
    misses: Vec<u64>,
    total_bytes: u64,
    missed_bytes: Vec<u64>,
}

impl LruCurve {
    /// Distinct blocks: as many first uses miss in any cache.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// All references.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// References that miss a cache with room for so many blocks.
    pub fn misses(&self, room: u64) -> u64 {
        at(&self.misses, room).unwrap_or(self.references)
    }

    /// Their share; 0 for a trace without references.
    pub fn miss_ratio(&self, room: u64) -> f64 {
        share(self.misses(room), self.references)
    }

    /// Whether bytes were counted apart: sizes were given and differ.
    pub fn sizes_differ(&self) -> bool {
        !self.missed_bytes.is_empty()
    }

    /// Share of bytes that miss; `None` where sizes were not given or are all the same.
    pub fn byte_miss_ratio(&self, room: u64) -> Option<f64> {
        Some(share(at(&self.missed_bytes, room)?, self.total_bytes))
    }

    /// The smallest cache that an LRU cache of any size can do no better than.
    pub fn enough(&self) -> u64 {
        (self.misses.len() as u64).saturating_sub(1)
    }

    /// The smallest cache that misses at most so many references; `None` when no cache does.
    pub fn smallest(&self, misses: u64) -> Option<u64> {
        let at = self.misses.partition_point(|left| *left > misses);
        (at < self.misses.len()).then_some(at as u64)
    }
}

fn at(remaining: &[u64], room: u64) -> Option<u64> {
    let last = remaining.len().checked_sub(1)?;
    remaining.get(usize::try_from(room).unwrap_or(usize::MAX).min(last)).copied()
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::{PolicyId, bulk};

    proptest! {
        #[test]
        fn the_curve_is_what_lru_caches_do(ids in prop::collection::vec(prop_oneof![0u32..10, 0u32..80], 0..800)) {
            let mut counter = LruCounter::new();
            counter.references(&ids);
            let curve = counter.finish();
            for room in [1usize, 2, 3, 7, 20, 79, 80, 500] {
                prop_assert_eq!(curve.misses(room as u64), bulk(PolicyId::Lru, room).unwrap().references(&ids));
            }
            prop_assert_eq!(curve.misses(0), ids.len() as u64);
            prop_assert_eq!(curve.misses(curve.enough()), curve.distinct());
        }
    }

    #[test]
    fn bytes_are_counted_apart() {
        let mut counter = LruCounter::new();
        counter.references_of_sizes(&[0, 1, 0, 1], &[100, 1, 100, 1]);
        let curve = counter.finish();
        assert_eq!(curve.miss_ratio(2), 0.5);
        assert_eq!(curve.byte_miss_ratio(2), Some(0.5));
        assert_eq!(curve.byte_miss_ratio(1), Some(1.0));
        let mut counter = LruCounter::new();
        counter.references_of_sizes(&[0, 1, 1], &[1, 9, 9]);
        assert_eq!(counter.finish().byte_miss_ratio(1), Some(10.0 / 19.0));
    }

    #[test]
    fn equal_sizes_need_no_counts_and_the_first_other_one_finds_the_sums_of_before() {
        let mut counter = LruCounter::new();
        counter.references_of_sizes(&[0, 0, 1], &[5, 5, 5]);
        counter.references_of_sizes(&[1, 0], &[5, 85]);
        let curve = counter.finish();
        // Room for one: the first uses and the last reference miss.
        assert_eq!((curve.misses(1), curve.byte_miss_ratio(1)), (3, Some(95.0 / 105.0)));
        let mut counter = LruCounter::new();
        counter.references_of_sizes(&[0, 0, 1], &[5, 5, 5]);
        let curve = counter.finish();
        assert!(!curve.sizes_differ() && curve.byte_miss_ratio(1).is_none() && curve.misses(1) == 2);
    }

    #[test]
    fn an_empty_trace_has_an_empty_curve() {
        let curve = LruCounter::new().finish();
        assert_eq!((curve.miss_ratio(1), curve.misses(0), curve.enough()), (0.0, 0, 0));
        assert_eq!(curve.byte_miss_ratio(1), None);
    }

    #[test]
    fn the_smallest_cache_for_a_number_of_misses() {
        let mut counter = LruCounter::new();
        counter.references(&(0..1000).map(|i| i % 10).collect::<Vec<u32>>());
        let curve = counter.finish();
        assert_eq!(curve.smallest(10), Some(10));
        assert_eq!(curve.smallest(9), None);
        assert_eq!(curve.smallest(1000), Some(0));
    }
}
