//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): one queue in order of arrival and a hand that moves from the tail
//! to the head. A used block that the hand meets loses its bit and stays where it is; the first unused one leaves.

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::{Beside, Nodes};

const QUEUE: u32 = 0;

/// SIEVE.
#[derive(Debug)]
pub(super) struct Sieve<I: Index> {
    nodes: Nodes<I>,
    used: Beside,
    /// The next block to look at; the anchor: start at the tail.
    hand: u32,
    size: Size,
}

impl<I: Index> Sieve<I> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Sieve { nodes: Nodes::new(1, room), used: Beside::default(), hand: QUEUE, size: Size::empty(room) }
    }
}

impl<I: Index> Policy for Sieve<I> {
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
        // Ends within two turns: each block that stays loses its bit. The anchor's neighbour is the tail.
        let mut slot = if self.hand == QUEUE { self.nodes.tail(QUEUE) } else { self.hand };
        while self.used.get(slot) != 0 {
            self.used.set(slot, 0);
            slot = self.nodes.prev(slot);
            if slot == QUEUE {
                slot = self.nodes.tail(QUEUE);
            }
        }
        self.hand = self.nodes.prev(slot);
        evicted(self.nodes.replace(slot, id));
        self.nodes.unlink(slot);
        self.nodes.push_head(QUEUE, slot);
    }

    fn expel(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.nodes.prev(slot);
        }
        self.nodes.unlink(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.used.memory_bytes()
    }
}
