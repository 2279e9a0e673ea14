//! A device with its queue: who waits, who is inside, and the integrals that Little's law is checked by.

use crate::device::{Command, Device};
use crate::ledger::Passage;
use crate::outcome::DeviceUse;
use crate::scheduler::{Scheduler, Waiting};

/// A piece of input or output at a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) io: u32,
    pub(super) disk: u32,
    pub(super) command: Command,
    pub(super) arrived_ns: u64,
    pub(super) passage: Passage,
}

/// A device and what is before it and in it.
pub(super) struct Station {
    device: Box<dyn Device>,
    queue: Box<dyn Scheduler>,
    /// Commands that the device holds and has not begun.
    window: Vec<Waiting>,
    depth: u64,
    units: u64,
    /// Commands that wait before the device.
    queued: u64,
    inside: u64,
    at_work: u64,
    /// Where the last command that was let in ends.
    arm: u64,
    present_since_ns: u64,
    pub(super) used: DeviceUse,
}

impl Station {
    pub(super) fn new(device: Box<dyn Device>, queue: Box<dyn Scheduler>, depth: u64) -> Self {
        let units = device.units().max(1);
        let used = DeviceUse { units: units.min(depth), ..DeviceUse::default() };
        Station {
            device,
            queue,
            window: Vec::new(),
            depth,
            units,
            queued: 0,
            inside: 0,
            at_work: 0,
            arm: 0,
            present_since_ns: 0,
            used,
        }
    }

    /// Commands waiting or inside.
    pub(super) fn present(&self) -> u64 {
        self.queued + self.inside
    }

    /// Brings the integral of the number present up to date.
    fn integrate(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.present_since_ns);
        self.used.present_area_ns += u128::from(passed) * u128::from(self.present());
        self.present_since_ns = now_ns;
    }

    /// A piece arrives.
    pub(super) fn arrive(&mut self, now_ns: u64, id: u32, command: &Command) {
        self.integrate(now_ns);
        self.used.arrived += 1;
        self.queued += 1;
        self.queue.push(now_ns, Waiting { id, sector: command.sector, write: command.write });
        self.used.most_present = self.used.most_present.max(self.present());
    }

    /// The medium is done with a piece; the command may still be on the bus.
    pub(super) fn served(&mut self) {
        self.at_work -= 1;
    }

    /// A piece leaves.
    pub(super) fn leave(&mut self, now_ns: u64, piece: &Piece) {
        self.integrate(now_ns);
        self.inside -= 1;
        self.used.done += 1;
        let bytes = piece.command.sectors.saturating_mul(512);
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        if piece.command.write {
            self.used.writes += 1;
            self.used.written_bytes = self.used.written_bytes.saturating_add(bytes);
        }
        self.used.resident_ns += u128::from(now_ns.saturating_sub(piece.arrived_ns));
    }

    /// Begins the next piece, if one waits and a unit is free: its number. `pieces` knows the commands.
    pub(super) fn begin(&mut self, now_ns: u64, pieces: &mut [Piece]) -> Option<u32> {
        while self.queued > 0 && self.inside < self.depth {
            let Some(next) = self.queue.pop(now_ns, self.arm) else { break };
            self.arm = next.sector;
            self.queued -= 1;
            self.inside += 1;
            self.window.push(next);
        }
        if self.at_work >= self.units || self.window.is_empty() {
            return None;
        }
        let at = self.choose(now_ns, pieces);
        let id = self.window.remove(at).id;
        let piece = &mut pieces[id as usize];
        piece.passage.queue_ns = now_ns.saturating_sub(piece.arrived_ns);
        piece.passage.service = self.device.serve(now_ns, &piece.command);
        self.at_work += 1;
        self.used.work.merge(&piece.passage.service);
        self.used.busy_ns = self.used.busy_ns.saturating_add(piece.passage.service.total_ns());
        Some(id)
    }

    /// Which of its commands the device takes: the one that it can begin first; the oldest of equals.
    fn choose(&self, now_ns: u64, pieces: &[Piece]) -> usize {
        if self.window.len() == 1 || self.units > 1 {
            return 0;
        }
        let cost =
            |waiting: &Waiting| self.device.positioning_ns(now_ns, &pieces[waiting.id as usize].command);
        self.window
            .iter()
            .enumerate()
            .min_by_key(|(index, waiting)| (cost(waiting), *index))
            .map_or(0, |(index, _)| index)
    }
}
