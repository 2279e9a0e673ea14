//! First in, first out: a use changes nothing; the block that came first leaves first.

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::Nodes;

const QUEUE: u32 = 0;

/// First in, first out.
#[derive(Debug)]
pub(super) struct Fifo<I: Index> {
    nodes: Nodes<I>,
    size: Size,
}

impl<I: Index> Fifo<I> {
    /// An empty cache with room for so many blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Fifo { nodes: Nodes::new(1, room), size: Size::empty(room) }
    }
}

impl<I: Index> Policy for Fifo<I> {
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
    fn touch(&mut self, _slot: u32) {}

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
