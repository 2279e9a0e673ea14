//! Segmented LRU (Karedla, Love, Wherry 1994), here of four equal segments as libCacheSim has it: a block comes in at the
//! bottom, each use lifts it by one segment, and what overflows sinks by one. The oldest of the lowest leaves.

use super::engine::{Policy, Size};
use super::lists::Lists;

/// Segments; the anchors of their lists are slots `0..SEGMENTS`, the lowest first.
const SEGMENTS: usize = 4;

/// Segmented LRU.
#[derive(Debug)]
pub(super) struct Slru<L: Lists> {
    /// A list for each segment.
    lists: L,
    most: [usize; SEGMENTS],
    size: Size,
}

impl<L: Lists> Slru<L> {
    /// An empty cache with room for `capacity` blocks, at least one. What does not divide evenly goes to the lower segments.
    pub(super) fn new(room: usize) -> Self {
        let room = room.max(1);
        let most = std::array::from_fn(|i| room / SEGMENTS + usize::from(i < room % SEGMENTS));
        Slru { lists: L::new(SEGMENTS, room), most, size: Size::empty(room) }
    }
}

impl<L: Lists> Policy for Slru<L> {
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
        let segment = self.lists.list_of(slot);
        let above = segment + 1;
        if above as usize == SEGMENTS || self.most[above as usize] == 0 {
            self.lists.renew(slot);
            return;
        }
        self.lists.leave(slot);
        // The place that was left takes the one that sinks.
        if self.lists.count(above) >= self.most[above as usize] {
            let sinks = self.lists.tail(above);
            self.lists.leave(sinks);
            self.lists.place(sinks, segment);
        }
        self.lists.place(slot, above);
    }

    #[inline]
    fn admit(&mut self, id: L::Id, _ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        if self.size.full() {
            // Not empty: somebody is held.
            let lowest = (0..SEGMENTS as u32).find(|segment| self.lists.count(*segment) > 0).unwrap_or(0);
            let slot = self.lists.tail(lowest);
            evicted(self.lists.id(slot));
            self.expel(slot);
        }
        // Full segments have none free only when the whole cache has none.
        let free = (0..SEGMENTS as u32).find(|i| self.lists.count(*i) < self.most[*i as usize]).unwrap_or(0);
        let slot = self.lists.take(id);
        self.lists.place(slot, free);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
