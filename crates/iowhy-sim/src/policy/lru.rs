//! Least recently used: a use makes a block the newest; the oldest leaves (Mattson et al. 1970).

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::Nodes;

const QUEUE: u32 = 0;

/// Least recently used.
#[derive(Debug)]
pub(super) struct Lru<I: Index> {
    nodes: Nodes<I>,
    size: Size,
}

impl<I: Index> Lru<I> {
    /// An empty cache with room for so many blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Lru { nodes: Nodes::new(1, room), size: Size::empty(room) }
    }
}

impl<I: Index> Policy for Lru<I> {
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
        self.nodes.move_to_head(QUEUE, slot);
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
