//! 2Q (Johnson, Shasha, VLDB 1994), full version as libCacheSim has it: a block comes into a FIFO queue of a quarter of the
//! room; when it leaves that queue it is remembered (half of the room); coming back while remembered, it enters an LRU list.

use super::engine::{Policy, Size};
use super::index::{Index, NIL};
use super::lists::Lists;
use super::nodes::Nodes;

const FIRST: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

/// Share of the room that the first queue has, and that remembered blocks may number.
const FIRST_SHARE: f64 = 0.25;
const GHOST_SHARE: f64 = 0.5;

/// 2Q.
#[derive(Debug)]
pub(super) struct TwoQ<I: Index> {
    lists: Lists<I, 3>,
    first_most: usize,
    ghosts_most: usize,
    size: Size,
}

impl<I: Index> TwoQ<I> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        let ghosts_most = (room as f64 * GHOST_SHARE) as usize;
        TwoQ {
            lists: Lists::new(room.saturating_add(ghosts_most).saturating_add(1)),
            first_most: (room as f64 * FIRST_SHARE) as usize,
            ghosts_most,
            size: Size::empty(room),
        }
    }

    /// Makes room for one.
    #[inline]
    fn evict(&mut self, evicted: &mut impl FnMut(I::Id)) {
        let from_first = self.lists.count(FIRST) > self.first_most || self.lists.count(MAIN) == 0;
        let slot = self.lists.tail(if from_first { FIRST } else { MAIN });
        evicted(self.lists.nodes.id(slot));
        self.lists.leave(slot);
        self.size.held -= 1;
        if !from_first || self.ghosts_most == 0 {
            self.lists.nodes.give_up(slot);
            return;
        }
        if self.lists.count(GHOSTS) >= self.ghosts_most {
            self.lists.forget(self.lists.tail(GHOSTS));
        }
        self.lists.place(slot, GHOSTS);
    }
}

impl<I: Index> Policy for TwoQ<I> {
    type Index = I;

    const READS_SLOTS: bool = true;

    #[inline]
    fn nodes(&self) -> &Nodes<I> {
        &self.lists.nodes
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
    fn admit(&mut self, id: I::Id, ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        // It stops being a ghost before anybody else becomes one.
        if ghost != NIL {
            self.lists.leave(ghost);
        }
        if self.size.full() {
            self.evict(evicted);
        }
        if ghost == NIL {
            let slot = self.lists.nodes.take(id);
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

    fn beside_bytes(&self) -> u64 {
        self.lists.beside_bytes()
    }
}
