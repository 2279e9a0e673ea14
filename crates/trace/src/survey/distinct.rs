//! How many different things: exact up to a stated number, then from a sample that is chosen by hash.
//!
//! A thing is in the sample if its hash is below a threshold; when the table is full the threshold is halved and everything
//! above it is thrown out. So the sample is as good at the end as if its size had been known before (Waldspurger
//! et al., FAST 2015, for cache curves). Invariant: memory is `MAX_KEPT` entries a table, about 40 MiB.

use crate::hash;
use rustc_hash::FxHashMap;

/// Size of the sample; up to it the result is exact.
const MAX_KEPT: usize = 1 << 20;

/// Bytes of the blocks in which addresses are counted.
pub const BLOCK_BYTES: u64 = 4096;

/// Blocks that share an entry.
const CHUNK_BLOCKS: u64 = 64;

/// Entries that one request may touch: 64 GiB; of a larger one the beginning counts.
const MAX_CHUNKS: u64 = 1 << 18;

/// Bytes of a request that are counted in any case; of a larger one only the beginning may be.
pub const MAX_BYTES: u64 = (MAX_CHUNKS - 1) * CHUNK_BLOCKS * BLOCK_BYTES;

/// An amount and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// The best guess.
    pub value: f64,
    /// Half the width of the interval that holds the truth in 95 of 100 cases, in the unit of the value; 0: it is exact.
    pub error: f64,
}

/// A table of things by hash, with a weight each.
#[derive(Debug)]
struct Sample {
    kept: FxHashMap<u64, u64>,
    /// A thing is kept if its hash is below 2^64 divided by 2^halvings.
    halvings: u32,
    most: usize,
}

impl Sample {
    fn new(most: usize) -> Sample {
        Sample { kept: FxHashMap::default(), halvings: 0, most: most.max(1) }
    }

    /// Changes the weight of a thing.
    #[inline]
    fn add(&mut self, hash: u64, change: impl FnOnce(&mut u64)) {
        if self.halvings > 0 && hash.leading_zeros() < self.halvings {
            return;
        }
        change(self.kept.entry(hash).or_default());
        while self.kept.len() > self.most {
            self.halvings += 1;
            let halvings = self.halvings;
            self.kept.retain(|hash, _| hash.leading_zeros() >= halvings);
        }
    }

    /// The sum of what `of` makes of the weights, over all things and not only those in the sample.
    fn total(&self, of: impl Fn(u64) -> f64) -> Amount {
        let (sum, squares) = self.kept.values().fold((0.0, 0.0), |(sum, squares), weight| {
            let value = of(*weight);
            (sum + value, squares + value * value)
        });
        let rate = 0.5f64.powi(self.halvings as i32);
        // Each thing is in with probability `rate`: the variance of the sum over it is (1 - rate) / rate^2 times the
        // squares.
        let deviation = ((1.0 - rate) * squares).sqrt() / rate;
        Amount { value: sum / rate, error: 1.96 * deviation }
    }
}

/// Different keys with their largest sizes.
#[derive(Debug)]
pub struct Keys(Sample);

impl Default for Keys {
    fn default() -> Self {
        Keys::new()
    }
}

impl Keys {
    /// None yet.
    pub fn new() -> Keys {
        Keys(Sample::new(MAX_KEPT))
    }

    /// Takes a key.
    #[inline]
    pub fn add(&mut self, key: u64, bytes: u64) {
        // `mix` leaves 0 where it is; the constant moves it into the crowd.
        self.0.add(hash::mix(key ^ 0x6a09_e667_f3bc_c908), |size| *size = (*size).max(bytes));
    }

    /// How many.
    pub fn count(&self) -> Amount {
        self.0.total(|_| 1.0)
    }

    /// Their sizes together.
    pub fn weight(&self) -> Amount {
        self.0.total(|bytes| bytes as f64)
    }
}

/// Different blocks of many objects.
#[derive(Debug)]
pub struct Blocks {
    sample: Sample,
    /// Ranges of which only the beginning was counted.
    cut: u64,
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks::new()
    }
}

impl Blocks {
    /// None yet.
    pub fn new() -> Blocks {
        Blocks { sample: Sample::new(MAX_KEPT), cut: 0 }
    }

    /// Takes a range of bytes of an object.
    pub fn add(&mut self, object: u64, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let first = offset / BLOCK_BYTES;
        let last = offset.saturating_add(bytes - 1) / BLOCK_BYTES;
        let (from, to) = (first / CHUNK_BLOCKS, last / CHUNK_BLOCKS);
        let beyond_the_end = offset.checked_add(bytes - 1).is_none();
        self.cut += u64::from(beyond_the_end || to - from >= MAX_CHUNKS);
        for chunk in from..=to.min(from.saturating_add(MAX_CHUNKS - 1)) {
            let low = if chunk == from { first % CHUNK_BLOCKS } else { 0 };
            let high = if chunk == to { last % CHUNK_BLOCKS } else { CHUNK_BLOCKS - 1 };
            let mask = u64::MAX << low & u64::MAX >> (CHUNK_BLOCKS - 1 - high);
            self.sample
                .add(hash::mix(hash::mix(object ^ 0x6a09_e667_f3bc_c908) ^ chunk), |blocks| *blocks |= mask);
        }
    }

    /// Ranges of more than [`MAX_BYTES`], or beyond the last address, of which only the beginning was counted.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Their bytes together; where ranges were [cut](Blocks::cut), at least this many.
    pub fn bytes(&self) -> Amount {
        self.sample.total(|blocks| f64::from(blocks.count_ones()) * BLOCK_BYTES as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_estimate_holds_the_truth_within_its_error() {
        let mut inside = 0;
        for seed in 0..40u64 {
            let mut keys = Keys(Sample::new(1000));
            for i in 0..100_000u64 {
                // Every key comes several times.
                keys.add(hash::mix(seed * 1_000_003 + i % 50_000), 3);
            }
            let (count, weight) = (keys.count(), keys.weight());
            assert!(count.error > 0.0 && (weight.value - 3.0 * count.value).abs() < 1e-6 * weight.value);
            inside += u32::from((count.value - 50_000.0).abs() <= count.error);
        }
        // 38 are expected; fewer than 31 occur once in 20,000 runs.
        assert!(inside >= 31, "{inside} of 40");
    }

    #[test]
    fn a_large_request_counts_its_blocks_once() {
        let mut blocks = Blocks::new();
        blocks.add(1, 4095, 2);
        blocks.add(1, 0, 1 << 30);
        blocks.add(1, 1 << 29, 1 << 30);
        blocks.add(2, 0, 1);
        blocks.add(2, 5, 0);
        let bytes = blocks.bytes();
        assert_eq!(bytes, Amount { value: ((1u64 << 30) + (1 << 29) + 4096) as f64, error: 0.0 });
    }

    #[test]
    fn a_request_too_large_to_count_is_known_to_be() {
        let mut blocks = Blocks::new();
        blocks.add(1, 0, MAX_BYTES);
        assert_eq!((blocks.cut(), blocks.bytes().value), (0, MAX_BYTES as f64));
        blocks.add(2, 0, 1 << 40);
        blocks.add(3, u64::MAX, u64::MAX);
        assert_eq!(blocks.cut(), 2);
    }

    proptest! {
        #[test]
        fn below_the_limit_the_count_is_exact(ranges in prop::collection::vec((0u64..3, 0u64..1 << 20, 1u64..1 << 18), 1..30)) {
            let mut blocks = Blocks::new();
            let mut truth = std::collections::HashSet::new();
            for (object, offset, bytes) in ranges {
                blocks.add(object, offset, bytes);
                truth.extend((offset / BLOCK_BYTES..=(offset + bytes - 1) / BLOCK_BYTES).map(|block| (object, block)));
            }
            prop_assert_eq!(blocks.bytes(), Amount { value: (truth.len() as u64 * BLOCK_BYTES) as f64, error: 0.0 });
        }
    }
}
