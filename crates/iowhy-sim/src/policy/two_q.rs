//! 2Q (Johnson, Shasha, VLDB 1994), full version as libCacheSim has it: a block comes into a FIFO queue of a quarter of the
//! room; when it leaves that queue it is remembered (half of the room); coming back while remembered, it enters an LRU list.

use super::engine::{Policy, Size};
use super::index::{Index, NIL};
use super::nodes::{Beside, Nodes};

const FIRST: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

/// Share of the room that the first queue has, and that remembered blocks may number.
const FIRST_SHARE: f64 = 0.25;
const GHOST_SHARE: f64 = 0.5;

/// 2Q.
#[derive(Debug)]
pub(super) struct TwoQ<I: Index> {
    nodes: Nodes<I>,
    /// The list of each slot.
    list: Beside,
    /// Length of each list.
    held: [usize; 3],
    first_most: usize,
    ghosts_most: usize,
    size: Size,
}

impl<I: Index> TwoQ<I> {
    /// An empty cache with room for so many blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        let ghosts_most = (room as f64 * GHOST_SHARE) as usize;
        TwoQ {
            nodes: Nodes::new(3, room.saturating_add(ghosts_most).saturating_add(1)),
            list: Beside::default(),
            held: [0; 3],
            first_most: (room as f64 * FIRST_SHARE) as usize,
            ghosts_most,
            size: Size::empty(room),
        }
    }

    #[inline]
    fn place(&mut self, slot: u32, list: u32) {
        self.nodes.push_head(list, slot);
        self.list.set(slot, list as u8);
        self.held[list as usize] += 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[usize::from(self.list.get(slot))] -= 1;
    }

    /// Makes room for one.
    #[inline]
    fn evict(&mut self, evicted: &mut impl FnMut(I::Id)) {
        let from_first = self.held[FIRST as usize] > self.first_most || self.held[MAIN as usize] == 0;
        let slot = self.nodes.tail(if from_first { FIRST } else { MAIN });
        evicted(self.nodes.id(slot));
        self.leave(slot);
        self.size.held -= 1;
        if !from_first || self.ghosts_most == 0 {
            self.nodes.give_up(slot);
            return;
        }
        if self.held[GHOSTS as usize] >= self.ghosts_most {
            let oldest = self.nodes.tail(GHOSTS);
            self.leave(oldest);
            self.nodes.give_up(oldest);
        }
        self.place(slot, GHOSTS);
    }
}

impl<I: Index> Policy for TwoQ<I> {
    type Index = I;

    #[inline]
    fn nodes(&self) -> &Nodes<I> {
        &self.nodes
    }

    #[inline]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn resident(&self, slot: u32) -> bool {
        slot != NIL && u32::from(self.list.get(slot)) != GHOSTS
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        if u32::from(self.list.get(slot)) == MAIN {
            self.nodes.move_to_head(MAIN, slot);
        }
    }

    #[inline]
    fn admit(&mut self, id: I::Id, ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        // It stops being a ghost before anybody else becomes one.
        if ghost != NIL {
            self.leave(ghost);
        }
        if self.size.full() {
            self.evict(evicted);
        }
        if ghost == NIL {
            let slot = self.nodes.take(id);
            self.place(slot, FIRST);
        } else {
            self.place(ghost, MAIN);
        }
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.leave(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.list.memory_bytes()
    }
}
