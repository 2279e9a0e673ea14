//! The generator of block indices: a few nanoseconds a step, and no allocation after the start.

use super::Pattern;
use super::permutation::Permutation;
use super::zipf::Zipf;
use crate::rng::Rng;

/// An endless sequence of block indices below `blocks`.
#[derive(Clone, Debug)]
pub struct Offsets {
    pattern: Pattern,
    blocks: u64,
    seed: u64,
    /// First block of the section this generator covers.
    first: u64,
    /// Blocks in that section, at least 1.
    len: u64,
    order: Order,
}

/// State of a sequence over 0..len.
#[derive(Clone, Debug)]
enum Order {
    Ascending { at: u64 },
    Descending { left: u64 },
    Stride { at: u64, lap: u64, step: u64 },
    Permuted { at: u64, cycle: Permutation, rng: Rng },
    Random { rng: Rng },
    Zipf { law: Zipf, scatter: Permutation, rng: Rng },
}

impl Offsets {
    /// The sequence of a single thread over a whole region. A region of 0 blocks counts as one block: that nothing
    /// fits is for the caller to refuse.
    pub fn new(pattern: Pattern, blocks: u64, seed: u64) -> Self {
        let blocks = blocks.max(1);
        Offsets { pattern, blocks, seed, first: 0, len: blocks, order: Order::new(pattern, blocks, seed, 0) }
    }

    /// The sequence of thread `thread` of `threads`, from its start.
    ///
    /// Patterns that visit every block once are cut into contiguous sections, one a thread, disjoint and together
    /// covering the region: threads that all walk the whole of one file would read it once from the device and
    /// then from the cache, and claim it `threads` times. (With fewer blocks than threads, blocks are shared.)
    /// Random and Zipf threads draw independently from the whole region; all Zipf threads have the same hot blocks.
    #[must_use]
    pub fn for_thread(&self, thread: usize, threads: usize) -> Self {
        let (thread, threads) = (thread as u64, threads.max(1) as u64);
        let (first, len) = if self.pattern.revisits() {
            (0, self.blocks)
        } else {
            let thread = thread % threads;
            let start = |t: u64| (u128::from(self.blocks) * u128::from(t) / u128::from(threads)) as u64;
            let first = start(thread);
            (first, (start(thread + 1) - first).max(1))
        };
        Offsets { first, len, order: Order::new(self.pattern, len, self.seed, thread), ..*self }
    }

    /// Requests in one cycle: as many as there are blocks in the section. Unless the pattern
    /// [revisits](Pattern::revisits), one cycle requests each of them once.
    pub fn cycle(&self) -> u64 {
        self.len
    }

    /// The next block index.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an Option that is never None would cost the hot loop a test"
    )]
    pub fn next(&mut self) -> u64 {
        self.first + self.order.next(self.len)
    }
}

impl Order {
    fn new(pattern: Pattern, len: u64, seed: u64, thread: u64) -> Self {
        // Shared by all threads.
        let mut common = Rng::new(seed);
        // Outputs, not seeds: generators whose seeds differ by a small number could overlap.
        let mut rng = Rng::new(common.next_u64() ^ Rng::new(thread).next_u64());
        match pattern {
            Pattern::Sequential => Order::Ascending { at: 0 },
            Pattern::Reverse => Order::Descending { left: len },
            Pattern::Stride(step) => Order::Stride { at: 0, lap: 0, step: step.clamp(1, len) },
            Pattern::Permuted => Order::Permuted { at: 0, cycle: Permutation::new(len, &mut rng), rng },
            Pattern::Random => Order::Random { rng },
            Pattern::Zipf(theta) => {
                Order::Zipf { law: Zipf::new(theta, len), scatter: Permutation::new(len, &mut common), rng }
            }
        }
    }

    #[inline]
    fn next(&mut self, len: u64) -> u64 {
        match self {
            Order::Ascending { at } => {
                let block = *at;
                *at = if block + 1 == len { 0 } else { block + 1 };
                block
            }
            Order::Descending { left } => {
                let block = *left - 1;
                *left = if block == 0 { len } else { block };
                block
            }
            Order::Stride { at, lap, step } => {
                let block = *at;
                // Not `at + step`, which may overflow.
                if len - block > *step {
                    *at = block + *step;
                } else {
                    *lap = if *lap + 1 == *step { 0 } else { *lap + 1 };
                    *at = *lap;
                }
                block
            }
            Order::Permuted { at, cycle, rng } => {
                if *at == len {
                    *at = 0;
                    *cycle = Permutation::new(len, rng);
                }
                let block = cycle.apply(*at);
                *at += 1;
                block
            }
            Order::Random { rng } => rng.below(len),
            Order::Zipf { law, scatter, rng } => scatter.apply(law.sample(rng) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(offsets: &mut Offsets, n: u64) -> Vec<u64> {
        (0..n).map(|_| offsets.next()).collect()
    }

    fn once_each() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            Just(Pattern::Sequential),
            Just(Pattern::Reverse),
            Just(Pattern::Permuted),
            (0u64..40).prop_map(Pattern::Stride),
        ]
    }

    fn any_pattern() -> impl Strategy<Value = Pattern> {
        prop_oneof![once_each(), Just(Pattern::Random), (0.0..3.0).prop_map(Pattern::Zipf)]
    }

    #[test]
    fn known_sequences() {
        let of = |pattern, blocks| take(&mut Offsets::new(pattern, blocks, 1), 8);
        assert_eq!(of(Pattern::Sequential, 5), [0, 1, 2, 3, 4, 0, 1, 2]);
        assert_eq!(of(Pattern::Reverse, 5), [4, 3, 2, 1, 0, 4, 3, 2]);
        assert_eq!(of(Pattern::Stride(2), 5), [0, 2, 4, 1, 3, 0, 2, 4]);
        assert_eq!(of(Pattern::Stride(3), 6), [0, 3, 1, 4, 2, 5, 0, 3]);
        assert_eq!(of(Pattern::Stride(9), 3), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(of(Pattern::Permuted, 0), [0; 8]);
        assert_eq!(take(&mut Offsets::new(Pattern::Sequential, 10, 1).for_thread(2, 3), 5), [6, 7, 8, 9, 6]);
    }

    #[test]
    fn each_cycle_of_a_permutation_and_each_thread_has_its_own_order() {
        let base = Offsets::new(Pattern::Permuted, 1000, 5);
        let mut one = base.clone();
        assert_ne!(take(&mut one, 1000), take(&mut one, 1000));
        for pattern in [Pattern::Random, Pattern::Zipf(0.5)] {
            let base = Offsets::new(pattern, 1000, 5);
            assert_ne!(take(&mut base.for_thread(0, 2), 100), take(&mut base.for_thread(1, 2), 100));
        }
    }

    #[test]
    fn zipf_threads_share_their_hottest_block_and_it_is_not_always_the_first() {
        let hottest = |seed, thread| {
            let mut counts = [0; 64];
            let mut offsets = Offsets::new(Pattern::Zipf(1.2), 64, seed).for_thread(thread, 4);
            take(&mut offsets, 5000).into_iter().for_each(|block| counts[block as usize] += 1);
            (0..64).max_by_key(|&block| counts[block])
        };
        let by_seed: Vec<_> = (0..5).map(|seed| hottest(seed, 0)).collect();
        assert!((1..4).all(|thread| hottest(2, thread) == by_seed[2]));
        assert!(by_seed.iter().any(|block| *block != by_seed[0]), "the seed scatters the ranks: {by_seed:?}");
    }

    #[test]
    fn uniform_draws_are_uniform() {
        let mut counts = [0u32; 50];
        take(&mut Offsets::new(Pattern::Random, 50, 3), 100_000)
            .into_iter()
            .for_each(|b| counts[b as usize] += 1);
        let chi_square: f64 = counts.iter().map(|&n| (f64::from(n) - 2000.0).powi(2) / 2000.0).sum();
        // 99.9 % quantile of chi-square with 49 degrees of freedom.
        assert!(chi_square < 85.35, "{chi_square}");
    }

    proptest! {
        #[test]
        fn threads_are_disjoint_and_cover_every_block_once_a_cycle(
            pattern in once_each(), blocks in 1u64..300, threads in 1usize..9, seed: u64,
        ) {
            prop_assume!(blocks >= threads as u64);
            let base = Offsets::new(pattern, blocks, seed);
            let mut of: Vec<Offsets> = (0..threads).map(|t| base.for_thread(t, threads)).collect();
            for _cycle in 0..2 {
                let mut seen: Vec<u64> = of.iter_mut().flat_map(|o| { let n = o.cycle(); take(o, n) }).collect();
                seen.sort_unstable();
                prop_assert!(seen.into_iter().eq(0..blocks));
            }
        }

        #[test]
        fn all_stays_in_bounds_and_repeats_with_its_seed(
            pattern in any_pattern(), shift in 0u32..64, wide: u64, threads in 0usize..100, thread in 0usize..100,
            seed: u64,
        ) {
            let blocks = wide >> shift;
            let mut a = Offsets::new(pattern, blocks, seed).for_thread(thread, threads);
            let mut b = a.for_thread(0, 1).for_thread(thread, threads);
            for _ in 0..50 {
                let block = a.next();
                prop_assert!(block < blocks.max(1));
                prop_assert_eq!(block, b.next());
            }
        }
    }
}
