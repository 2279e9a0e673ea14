//! Finds the slot of a block by its number: an array where numbers are dense, an open-addressing table where they are not.
//!
//! Invariant: a number has at most one slot; [`NIL`] stands for none.

use std::fmt::Debug;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;

/// Blocks that are known by their numbers.
pub(super) trait Known: Debug + Send + 'static {
    /// The numbers that it takes.
    type Id: Copy + Debug + Into<u64> + Send;

    /// The slot of a block, or [`NIL`].
    fn find(&self, id: Self::Id) -> u32;

    /// Reads what [`find`](Self::find) will need for these blocks into the processor's cache, so that the waits for memory
    /// overlap; with `moves`, also what moving them will need.
    fn read_ahead(&self, ids: &[Self::Id], moves: bool);

    /// Bytes of memory held.
    fn memory_bytes(&self) -> u64;
}

/// A way from the number of a block to its slot.
pub(super) trait Index: Debug + Send + 'static {
    /// The numbers that it takes.
    type Id: Copy + Eq + Default + Debug + Into<u64> + Send;

    /// An index that will hold at most `most` numbers at a time. It grows as it is filled.
    fn with_max(most: usize) -> Self;

    /// The slot of a number, or [`NIL`]. `id_of` gives the number that a slot holds.
    fn get(&self, id: Self::Id, id_of: impl Fn(u32) -> Self::Id) -> u32;

    /// Notes the slot of a number that has none.
    fn put(&mut self, id: Self::Id, slot: u32);

    /// Forgets the slot of a number that has this one.
    fn erase(&mut self, id: Self::Id, slot: u32);

    /// Prefetches the entry of a number into the processor's cache. The
    /// result may be wrong and serves only for prefetching further.
    fn glance(&self, id: Self::Id) -> u32;

    /// Bytes of memory held.
    fn memory_bytes(&self) -> u64;
}

/// Dense numbers from 0 up: one array, 4 bytes for each number up to the highest seen.
#[derive(Debug, Default)]
pub(super) struct Dense {
    slots: Vec<u32>,
}

impl Index for Dense {
    type Id = u32;

    fn with_max(_most: usize) -> Self {
        Dense::default()
    }

    #[inline]
    fn get(&self, id: u32, _id_of: impl Fn(u32) -> u32) -> u32 {
        self.slots.get(id as usize).copied().unwrap_or(NIL)
    }

    #[inline]
    fn put(&mut self, id: u32, slot: u32) {
        let at = id as usize;
        if at >= self.slots.len() {
            self.slots.resize((at + 1).next_power_of_two(), NIL);
        }
        self.slots[at] = slot;
    }

    #[inline]
    fn erase(&mut self, id: u32, _slot: u32) {
        if let Some(slot) = self.slots.get_mut(id as usize) {
            *slot = NIL;
        }
    }

    #[inline]
    fn glance(&self, id: u32) -> u32 {
        self.slots.get(id as usize).copied().unwrap_or(NIL)
    }

    fn memory_bytes(&self) -> u64 {
        self.slots.capacity() as u64 * 4
    }
}

/// Any numbers: linear probing in a table at most 60 % full. An entry holds half of the number's hash and its slot, so
/// that most other numbers are rejected without reading the slot, and an entry's home is known without its number.
#[derive(Debug)]
pub(super) struct Hashed {
    /// Hash in the upper half, slot in the lower; [`FREE`] for none.
    entries: Vec<u64>,
    held: usize,
    /// Most numbers that will ever be held: the table does not grow beyond what they need.
    most: usize,
}

/// No entry. A real one never looks so: its slot is below [`NIL`].
const FREE: u64 = u64::MAX;
/// Entries of the smallest table.
const MIN_ENTRIES: usize = 16;

/// Entries for a table 60 % full.
fn entries_for(held: usize) -> usize {
    held.saturating_mul(5).div_ceil(3).saturating_add(1).max(MIN_ENTRIES)
}

/// The upper half of a hash: the finalizer of SplitMix64 without its last step (Steele, Lea, Flood 2014).
#[inline]
fn hash(id: u64) -> u32 {
    let mut z = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32
}

impl Hashed {
    /// Where an entry with this hash would like to be.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.entries.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    fn place(&mut self, entry: u64) {
        let mut at = self.home((entry >> 32) as u32);
        while self.entries[at] != FREE {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = entries_for(self.held.saturating_mul(2).max(MIN_ENTRIES));
        // `most` is a promise about the steady state; one more for a number put in before another is erased.
        let wanted = doubled.min(entries_for(self.most.saturating_add(1))).max(entries_for(self.held + 1));
        let old = std::mem::replace(&mut self.entries, vec![FREE; wanted]);
        for entry in old.into_iter().filter(|entry| *entry != FREE) {
            self.place(entry);
        }
    }
}

impl Index for Hashed {
    type Id = u64;

    fn with_max(most: usize) -> Self {
        Hashed { entries: vec![FREE; MIN_ENTRIES], held: 0, most }
    }

    #[inline]
    fn get(&self, id: u64, id_of: impl Fn(u32) -> u64) -> u32 {
        let hash = hash(id);
        let mut at = self.home(hash);
        loop {
            let entry = self.entries[at];
            if entry == FREE {
                return NIL;
            }
            if (entry >> 32) as u32 == hash && id_of(entry as u32) == id {
                return entry as u32;
            }
            at = self.after(at);
        }
    }

    #[inline]
    fn put(&mut self, id: u64, slot: u32) {
        if entries_for(self.held + 1) > self.entries.len() {
            self.grow();
        }
        self.place(u64::from(hash(id)) << 32 | u64::from(slot));
        self.held += 1;
    }

    #[inline]
    fn erase(&mut self, id: u64, slot: u32) {
        let entry = u64::from(hash(id)) << 32 | u64::from(slot);
        let mut hole = self.home(hash(id));
        while self.entries[hole] != entry {
            if self.entries[hole] == FREE {
                return;
            }
            hole = self.after(hole);
        }
        // Those behind move up, unless the hole lies before their home.
        let length = self.entries.len();
        let mut at = hole;
        loop {
            at = self.after(at);
            let next = self.entries[at];
            if next == FREE {
                break;
            }
            let home = self.home((next >> 32) as u32);
            let from_home = if at >= home { at - home } else { at + length - home };
            let from_hole = if at >= hole { at - hole } else { at + length - hole };
            if from_home >= from_hole {
                self.entries[hole] = next;
                hole = at;
            }
        }
        self.entries[hole] = FREE;
        self.held -= 1;
    }

    #[inline]
    fn glance(&self, id: u64) -> u32 {
        self.entries[self.home(hash(id))] as u32
    }

    fn memory_bytes(&self) -> u64 {
        self.entries.capacity() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use iowhy_core::rng::Rng;

    use super::*;

    /// Random inserts, look-ups and erasures, compared with the standard library's map.
    fn against_a_map<I: Index>(of: impl Fn(u64) -> I::Id, spread: u64, most: usize) {
        let mut rng = Rng::new(spread);
        let mut index = I::with_max(most);
        let mut ids: Vec<I::Id> = Vec::new();
        let mut map: HashMap<u64, u32> = HashMap::new();
        for _ in 0..20_000 {
            let id = of(rng.below(spread));
            let key: u64 = id.into();
            let found = index.get(id, |slot| ids[slot as usize]);
            assert_eq!(found, map.get(&key).copied().unwrap_or(NIL));
            match (found, map.len() < most) {
                (NIL, true) => {
                    index.put(id, ids.len() as u32);
                    map.insert(key, ids.len() as u32);
                    ids.push(id);
                }
                (NIL, false) => {}
                (slot, _) => {
                    index.erase(id, slot);
                    map.remove(&key);
                }
            }
        }
    }

    #[test]
    fn both_answer_as_a_map_does() {
        against_a_map::<Dense>(|n| n as u32, 300, 1000);
        against_a_map::<Hashed>(|n| n, 300, 1000);
        against_a_map::<Hashed>(|n| n.wrapping_mul(0x1_0000_0000), 5000, 200);
        against_a_map::<Hashed>(|n| u64::MAX - n, 50_000, 4000);
    }

    #[test]
    fn a_full_table_keeps_to_its_share() {
        let mut index = Hashed::with_max(1000);
        for id in 0..1000u64 {
            index.put(id, id as u32);
        }
        assert!(index.memory_bytes() <= 1000 * 14, "{}", index.memory_bytes());
        assert_eq!(index.get(999, u64::from), 999);
    }
}
