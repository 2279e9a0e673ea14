//! Requests between the block layer and the devices: who made them, how long they queue, how long the device takes.
//! A request is known by its device and first sector; splits and merges lose the pair, never the count.
//! Invariant: every issued request is counted once, as the program's, the kernel's, or another program's.

mod busy;
mod flags;
mod in_flight;
mod outstanding;

pub use in_flight::{Charge, InFlight, Marks, Split};

use std::collections::HashMap;

use iowhy_core::profile::{BlockSample, DeviceTime, OtherUser};

use crate::event::{BlockRequest, Event, Kind, RELEASED, Trace};
use busy::BusyTime;
use flags::{Operation, operation};
use in_flight::{Submitter, Ticket};
use outstanding::Outstanding;

/// Requests under way that are remembered.
const OUTSTANDING: usize = 65_536;
/// Other programs told apart, by process.
const OTHERS: usize = 1024;
/// Other programs in the result; the rest is one entry.
const REPORTED: usize = 32;
/// Completions are seen if at least this part of the issued requests completed.
const SEEN: f64 = 0.9;
/// Bytes of a sector, on every device (Linux block layer).
const SECTOR: u64 = 512;

/// Whom a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The program under watch.
    Own,
    /// A kernel thread: write-back, journal.
    Kernel,
    /// Another program.
    Other,
}

/// Requests issued so far, by owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// The program's own.
    pub own: u64,
    /// Of kernel threads.
    pub kernel: u64,
    /// Of other programs.
    pub others: u64,
    /// Of all of them, those that were seen to complete.
    pub completed: u64,
}

/// Who another program is, as far as it can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: Option<String>,
    /// Its command line.
    pub command: Option<String>,
}

/// What is to be known about tasks.
pub trait Tasks {
    /// Whom a task belongs to.
    fn owner(&self, pid: u32, tid: u32, name: &str) -> Owner;
    /// Who another program is. Asked once, when its first request is seen: it may be gone soon.
    fn identify(&self, pid: u32) -> Known;
}

/// A request that waits in a queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since_ns: u64,
    /// The task that issues may be any.
    by: Submitter,
    ticket: Option<Ticket>,
}

/// A request at the device.
#[derive(Clone, Copy, Debug)]
struct AtDevice {
    since_ns: u64,
    owner: Owner,
    left_bytes: u64,
    /// It came through a queue.
    inserted: bool,
    ticket: Option<Ticket>,
}

/// A mean in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    squares: f64,
    n: u64,
}

impl Mean {
    fn add(&mut self, value_ns: u64) {
        self.sum += value_ns as f64;
        self.squares += (value_ns as f64).powi(2);
        self.n += 1;
    }

    fn value(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    fn with_error(self) -> Option<DeviceTime> {
        let (mean_ns, n) = (self.value()?, self.n as f64);
        // Of one request nothing is known of the spread.
        let variance =
            if self.n > 1 { (self.squares - n * mean_ns * mean_ns) / (n - 1.0) } else { mean_ns.powi(2) };
        Some(DeviceTime { mean_ns, error_ns: (variance.max(0.0) / n).sqrt(), n: self.n })
    }
}

/// Times of the requests of one owner.
#[derive(Debug, Default)]
struct Times {
    queue: Mean,
    device: Mean,
    /// Of `device`, without and with requests of other programs at the device.
    alone: Mean,
    beside: Mean,
    busy: BusyTime,
}

/// Adds up block requests.
#[derive(Debug)]
pub struct BlockTracer {
    waiting: Outstanding<Waiting>,
    at_device: Outstanding<AtDevice>,
    issued: Issued,
    own: Times,
    kernel: Times,
    sample: BlockSample,
    last_read_end: HashMap<(u32, u32), u64>,
    others: Vec<OtherUser>,
    /// Index into `others` by process.
    by_pid: HashMap<u32, u32>,
    pooled: OtherUser,
}

impl Default for BlockTracer {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockTracer {
    /// A tracer that has seen nothing.
    pub fn new() -> Self {
        BlockTracer {
            waiting: Outstanding::new(OUTSTANDING),
            at_device: Outstanding::new(OUTSTANDING),
            issued: Issued::default(),
            own: Times::default(),
            kernel: Times::default(),
            sample: BlockSample::default(),
            last_read_end: HashMap::new(),
            others: Vec::new(),
            by_pid: HashMap::new(),
            pooled: OtherUser { name: "others".to_owned(), ..OtherUser::default() },
        }
    }

    /// Takes an event; all that are not about block requests are ignored. Where the insertion was seen, the task that
    /// inserted owns the request: the one that issues it may be a kernel thread that only empties the queue. The
    /// cumulative times of `in_flight` follow.
    pub fn event(&mut self, event: &Event<'_>, tasks: &dyn Tasks, mut in_flight: Option<&mut InFlight>) {
        let now = event.time_ns;
        match &event.kind {
            Kind::Trace(Trace::BlockInsert(request)) => {
                let by = self.submitter(event, request, tasks);
                let ticket = in_flight.as_deref_mut().and_then(|f| f.insert(now, request.device, by));
                let waiting = Waiting { since_ns: now, by, ticket };
                let (same, oldest_ones) = self.waiting.put(request.device, request.sector, waiting);
                let lost = same.into_iter().chain(oldest_ones).filter_map(|w| w.ticket);
                forget(in_flight, now, lost, true);
            }
            Kind::Trace(Trace::BlockIssue(request)) => {
                let inserted = self.waiting.take(request.device, request.sector);
                // Neighbours that were merged into it are never issued by themselves.
                let end = request.sector.saturating_add(request.bytes / SECTOR);
                while let Some(merged) = self.waiting.take_between(request.device, request.sector, end) {
                    forget(in_flight.as_deref_mut(), now, merged.ticket, false);
                }
                let by = match &inserted {
                    Some(waiting) => waiting.by,
                    None => self.submitter(event, request, tasks),
                };
                if inserted.is_none() && self.issue_again(now, request, by, in_flight.as_deref_mut()) {
                    return;
                }
                self.issue(now, request, by, inserted, in_flight);
            }
            Kind::Trace(Trace::BlockComplete(request)) => self.complete(now, request, in_flight),
            _ => {}
        }
    }

    fn submitter(&mut self, event: &Event<'_>, request: &BlockRequest<'_>, tasks: &dyn Tasks) -> Submitter {
        let owner = match event.tid {
            0 => Owner::Kernel,
            tid => tasks.owner(event.pid, tid, request.task),
        };
        let program = match owner {
            Owner::Other => self.program(event.pid, request.task, tasks),
            Owner::Own | Owner::Kernel => None,
        };
        Submitter { owner, tid: event.tid, program }
    }

    /// The number of another program; `None` for one that had ended, and for those beyond the number that is told apart.
    fn program(&mut self, pid: u32, task: &str, tasks: &dyn Tasks) -> Option<u32> {
        if let Some(index) = self.by_pid.get(&pid) {
            return Some(*index);
        }
        if pid == RELEASED || self.others.len() >= OTHERS {
            return None;
        }
        let known = tasks.identify(pid);
        let name = known.name.unwrap_or_else(|| task.to_owned());
        let index = self.others.len() as u32;
        self.others.push(OtherUser { name, pid, command: known.command, ..OtherUser::default() });
        self.by_pid.insert(pid, index);
        Some(index)
    }

    fn times(&mut self, owner: Owner) -> Option<&mut Times> {
        match owner {
            Owner::Own => Some(&mut self.own),
            Owner::Kernel => Some(&mut self.kernel),
            Owner::Other => None,
        }
    }

    /// A driver that has no room hands a request back to its queue, from where it is issued again, mostly by a kernel
    /// thread: it is the same request, and was queued until now. Where requests pass a scheduler, every new one is inserted.
    fn issue_again(
        &mut self,
        now: u64,
        request: &BlockRequest<'_>,
        by: Submitter,
        in_flight: Option<&mut InFlight>,
    ) -> bool {
        let Some(at_device) = self.at_device.get_mut(request.device, request.sector) else { return false };
        if !at_device.inserted && by.owner != Owner::Kernel {
            return false;
        }
        at_device.since_ns = now;
        if let Some((ticket, in_flight)) = at_device.ticket.as_mut().zip(in_flight) {
            in_flight.issue_again(now, ticket);
        }
        true
    }

    fn issue(
        &mut self,
        now: u64,
        request: &BlockRequest<'_>,
        by: Submitter,
        inserted: Option<Waiting>,
        mut in_flight: Option<&mut InFlight>,
    ) {
        let queued_ns = inserted.as_ref().map(|waiting| now.saturating_sub(waiting.since_ns));
        if let (Some(times), Some(queued_ns)) = (self.times(by.owner), queued_ns) {
            times.queue.add(queued_ns);
        }
        match by.owner {
            Owner::Own => self.own_request(request),
            Owner::Kernel => self.issued.kernel += 1,
            Owner::Other => {
                self.issued.others += 1;
                let user = by.program.and_then(|index| self.others.get_mut(index as usize));
                let user = user.unwrap_or(&mut self.pooled);
                user.requests += 1;
                user.bytes = user.bytes.saturating_add(request.bytes);
            }
        }
        let (owner, left_bytes) = (by.owner, request.bytes);
        let waited = inserted.and_then(|waiting| waiting.ticket);
        let ticket = in_flight.as_deref_mut().and_then(|f| f.issue(now, request.device, by, waited));
        let at_device = AtDevice { since_ns: now, owner, left_bytes, inserted: inserted.is_some(), ticket };
        let (same, oldest_ones) = self.at_device.put(request.device, request.sector, at_device);
        forget(in_flight, now, same.into_iter().chain(oldest_ones).filter_map(|a| a.ticket), true);
    }

    fn own_request(&mut self, request: &BlockRequest<'_>) {
        self.issued.own += 1;
        match operation(request.flags) {
            Operation::Read { ahead } => {
                let sample = &mut self.sample;
                sample.own_reads += 1;
                sample.own_read_bytes = sample.own_read_bytes.saturating_add(request.bytes);
                if ahead {
                    sample.own_read_ahead_bytes = sample.own_read_ahead_bytes.saturating_add(request.bytes);
                }
                let end = request.sector.saturating_add(request.bytes / SECTOR);
                let before = self.last_read_end.insert(request.device, end);
                sample.own_reads_adjacent += u64::from(before == Some(request.sector));
            }
            Operation::Write => {
                self.sample.own_written_bytes = self.sample.own_written_bytes.saturating_add(request.bytes);
            }
            Operation::Other => {}
        }
    }

    fn complete(&mut self, now: u64, request: &BlockRequest<'_>, in_flight: Option<&mut InFlight>) {
        let Some(mut at_device) = self.at_device.take(request.device, request.sector) else { return };
        // A device may complete a request in parts: the rest begins where this part ended.
        if request.bytes > 0 && request.bytes < at_device.left_bytes {
            at_device.left_bytes -= request.bytes;
            let rest = request.sector.saturating_add(request.bytes / SECTOR);
            let (same, oldest_ones) = self.at_device.put(request.device, rest, at_device);
            let lost = same.into_iter().chain(oldest_ones).filter_map(|a| a.ticket);
            return forget(in_flight, now, lost, true);
        }
        self.issued.completed += 1;
        let served = at_device.ticket.zip(in_flight).and_then(|(ticket, f)| f.complete(now, &ticket));
        if let Some(times) = self.times(at_device.owner) {
            times.device.add(now.saturating_sub(at_device.since_ns));
            times.busy.add(at_device.since_ns, now);
            match served {
                Some((time_ns, true)) => times.beside.add(time_ns),
                Some((time_ns, false)) => times.alone.add(time_ns),
                None => {}
            }
        }
    }

    /// Requests issued so far.
    pub fn issued(&self) -> Issued {
        self.issued
    }

    /// All that was seen. Means are over the program's own requests; where none of its own has completed (it left
    /// writing to the kernel), over those of kernel threads. No time at the device is given when completions are not
    /// seen: the few that are depend on which CPU happened to be idle. `charges`: delay by other program, where known.
    pub fn finish(self, charges: Option<&HashMap<Option<u32>, Charge>>) -> BlockSample {
        let completions_seen = self.completions_seen();
        let times = if self.own.device.n + self.own.queue.n > 0 { self.own } else { self.kernel };
        let busy_ns = times.busy.total_ns();
        BlockSample {
            own_requests: self.issued.own,
            kernel_requests: self.issued.kernel,
            queue_ns: times.queue.value(),
            device_ns: times.device.value().filter(|_| completions_seen),
            pairs: times.device.n,
            alone: times.alone.with_error().filter(|_| completions_seen),
            beside_others: times.beside.with_error().filter(|_| completions_seen),
            // Little's law: the sum of times at the device over the time in which at least one was there.
            in_flight: (completions_seen && busy_ns > 0).then(|| times.device.sum / busy_ns as f64),
            others: others(self.others, self.pooled, charges),
            completions_seen,
            ..self.sample
        }
    }

    /// Whether hardly any completion was missed.
    pub fn completions_seen(&self) -> bool {
        let all = self.issued.own + self.issued.kernel + self.issued.others;
        self.issued.completed as f64 >= SEEN * all as f64
    }
}

/// Requests that are no longer followed.
fn forget(in_flight: Option<&mut InFlight>, now: u64, tickets: impl IntoIterator<Item = Ticket>, lost: bool) {
    if let Some(in_flight) = in_flight {
        tickets.into_iter().for_each(|ticket| in_flight.forget(now, &ticket, lost));
    }
}

/// Other programs with their delays, those beyond [`REPORTED`] as one.
fn others(
    mut others: Vec<OtherUser>,
    mut pooled: OtherUser,
    charges: Option<&HashMap<Option<u32>, Charge>>,
) -> Vec<OtherUser> {
    if let Some(charges) = charges {
        let charge = |program| charges.get(&program).copied().unwrap_or_default();
        let numbered = others.iter_mut().zip(0..).map(|(user, index)| (user, Some(index)));
        for (user, program) in numbered.chain([(&mut pooled, None)]) {
            let Charge { behind_ns, beside_ns } = charge(program);
            (user.behind_ns, user.beside_ns) =
                (Some(behind_ns.round() as u64), Some(beside_ns.round() as u64));
        }
    }
    let rank = |o: &OtherUser| (o.behind_ns.unwrap_or(0) + o.beside_ns.unwrap_or(0), o.requests, o.bytes);
    others.retain(|o| o.requests > 0);
    others.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| (&a.name, a.pid).cmp(&(&b.name, b.pid))));
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let (Some(sum), Some(more)) = (sum, more) {
            *sum += more;
        }
    };
    for user in others.drain(others.len().min(REPORTED)..) {
        pooled.requests += user.requests;
        pooled.bytes = pooled.bytes.saturating_add(user.bytes);
        add(&mut pooled.behind_ns, user.behind_ns);
        add(&mut pooled.beside_ns, user.beside_ns);
    }
    if pooled.requests > 0 {
        others.push(pooled);
    }
    others
}

#[cfg(test)]
mod tests;
