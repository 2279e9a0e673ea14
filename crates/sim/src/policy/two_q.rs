//! 2Q (Johnson, Shasha, VLDB 1994), full version as libCacheSim has it: a block comes into a FIFO queue of a quarter of the
//! room; when it leaves that queue it is remembered (half of the room); coming back while remembered, it enters an LRU list.

use super::engine::{Policy, Size};
use super::index::NIL;
use super::lists::Lists;

const FIRST: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

/// Share of the room that the first queue has, and that remembered blocks may number.
const FIRST_SHARE: f64 = 0.25;
const GHOST_SHARE: f64 = 0.5;

/// 2Q.
#[derive(Debug)]
pub(super) struct TwoQ<L: Lists> {
    lists: L,
    first_most: usize,
    ghosts_most: usize,
    size: Size,
}

impl<L: Lists> TwoQ<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        let ghosts_most = (room as f64 * GHOST_SHARE) as usize;
        TwoQ {
            lists: L::new(3, room.saturating_add(ghosts_most).saturating_add(1)),
            first_most: (room as f64 * FIRST_SHARE) as usize,
            ghosts_most,
            size: Size::empty(room),
        }
    }

    /// Makes room for one.
    #[inline]
    fn evict(&mut self, evicted: &mut impl FnMut(L::Id)) {
        let from_first = self.lists.count(FIRST) > self.first_most || self.lists.count(MAIN) == 0;
        let slot = self.lists.tail(if from_first { FIRST } else { MAIN });
        evicted(self.lists.id(slot));
        self.lists.leave(slot);
        self.size.held -= 1;
        if !from_first || self.ghosts_most == 0 {
            self.lists.give_up(slot);
            return;
        }
        if self.lists.count(GHOSTS) >= self.ghosts_most {
            let oldest = self.lists.tail(GHOSTS);
            self.lists.forget(oldest);
        }
        self.lists.place(slot, GHOSTS);
    }
}

impl<L: Lists> Policy for TwoQ<L> {
    type Blocks = L;

    const MOVES: bool = true;

    #[inline]
    fn blocks(&self) -> &L {
        &self.lists
    }

    #[inline]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn resident(&self, slot: u32) -> bool {
        slot != NIL && self.lists.list_of(slot) != GHOSTS
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        if self.lists.list_of(slot) == MAIN {
            self.lists.renew(slot);
        }
    }

    #[inline]
    fn admit(&mut self, id: L::Id, ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        // It stops being a ghost before anybody else becomes one.
        if ghost != NIL {
            self.lists.leave(ghost);
        }
        if self.size.full() {
            self.evict(evicted);
        }
        if ghost == NIL {
            let slot = self.lists.take(id);
            self.lists.place(slot, FIRST);
        } else {
            self.lists.place(ghost, MAIN);
        }
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
