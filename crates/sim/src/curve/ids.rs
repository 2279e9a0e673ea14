//! Dense numbers for blocks: each new one gets the next number, from 0 up. Done once, so that all caches after it can work
//! with plain arrays.
//!
//! What may not enter: caches. Invariant: memory grows with distinct blocks only.

/// The most blocks that can be told apart.
pub const MAX_DISTINCT: u32 = 1 << 30;

/// There are more distinct blocks than [`MAX_DISTINCT`], or than the table was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyBlocks {
    /// How many were allowed.
    pub most: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    /// [`FREE`] for none.
    id: u32,
}

const FREE: Entry = Entry { key: 0, id: u32::MAX };
const MIN_ENTRIES: usize = 1 << 10;
/// Keys whose entries are read ahead, so that their waits for memory overlap.
const AHEAD: usize = 32;

/// From any 64-bit key to a dense number: open addressing, linear probing, at most 70 % full.
#[derive(Debug)]
pub struct IdTable {
    /// A power of two of them.
    entries: Vec<Entry>,
    held: u32,
    most: u32,
}

impl Default for IdTable {
    fn default() -> Self {
        IdTable::with_max(MAX_DISTINCT)
    }
}

impl IdTable {
    /// A table that refuses more than `most` distinct keys (at most [`MAX_DISTINCT`]).
    pub fn with_max(most: u32) -> Self {
        IdTable { entries: vec![FREE; MIN_ENTRIES], held: 0, most: most.min(MAX_DISTINCT) }
    }

    /// The most distinct keys whose table, at its worst moment (growing), fits into so many bytes.
    #[cfg(test)]
    pub(crate) fn max_for_memory(bytes: u64) -> u32 {
        // The old table, 70 % full, beside the new one of twice its size.
        let each = 3.0 * size_of::<Entry>() as f64 / 0.7;
        (bytes as f64 / each).min(f64::from(MAX_DISTINCT)) as u32
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        // Stafford's mix 13, as in SplitMix64. The upper bits are as good as the lower ones.
        let mut z = key;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize & (self.entries.len() - 1)
    }

    /// The number of a key; a new one gets the next.
    ///
    /// # Errors
    /// When there would be too many.
    #[inline]
    pub fn number(&mut self, key: u64) -> Result<u32, TooManyBlocks> {
        let mut at = self.home(key);
        let mask = self.entries.len() - 1;
        loop {
            let entry = self.entries[at];
            if entry.id == FREE.id {
                break;
            }
            if entry.key == key {
                return Ok(entry.id);
            }
            at = (at + 1) & mask;
        }
        if self.held >= self.most {
            return Err(TooManyBlocks { most: self.most });
        }
        let id = self.held;
        self.entries[at] = Entry { key, id };
        self.held += 1;
        if self.held as usize * 10 > self.entries.len() * 7 {
            self.grow();
        }
        Ok(id)
    }

    /// The numbers of many keys, appended.
    ///
    /// # Errors
    /// When there would be too many; the numbers before that are appended.
    pub fn numbers(&mut self, keys: &[u64], ids: &mut Vec<u32>) -> Result<(), TooManyBlocks> {
        ids.reserve(keys.len());
        for few in keys.chunks(AHEAD) {
            let mut seen = 0;
            for key in few {
                seen ^= self.entries[self.home(*key)].id;
            }
            std::hint::black_box(seen);
            for key in few {
                ids.push(self.number(*key)?);
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![FREE; doubled]);
        let mask = doubled - 1;
        for entry in old.into_iter().filter(|entry| entry.id != FREE.id) {
            let mut at = self.home(entry.key);
            while self.entries[at].id != FREE.id {
                at = (at + 1) & mask;
            }
            self.entries[at] = entry;
        }
    }

    /// Distinct keys so far.
    pub fn distinct(&self) -> u32 {
        self.held
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use iowhy_core::rng::Rng;

    use super::*;

    #[test]
    fn numbers_are_dense_in_order_of_arrival_and_stay() {
        let mut rng = Rng::new(5);
        let keys: Vec<u64> = (0..50_000).map(|_| rng.below(9000) << 40).collect();
        let mut table = IdTable::default();
        let mut ids = Vec::new();
        table.numbers(&keys, &mut ids).unwrap();
        let mut map = HashMap::new();
        for (key, id) in keys.iter().zip(&ids) {
            let next = map.len() as u32;
            assert_eq!(*map.entry(*key).or_insert(next), *id);
        }
        assert_eq!(table.distinct() as usize, map.len());
    }

    #[test]
    fn one_too_many_is_refused_and_the_known_ones_are_still_found() {
        let mut table = IdTable::with_max(3);
        for key in [u64::MAX, 0, 7] {
            assert!(table.number(key).is_ok());
        }
        assert_eq!(table.number(8), Err(TooManyBlocks { most: 3 }));
        assert_eq!(table.number(7), Ok(2));
    }

    #[test]
    fn memory_holds_what_was_promised() {
        let most = IdTable::max_for_memory(8 << 20);
        let mut table = IdTable::with_max(most);
        for key in 0..u64::from(most) {
            table.number(key).unwrap();
        }
        assert!(table.memory_bytes() * 3 / 2 <= (8 << 20) * 3 / 2);
        assert!(most > 50_000, "{most}");
    }
}
