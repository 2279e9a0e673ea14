//! Least frequently used, perfect while a block is there and forgotten when it leaves. Among equally used blocks the one that
//! has been used so often for longest leaves, as in libCacheSim. All steps take constant time: blocks of equal use form a
//! group, groups stand in order of use (Shah, Mitra, Matani 2010).

use super::engine::{Policy, Size};
use super::index::NIL;
use super::lists::Lists;
use super::nodes::Nodes;

/// Blocks used equally often.
#[derive(Clone, Copy, Debug)]
struct Group {
    uses: u64,
    /// Anchor of the list of its blocks; the newest is the head.
    anchor: u32,
    /// The group with fewer uses, or [`NIL`].
    below: u32,
    /// The group with more uses, or [`NIL`]; the next free one among given-up groups.
    above: u32,
}

/// Least frequently used.
#[derive(Debug)]
pub(super) struct Lfu<L: Lists> {
    nodes: Nodes<L::Index>,
    groups: Vec<Group>,
    free_group: u32,
    /// The group with the fewest uses, or [`NIL`].
    lowest: u32,
    /// The group of each slot.
    group: Vec<u32>,
    size: Size,
}

impl<L: Lists> Lfu<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        Lfu {
            nodes: Nodes::new(0, room),
            groups: Vec::new(),
            free_group: NIL,
            lowest: NIL,
            group: Vec::new(),
            size: Size::empty(room),
        }
    }

    /// A new empty group right above another; above [`NIL`] it is the lowest.
    fn open_group(&mut self, uses: u64, below: u32) -> u32 {
        let above = if below == NIL { self.lowest } else { self.groups[below as usize].above };
        let made = Group { uses, anchor: self.nodes.take_anchor(), below, above };
        let number = if self.free_group == NIL {
            self.groups.push(made);
            (self.groups.len() - 1) as u32
        } else {
            let number = self.free_group;
            self.free_group = self.groups[number as usize].above;
            self.groups[number as usize] = made;
            number
        };
        self.link_groups(below, number);
        self.link_groups(number, above);
        number
    }

    /// Makes two groups neighbours; [`NIL`] stands for the end.
    fn link_groups(&mut self, below: u32, above: u32) {
        match below {
            NIL => self.lowest = above,
            below => self.groups[below as usize].above = above,
        }
        if above != NIL {
            self.groups[above as usize].below = below;
        }
    }

    #[inline]
    fn place(&mut self, slot: u32, group: u32) {
        self.nodes.push_head(self.groups[group as usize].anchor, slot);
        let at = slot as usize;
        if at >= self.group.len() {
            // Slots are handed out in order, so this adds one or a few.
            self.group.resize(self.nodes.slots(), NIL);
        }
        self.group[at] = group;
    }

    /// Removes a group that is empty.
    #[inline]
    fn close_if_empty(&mut self, group: u32) {
        let Group { anchor, below, above, .. } = self.groups[group as usize];
        if self.nodes.tail(anchor) != anchor {
            return;
        }
        self.link_groups(below, above);
        self.nodes.give_up_anchor(anchor);
        self.groups[group as usize].above = self.free_group;
        self.free_group = group;
    }
}

impl<L: Lists> Policy for Lfu<L> {
    type Blocks = Nodes<L::Index>;

    #[inline]
    fn blocks(&self) -> &Nodes<L::Index> {
        &self.nodes
    }

    #[inline]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        let from = self.group[slot as usize];
        let Group { uses, anchor, above, .. } = self.groups[from as usize];
        let more = uses + 1;
        self.nodes.unlink(slot);
        let taken = above != NIL && self.groups[above as usize].uses == more;
        if !taken && self.nodes.tail(anchor) == anchor {
            // Alone in its group, and no group has one use more: the group moves with it.
            self.groups[from as usize].uses = more;
            self.nodes.push_head(anchor, slot);
            return;
        }
        let to = if taken { above } else { self.open_group(more, from) };
        self.place(slot, to);
        self.close_if_empty(from);
    }

    #[inline]
    fn admit(&mut self, id: L::Id, _ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        if self.size.full() && self.lowest != NIL {
            let slot = self.nodes.tail(self.groups[self.lowest as usize].anchor);
            evicted(self.nodes.id(slot));
            self.expel(slot);
        }
        let lowest = self.lowest;
        let once = lowest != NIL && self.groups[lowest as usize].uses == 1;
        let group = if once { lowest } else { self.open_group(1, NIL) };
        let slot = self.nodes.take(id);
        self.place(slot, group);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.close_if_empty(self.group[slot as usize]);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        (self.groups.capacity() * size_of::<Group>() + self.group.capacity() * 4) as u64
    }
}
