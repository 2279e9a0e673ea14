//! The lists of a policy: which list each slot is in, how long each is, and a small count of uses.
//!
//! Two stores: [`Linked`] for blocks of any number, which grows with the blocks known, and
//! [`Logs`](super::logs::Logs) for dense numbers. Invariant: a slot is in one list or unlinked.

use std::fmt::Debug;

use super::index::{Index, Known, NIL};
use super::nodes::{Beside, Nodes};

/// Uses that are counted at most.
pub(super) const MAX_USES: u8 = 31;

/// Lists at most.
pub(super) const MAX_LISTS: usize = 4;

/// Lists of blocks, [`MAX_LISTS`] at most.
pub(super) trait Lists: Known {
    /// Finds the slots of a policy that has lists of its own.
    type Index: Index<Id = Self::Id>;

    /// Empty lists with room for at most `most` blocks in all.
    fn new(lists: usize, most: usize) -> Self;

    /// The block in a slot.
    fn id(&self, slot: u32) -> Self::Id;

    /// The list of a slot.
    fn list_of(&self, slot: u32) -> u32;

    /// How long a list is.
    fn count(&self, list: u32) -> usize;

    /// The last of a list that is not empty.
    fn tail(&mut self, list: u32) -> u32;

    /// The neighbour towards the head, or [`NIL`].
    fn newer(&self, slot: u32) -> u32;

    /// An unlinked slot for a block that has none.
    fn take(&mut self, id: Self::Id) -> u32;

    /// Gives an unlinked slot up: its block is no longer known.
    fn give_up(&mut self, slot: u32);

    /// Puts an unlinked slot at the head of a list, with no use counted.
    fn place(&mut self, slot: u32, list: u32);

    /// Takes a slot out of its list.
    fn leave(&mut self, slot: u32);

    /// Moves a slot to the head of its own list; its uses stay.
    fn renew(&mut self, slot: u32);

    /// Uses that were counted since the slot was placed.
    fn uses(&self, slot: u32) -> u8;

    /// Sets the count of uses, [`MAX_USES`] at most.
    fn set_uses(&mut self, slot: u32, uses: u8);

    /// How long all lists are together.
    #[inline]
    fn count_all(&self) -> usize {
        (0..MAX_LISTS as u32).map(|list| self.count(list)).sum()
    }

    /// Takes a slot out of its list and gives it up.
    #[inline]
    fn forget(&mut self, slot: u32) {
        self.leave(slot);
        self.give_up(slot);
    }

    /// Counts a use, up to [`MAX_USES`].
    #[inline]
    fn count_use(&mut self, slot: u32) {
        let uses = self.uses(slot);
        if uses < MAX_USES {
            self.set_uses(slot, uses + 1);
        }
    }
}

/// Doubly linked lists of slots that an index finds. The anchors of the lists are the first slots.
#[derive(Debug)]
pub(super) struct Linked<I: Index> {
    nodes: Nodes<I>,
    /// Four times the uses of a slot, and its list.
    state: Beside,
    held: [usize; MAX_LISTS],
    lists: u32,
}

impl<I: Index> Known for Linked<I> {
    type Id = I::Id;

    #[inline]
    fn find(&self, id: I::Id) -> u32 {
        self.nodes.find(id)
    }

    #[inline]
    fn read_ahead(&self, ids: &[I::Id], moves: bool) {
        self.nodes.read_ahead(ids, moves);
    }

    fn memory_bytes(&self) -> u64 {
        self.nodes.memory_bytes() + self.state.memory_bytes()
    }
}

impl<I: Index> Lists for Linked<I> {
    type Index = I;

    fn new(lists: usize, most: usize) -> Self {
        let lists = lists.min(MAX_LISTS) as u32;
        Linked { nodes: Nodes::new(lists, most), state: Beside::default(), held: [0; MAX_LISTS], lists }
    }

    #[inline]
    fn id(&self, slot: u32) -> I::Id {
        self.nodes.id(slot)
    }

    #[inline]
    fn list_of(&self, slot: u32) -> u32 {
        u32::from(self.state.get(slot) & 3)
    }

    #[inline]
    fn count(&self, list: u32) -> usize {
        self.held[list as usize]
    }

    #[inline]
    fn tail(&mut self, list: u32) -> u32 {
        self.nodes.tail(list)
    }

    #[inline]
    fn newer(&self, slot: u32) -> u32 {
        let newer = self.nodes.prev(slot);
        if newer < self.lists { NIL } else { newer }
    }

    #[inline]
    fn take(&mut self, id: I::Id) -> u32 {
        self.nodes.take(id)
    }

    #[inline]
    fn give_up(&mut self, slot: u32) {
        self.nodes.give_up(slot);
    }

    #[inline]
    fn place(&mut self, slot: u32, list: u32) {
        self.nodes.push_head(list, slot);
        self.state.set(slot, list as u8);
        self.held[list as usize] += 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[self.list_of(slot) as usize] -= 1;
    }

    #[inline]
    fn renew(&mut self, slot: u32) {
        self.nodes.move_to_head(self.list_of(slot), slot);
    }

    #[inline]
    fn uses(&self, slot: u32) -> u8 {
        self.state.get(slot) >> 2
    }

    #[inline]
    fn set_uses(&mut self, slot: u32, uses: u8) {
        self.state.set(slot, uses.min(MAX_USES) << 2 | self.list_of(slot) as u8);
    }
}
