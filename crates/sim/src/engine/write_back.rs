//! Dirty blocks on their way out: in the background from a threshold on, and a limit at which writers wait.

use std::collections::VecDeque;

use super::io::Purpose;
use super::{Engine, Event};
use crate::ledger::Part;
use rustc_hash::FxHashSet;

/// Outputs of write-back that are under way at once.
const SIDE_BY_SIDE: usize = 4;

/// Writes in flight and waiting tasks.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    /// Outputs that are under way, by number.
    in_flight: FxHashSet<u64>,
    in_flight_bytes: u64,
    /// Writers that wait until less is dirty.
    held_back: VecDeque<u32>,
}

impl Engine<'_, '_> {
    /// Writes evicted dirty blocks.
    pub(super) fn write_evicted(&mut self) {
        while let Some(flush) = self.scratch.flushes.pop() {
            self.write_out(flush.start, flush.bytes);
        }
    }

    fn write_out(&mut self, start: u64, bytes: u64) -> u32 {
        let io = self.new_io(Purpose::Flush, true, (0, 0), start, bytes);
        let bytes = self.ios[io as usize].bytes;
        self.write_back.in_flight.insert(u64::from(io));
        self.write_back.in_flight_bytes += bytes;
        self.totals.cache.written_back = self.totals.cache.written_back.saturating_add(bytes);
        self.submit(io);
        io
    }

    /// Starts write-back where more is dirty than the threshold.
    pub(super) fn write_behind(&mut self) {
        let (threshold, run_bytes) = (self.machine.cache.background_bytes, self.machine.cache.io_bytes);
        while self.write_back.in_flight.len() < SIDE_BY_SIDE {
            let held = !self.write_back.held_back.is_empty();
            let Some(cache) = &mut self.cache else { return };
            if cache.dirty_bytes <= threshold && !held {
                return;
            }
            let Some(flush) = cache.clean_oldest(run_bytes) else { return };
            self.write_out(flush.start, flush.bytes);
        }
    }

    /// Whether a writer must wait.
    pub(super) fn too_dirty(&self) -> bool {
        let dirty = self.cache.as_ref().map_or(0, |cache| cache.dirty_bytes);
        dirty.saturating_add(self.write_back.in_flight_bytes) > self.machine.cache.dirty_bytes
    }

    /// A writer waits until less is dirty.
    pub(super) fn hold_back(&mut self, task: u32) {
        self.tasks[task as usize].wait_from_ns = self.now_ns;
        self.write_back.held_back.push_back(task);
        self.write_behind();
        self.release();
    }

    /// An output of write-back is done.
    pub(super) fn flushed(&mut self, io: u32, bytes: u64) {
        self.write_back.in_flight.remove(&u64::from(io));
        self.write_back.in_flight_bytes -= bytes;
        self.write_behind();
        self.release();
    }

    fn release(&mut self) {
        while !self.write_back.held_back.is_empty() {
            // Nothing in flight and nothing to write: one writer dirties more than the limit.
            let idle = self.write_back.in_flight.is_empty();
            if self.too_dirty() && !idle {
                return;
            }
            let Some(task) = self.write_back.held_back.pop_front() else { return };
            let state = &mut self.tasks[task as usize];
            state.parts.add(Part::Writeback, self.now_ns - state.wait_from_ns);
            self.events.push(self.now_ns, Event::Step(task));
        }
    }

    /// Writes everything dirty and lets the task wait for it, and for what is on its way already: that is not on the device
    /// either. False: there is nothing to wait for.
    pub(super) fn sync(&mut self, task: u32) -> bool {
        let run_bytes = self.machine.cache.io_bytes;
        while let Some(flush) = self.cache.as_mut().and_then(|cache| cache.clean_oldest(run_bytes)) {
            self.write_out(flush.start, flush.bytes);
        }
        // In any order: each of them only counts down.
        for io in &self.write_back.in_flight {
            self.ios[*io as usize].waiters.push(task);
        }
        let waiting = self.write_back.in_flight.len() as u32;
        let state = &mut self.tasks[task as usize];
        state.waiting = waiting;
        (state.wait_from_ns, state.asleep) = (self.now_ns, true);
        waiting > 0
    }
}
