//! The slots of a cache: which block each holds, and doubly linked lists through them.
//!
//! A list is a ring through a slot of its own (its anchor), so that no operation has a special case.
//! The meaning of an order belongs to the policies.

use super::index::{Index, Known, NIL};

/// One slot: a block and its neighbours in its list.
#[derive(Clone, Copy, Debug, Default)]
struct Node<I> {
    id: I,
    /// Towards the head.
    prev: u32,
    /// Towards the tail.
    next: u32,
}

/// Slots, lists through them, and the index from numbers to slots. Slots `0..LISTS` are the anchors.
#[derive(Debug)]
pub(super) struct Nodes<I: Index> {
    index: I,
    nodes: Vec<Node<I::Id>>,
    /// Given-up slots, linked by `next`.
    free: u32,
    /// Maximum number of slots.
    most: usize,
}

impl<I: Index> Nodes<I> {
    /// `lists` empty lists, anchored in slots `0..lists`, with room for at most `most` blocks.
    pub(super) fn new(lists: u32, most: usize) -> Self {
        let anchor = |slot| Node { id: I::Id::default(), prev: slot, next: slot };
        let nodes = (0..lists).map(anchor).collect();
        Nodes { index: I::with_max(most), nodes, free: NIL, most: most.saturating_add(lists as usize) }
    }

    /// The block in a slot.
    #[inline]
    pub(super) fn id(&self, slot: u32) -> I::Id {
        self.nodes[slot as usize].id
    }

    /// The neighbour towards the head, or the anchor.
    #[inline]
    pub(super) fn prev(&self, slot: u32) -> u32 {
        self.nodes[slot as usize].prev
    }

    /// The last of a list; the anchor itself when it is empty.
    #[inline]
    pub(super) fn tail(&self, list: u32) -> u32 {
        self.prev(list)
    }

    /// Takes a slot out of its list.
    #[inline]
    pub(super) fn unlink(&mut self, slot: u32) {
        let Node { prev, next, .. } = self.nodes[slot as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    /// Puts an unlinked slot behind another, towards the tail; behind the anchor it is the head.
    #[inline]
    pub(super) fn link_after(&mut self, place: u32, slot: u32) {
        let next = std::mem::replace(&mut self.nodes[place as usize].next, slot);
        self.nodes[next as usize].prev = slot;
        let node = &mut self.nodes[slot as usize];
        (node.prev, node.next) = (place, next);
    }

    /// Puts an unlinked slot at the head of a list.
    #[inline]
    pub(super) fn push_head(&mut self, list: u32, slot: u32) {
        self.link_after(list, slot);
    }

    /// Moves a slot to the head of a list, from wherever it is.
    #[inline]
    pub(super) fn move_to_head(&mut self, list: u32, slot: u32) {
        if self.nodes[list as usize].next != slot {
            self.unlink(slot);
            self.push_head(list, slot);
        }
    }

    /// An unlinked slot that holds this block, which has none yet.
    #[inline]
    pub(super) fn take(&mut self, id: I::Id) -> u32 {
        let slot = self.take_anonymous(id);
        self.index.put(id, slot);
        slot
    }

    /// An unlinked slot that no block is found by: the anchor of one more list. It is a ring of its own at once.
    pub(super) fn take_anchor(&mut self) -> u32 {
        let slot = self.take_anonymous(I::Id::default());
        let node = &mut self.nodes[slot as usize];
        (node.prev, node.next) = (slot, slot);
        slot
    }

    #[inline]
    fn take_anonymous(&mut self, id: I::Id) -> u32 {
        if self.free != NIL {
            let slot = self.free;
            let node = &mut self.nodes[slot as usize];
            self.free = node.next;
            node.id = id;
            return slot;
        }
        if self.nodes.len() == self.nodes.capacity() {
            // Doubling, but not beyond what will be needed.
            let more = self.nodes.len().max(64).min(self.most.saturating_sub(self.nodes.len()).max(1));
            self.nodes.reserve_exact(more);
        }
        // Below NIL: `MAX_BLOCKS` and the few lists and ghosts of any policy keep the sum of slots far from it.
        let slot = self.nodes.len() as u32;
        self.nodes.push(Node { id, prev: slot, next: slot });
        slot
    }

    /// Gives an unlinked slot up; its block is no longer found.
    #[inline]
    pub(super) fn give_up(&mut self, slot: u32) {
        self.index.erase(self.nodes[slot as usize].id, slot);
        self.give_up_anchor(slot);
    }

    /// Gives up an anchor of an empty list.
    #[inline]
    pub(super) fn give_up_anchor(&mut self, slot: u32) {
        self.nodes[slot as usize].next = self.free;
        self.free = slot;
    }

    /// Slots made so far, anchors included: arrays beside need this length.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.nodes.len()
    }
}

impl<I: Index> Known for Nodes<I> {
    type Id = I::Id;

    #[inline]
    fn find(&self, id: I::Id) -> u32 {
        self.index.get(id, |slot| self.nodes[slot as usize].id)
    }

    #[inline]
    fn read_ahead(&self, ids: &[I::Id], moves: bool) {
        let mut seen = 0;
        for id in ids {
            // It may be the slot of another block, or none.
            let slot = self.index.glance(*id);
            seen ^= if moves { self.nodes.get(slot as usize).map_or(0, |node| node.next) } else { slot };
        }
        std::hint::black_box(seen);
    }

    fn memory_bytes(&self) -> u64 {
        self.index.memory_bytes() + (self.nodes.capacity() * size_of::<Node<I::Id>>()) as u64
    }
}

/// A small number beside each slot: a bit, a counter, the list that it is in.
#[derive(Debug, Default)]
pub(super) struct Beside(Vec<u8>);

impl Beside {
    /// The number of a slot; 0 where none was set.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> u8 {
        self.0.get(slot as usize).copied().unwrap_or(0)
    }

    /// Sets the number of a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, value: u8) {
        let at = slot as usize;
        if at >= self.0.len() {
            self.0.resize((at + 1).next_power_of_two(), 0);
        }
        self.0[at] = value;
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.0.capacity() as u64
    }
}
