//! S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023), as libCacheSim has it: a small FIFO queue (a tenth of the room), a main
//! one, and ghosts of those that left the small one (nine tenths of the room). What was used twice in the small queue moves
//! to the main one, where a block goes round as often as it was used, at most three times.

use super::engine::{Policy, Size};
use super::index::NIL;
use super::lists::Lists;

const SMALL: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

/// Share of the room that the small queue has, and that ghosts may number.
const SMALL_SHARE: f64 = 0.1;
const GHOST_SHARE: f64 = 0.9;
/// Uses in the small queue that lead to the main one.
const TO_MAIN: u8 = 2;
/// Uses that count at most when a block goes round in the main queue.
const MAX_ROUNDS: u8 = 3;

/// S3-FIFO.
#[derive(Debug)]
pub(super) struct S3Fifo<L: Lists> {
    lists: L,
    main_most: usize,
    ghosts_most: usize,
    size: Size,
}

impl<L: Lists> S3Fifo<L> {
    /// An empty cache with room for `capacity` blocks, at least one.
    pub(super) fn new(room: usize) -> Self {
        let ghosts_most = (room as f64 * GHOST_SHARE) as usize;
        S3Fifo {
            lists: L::new(3, room.saturating_add(ghosts_most).saturating_add(1)),
            main_most: room - (room as f64 * SMALL_SHARE) as usize,
            ghosts_most,
            size: Size::empty(room),
        }
    }

    /// Lets somebody go from the small queue, unless all of it moves to the main one.
    #[inline]
    fn evict_small(&mut self, evicted: &mut impl FnMut(L::Id)) {
        while self.lists.count(SMALL) > 0 {
            let slot = self.lists.tail(SMALL);
            let uses = self.lists.uses(slot);
            self.lists.leave(slot);
            if uses >= TO_MAIN {
                self.lists.place(slot, MAIN);
                continue;
            }
            evicted(self.lists.id(slot));
            self.size.held -= 1;
            if self.ghosts_most == 0 {
                self.lists.give_up(slot);
                return;
            }
            if self.lists.count(GHOSTS) >= self.ghosts_most {
                let oldest = self.lists.tail(GHOSTS);
                self.lists.forget(oldest);
            }
            self.lists.place(slot, GHOSTS);
            return;
        }
    }

    /// Evicts from the main queue. It ends because each block that goes round has one use fewer.
    #[inline]
    fn evict_main(&mut self, evicted: &mut impl FnMut(L::Id)) {
        while self.lists.count(MAIN) > 0 {
            let slot = self.lists.tail(MAIN);
            let uses = self.lists.uses(slot).min(MAX_ROUNDS);
            if uses > 0 {
                self.lists.renew(slot);
                self.lists.set_uses(slot, uses - 1);
                continue;
            }
            evicted(self.lists.id(slot));
            self.expel(slot);
            return;
        }
    }
}

impl<L: Lists> Policy for S3Fifo<L> {
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
        slot != NIL && self.lists.list_of(slot) != GHOSTS
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.lists.count_use(slot);
    }

    #[inline]
    fn admit(&mut self, id: L::Id, ghost: u32, evicted: &mut impl FnMut(L::Id)) {
        if ghost != NIL {
            self.lists.leave(ghost);
        }
        // Moving from the small queue to the main one frees no place, so it may take two turns.
        while self.size.full() {
            if self.lists.count(MAIN) > self.main_most || self.lists.count(SMALL) == 0 {
                self.evict_main(evicted);
            } else {
                self.evict_small(evicted);
            }
        }
        self.size.held += 1;
        if ghost != NIL {
            self.lists.place(ghost, MAIN);
            return;
        }
        let slot = self.lists.take(id);
        self.lists.place(slot, SMALL);
    }

    fn expel(&mut self, slot: u32) {
        self.lists.forget(slot);
        self.size.held -= 1;
    }
}
