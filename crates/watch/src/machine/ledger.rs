//! The arithmetic of a whole machine, over events in the order of their times: PSI's stalls per CPU, divided among those who wait, and
//! the part of each wait that others cause at a device. Pure: no clock, no kernel.
//!
//! Invariants: at each instant the shares of a CPU's waiters sum to its stall, and the causes of a wait to no more than the wait.

use std::collections::HashMap;

use crate::in_kernel::{IO, MEMORY};

/// Subjects that are told apart at a device; the rest is one.
const MAX_OWNERS: usize = 32;
/// Devices that are told apart.
pub(super) const MAX_DEVICES: usize = 32;
/// Waits under way at once whose causes are followed.
const MAX_MARKED: usize = 4096;
/// Waits under way at once.
const MAX_OPEN: usize = 65_536;

/// A wait: thread, whether it is reclaim, and its beginning.
pub(super) type Key = (u32, bool, u64);

/// Time in which at least one task waits, and the part of each.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    at_ns: u64,
    waiting: u32,
    some_ns: u64,
    /// The integral of 1 / waiting.
    each_ns: f64,
}

impl Stall {
    fn change(&mut self, now_ns: u64, change: i32) -> f64 {
        let passed = now_ns.saturating_sub(self.at_ns);
        self.at_ns = now_ns.max(self.at_ns);
        if self.waiting > 0 {
            self.some_ns += passed;
            self.each_ns += passed as f64 / f64::from(self.waiting);
        }
        self.waiting = self.waiting.saturating_add_signed(change);
        self.each_ns
    }
}

/// Requests at a device by owner: how many, and the integral of their part of all.
#[derive(Clone, Debug, Default)]
struct Load {
    at_ns: u64,
    requests: u32,
    /// Time without any request.
    empty_ns: f64,
    /// Subject (`None`: those beyond the bound), requests, integral.
    owners: Vec<(Option<u32>, u32, f64)>,
}

impl Load {
    fn advance(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.at_ns) as f64;
        self.at_ns = now_ns.max(self.at_ns);
        if self.requests > 0 {
            let all = f64::from(self.requests);
            self.owners.iter_mut().for_each(|(_, own, sum)| *sum += passed * f64::from(*own) / all);
        } else {
            self.empty_ns += passed;
        }
    }

    fn owner(&mut self, subject: u32) -> usize {
        let of = |owners: &[(Option<u32>, u32, f64)], who| owners.iter().position(|o| o.0 == who);
        if let Some(at) = of(&self.owners, Some(subject)) {
            return at;
        }
        let who = (self.owners.len() + 1 < MAX_OWNERS).then_some(subject);
        of(&self.owners, who).unwrap_or_else(|| {
            self.owners.push((who, 0, 0.0));
            self.owners.len() - 1
        })
    }
}

/// The integrals of a device at the beginning of a wait: time without requests, and the part of each owner.
type Mark = (f64, Vec<f64>);

/// A wait under way.
#[derive(Clone, Debug)]
struct Open {
    subject: u32,
    cpu: usize,
    flags: u32,
    begun_ns: u64,
    /// Its beginning, or that of the interval.
    from_ns: u64,
    /// The integral of each stall at its beginning, or at the last settlement.
    marks: [f64; 2],
    /// Of each device at `from_ns`; `None`: there was no room.
    loads: Option<Vec<Mark>>,
}

impl Open {
    /// As though it ended now.
    fn closed(&self, now_ns: u64) -> Closed {
        Closed {
            subject: self.subject,
            time_ns: now_ns.saturating_sub(self.from_ns),
            whole_ns: now_ns.saturating_sub(self.begun_ns),
            flags: self.flags,
            loads: self.loads.clone(),
        }
    }
}

/// A wait that is over, or its part up to now.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    pub(super) subject: u32,
    /// Its part of this interval.
    pub(super) time_ns: u64,
    /// All of it.
    pub(super) whole_ns: u64,
    pub(super) flags: u32,
    loads: Option<Vec<Mark>>,
}

/// What a period brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Period {
    /// Stall of each CPU: I/O, memory.
    pub(super) stalls: Vec<[u64; 2]>,
    /// Parts of them: subject, CPU, I/O, memory.
    pub(super) parts: Vec<(u32, usize, [f64; 2])>,
}

/// See the header.
#[derive(Debug)]
pub(super) struct Ledger {
    now_ns: u64,
    stalls: Vec<[Stall; 2]>,
    loads: Vec<Load>,
    open: HashMap<Key, Open>,
    marked: usize,
    parts: HashMap<(u32, usize), [f64; 2]>,
    /// Waits that there was no room for, and those whose causes were not followed.
    pub(super) lost: u64,
    /// Requests of owners that their device does not tell apart.
    pub(super) pooled: u64,
}

const KINDS: [u32; 2] = [IO, MEMORY];

impl Ledger {
    pub(super) fn new(now_ns: u64, cpus: usize) -> Ledger {
        let stall = Stall { at_ns: now_ns, ..Stall::default() };
        Ledger {
            now_ns,
            stalls: vec![[stall; 2]; cpus],
            loads: Vec::new(),
            open: HashMap::new(),
            marked: 0,
            parts: HashMap::new(),
            lost: 0,
            pooled: 0,
        }
    }

    /// The waits under way.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.open.keys().copied()
    }

    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.open.contains_key(key)
    }

    /// A wait begins. One that began before what is settled begins now.
    pub(super) fn begin(&mut self, at_ns: u64, key: Key, subject: u32, cpu: u32, flags: u32) {
        let at_ns = self.advance(at_ns);
        if self.open.len() >= MAX_OPEN || self.open.contains_key(&key) {
            self.lost += u64::from(!self.open.contains_key(&key));
            return;
        }
        let cpu = cpu as usize;
        let mut marks = [0.0; 2];
        for (kind, mark) in marks.iter_mut().enumerate() {
            if flags & KINDS[kind] != 0
                && let Some(stalls) = self.stalls.get_mut(cpu)
            {
                *mark = stalls[kind].change(at_ns, 1);
            }
        }
        let room = self.marked < MAX_MARKED;
        self.marked += usize::from(room);
        self.lost += u64::from(!room);
        let loads = room.then(|| self.sums(at_ns));
        self.open.insert(key, Open { subject, cpu, flags, begun_ns: at_ns, from_ns: at_ns, marks, loads });
    }

    /// A wait ends; `None`: its beginning is not known.
    pub(super) fn end(&mut self, at_ns: u64, key: &Key) -> Option<Closed> {
        let at_ns = self.advance(at_ns);
        let open = self.open.remove(key)?;
        self.marked -= usize::from(open.loads.is_some());
        self.settle(at_ns, &open, -1);
        Some(open.closed(at_ns))
    }

    /// Adds its part of the stalls since its marks, and gives the new marks.
    fn settle(&mut self, at_ns: u64, open: &Open, change: i32) -> [f64; 2] {
        let mut marks = open.marks;
        let Some(stalls) = self.stalls.get_mut(open.cpu) else { return marks };
        let mut part = [0.0; 2];
        for kind in 0..2 {
            if open.flags & KINDS[kind] != 0 {
                let now = stalls[kind].change(at_ns, change);
                part[kind] = now - marks[kind];
                marks[kind] = now;
            }
        }
        if part != [0.0; 2] {
            let sum = self.parts.entry((open.subject, open.cpu)).or_default();
            (sum[0], sum[1]) = (sum[0] + part[0], sum[1] + part[1]);
        }
        marks
    }

    /// Requests of a subject at a device: one more (1), or one less (-1).
    pub(super) fn load(&mut self, at_ns: u64, device: usize, subject: u32, change: i32) {
        let at_ns = self.advance(at_ns);
        if device >= MAX_DEVICES {
            return;
        }
        if self.loads.len() <= device {
            self.loads.resize(device + 1, Load { at_ns, ..Load::default() });
        }
        let load = &mut self.loads[device];
        load.advance(at_ns);
        let owner = load.owner(subject);
        self.pooled += u64::from(change > 0 && load.owners[owner].0.is_none());
        let count = &mut load.owners[owner].1;
        // One that was never seen to come does not go.
        if change > 0 || *count > 0 {
            *count = count.saturating_add_signed(change);
            load.requests = load.requests.saturating_add_signed(change);
        }
    }

    /// Events were lost: which requests are under way is not known.
    pub(super) fn forget_loads(&mut self, at_ns: u64) {
        let at_ns = self.advance(at_ns);
        for load in &mut self.loads {
            load.advance(at_ns);
            load.requests = 0;
            load.owners.iter_mut().for_each(|owner| owner.1 = 0);
        }
    }

    /// The parts of a wait that just ended in proportion to the requests of each other subject at the device, in nanoseconds. `None`: those
    /// beyond the bound, left out where the waiter may be one of them.
    pub(super) fn causes(&mut self, closed: &Closed, device: usize) -> Vec<(Option<u32>, f64)> {
        let Some(((_, marks), load)) = self.since(closed, device) else { return Vec::new() };
        let is_told_apart = load.owners.iter().any(|owner| owner.0 == Some(closed.subject));
        let is_other = |who: Option<u32>| who.map_or(is_told_apart, |who| who != closed.subject);
        let part = |(at, owner): (usize, &(Option<u32>, u32, f64))| {
            (owner.0, owner.2 - marks.get(at).copied().unwrap_or(0.0))
        };
        let owners = load.owners.iter().enumerate().filter(|(_, owner)| is_other(owner.0));
        owners.map(part).filter(|(_, part)| *part > 0.0).collect()
    }

    /// The part of a wait that just ended in which the device had no request at all, in nanoseconds. What lies before its first request is
    /// none: it may have been busy.
    pub(super) fn without_requests(&mut self, closed: &Closed, device: usize) -> f64 {
        self.since(closed, device).map_or(0.0, |((empty_ns, _), load)| load.empty_ns - empty_ns)
    }

    /// A device up to now, and its integrals when a wait began.
    fn since<'a>(&'a mut self, closed: &'a Closed, device: usize) -> Option<(&'a Mark, &'a Load)> {
        const NEW: &Mark = &(0.0, Vec::new());
        let load = self.loads.get_mut(device)?;
        load.advance(self.now_ns);
        let marks = closed.loads.as_ref()?;
        Some((marks.get(device).unwrap_or(NEW), load))
    }

    /// Ends a period.
    pub(super) fn close_period(&mut self, at_ns: u64) -> Period {
        let at_ns = self.advance(at_ns);
        let keys: Vec<Key> = self.open.keys().copied().collect();
        for key in keys {
            let Some(mut open) = self.open.remove(&key) else { continue };
            open.marks = self.settle(at_ns, &open, 0);
            self.open.insert(key, open);
        }
        let mut period = Period::default();
        for stalls in &mut self.stalls {
            period.stalls.push(stalls.each_mut().map(|stall| {
                stall.change(at_ns, 0);
                std::mem::take(&mut stall.some_ns)
            }));
        }
        period.parts = self.parts.drain().map(|((subject, cpu), part)| (subject, cpu, part)).collect();
        period
    }

    /// Waits under way, with what they have taken in this interval so far.
    pub(super) fn so_far(&self) -> Vec<(Key, Closed)> {
        self.open.iter().map(|(key, open)| (*key, open.closed(self.now_ns))).collect()
    }

    /// Begins an interval: what waits under way have taken so far belongs to the one before, and owners without requests are forgotten.
    pub(super) fn begin_interval(&mut self) {
        let now_ns = self.now_ns;
        for load in &mut self.loads {
            load.advance(now_ns);
            load.empty_ns = 0.0;
            load.owners.retain(|owner| owner.1 > 0);
            load.owners.iter_mut().for_each(|owner| owner.2 = 0.0);
        }
        let sums = self.sums(now_ns);
        for open in self.open.values_mut() {
            open.from_ns = now_ns;
            if let Some(loads) = &mut open.loads {
                loads.clone_from(&sums);
            }
        }
    }

    /// Every subject that is held here.
    pub(super) fn each_subject(&mut self, see: &mut dyn FnMut(&mut u32)) {
        self.open.values_mut().for_each(|open| see(&mut open.subject));
        let owners = self.loads.iter_mut().flat_map(|load| &mut load.owners);
        owners.filter_map(|owner| owner.0.as_mut()).for_each(see);
    }

    fn sums(&mut self, at_ns: u64) -> Vec<Mark> {
        self.loads.iter_mut().for_each(|load| load.advance(at_ns));
        let mark = |load: &Load| (load.empty_ns, load.owners.iter().map(|owner| owner.2).collect());
        self.loads.iter().map(mark).collect()
    }

    fn advance(&mut self, at_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(at_ns);
        self.now_ns
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
