//! Lists of blocks with dense numbers, as logs: a block that moves to the head is written to the end of a log, and the entry
//! that it leaves behind is void. A block is its own slot.
//!
//! Most hits of most policies read and write one byte only, and nothing is linked: a tail is read in order. Void entries are
//! dropped when a log is full and at least half void, so that each write pays for at most one move. Memory is 5 bytes for
//! each number up to the highest seen, and 8 to 16 for each block in a list.

use super::index::{Dense, Known, NIL};
use super::lists::{Lists, MAX_LISTS, MAX_USES};

/// A void entry. No block has this number.
const VOID: u32 = u32::MAX;

/// Bits of a state that are its list, counted from 1; 0 for a block that is not known. The others count uses.
const LIST_BITS: u8 = 3;
const LIST: u8 = (1 << LIST_BITS) - 1;

/// Entries of the smallest log.
const MIN_ENTRIES: usize = 64;

/// One list, the oldest first.
#[derive(Debug, Default)]
struct Log {
    entries: Vec<u32>,
    /// Everything before is void.
    from: usize,
    held: usize,
}

/// The lists.
#[derive(Debug)]
pub(super) struct Logs {
    /// By number: list and uses.
    state: Vec<u8>,
    /// By number: position in the log of its list.
    at: Vec<u32>,
    logs: [Log; MAX_LISTS],
}

impl Logs {
    #[inline]
    fn append(&mut self, slot: u32, list: usize) {
        if self.logs[list].entries.len() == self.logs[list].entries.capacity() {
            self.make_room(list);
        }
        let log = &mut self.logs[list];
        self.at[slot as usize] = log.entries.len() as u32;
        log.entries.push(slot);
    }

    /// Drops void entries, or doubles a log that has few.
    #[cold]
    fn make_room(&mut self, list: usize) {
        let log = &mut self.logs[list];
        if log.entries.len() < MIN_ENTRIES || log.held > log.entries.len() / 2 {
            // Positions stay below 2^32: twice the largest list is 2^31, and a log doubles only above the half.
            log.entries.reserve_exact(log.entries.len().max(MIN_ENTRIES));
            return;
        }
        let mut kept = 0;
        for at in log.from..log.entries.len() {
            let slot = log.entries[at];
            if slot != VOID {
                log.entries[kept] = slot;
                self.at[slot as usize] = kept as u32;
                kept += 1;
            }
        }
        log.entries.truncate(kept);
        log.from = 0;
    }
}

impl Known for Logs {
    type Id = u32;

    #[inline]
    fn find(&self, id: u32) -> u32 {
        match self.state.get(id as usize) {
            Some(1..) => id,
            _ => NIL,
        }
    }

    #[inline]
    fn read_ahead(&self, ids: &[u32], moves: bool) {
        let mut seen = 0;
        for id in ids {
            seen ^= u32::from(self.state.get(*id as usize).copied().unwrap_or(0));
            if moves {
                seen ^= self.at.get(*id as usize).copied().unwrap_or(0);
            }
        }
        std::hint::black_box(seen);
    }

    fn memory_bytes(&self) -> u64 {
        let logs: usize = self.logs.iter().map(|log| log.entries.capacity()).sum();
        (self.state.capacity() + (self.at.capacity() + logs) * 4) as u64
    }
}

impl Lists for Logs {
    type Index = Dense;

    fn new(_lists: usize, _most: usize) -> Self {
        Logs { state: Vec::new(), at: Vec::new(), logs: Default::default() }
    }

    #[inline]
    fn id(&self, slot: u32) -> u32 {
        slot
    }

    #[inline]
    fn list_of(&self, slot: u32) -> u32 {
        u32::from(self.state[slot as usize] & LIST).wrapping_sub(1)
    }

    #[inline]
    fn count(&self, list: u32) -> usize {
        self.logs[list as usize].held
    }

    #[inline]
    fn tail(&mut self, list: u32) -> u32 {
        let log = &mut self.logs[list as usize];
        while let Some(&slot) = log.entries.get(log.from) {
            if slot != VOID {
                return slot;
            }
            log.from += 1;
        }
        NIL
    }

    #[inline]
    fn newer(&self, slot: u32) -> u32 {
        let behind = self.at[slot as usize] as usize + 1;
        let newer =
            self.logs[self.list_of(slot) as usize].entries[behind..].iter().find(|slot| **slot != VOID);
        newer.copied().unwrap_or(NIL)
    }

    #[inline]
    fn take(&mut self, id: u32) -> u32 {
        if id as usize >= self.state.len() {
            let length = (id as usize + 1).next_power_of_two();
            self.state.resize(length, 0);
            self.at.resize(length, 0);
        }
        id
    }

    #[inline]
    fn give_up(&mut self, slot: u32) {
        self.state[slot as usize] = 0;
    }

    #[inline]
    fn place(&mut self, slot: u32, list: u32) {
        self.append(slot, list as usize);
        self.logs[list as usize].held += 1;
        self.state[slot as usize] = list as u8 + 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        let log = &mut self.logs[(self.state[slot as usize] & LIST) as usize - 1];
        log.entries[self.at[slot as usize] as usize] = VOID;
        log.held -= 1;
    }

    #[inline]
    fn renew(&mut self, slot: u32) {
        let list = self.list_of(slot) as usize;
        let log = &mut self.logs[list];
        let at = self.at[slot as usize] as usize;
        if at + 1 != log.entries.len() {
            log.entries[at] = VOID;
            self.append(slot, list);
        }
    }

    #[inline]
    fn uses(&self, slot: u32) -> u8 {
        self.state[slot as usize] >> LIST_BITS
    }

    #[inline]
    fn set_uses(&mut self, slot: u32, uses: u8) {
        let state = &mut self.state[slot as usize];
        *state = *state & LIST | uses.min(MAX_USES) << LIST_BITS;
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Hashed;
    use super::super::lists::Linked;
    use super::*;

    #[test]
    fn logs_do_what_linked_lists_do() {
        // Any steps: two lists, moves within and between them, and blocks that are forgotten.
        let mut rng = iowhy_core::rng::Rng::new(7);
        let (mut logs, mut linked) = (Logs::new(2, 50), Linked::<Hashed>::new(2, 50));
        for _ in 0..50_000 {
            let (id, list) = (rng.below(50) as u32, rng.below(2) as u32);
            let (a, b) = (logs.find(id), linked.find(u64::from(id)));
            assert_eq!(a == NIL, b == NIL);
            match (a, rng.below(4)) {
                (NIL, _) => {
                    let (a, b) = (logs.take(id), linked.take(u64::from(id)));
                    logs.place(a, list);
                    linked.place(b, list);
                }
                (_, 0) => {
                    logs.forget(a);
                    linked.forget(b);
                }
                (_, 1) => {
                    logs.renew(a);
                    linked.renew(b);
                }
                (_, 2) => {
                    logs.leave(a);
                    logs.place(a, list);
                    linked.leave(b);
                    linked.place(b, list);
                }
                _ => {
                    logs.count_use(a);
                    linked.count_use(b);
                    assert_eq!(logs.uses(a), linked.uses(b));
                    let newer = (logs.newer(a), linked.newer(b));
                    assert_eq!(newer.0 == NIL, newer.1 == NIL);
                    assert!(newer.0 == NIL || u64::from(newer.0) == linked.id(newer.1));
                }
            }
            for list in 0..2 {
                assert_eq!(logs.count(list), linked.count(list));
                if logs.count(list) > 0 {
                    let (a, b) = (logs.tail(list), linked.tail(list));
                    assert_eq!(u64::from(a), linked.id(b));
                    assert_eq!((logs.list_of(a), linked.list_of(b)), (list, list));
                }
            }
        }
        assert!(logs.memory_bytes() < 64 * 5 + 4 * 2 * 4 * 64, "void entries are dropped");
    }
}
