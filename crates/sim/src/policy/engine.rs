//! What every policy has in common: a look-up is a hit or leads to an admission, and the rest follows from five steps.
//!
//! Written once for dense numbers (curves) and for any numbers (the timed simulator), because [`Policy`] is generic over
//! its [`Index`]. It knows no single policy.

use std::fmt::Debug;

use super::BlockCache;
use super::index::{Hashed, Index, NIL};
use super::nodes::Nodes;

/// How full a cache is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Residents.
    pub(super) held: usize,
    /// Most residents; at least one.
    pub(super) room: usize,
}

impl Size {
    /// Nothing yet; a cache without room is refused before it gets here.
    pub(super) fn empty(room: usize) -> Size {
        Size { held: 0, room: room.max(1) }
    }

    /// Whether somebody must leave before the next may come.
    #[inline]
    pub(super) fn full(self) -> bool {
        self.held >= self.room
    }
}

/// The number of a block, as a policy's index takes it.
pub(super) type IdOf<P> = <<P as Policy>::Index as Index>::Id;

/// The steps of which a policy is made. Slots are its own; one that is not resident is a ghost: a block that has left and
/// is remembered.
pub(super) trait Policy: Debug + Send {
    /// From the number of a block to its slot.
    type Index: Index;

    /// Whether nearly every reference reads or moves its slot, so that slots are worth reading ahead, too. Where a hit
    /// changes little, that costs more than it saves.
    const READS_SLOTS: bool = false;

    /// The slots.
    fn nodes(&self) -> &Nodes<Self::Index>;

    /// How full it is.
    fn size(&self) -> Size;

    /// Whether this slot (which may be [`NIL`]) holds a block that is there.
    #[inline]
    fn resident(&self, slot: u32) -> bool {
        slot != NIL
    }

    /// Counts a use of a resident.
    fn touch(&mut self, slot: u32);

    /// Lets a block in that is not resident; `ghost` is its slot if it is a ghost, or [`NIL`]. Passes the evicted block to `evicted`.
    fn admit(&mut self, id: IdOf<Self>, ghost: u32, evicted: &mut impl FnMut(IdOf<Self>));

    /// Takes a resident out, as if it had never been there.
    fn expel(&mut self, slot: u32);

    /// Bytes of memory held beside the slots.
    fn beside_bytes(&self) -> u64 {
        0
    }

    /// One reference: true is a hit; a block that is not there is let in.
    #[inline]
    fn reference(&mut self, id: IdOf<Self>) -> bool {
        let slot = self.nodes().find(id);
        if self.resident(slot) {
            self.touch(slot);
            return true;
        }
        self.admit(id, slot, &mut |_| {});
        false
    }

    /// References in order; returns the number of misses. Reads a few ahead, so that their waits for memory overlap.
    fn references(&mut self, ids: &[IdOf<Self>]) -> u64 {
        let mut misses = 0;
        let mut slots = [NIL; AHEAD];
        for few in ids.chunks(AHEAD) {
            for (slot, id) in slots.iter_mut().zip(few) {
                *slot = self.nodes().glance(*id);
            }
            let seen = slots.iter().take(few.len()).fold(0, |seen, slot| {
                seen ^ if Self::READS_SLOTS { self.nodes().glance_at(*slot) } else { *slot }
            });
            std::hint::black_box(seen);
            for id in few {
                misses += u64::from(!self.reference(*id));
            }
        }
        misses
    }
}

/// References read ahead.
const AHEAD: usize = 32;

impl<P: Policy<Index = Hashed>> BlockCache for P {
    fn lookup(&mut self, block: u64) -> bool {
        let slot = self.nodes().find(block);
        let hit = self.resident(slot);
        if hit {
            self.touch(slot);
        }
        hit
    }

    fn insert(&mut self, block: u64, evicted: &mut dyn FnMut(u64)) {
        let slot = self.nodes().find(block);
        if !self.resident(slot) {
            self.admit(block, slot, &mut |id| evicted(id));
        }
    }

    fn contains(&self, block: u64) -> bool {
        self.resident(self.nodes().find(block))
    }

    fn remove(&mut self, block: u64) -> bool {
        let slot = self.nodes().find(block);
        let there = self.resident(slot);
        if there {
            self.expel(slot);
        }
        there
    }

    fn len(&self) -> usize {
        self.size().held
    }

    fn capacity(&self) -> usize {
        self.size().room
    }
}
