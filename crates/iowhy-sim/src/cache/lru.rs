//! Least recently used: a list through slots, and a table of where each block is.

use crate::hash::Table;
use crate::policy::BlockCache;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: u64,
    newer: u32,
    older: u32,
}

/// The list, newest to oldest.
#[derive(Debug)]
pub(super) struct Lru {
    capacity: usize,
    table: Table<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Lru {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, NONE as usize - 1);
        Lru {
            capacity,
            table: Table::default(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Slot { newer, older, .. } = self.slots[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn link(&mut self, at: u32) {
        let newest = self.newest;
        let slot = &mut self.slots[at as usize];
        (slot.newer, slot.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = at,
            newest => self.slots[newest as usize].newer = at,
        }
        self.newest = at;
    }
}

impl BlockCache for Lru {
    fn lookup(&mut self, block: u64) -> bool {
        let Some(&at) = self.table.get(&block) else { return false };
        if at != self.newest {
            self.unlink(at);
            self.link(at);
        }
        true
    }

    fn insert(&mut self, block: u64, evicted: &mut dyn FnMut(u64)) {
        if self.lookup(block) {
            return;
        }
        if self.table.len() >= self.capacity {
            let oldest = self.oldest;
            let leaving = self.slots[oldest as usize].block;
            self.unlink(oldest);
            self.table.remove(&leaving);
            self.free.push(oldest);
            evicted(leaving);
        }
        let slot = Slot { block, newer: NONE, older: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.table.insert(block, at);
        self.link(at);
    }

    fn contains(&self, block: u64) -> bool {
        self.table.contains_key(&block)
    }

    fn remove(&mut self, block: u64) -> bool {
        let Some(at) = self.table.remove(&block) else { return false };
        self.unlink(at);
        self.free.push(at);
        true
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_leaves() {
        let mut lru = Lru::new(2);
        let mut gone = Vec::new();
        for block in [1, 2] {
            lru.insert(block, &mut |b| gone.push(b));
        }
        assert!(lru.lookup(1));
        lru.insert(3, &mut |b| gone.push(b));
        assert_eq!(gone, [2]);
        assert!(lru.remove(1) && !lru.remove(1) && lru.contains(3));
        lru.insert(4, &mut |b| gone.push(b));
        lru.insert(5, &mut |b| gone.push(b));
        assert_eq!((gone, lru.len()), (vec![2, 3], 2));
    }
}
