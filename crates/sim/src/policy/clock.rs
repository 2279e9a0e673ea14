//! CLOCK with one bit, the same as FIFO with a second chance (Corbató 1968): a used block at the tail loses its bit and
//! goes back to the head instead of leaving.

use super::engine::{Policy, Size};
use super::lists::Lists;

const QUEUE: u32 = 0;

/// CLOCK with one bit.
#[derive(Debug)]
pub(super) struct Clock<L: Lists> {
    lists: L,
    size: Size,
}

impl<L: Lists> Clock<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Clock { lists: L::new(1, room), size: Size::empty(room) }
    }
}

impl<L: Lists> Policy for Clock<L> {
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
            // Ends within one turn: each block that stays loses its bit.
            let mut slot = self.lists.tail(QUEUE);
            while self.lists.uses(slot) != 0 {
                self.lists.set_uses(slot, 0);
                self.lists.renew(slot);
                slot = self.lists.tail(QUEUE);
            }
            evicted(self.lists.id(slot));
            self.expel(slot);
        }
        let slot = self.lists.take(id);
        self.lists.place(slot, QUEUE);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
