//! What every policy has in common: a look-up is a hit or leads to an admission, and the rest follows from five steps.
//!
//! Written once for dense numbers (curves) and for any numbers (the timed simulator), because a [`Policy`] does not see how
//! its blocks are [`Known`]. It knows no single policy.

use std::fmt::Debug;

use super::BlockCache;
use super::index::{Known, NIL};

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
pub(super) type IdOf<P> = <<P as Policy>::Blocks as Known>::Id;

/// The steps of which a policy is made. Slots are its own; one that is not resident is a ghost: a block that has left and
/// is remembered.
pub(super) trait Policy: Debug + Send {
    /// The blocks that it knows, with their slots.
    type Blocks: Known;

    /// Whether nearly every reference moves its block, so that what a move reads is worth reading ahead. Where a hit
    /// changes little, that costs more than it saves.
    const MOVES: bool = false;

    /// The blocks.
    fn blocks(&self) -> &Self::Blocks;

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
        let slot = self.blocks().find(id);
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
        for few in ids.chunks(AHEAD) {
            self.blocks().read_ahead(few, Self::MOVES);
            for id in few {
                misses += u64::from(!self.reference(*id));
            }
        }
        misses
    }
}

/// References read ahead at a time.
const AHEAD: usize = 32;

impl<P: Policy> BlockCache for P
where
    P::Blocks: Known<Id = u64>,
{
    fn lookup(&mut self, block: u64) -> bool {
        let slot = self.blocks().find(block);
        let hit = self.resident(slot);
        if hit {
            self.touch(slot);
        }
        hit
    }

    fn insert(&mut self, block: u64, evicted: &mut dyn FnMut(u64)) {
        let slot = self.blocks().find(block);
        if !self.resident(slot) {
            self.admit(block, slot, &mut |id| evicted(id));
        }
    }

    fn contains(&self, block: u64) -> bool {
        self.resident(self.blocks().find(block))
    }

    fn remove(&mut self, block: u64) -> bool {
        let slot = self.blocks().find(block);
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
