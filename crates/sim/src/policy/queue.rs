//! One queue, whose last block leaves: first in, first out; or, when a use moves a block to the head, least recently used
//! (Mattson et al. 1970).

use super::engine::{Policy, Size};
use super::lists::Lists;

const QUEUE: u32 = 0;

/// First in, first out: a use changes nothing.
pub(super) type Fifo<L> = Queue<L, false>;
/// Least recently used: a use makes a block the newest.
pub(super) type Lru<L> = Queue<L, true>;

/// A queue in which a use moves to the head, or does not.
#[derive(Debug)]
pub(super) struct Queue<L: Lists, const MOVES: bool> {
    lists: L,
    size: Size,
}

impl<L: Lists, const MOVES: bool> Queue<L, MOVES> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Queue { lists: L::new(1, room), size: Size::empty(room) }
    }
}

impl<L: Lists, const MOVES: bool> Policy for Queue<L, MOVES> {
    type Blocks = L;

    const MOVES: bool = MOVES;

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
        if MOVES {
            self.lists.renew(slot);
        }
    }

    #[inline]
    fn admit(&mut self, id: L::Id, _ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        if self.size.full() {
            let oldest = self.lists.tail(QUEUE);
            evicted(self.lists.id(oldest));
            self.expel(oldest);
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
