//! The lists of a policy that has several: which list each slot is in, how long each is, and a small count of uses.
//!
//! Invariant: a slot is in one list or unlinked; the lengths are those of the lists.

use super::index::Index;
use super::nodes::{Beside, Nodes};

/// Uses that are counted at most.
pub(super) const MAX_USES: u8 = 63;

/// `N` lists, four at most; their anchors are slots `0..N`.
#[derive(Debug)]
pub(super) struct Lists<I: Index, const N: usize> {
    pub(super) nodes: Nodes<I>,
    /// Four times the uses of a slot, and its list.
    state: Beside,
    held: [usize; N],
}

impl<I: Index, const N: usize> Lists<I, N> {
    /// Empty lists with room for at most `most` blocks in all.
    pub(super) fn new(most: usize) -> Self {
        const { assert!(N <= 4, "a list is two bits") };
        Lists { nodes: Nodes::new(N as u32, most), state: Beside::default(), held: [0; N] }
    }

    /// The list of a slot.
    #[inline]
    pub(super) fn list_of(&self, slot: u32) -> u32 {
        u32::from(self.state.get(slot) & 3)
    }

    /// How long a list is.
    #[inline]
    pub(super) fn count(&self, list: u32) -> usize {
        self.held[list as usize]
    }

    /// How long all are together.
    #[inline]
    pub(super) fn count_all(&self) -> usize {
        self.held.iter().sum()
    }

    /// The last of a list; its anchor when it is empty.
    #[inline]
    pub(super) fn tail(&self, list: u32) -> u32 {
        self.nodes.tail(list)
    }

    /// Puts an unlinked slot at the head of a list, with no use counted.
    #[inline]
    pub(super) fn place(&mut self, slot: u32, list: u32) {
        self.nodes.push_head(list, slot);
        self.state.set(slot, list as u8);
        self.held[list as usize] += 1;
    }

    /// Takes a slot out of its list.
    #[inline]
    pub(super) fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[self.list_of(slot) as usize] -= 1;
    }

    /// Takes a slot out of its list and gives it up: its block is no longer known.
    #[inline]
    pub(super) fn forget(&mut self, slot: u32) {
        self.leave(slot);
        self.nodes.give_up(slot);
    }

    /// Moves a slot to the head of its own list; its uses stay.
    #[inline]
    pub(super) fn renew(&mut self, slot: u32) {
        self.nodes.move_to_head(self.list_of(slot), slot);
    }

    /// Uses that were counted since the slot was placed.
    #[inline]
    pub(super) fn uses(&self, slot: u32) -> u8 {
        self.state.get(slot) >> 2
    }

    /// Counts a use, up to [`MAX_USES`].
    #[inline]
    pub(super) fn count_use(&mut self, slot: u32) {
        let state = self.state.get(slot);
        if state >> 2 < MAX_USES {
            self.state.set(slot, state + 4);
        }
    }

    /// Sets the count of uses, [`MAX_USES`] at most.
    #[inline]
    pub(super) fn set_uses(&mut self, slot: u32, uses: u8) {
        self.state.set(slot, uses.min(MAX_USES) << 2 | self.list_of(slot) as u8);
    }

    /// Bytes of memory held beside the slots.
    pub(super) fn beside_bytes(&self) -> u64 {
        self.state.memory_bytes()
    }
}
