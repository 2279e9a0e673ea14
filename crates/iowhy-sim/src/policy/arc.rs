//! ARC (Megiddo, Modha, FAST 2003): blocks used once and blocks used again each have an LRU list and a list of ghosts; a hit
//! among the ghosts of one moves the target size of the first list towards it.

use super::engine::{Policy, Size};
use super::index::{Index, NIL};
use super::nodes::{Beside, Nodes};

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
pub(super) struct Arc<I: Index> {
    nodes: Nodes<I>,
    /// The list of each slot.
    list: Beside,
    /// Length of each list.
    held: [usize; 4],
    /// The size that `ONCE` should have.
    target: f64,
    size: Size,
}

impl<I: Index> Arc<I> {
    /// An empty cache with room for so many blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Arc {
            nodes: Nodes::new(4, room.saturating_mul(2).saturating_add(1)),
            list: Beside::default(),
            held: [0; 4],
            target: 0.0,
            size: Size::empty(room),
        }
    }

    #[inline]
    fn count(&self, list: u32) -> usize {
        self.held[list as usize]
    }

    #[inline]
    fn place(&mut self, slot: u32, list: u32) {
        self.nodes.push_head(list, slot);
        self.list.set(slot, list as u8);
        self.held[list as usize] += 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[usize::from(self.list.get(slot))] -= 1;
    }

    /// Forgets the oldest of a list.
    fn forget(&mut self, list: u32) {
        let slot = self.nodes.tail(list);
        self.leave(slot);
        self.nodes.give_up(slot);
    }

    /// A resident becomes a ghost: the paper's REPLACE.
    #[inline]
    fn replace(&mut self, from_again_gone: bool, evicted: &mut impl FnMut(I::Id)) {
        let once = self.count(ONCE) as f64;
        let over = once > self.target || (from_again_gone && once == self.target);
        let from_once = self.count(ONCE) > 0 && (over || self.count(AGAIN) == 0);
        let (list, gone) = if from_once { (ONCE, ONCE_GONE) } else { (AGAIN, AGAIN_GONE) };
        let slot = self.nodes.tail(list);
        evicted(self.nodes.id(slot));
        self.leave(slot);
        self.place(slot, gone);
        self.size.held -= 1;
    }
}

impl<I: Index> Policy for Arc<I> {
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
    fn resident(&self, slot: u32) -> bool {
        slot != NIL && u32::from(self.list.get(slot)) <= AGAIN
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.leave(slot);
        self.place(slot, AGAIN);
    }

    #[inline]
    fn admit(&mut self, id: I::Id, ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        let room = self.size.room;
        if ghost != NIL {
            let of_again = u32::from(self.list.get(ghost)) == AGAIN_GONE;
            let (once, again) = (self.count(ONCE_GONE) as f64, self.count(AGAIN_GONE) as f64);
            self.target = if of_again {
                (self.target - (once / again).max(1.0)).max(0.0)
            } else {
                (self.target + (again / once).max(1.0)).min(room as f64)
            };
            self.leave(ghost);
            if self.size.full() {
                self.replace(of_again, evicted);
            }
            self.place(ghost, AGAIN);
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
                evicted(self.nodes.id(self.nodes.tail(ONCE)));
                self.forget(ONCE);
                self.size.held -= 1;
            }
        } else if self.size.full() {
            if self.held.iter().sum::<usize>() >= room.saturating_mul(2) {
                self.forget(AGAIN_GONE);
            }
            self.replace(false, evicted);
        }
        let slot = self.nodes.take(id);
        self.place(slot, ONCE);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.leave(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.list.memory_bytes()
    }
}
