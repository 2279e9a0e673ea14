//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): one queue in order of arrival and a hand that moves from the tail
//! to the head. A used block that the hand meets loses its bit and stays where it is; the first unused one leaves.

use super::engine::{Policy, Size};
use super::index::NIL;
use super::lists::Lists;

const QUEUE: u32 = 0;

/// SIEVE.
#[derive(Debug)]
pub(super) struct Sieve<L: Lists> {
    lists: L,
    /// The next block to look at; [`NIL`]: the tail.
    hand: u32,
    size: Size,
}

impl<L: Lists> Sieve<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Sieve { lists: L::new(1, room), hand: NIL, size: Size::empty(room) }
    }
}

impl<L: Lists> Policy for Sieve<L> {
    type Blocks = L;

    #[inline]
    fn blocks(&self) -> &L {
        &self.lists
    }

    #[inline]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.lists.set_uses(slot, 1);
    }

    #[inline]
    fn admit(&mut self, id: L::Id, _ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        if self.size.full() {
            // Ends within two turns: each block that stays loses its bit.
            let mut slot = if self.hand == NIL { self.lists.tail(QUEUE) } else { self.hand };
            while self.lists.uses(slot) != 0 {
                self.lists.set_uses(slot, 0);
                slot = self.lists.newer(slot);
                if slot == NIL {
                    slot = self.lists.tail(QUEUE);
                }
            }
            evicted(self.lists.id(slot));
            self.hand = slot;
            self.expel(slot);
        }
        let slot = self.lists.take(id);
        self.lists.place(slot, QUEUE);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.lists.newer(slot);
        }
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
