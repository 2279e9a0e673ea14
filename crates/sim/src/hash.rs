//! Tables by block number: one multiplication a look-up. The numbers are ours or a trace's; nobody attacks with them
//! more than their own run time.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub(crate) type Table<V> = HashMap<u64, V, BuildHasherDefault<Mix>>;
/// A set of numbers.
pub(crate) type Numbers = HashSet<u64, BuildHasherDefault<Mix>>;

/// Multiplies and folds, so that both ends of the result depend on all bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
