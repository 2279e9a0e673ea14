//! CLOCK with one bit, the same as FIFO with a second chance (Corbató 1968): a used block at the tail loses its bit and
//! goes back to the head instead of leaving.

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::{Beside, Nodes};

const QUEUE: u32 = 0;

/// CLOCK with one bit.
#[derive(Debug)]
pub(super) struct Clock<I: Index> {
    nodes: Nodes<I>,
    used: Beside,
    size: Size,
}

impl<I: Index> Clock<I> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Clock { nodes: Nodes::new(1, room), used: Beside::default(), size: Size::empty(room) }
    }
}

impl<I: Index> Policy for Clock<I> {
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
        self.used.set(slot, 1);
    }

    #[inline]
    fn admit(&mut self, id: I::Id, _ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        if !self.size.full() {
            let slot = self.nodes.take(id);
            self.nodes.push_head(QUEUE, slot);
            self.used.set(slot, 0);
            self.size.held += 1;
            return;
        }
        // Ends within one turn: each block that stays loses its bit.
        let mut slot = self.nodes.tail(QUEUE);
        while self.used.get(slot) != 0 {
            self.used.set(slot, 0);
            self.nodes.move_to_head(QUEUE, slot);
            slot = self.nodes.tail(QUEUE);
        }
        evicted(self.nodes.replace(slot, id));
        self.nodes.move_to_head(QUEUE, slot);
    }

    fn expel(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.used.memory_bytes()
    }
}
