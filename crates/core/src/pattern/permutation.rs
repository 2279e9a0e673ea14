//! A seeded permutation of 0..n without a table.
//!
//! Goal: an order that looks random to a read-ahead heuristic, in constant memory and a few nanoseconds a step.
//! Non-goal: cryptographic strength, or every one of the n! orders being reachable.

use crate::rng::Rng;

/// Multiplications in one window.
const ROUNDS: usize = 3;

/// A bijection on a power of two made of steps that are each invertible modulo 2^k (addition, multiplication by an odd
/// number, xor with the own upper half), applied to two windows that overlap and together cover 0..n: the first 2^k
/// positions, then the last, with 2^k the greatest power of two up to n. A position outside a window stays, and a last
/// pass over the first window lets the positions beyond it go everywhere too. No branch depends on the position,
/// unlike in cycle walking, whose mispredicted ones cost more than all the arithmetic.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    /// Positions beyond the first window.
    beyond: u64,
    mask: u64,
    half: u32,
    passes: [Pass; 3],
}

/// The random numbers of one pass over a window.
#[derive(Clone, Copy, Debug)]
struct Pass {
    offset: u64,
    factors: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of 0..`len`.
    pub(super) fn new(len: u64, rng: &mut Rng) -> Self {
        let bits = len.max(1).ilog2();
        let window = 1 << bits;
        Permutation {
            beyond: len.max(1) - window,
            mask: window - 1,
            half: bits.div_ceil(2).max(1),
            passes: std::array::from_fn(|_| Pass {
                offset: rng.next_u64(),
                factors: std::array::from_fn(|_| rng.next_u64() | 1),
            }),
        }
    }

    /// The image of `position`; both are below the length. A length of 0 is treated as 1.
    #[inline]
    pub(super) fn apply(&self, position: u64) -> u64 {
        let [first, last, again] = &self.passes;
        let x = self.shuffle(position, 0, first);
        // One window is all there is: a branch on the length alone, always predicted.
        if self.beyond == 0 {
            return x;
        }
        let x = self.shuffle(x, self.beyond, last);
        self.shuffle(x, 0, again)
    }

    /// One pass over the window that starts at `start`.
    #[inline]
    fn shuffle(&self, position: u64, start: u64, pass: &Pass) -> u64 {
        let inside = position.wrapping_sub(start);
        let mut x = inside.wrapping_add(pass.offset) & self.mask;
        for factor in pass.factors {
            x ^= x >> self.half;
            x = x.wrapping_mul(factor) & self.mask;
        }
        x ^= x >> self.half;
        if inside <= self.mask { start + x } else { position }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_value_comes_exactly_once_for_every_length() {
        let mut rng = Rng::new(3);
        for len in (1..=130).chain([1000, 4095, 4096, 4097]) {
            let p = Permutation::new(len, &mut rng);
            let mut seen: Vec<u64> = (0..len).map(|i| p.apply(i)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "length {len}");
        }
    }

    #[test]
    fn the_greatest_lengths_stay_in_bounds() {
        let mut rng = Rng::new(4);
        for len in [(1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX] {
            let p = Permutation::new(len, &mut rng);
            assert!((0..1000).all(|i| p.apply(i) < len));
        }
        assert_eq!(Permutation::new(0, &mut rng).apply(0), 0);
    }

    /// A read-ahead heuristic looks for a constant distance between consecutive offsets, +1 above all. In a random order of
    /// 65,536 blocks a given distance is expected less than once, and the most frequent one occurs 7 or 8 times; a few
    /// unlucky factors repeat one up to some 70 times, a tenth of a per cent.
    #[test]
    fn no_distance_between_neighbours_is_common() {
        for len in [1u64 << 16, 50_000, (1 << 16) + 64] {
            for seed in 0..20 {
                let p = Permutation::new(len, &mut Rng::new(seed));
                let mut distances: HashMap<i64, u32> = HashMap::new();
                for i in 1..len {
                    *distances.entry(p.apply(i) as i64 - p.apply(i - 1) as i64).or_default() += 1;
                }
                let most = distances.iter().max_by_key(|(_, n)| **n).unwrap();
                let steps = distances.get(&1).copied().unwrap_or(0);
                assert!(steps <= 10, "{len} blocks, seed {seed}: {steps} sequential steps");
                assert!(*most.1 <= 100, "{len} blocks, seed {seed}: distance {most:?}");
            }
        }
    }
}
