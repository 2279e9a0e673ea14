//! S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023), as libCacheSim has it: a small FIFO queue (a tenth of the room), a main
//! one, and ghosts of those that left the small one (nine tenths of the room). What was used twice in the small queue moves
//! to the main one, where a block goes round as often as it was used, at most three times.

use super::engine::{Policy, Size};
use super::index::{Index, NIL};
use super::nodes::{Beside, Nodes};

const SMALL: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

/// Share of the room that the small queue has, and that ghosts may number.
const SMALL_SHARE: f64 = 0.1;
const GHOST_SHARE: f64 = 0.9;
/// Uses in the small queue that lead to the main one.
const TO_MAIN: u8 = 2;
/// Uses that count at most when a block goes round in the main queue.
const MOST_ROUNDS: u8 = 3;
/// A slot's number is its uses, up to this, times four, and its list.
const MOST_USES: u8 = 63;

/// S3-FIFO.
#[derive(Debug)]
pub(super) struct S3Fifo<I: Index> {
    nodes: Nodes<I>,
    /// Uses and list of each slot.
    state: Beside,
    /// Length of each list.
    held: [usize; 3],
    main_most: usize,
    ghosts_most: usize,
    size: Size,
}

impl<I: Index> S3Fifo<I> {
    /// An empty cache with room for so many blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        let ghosts_most = (room as f64 * GHOST_SHARE) as usize;
        S3Fifo {
            nodes: Nodes::new(3, room.saturating_add(ghosts_most).saturating_add(1)),
            state: Beside::default(),
            held: [0; 3],
            main_most: room - (room as f64 * SMALL_SHARE) as usize,
            ghosts_most,
            size: Size::empty(room),
        }
    }

    #[inline]
    fn list(&self, slot: u32) -> u32 {
        u32::from(self.state.get(slot) & 3)
    }

    #[inline]
    fn uses(&self, slot: u32) -> u8 {
        self.state.get(slot) >> 2
    }

    #[inline]
    fn place(&mut self, slot: u32, list: u32, uses: u8) {
        self.nodes.push_head(list, slot);
        self.state.set(slot, uses << 2 | list as u8);
        self.held[list as usize] += 1;
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.nodes.unlink(slot);
        self.held[self.list(slot) as usize] -= 1;
    }

    /// Lets somebody go from the small queue, unless all of it moves to the main one.
    #[inline]
    fn evict_small(&mut self, evicted: &mut impl FnMut(I::Id)) {
        while self.held[SMALL as usize] > 0 {
            let slot = self.nodes.tail(SMALL);
            let uses = self.uses(slot);
            self.leave(slot);
            if uses >= TO_MAIN {
                self.place(slot, MAIN, 0);
                continue;
            }
            evicted(self.nodes.id(slot));
            self.size.held -= 1;
            if self.ghosts_most == 0 {
                self.nodes.give_up(slot);
                return;
            }
            if self.held[GHOSTS as usize] >= self.ghosts_most {
                let oldest = self.nodes.tail(GHOSTS);
                self.leave(oldest);
                self.nodes.give_up(oldest);
            }
            self.place(slot, GHOSTS, 0);
            return;
        }
    }

    /// Lets somebody go from the main queue. Ends: each block that goes round has one use fewer.
    #[inline]
    fn evict_main(&mut self, evicted: &mut impl FnMut(I::Id)) {
        while self.held[MAIN as usize] > 0 {
            let slot = self.nodes.tail(MAIN);
            let uses = self.uses(slot).min(MOST_ROUNDS);
            if uses > 0 {
                self.nodes.move_to_head(MAIN, slot);
                self.state.set(slot, (uses - 1) << 2 | MAIN as u8);
                continue;
            }
            evicted(self.nodes.id(slot));
            self.expel(slot);
            return;
        }
    }
}

impl<I: Index> Policy for S3Fifo<I> {
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
        slot != NIL && self.list(slot) != GHOSTS
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        let state = self.state.get(slot);
        if state >> 2 < MOST_USES {
            self.state.set(slot, state + 4);
        }
    }

    #[inline]
    fn admit(&mut self, id: I::Id, ghost: u32, evicted: &mut impl FnMut(I::Id)) {
        if ghost != NIL {
            self.leave(ghost);
        }
        // Moving from the small queue to the main one frees no place, so it may take two turns.
        while self.size.full() {
            if self.held[MAIN as usize] > self.main_most || self.held[SMALL as usize] == 0 {
                self.evict_main(evicted);
            } else {
                self.evict_small(evicted);
            }
        }
        self.size.held += 1;
        if ghost != NIL {
            self.place(ghost, MAIN, 0);
            return;
        }
        let slot = self.nodes.take(id);
        self.place(slot, SMALL, 0);
    }

    fn expel(&mut self, slot: u32) {
        self.leave(slot);
        self.nodes.give_up(slot);
        self.size.held -= 1;
    }

    fn beside_bytes(&self) -> u64 {
        self.state.memory_bytes()
    }
}
