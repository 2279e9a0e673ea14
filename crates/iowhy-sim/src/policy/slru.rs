//! Segmented LRU (Karedla, Love, Wherry 1994), here of four equal segments as libCacheSim has it: a block comes in at the
//! bottom, each use lifts it by one segment, and what overflows sinks by one. The oldest of the lowest leaves.

use super::engine::{Policy, Size};
use super::index::Index;
use super::nodes::{Beside, Nodes};

/// Segments; the anchors of their lists are slots `0..SEGMENTS`, the lowest first.
const SEGMENTS: usize = 4;

/// Segmented LRU.
#[derive(Debug)]
pub(super) struct Slru<I: Index> {
    nodes: Nodes<I>,
    /// The segment of each slot.
    segment: Beside,
    held: [usize; SEGMENTS],
    most: [usize; SEGMENTS],
    size: Size,
}

impl<I: Index> Slru<I> {
    /// An empty cache with room for so many blocks, at least one. What does not divide evenly goes to the lower segments.
    pub(super) fn new(room: usize) -> Self {
        let room = room.max(1);
        let most = std::array::from_fn(|i| room / SEGMENTS + usize::from(i < room % SEGMENTS));
        let nodes = Nodes::new(SEGMENTS as u32, room);
        Slru { nodes, segment: Beside::default(), held: [0; SEGMENTS], most, size: Size::empty(room) }
    }

    /// Moves a slot to the head of a segment; the segment must have room, or get it at once.
    #[inline]
    fn place(&mut self, slot: u32, segment: usize) {
        self.nodes.push_head(segment as u32, slot);
        self.segment.set(slot, segment as u8);
        self.held[segment] += 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[usize::from(self.segment.get(slot))] -= 1;
    }
}

impl<I: Index> Policy for Slru<I> {
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
    fn touch(&mut self, slot: u32) {
        let segment = usize::from(self.segment.get(slot));
        let above = segment + 1;
        if above == SEGMENTS || self.most[above] == 0 {
            self.nodes.move_to_head(segment as u32, slot);
            return;
        }
        self.leave(slot);
        // The place that was left takes the one that sinks.
        if self.held[above] >= self.most[above] {
            let sinks = self.nodes.tail(above as u32);
            self.leave(sinks);
            self.place(sinks, segment);
        }
        self.place(slot, above);
    }

    #[inline]
    fn admit(&mut self, id: I::Id, _ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        if self.size.full() {
            // Not empty: somebody is held.
            let lowest = self.held.iter().position(|held| *held > 0).unwrap_or(0);
            let slot = self.nodes.tail(lowest as u32);
            evicted(self.nodes.id(slot));
            self.expel(slot);
        }
        // Full segments have none free only when the whole cache has none.
        let free = (0..SEGMENTS).find(|i| self.held[*i] < self.most[*i]).unwrap_or(0);
        let slot = self.nodes.take(id);
        self.place(slot, free);
        self.size.held += 1;
    }

    fn expel(&mut self, slot: u32) {
        self.leave(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.segment.memory_bytes()
    }
}
