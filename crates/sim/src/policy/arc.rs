//! ARC (Megiddo, Modha, FAST 2003): blocks used once and blocks used again each have an LRU list and a list of ghosts; a hit
//! among the ghosts of one moves the target size of the first list towards it.

use super::engine::{Policy, Size};
use super::index::NIL;
use super::lists::Lists;

/// Used once.
const ONCE: u32 = 0;
/// Used again.
const AGAIN: u32 = 1;
/// Ghosts of those used once.
const ONCE_GONE: u32 = 2;
/// Ghosts of those used again.
const AGAIN_GONE: u32 = 3;

/// ARC.
#[derive(Debug)]
pub(super) struct Arc<L: Lists> {
    lists: L,
    /// The size that `ONCE` should have.
    target: f64,
    size: Size,
}

impl<L: Lists> Arc<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Arc {
            lists: L::new(4, room.saturating_mul(2).saturating_add(1)),
            target: 0.0,
            size: Size::empty(room),
        }
    }

    #[inline]
    fn count(&self, list: u32) -> usize {
        self.lists.count(list)
    }

    /// Forgets the oldest of a list.
    fn forget(&mut self, list: u32) {
        let slot = self.lists.tail(list);
        self.lists.forget(slot);
    }

    /// A resident becomes a ghost: the paper's REPLACE.
    #[inline]
    fn replace(&mut self, from_again_gone: bool, evicted: &mut impl FnMut(L::Id)) {
        let once = self.count(ONCE) as f64;
        let over = once > self.target || (from_again_gone && once == self.target);
        let from_once = self.count(ONCE) > 0 && (over || self.count(AGAIN) == 0);
        let (list, gone) = if from_once { (ONCE, ONCE_GONE) } else { (AGAIN, AGAIN_GONE) };
        let slot = self.lists.tail(list);
        evicted(self.lists.id(slot));
        self.lists.leave(slot);
        self.lists.place(slot, gone);
        self.size.held -= 1;
    }
}

impl<L: Lists> Policy for Arc<L> {
    type Blocks = L;

    const MOVES: bool = true;

    #[inline]
    fn blocks(&self) -> &L {
        &self.lists
    }

    #[inline]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn resident(&self, slot: u32) -> bool {
        slot != NIL && self.lists.list_of(slot) <= AGAIN
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.lists.leave(slot);
        self.lists.place(slot, AGAIN);
    }

    #[inline]
    fn admit(&mut self, id: L::Id, ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        let room = self.size.room;
        if ghost != NIL {
            let of_again = self.lists.list_of(ghost) == AGAIN_GONE;
            let (once, again) = (self.count(ONCE_GONE) as f64, self.count(AGAIN_GONE) as f64);
            self.target = if of_again {
                (self.target - (once / again).max(1.0)).max(0.0)
            } else {
                (self.target + (again / once).max(1.0)).min(room as f64)
            };
            self.lists.leave(ghost);
            if self.size.full() {
                self.replace(of_again, evicted);
            }
            self.lists.place(ghost, AGAIN);
            self.size.held += 1;
            return;
        }
        if self.count(ONCE) + self.count(ONCE_GONE) >= room {
            if self.count(ONCE_GONE) > 0 {
                self.forget(ONCE_GONE);
                if self.size.full() {
                    self.replace(false, evicted);
                }
            } else if self.size.full() {
                // All of the room is taken by blocks used once: the oldest leaves without a ghost.
                let slot = self.lists.tail(ONCE);
                evicted(self.lists.id(slot));
                self.lists.forget(slot);
                self.size.held -= 1;
            }
        } else if self.size.full() {
            if self.lists.count_all() >= room.saturating_mul(2) {
                self.forget(AGAIN_GONE);
            }
            self.replace(false, evicted);
        }
        let slot = self.lists.take(id);
        self.lists.place(slot, ONCE);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
