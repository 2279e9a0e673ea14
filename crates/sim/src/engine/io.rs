//! Inputs and outputs: from the cache or a request to the volume, its pieces on the devices, and back.

use super::station::Piece;
use super::{Engine, Event};
use crate::device::{Command, moving_ns};
use crate::ledger::Passage;
use crate::volume::SECTOR_BYTES;

/// Why it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A request waits for it.
    #[default]
    Demand,
    /// Read ahead.
    Ahead,
    /// Written back.
    Flush,
}

/// One input or output of a run of blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Io {
    pub(super) purpose: Purpose,
    pub(super) write: bool,
    /// Blocks that it brings into the cache: the first key, and how many.
    pub(super) keys: (u64, u64),
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// The last look-up that met it on its way; 0: none.
    pub(super) seen: u64,
    pieces_left: u32,
    /// The way of the piece that came last.
    last: Passage,
    /// Requests that wait for it.
    pub(super) waiters: Vec<u32>,
}

impl Engine<'_, '_> {
    /// A new input or output that is not on its way yet. Its range is cut to the volume.
    pub(super) fn new_io(
        &mut self,
        purpose: Purpose,
        write: bool,
        keys: (u64, u64),
        start: u64,
        bytes: u64,
    ) -> u32 {
        let start = start.min(self.volume_bytes.saturating_sub(1));
        let bytes = bytes.min(self.volume_bytes - start);
        let id = match self.free_ios.pop() {
            Some(id) => id,
            None => {
                self.ios.push(Io::default());
                (self.ios.len() - 1) as u32
            }
        };
        let io = &mut self.ios[id as usize];
        let mut waiters = std::mem::take(&mut io.waiters);
        waiters.clear();
        *io = Io { purpose, write, keys, start, bytes, waiters, ..Io::default() };
        id
    }

    /// Sends it to the devices, unless the driver holds its bytes.
    pub(super) fn submit(&mut self, id: u32) {
        let io = &self.ios[id as usize];
        let (write, mut range) = (io.write, io.start..io.start + io.bytes);
        if let Some(driver) = &mut self.driver {
            if write {
                driver.write(range.clone());
            } else {
                match driver.read(range.clone(), self.volume_bytes) {
                    Some(physical) => range = physical,
                    None => range = 0..0,
                }
            }
        }
        if range.is_empty() {
            self.events.push(self.now_ns, Event::Ready(id));
            return;
        }
        let first = range.start / SECTOR_BYTES;
        let sectors = range.end.div_ceil(SECTOR_BYTES).min(self.volume.sectors()) - first;
        let mut pieces = std::mem::take(&mut self.scratch.pieces);
        let choice = self.least_loaded();
        self.volume.pieces(first, sectors.max(1), write, choice, &mut pieces);
        self.ios[id as usize].pieces_left = pieces.len() as u32;
        for piece in &pieces {
            let command = Command { sector: piece.sector, sectors: piece.sectors, write };
            self.totals.volume_bytes = self.totals.volume_bytes.saturating_add(piece.sectors * SECTOR_BYTES);
            let new = Piece {
                io: id,
                disk: piece.disk,
                command,
                arrived_ns: self.now_ns,
                passage: Passage::default(),
            };
            let number = match self.free_pieces.pop() {
                Some(number) => {
                    self.pieces[number as usize] = new;
                    number
                }
                None => {
                    self.pieces.push(new);
                    (self.pieces.len() - 1) as u32
                }
            };
            self.stations[piece.disk as usize].arrive(self.now_ns, number, &command);
        }
        for piece in &pieces {
            self.dispatch(piece.disk);
        }
        self.scratch.pieces = pieces;
    }

    /// The device with the fewest commands: where a mirror reads.
    fn least_loaded(&self) -> u64 {
        if self.machine.volume.kind != crate::machine::JoinKind::Mirror {
            return 0;
        }
        let loads = self.stations.iter().enumerate();
        loads.min_by_key(|(_, station)| station.present()).map_or(0, |(index, _)| index as u64)
    }

    /// Starts commands on a device as far as its depth allows.
    fn dispatch(&mut self, disk: u32) {
        while let Some(piece) = self.stations[disk as usize].begin(self.now_ns, &mut self.pieces) {
            let takes = self.pieces[piece as usize].passage.service.total_ns();
            self.events.push(self.now_ns.saturating_add(takes), Event::Served(piece));
        }
    }

    /// The medium is done: over the bus, one after the other.
    pub(super) fn served(&mut self, number: u32) {
        let piece = &mut self.pieces[number as usize];
        let disk = piece.disk;
        self.stations[disk as usize].served();
        let bus = &self.machine.bus;
        if bus.bytes_per_second == 0 && bus.command_ns == 0 {
            self.piece_done(number);
            return;
        }
        let takes = bus
            .command_ns
            .saturating_add(moving_ns(piece.command.sectors * SECTOR_BYTES, bus.bytes_per_second));
        let begin = self.bus_free_ns.max(self.now_ns);
        let end = begin.saturating_add(takes);
        piece.passage.bus_ns = end - self.now_ns;
        self.bus_free_ns = end;
        self.bus_busy_ns = self.bus_busy_ns.saturating_add(takes);
        self.events.push(end, Event::Done(number));
        // With tagged queueing the medium goes on meanwhile.
        self.dispatch(disk);
    }

    /// A piece is done; with the last one, the whole.
    pub(super) fn piece_done(&mut self, number: u32) {
        let piece = self.pieces[number as usize];
        self.free_pieces.push(number);
        self.stations[piece.disk as usize].leave(self.now_ns, &piece);
        self.dispatch(piece.disk);
        let io = &mut self.ios[piece.io as usize];
        io.last = piece.passage;
        io.pieces_left -= 1;
        if io.pieces_left == 0 {
            self.io_done(piece.io);
        }
    }

    /// It is done: its blocks are there, and those who waited go on.
    pub(super) fn io_done(&mut self, id: u32) {
        let io = &self.ios[id as usize];
        let (purpose, keys, bytes, passage) = (io.purpose, io.keys, io.bytes, io.last);
        if let Some(cache) = &mut self.cache {
            for key in keys.0..keys.0 + keys.1 {
                cache.coming.remove(&key);
                cache.insert(key, &mut self.scratch.flushes);
            }
        }
        let mut waiters = std::mem::take(&mut self.scratch.waiters);
        waiters.clear();
        waiters.append(&mut self.ios[id as usize].waiters);
        self.free_ios.push(id);
        self.write_evicted();
        if purpose == Purpose::Flush {
            self.flushed(id, bytes);
        }
        for task in waiters.drain(..) {
            let state = &mut self.tasks[task as usize];
            state.waiting -= 1;
            if state.waiting == 0 && state.asleep {
                passage.book_last(self.now_ns - state.wait_from_ns, &mut state.parts);
                // Not at once: a chain of inputs that take no time must not grow the stack.
                self.ready.push(task);
            }
        }
        if self.scratch.waiters.capacity() < waiters.capacity() {
            self.scratch.waiters = waiters;
        }
    }
}
