//! A hash table with chains, as buffer caches had it from the sixth edition of Unix on: as many buckets as keys, rounded up to a
//! power of two.

use super::Find;

/// No entry.
const NONE: u32 = u32::MAX;
/// 2^64 over the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// An entry with a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry {
    key: u64,
    next: u32,
}

/// The table.
#[derive(Debug)]
pub(super) struct Chains {
    heads: Vec<u32>,
    entries: Vec<Entry>,
    shift: u32,
}

impl Chains {
    /// A table of the keys, each at its place in the list.
    pub(super) fn new(keys: &[u64]) -> Chains {
        let buckets = keys.len().next_power_of_two().max(2);
        let mut table =
            Chains { heads: vec![NONE; buckets], entries: Vec::new(), shift: 64 - buckets.trailing_zeros() };
        for key in keys {
            let bucket = table.bucket(*key);
            table.entries.push(Entry { key: *key, next: table.heads[bucket] });
            table.heads[bucket] = (table.entries.len() - 1) as u32;
        }
        table
    }

    fn bucket(&self, key: u64) -> usize {
        (key.wrapping_mul(FACTOR) >> self.shift) as usize
    }
}

impl Find for Chains {
    fn find(&mut self, key: u64) -> bool {
        let mut at = self.heads[self.bucket(key)];
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.key == key {
                return true;
            }
            at = entry.next;
        }
        false
    }
}
