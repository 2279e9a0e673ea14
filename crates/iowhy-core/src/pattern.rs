//! Where requests go: generators of block indices, seeded and cheap enough for the hot loop.

use serde::{Deserialize, Serialize};

/// The order in which blocks of a region are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Ascending, wrapping at the end.
    Sequential,
    /// Independent and uniform: blocks repeat.
    Random,
    /// A seeded permutation: every block exactly once before any repeats.
    Permuted,
    /// Zipf-distributed with exponent θ over a seeded permutation of the blocks.
    Zipf(f64),
    /// Ascending with a step of N blocks, wrapping so that every block is reached.
    Stride(u64),
    /// Descending, wrapping at the start.
    Reverse,
}
