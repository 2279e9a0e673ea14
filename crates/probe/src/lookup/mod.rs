//! What it costs to find a buffer or a page by its number, in three structures that kernels have used: a splay tree (FreeBSD
//! of 2006), a hash table with chains, a radix tree of 64 children (Linux). Small ones of our own, timed in memory.
//!
//! Non-goal: a structure that anything else here uses. Invariant: every node has a cache line of its own and lies where chance
//! put it, as a kernel's pages do; keys are drawn before the clock starts.

mod hash;
mod radix;
mod splay;

use iowhy_core::rng::Rng;

use crate::clock::Clock;

/// A structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Sleator and Tarjan's self-adjusting tree: what was found last is at its root.
    Splay,
    /// Chains by a multiplicative hash, as many as there are keys.
    Hash,
    /// Six bits of the key a level.
    Radix,
}

impl Structure {
    /// All of them.
    pub const ALL: [Structure; 3] = [Structure::Splay, Structure::Hash, Structure::Radix];

    /// The name in records.
    pub fn id(self) -> &'static str {
        match self {
            Structure::Splay => "splay",
            Structure::Hash => "hash",
            Structure::Radix => "radix",
        }
    }

    fn build(self, keys: &[u64]) -> Box<dyn Find> {
        match self {
            Structure::Splay => Box::new(splay::Splay::new(keys)),
            Structure::Hash => Box::new(hash::Chains::new(keys)),
            Structure::Radix => Box::new(radix::Radix::new(keys)),
        }
    }
}

/// Looking up. A splay tree changes by it.
trait Find {
    /// Whether the key is there.
    fn find(&mut self, key: u64) -> bool;
}

/// Keys that are looked up between two readings of the clock.
const BATCH: usize = 20_000;
/// Numbers of keys at most: more would only fill memory.
const MAX_KEYS: u64 = 1 << 24;

/// Nanoseconds per look-up among `keys` numbers from 0 on, ascending or random, one value a round. Keys and memory
/// are drawn from the seed.
pub fn measure(structure: Structure, keys: u64, in_order: bool, rounds: usize, seed: u64) -> Vec<f64> {
    let keys = keys.clamp(1, MAX_KEYS);
    let mut rng = Rng::new(seed);
    let mut places: Vec<u64> = (0..keys).collect();
    rng.shuffle(&mut places);
    let mut built = structure.build(&places);
    let clock = Clock::real();
    let mut next = 0;
    let mut wanted = vec![0u64; BATCH];
    // The first batch only warms up.
    let mut times: Vec<f64> = (0..=rounds)
        .map(|_| {
            for key in &mut wanted {
                *key = if in_order { next } else { rng.below(keys) };
                next = (next + 1) % keys;
            }
            let begun_ns = clock.now_ns();
            let found = wanted.iter().filter(|key| built.find(**key)).count();
            let took_ns = clock.now_ns().saturating_sub(begun_ns);
            std::hint::black_box(found);
            took_ns as f64 / BATCH as f64
        })
        .collect();
    times.remove(0);
    times
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_structure_finds_what_is_there_and_nothing_else() {
        let mut rng = Rng::new(3);
        for count in [0u64, 1, 2, 63, 64, 65, 5000] {
            let mut keys: Vec<u64> = (0..count).map(|k| k * 3).collect();
            rng.shuffle(&mut keys);
            let there: BTreeSet<u64> = keys.iter().copied().collect();
            for structure in Structure::ALL {
                let mut built = structure.build(&keys);
                for _ in 0..3 * count + 5 {
                    let key = rng.below(3 * count + 10);
                    assert_eq!(built.find(key), there.contains(&key), "{structure:?} {count} {key}");
                }
                assert!(!built.find(u64::MAX));
            }
        }
    }

    #[test]
    fn every_round_has_a_time() {
        for structure in Structure::ALL {
            for in_order in [true, false] {
                let times = measure(structure, 300, in_order, 3, 1);
                assert_eq!(times.len(), 3);
                assert!(times.iter().all(|ns| ns.is_finite() && *ns > 0.0), "{structure:?} {times:?}");
            }
        }
    }
}
