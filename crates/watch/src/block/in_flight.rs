//! Cumulative times of the requests in flight. A sleep reads them where it begins and where it ends, so that it costs a
//! subtraction however many requests there were.
//!
//! Non-goal: what a sleep was for. Invariant ([`Split`]): the parts of a sleep sum to at most its length, and delay by other
//! programs lies within the part it is about.

use std::collections::HashMap;

use super::Owner;

/// Devices told apart. Requests of further ones are not followed.
const MAX_DEVICES: usize = 8;
/// Pairs of another program and a device told apart; later ones are one pair for each device, and share its name.
const MAX_PAIRS: usize = 16;
/// Threads whose last request is remembered.
const MAX_THREADS: usize = 65_536;
/// Facts are given if at most this part of the issued requests was lost from sight: one that seems to stay at the device
/// for ever makes the device seem busy for ever.
const MAX_LOST: f64 = 0.01;

/// The requests' part of a sleep, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The request was at the device.
    pub device_ns: u64,
    /// It was in a queue of the block layer, and nothing was at the device for the program.
    pub queued_ns: u64,
    /// Of `queued_ns`: another program's request was at the same device.
    pub behind_ns: u64,
    /// Of `device_ns`: another program's request was there too.
    pub beside_ns: u64,
    /// A request on a file was under way on a ring of the program, wherever it was.
    pub ring_ns: u64,
}

impl Split {
    /// Adds another one.
    pub fn add(&mut self, other: Split) {
        self.device_ns += other.device_ns;
        self.queued_ns += other.queued_ns;
        self.behind_ns += other.behind_ns;
        self.beside_ns += other.beside_ns;
        self.ring_ns += other.ring_ns;
    }

    /// The same of a sleep of which only so much was booked.
    #[must_use]
    pub fn at_most(self, booked_ns: u64) -> Split {
        let sum = self.device_ns + self.queued_ns;
        let ring_ns = self.ring_ns.min(booked_ns);
        if sum <= booked_ns {
            return Split { ring_ns, ..self };
        }
        let part = |ns: u64| (u128::from(ns) * u128::from(booked_ns) / u128::from(sum)) as u64;
        Split {
            device_ns: part(self.device_ns),
            queued_ns: part(self.queued_ns),
            behind_ns: part(self.behind_ns),
            beside_ns: part(self.beside_ns),
            ring_ns,
        }
    }
}

/// Delay by one other program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Charge {
    /// Sleeping time behind its requests.
    pub behind_ns: f64,
    /// Sleeping time beside its requests at the device.
    pub beside_ns: f64,
}

/// The cumulative times where a sleep began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    at_ns: u64,
    sums: Split,
    others_ns: [u64; MAX_DEVICES],
    pairs_ns: [u64; MAX_PAIRS + MAX_DEVICES],
}

/// One device.
#[derive(Clone, Copy, Debug, Default)]
struct Device {
    id: (u32, u32),
    /// A thread of the program used it.
    used: bool,
    /// Requests of the program and of kernel threads: in the queue, and at the device.
    queued: u32,
    at_device: u32,
    /// Requests of other programs at the device, and the time in which there was one.
    others: u32,
    others_ns: u64,
}

/// Another program at one device.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    device: usize,
    /// Number of the program; `None`: all that have no pair of their own.
    program: Option<u32>,
    at_device: u32,
    /// Time in which a request of it was at the device.
    time_ns: u64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Queued,
    AtDevice,
}

/// What is remembered of a request, by the table of requests under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    generation: u32,
    device: usize,
    phase: Phase,
    /// The thread of the program that submitted it.
    thread: Option<u32>,
    pair: Option<usize>,
    submitted_ns: u64,
    issued_ns: u64,
    /// Time of others at the device when it was submitted, and when it was issued.
    others_at_submit_ns: u64,
    others_at_issue_ns: u64,
}

/// The request of a thread that completed last.
#[derive(Clone, Copy, Debug)]
struct Served {
    ticket: Ticket,
    completed_ns: u64,
    others_at_end_ns: u64,
}

/// Who submits a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitter {
    pub(super) owner: Owner,
    pub(super) tid: u32,
    /// Number of the other program, where it is one that is told apart.
    pub(super) program: Option<u32>,
}

/// Cumulative times.
#[derive(Debug, Default)]
pub struct InFlight {
    now_ns: u64,
    devices: Vec<Device>,
    pairs: Vec<Pair>,
    sums: Split,
    /// The state since `now_ns`.
    at_device: bool,
    queued: bool,
    behind: bool,
    beside: bool,
    /// A request on a file is under way on a ring.
    ring: bool,
    last: HashMap<u32, Served>,
    charges: HashMap<Option<u32>, Charge>,
    /// Requests from before records were lost belong to an older one.
    generation: u32,
    issued: u64,
    lost: u64,
}

impl InFlight {
    /// Adds up to this time what went on.
    fn advance(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.now_ns);
        if passed == 0 {
            return;
        }
        self.now_ns = now_ns;
        let part = |on: bool| if on { passed } else { 0 };
        self.sums.device_ns += part(self.at_device);
        self.sums.queued_ns += part(self.queued);
        self.sums.behind_ns += part(self.behind);
        self.sums.beside_ns += part(self.beside);
        self.sums.ring_ns += part(self.ring);
        if !self.pairs.is_empty() {
            self.devices.iter_mut().for_each(|d| d.others_ns += part(d.others > 0));
            self.pairs.iter_mut().for_each(|p| p.time_ns += part(p.at_device > 0));
        }
    }

    /// Whether requests of this device count for sleeps that follow no request of their own: the program uses it, or it is
    /// not known to use any.
    fn counts(&self, device: &Device) -> bool {
        device.used || !self.devices.iter().any(|d| d.used)
    }

    /// Works out the state that lasts from now on.
    fn refresh(&mut self) {
        let counted = || self.devices.iter().filter(|d| self.counts(d));
        let at_device = counted().any(|d| d.at_device > 0);
        let beside = counted().any(|d| d.at_device > 0 && d.others > 0);
        let queued = !at_device && counted().any(|d| d.queued > 0);
        let behind = queued && counted().any(|d| d.queued > 0 && d.others > 0);
        (self.at_device, self.beside, self.queued, self.behind) = (at_device, beside, queued, behind);
    }

    fn device(&mut self, id: (u32, u32)) -> Option<usize> {
        if let Some(index) = self.devices.iter().position(|d| d.id == id) {
            return Some(index);
        }
        (self.devices.len() < MAX_DEVICES).then(|| {
            self.devices.push(Device { id, ..Device::default() });
            self.devices.len() - 1
        })
    }

    fn pair(&mut self, device: usize, program: Option<u32>) -> usize {
        let full = self.pairs.iter().filter(|p| p.program.is_some()).count() >= MAX_PAIRS;
        let known =
            |pairs: &[Pair], program| pairs.iter().position(|p| p.device == device && p.program == program);
        if let Some(index) = known(&self.pairs, program) {
            return index;
        }
        let program = program.filter(|_| !full);
        known(&self.pairs, program).unwrap_or_else(|| {
            self.pairs.push(Pair { device, program, ..Pair::default() });
            self.pairs.len() - 1
        })
    }

    /// A request enters a queue.
    pub(super) fn insert(&mut self, now_ns: u64, device: (u32, u32), by: Submitter) -> Option<Ticket> {
        self.advance(now_ns);
        let device = self.device(device)?;
        let ticket = self.ticket(device, by);
        if by.owner != Owner::Other {
            self.devices[device].queued += 1;
            self.devices[device].used |= by.owner == Owner::Own;
        }
        self.refresh();
        Some(ticket)
    }

    fn ticket(&mut self, device: usize, by: Submitter) -> Ticket {
        let pair = (by.owner == Owner::Other).then(|| self.pair(device, by.program));
        let others_ns = self.devices[device].others_ns;
        Ticket {
            generation: self.generation,
            device,
            phase: Phase::Queued,
            thread: (by.owner == Owner::Own).then_some(by.tid),
            pair,
            submitted_ns: self.now_ns,
            issued_ns: self.now_ns,
            others_at_submit_ns: others_ns,
            others_at_issue_ns: others_ns,
        }
    }

    /// A request goes to the device. `inserted`: what [`InFlight::insert`] gave; without it, it begins now.
    pub(super) fn issue(
        &mut self,
        now_ns: u64,
        device: (u32, u32),
        by: Submitter,
        inserted: Option<Ticket>,
    ) -> Option<Ticket> {
        self.advance(now_ns);
        self.issued += 1;
        let mut ticket = match inserted.filter(|t| t.generation == self.generation) {
            Some(ticket) => {
                self.leave(&ticket);
                ticket
            }
            None => {
                let device = self.device(device)?;
                self.ticket(device, by)
            }
        };
        let device = &mut self.devices[ticket.device];
        ticket.phase = Phase::AtDevice;
        ticket.issued_ns = self.now_ns;
        ticket.others_at_issue_ns = device.others_ns;
        match ticket.pair {
            Some(pair) => {
                device.others += 1;
                self.pairs[pair].at_device += 1;
            }
            None => {
                device.at_device += 1;
                device.used |= ticket.thread.is_some();
            }
        }
        self.refresh();
        Some(ticket)
    }

    /// A request goes to the device once more, after it was handed back: until now it was queued. For sleeps that follow no
    /// request of their own it counts as at the device all the time.
    pub(super) fn issue_again(&mut self, now_ns: u64, ticket: &mut Ticket) {
        self.advance(now_ns);
        if ticket.generation == self.generation {
            ticket.issued_ns = self.now_ns;
            ticket.others_at_issue_ns = self.devices[ticket.device].others_ns;
        }
    }

    /// A request is done. Returns its time at the device, and whether another program's request was there meanwhile.
    pub(super) fn complete(&mut self, now_ns: u64, ticket: &Ticket) -> Option<(u64, bool)> {
        self.advance(now_ns);
        if ticket.generation != self.generation {
            return None;
        }
        self.leave(ticket);
        self.refresh();
        let others_at_end_ns = self.devices[ticket.device].others_ns;
        if let Some(thread) = ticket.thread
            && (self.last.len() < MAX_THREADS || self.last.contains_key(&thread))
        {
            let served = Served { ticket: *ticket, completed_ns: self.now_ns, others_at_end_ns };
            self.last.insert(thread, served);
        }
        let time_ns = self.now_ns - ticket.issued_ns;
        Some((time_ns, others_at_end_ns > ticket.others_at_issue_ns))
    }

    /// A request is no longer followed: it was merged into another one, or (`lost`) its end was not seen.
    pub(super) fn forget(&mut self, now_ns: u64, ticket: &Ticket, lost: bool) {
        self.advance(now_ns);
        if ticket.generation == self.generation {
            self.lost += u64::from(lost);
            self.leave(ticket);
            self.refresh();
        }
    }

    fn leave(&mut self, ticket: &Ticket) {
        let device = &mut self.devices[ticket.device];
        let count = match (ticket.phase, ticket.pair) {
            (Phase::AtDevice, Some(pair)) => {
                self.pairs[pair].at_device -= 1;
                &mut device.others
            }
            (Phase::AtDevice, None) => &mut device.at_device,
            (Phase::Queued, None) => &mut device.queued,
            (Phase::Queued, Some(_)) => return,
        };
        *count -= 1;
    }

    /// Records were lost: nothing is known of the requests under way.
    pub fn records_lost(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.generation += 1;
        for device in &mut self.devices {
            self.lost += u64::from(device.at_device + device.others);
            (device.queued, device.at_device, device.others) = (0, 0, 0);
        }
        self.pairs.iter_mut().for_each(|p| p.at_device = 0);
        self.refresh();
    }

    /// The first request on a file is under way on a ring of the program from now on, or the last one has gone.
    pub fn ring_files(&mut self, now_ns: u64, busy: bool) {
        self.advance(now_ns);
        self.ring = busy;
    }

    /// Whether a request on a file is under way on a ring of the program.
    pub fn ring_is_busy(&self) -> bool {
        self.ring
    }

    /// A thread is gone.
    pub fn thread_gone(&mut self, tid: u32) {
        self.last.remove(&tid);
    }

    /// A sleep begins.
    #[inline]
    pub fn begin(&mut self, now_ns: u64, marks: &mut Marks) {
        self.advance(now_ns);
        (marks.at_ns, marks.sums) = (self.now_ns, self.sums);
        // Before others were seen, all these times are zero, as those of fresh marks are.
        if !self.pairs.is_empty() {
            for (mark, device) in marks.others_ns.iter_mut().zip(&self.devices) {
                *mark = device.others_ns;
            }
            for (mark, pair) in marks.pairs_ns.iter_mut().zip(&self.pairs) {
                *mark = pair.time_ns;
            }
        }
    }

    /// A sleep of a thread ends. If a request that the thread submitted completed in it, the thread waited for the last such
    /// one; else for any request of the program or of the kernel. `charged`: delay in it is charged to other programs.
    pub fn end(&mut self, now_ns: u64, tid: u32, marks: &Marks, charged: bool) -> Split {
        self.advance(now_ns);
        let own = self.last.get(&tid).filter(|served| served.completed_ns > marks.at_ns).copied();
        let ring_ns = self.sums.ring_ns - marks.sums.ring_ns;
        let split = match own {
            Some(served) => Split { ring_ns, ..own_split(&served, marks) },
            None => Split {
                ring_ns,
                device_ns: self.sums.device_ns - marks.sums.device_ns,
                queued_ns: self.sums.queued_ns - marks.sums.queued_ns,
                behind_ns: self.sums.behind_ns - marks.sums.behind_ns,
                beside_ns: self.sums.beside_ns - marks.sums.beside_ns,
            },
        };
        if charged && split.behind_ns + split.beside_ns > 0 {
            self.charge(split, own.map(|served| served.ticket.device), marks);
        }
        split
    }

    /// Divides a delay among the other programs, by their times at the device in this sleep.
    fn charge(&mut self, split: Split, device: Option<usize>, marks: &Marks) {
        let counted: Vec<bool> = self.devices.iter().map(|d| self.counts(d)).collect();
        let part = |(pair, mark): (&Pair, &u64)| {
            let meant = device.map_or(counted[pair.device], |device| device == pair.device);
            if meant { pair.time_ns - mark } else { 0 }
        };
        let whole: u64 = self.pairs.iter().zip(&marks.pairs_ns).map(part).sum();
        for (pair, mark) in self.pairs.iter().zip(&marks.pairs_ns) {
            let part = part((pair, mark)) as f64 / whole.max(1) as f64;
            if part > 0.0 {
                let charge = self.charges.entry(pair.program).or_default();
                charge.behind_ns += split.behind_ns as f64 * part;
                charge.beside_ns += split.beside_ns as f64 * part;
            }
        }
    }

    /// Whether the times can be relied on: hardly any request was lost from sight.
    pub fn is_reliable(&self) -> bool {
        let under_way: u64 = self.devices.iter().map(|d| u64::from(d.at_device + d.others)).sum();
        // Some may really be under way in the end.
        let lost = self.lost + under_way.saturating_sub((self.issued / 10).max(1));
        lost as f64 <= MAX_LOST * self.issued as f64
    }

    /// Delay by program; those without a number of their own are `None`.
    pub fn charges(self) -> HashMap<Option<u32>, Charge> {
        self.charges
    }
}

/// The parts of a sleep that waited for one request.
fn own_split(served: &Served, marks: &Marks) -> Split {
    let ticket = &served.ticket;
    let issued_ns = ticket.issued_ns.max(marks.at_ns);
    let from_ns = ticket.submitted_ns.clamp(marks.at_ns, issued_ns);
    let others_at_begin = marks.others_ns[ticket.device];
    let others_at_issue = ticket.others_at_issue_ns.max(others_at_begin);
    let others_at_submit = ticket.others_at_submit_ns.max(others_at_begin);
    Split {
        device_ns: served.completed_ns - issued_ns,
        queued_ns: issued_ns - from_ns,
        behind_ns: others_at_issue - others_at_submit.min(others_at_issue),
        beside_ns: served.others_at_end_ns - others_at_issue,
        ring_ns: 0,
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
