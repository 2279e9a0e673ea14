//! One queue, whose last block leaves: first in, first out; or, when a use moves a block to the head, least recently used
//! (Mattson et al. 1970).

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::Nodes;

const QUEUE: u32 = 0;

/// First in, first out: a use changes nothing.
pub(super) type Fifo<I> = Queue<I, false>;
/// Least recently used: a use makes a block the newest.
pub(super) type Lru<I> = Queue<I, true>;

/// A queue in which a use moves to the head, or does not.
#[derive(Debug)]
pub(super) struct Queue<I: Index, const MOVES: bool> {
    nodes: Nodes<I>,
    size: Size,
}

impl<I: Index, const MOVES: bool> Queue<I, MOVES> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Queue { nodes: Nodes::new(1, room), size: Size::empty(room) }
    }
}

impl<I: Index, const MOVES: bool> Policy for Queue<I, MOVES> {
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
    fn touch(&mut self, slot: u32) {
        if MOVES {
            self.nodes.move_to_head(QUEUE, slot);
        }
    }

    #[inline]
    fn admit(&mut self, id: I::Id, _ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        if !self.size.full() {
            let slot = self.nodes.take(id);
            self.nodes.push_head(QUEUE, slot);
            self.size.held += 1;
            return;
        }
        let slot = self.nodes.tail(QUEUE);
        evicted(self.nodes.replace(slot, id));
        self.nodes.move_to_head(QUEUE, slot);
    }

    fn expel(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }
}
