//! Requests between the block layer and the devices: who made them, how long they queue, how long the device takes.
//! A request is known by where the kernel holds it; what it is checks that it is still the same.
//! Invariant: every issued request is counted once, as the program's, the kernel's, or another program's.

mod busy;
mod in_flight;
mod kept;

pub use in_flight::{Charge, InFlight, Marks, Split};
pub use kept::{KeptRequests, Request};

use std::collections::HashMap;

use iowhy_core::profile::{BlockSample, DeviceTime, OtherUser};

use crate::event::{BlockRequest, Event, Kind, Operation, RELEASED, SECTOR, Step};
pub(crate) use busy::BusyTime;
use in_flight::{Submitter, Ticket};
use kept::Kept;

/// Requests under way that are remembered; more than that have been lost from sight.
const UNDER_WAY: usize = 65_536;
/// Other programs told apart, by process.
const OTHERS: usize = 1024;
/// Other programs in the result; the rest is one entry.
const REPORTED: usize = 32;
/// Completions are seen if at least this part of the issued requests completed: the rest may be under way.
const SEEN: f64 = 0.9;
/// Loop devices (LOOP_MAJOR of `include/uapi/linux/major.h`): a worker of the kernel makes requests to what lies below of theirs.
const LOOP: u32 = 7;

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
    /// Whether this thread is the program's.
    fn is_own(&self, tid: u32) -> bool;
    /// Who another program is. Asked once, when its first request is seen: it may be gone soon.
    fn identify(&self, pid: u32) -> Known;
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    phase: Phase,
    /// When it came to where it is.
    since_ns: u64,
    /// Who made it; the task that issues may be any.
    by: Submitter,
    device: (u32, u32),
    sector: u64,
    operation: Operation,
    metadata: bool,
    left_bytes: u64,
    ticket: Option<Ticket>,
    /// It was issued before, and handed back by the driver.
    issued: bool,
    /// When it entered a queue, first sector and length when it came to where it is.
    inserted_ns: Option<u64>,
    whole: (u64, u64),
}

impl UnderWay {
    /// Whether this event is about this request, and not about a later one in the same memory.
    fn is(&self, request: &BlockRequest<'_>) -> bool {
        (self.device, self.operation) == (request.device, request.operation)
            && request.may_be(self.sector, self.left_bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Queued,
    AtDevice,
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
#[derive(Debug, Default)]
pub struct BlockTracer {
    /// By address.
    under_way: HashMap<u64, UnderWay>,
    issued: Issued,
    /// Events that were lost, by the observer's own count.
    lost_events: u32,
    own: Times,
    kernel: Times,
    sample: BlockSample,
    last_read_end: HashMap<(u32, u32), u64>,
    others: Vec<OtherUser>,
    /// Index into `others` by process.
    by_pid: HashMap<u32, u32>,
    pooled: OtherUser,
    /// Requests with their times, where they are kept.
    kept: Option<Kept>,
}

impl BlockTracer {
    /// A tracer that has seen nothing.
    pub fn new() -> Self {
        BlockTracer {
            pooled: OtherUser { name: "others".to_owned(), ..OtherUser::default() },
            ..BlockTracer::default()
        }
    }

    /// Keeps each completed request with its times from now on: [`BlockTracer::requests`].
    pub fn keep(&mut self) {
        self.kept = Some(Kept::default());
    }

    /// The completed requests that were kept. Times are those of the events.
    pub fn requests(&mut self) -> Option<KeptRequests> {
        let name = |program: u32| self.others.get(program as usize).map(|user| user.name.clone());
        self.kept.take().map(|kept| kept.finish(name))
    }

    /// Takes an event; all that are not about block requests are ignored. Where the insertion was seen, the task that
    /// inserted owns the request: the one that issues it may be a kernel thread that only empties the queue. The
    /// cumulative times of `in_flight` follow.
    pub fn event(&mut self, event: &Event<'_>, tasks: &dyn Tasks, mut in_flight: Option<&mut InFlight>) {
        let Kind::Request(request) = &event.kind else { return };
        // What the disk below takes is told by the disk's own requests, and what holds those back is no disk.
        if request.device.0 == LOOP {
            return;
        }
        let now = event.time_ns;
        if request.lost != self.lost_events || self.under_way.len() >= UNDER_WAY {
            self.lost_events = request.lost;
            self.under_way.clear();
            if let Some(in_flight) = in_flight.as_deref_mut() {
                in_flight.records_lost(now);
            }
        }
        match request.step {
            Step::Inserted => self.insert(event, request, tasks, in_flight),
            Step::Issued => self.issue(event, request, tasks, in_flight),
            Step::Done => self.done(now, request, in_flight),
            Step::Merged => {
                let merged = self.under_way.remove(&request.address);
                forget(in_flight, now, merged, false);
            }
        }
    }

    fn submitter(&mut self, event: &Event<'_>, request: &BlockRequest<'_>, tasks: &dyn Tasks) -> Submitter {
        let owner = match event.tid {
            0 => Owner::Kernel,
            tid if tasks.is_own(tid) => Owner::Own,
            _ if request.by_kernel => Owner::Kernel,
            _ => Owner::Other,
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
        let watch = pid == std::process::id();
        self.others.push(OtherUser { name, pid, command: known.command, watch, ..OtherUser::default() });
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

    /// The request of this event, if it is under way, taken out; another one in the same memory has ended unseen.
    fn known(
        &mut self,
        now: u64,
        request: &BlockRequest<'_>,
        in_flight: Option<&mut InFlight>,
    ) -> Option<UnderWay> {
        let known = self.under_way.remove(&request.address)?;
        if known.is(request) {
            return Some(known);
        }
        forget(in_flight, now, Some(known), true);
        None
    }

    /// A request enters a queue. A driver that has no room hands a request back, mostly from a kernel thread: it is the same
    /// request, of the same owner.
    fn insert(
        &mut self,
        event: &Event<'_>,
        request: &BlockRequest<'_>,
        tasks: &dyn Tasks,
        mut in_flight: Option<&mut InFlight>,
    ) {
        let now = event.time_ns;
        let known = self.known(now, request, in_flight.as_deref_mut());
        let (by, issued) = match known {
            Some(known) => (known.by, known.issued || known.phase == Phase::AtDevice),
            None => (self.submitter(event, request, tasks), false),
        };
        let inserted_ns = Some(known.and_then(|known| known.inserted_ns).unwrap_or(now));
        forget(in_flight.as_deref_mut(), now, known, false);
        let ticket = in_flight.and_then(|f| f.insert(now, request.device, by));
        let queued = UnderWay { ticket, issued, inserted_ns, ..under_way(Phase::Queued, now, by, request) };
        self.under_way.insert(request.address, queued);
    }

    fn issue(
        &mut self,
        event: &Event<'_>,
        request: &BlockRequest<'_>,
        tasks: &dyn Tasks,
        mut in_flight: Option<&mut InFlight>,
    ) {
        let now = event.time_ns;
        let known = self.known(now, request, in_flight.as_deref_mut());
        let by = known.map_or_else(|| self.submitter(event, request, tasks), |known| known.by);
        let inserted_ns = known.and_then(|known| known.inserted_ns);
        let mut at_device =
            UnderWay { issued: true, inserted_ns, ..under_way(Phase::AtDevice, now, by, request) };
        match known {
            // Handed back, and issued from where it was: it was queued until now.
            Some(UnderWay { phase: Phase::AtDevice, ticket, .. }) => {
                at_device.ticket = ticket;
                if let Some((ticket, in_flight)) = at_device.ticket.as_mut().zip(in_flight) {
                    in_flight.issue_again(now, ticket);
                }
            }
            _ => {
                at_device.ticket =
                    in_flight.and_then(|f| f.issue(now, request.device, by, known.and_then(|k| k.ticket)));
                let queued_ns = known.map(|known| now.saturating_sub(known.since_ns));
                if let (Some(times), Some(queued_ns)) = (self.times(by.owner), queued_ns) {
                    times.queue.add(queued_ns);
                }
                if !known.is_some_and(|known| known.issued) {
                    self.count(by, request);
                }
            }
        }
        self.under_way.insert(request.address, at_device);
    }

    fn count(&mut self, by: Submitter, request: &BlockRequest<'_>) {
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
    }

    fn own_request(&mut self, request: &BlockRequest<'_>) {
        self.issued.own += 1;
        match request.operation {
            Operation::Read { ahead } => {
                let sample = &mut self.sample;
                sample.own_reads += 1;
                sample.own_read_bytes = sample.own_read_bytes.saturating_add(request.bytes);
                if ahead {
                    sample.own_read_ahead_bytes = sample.own_read_ahead_bytes.saturating_add(request.bytes);
                }
                if request.metadata {
                    sample.own_metadata_bytes = sample.own_metadata_bytes.saturating_add(request.bytes);
                }
                let end = request.sector.saturating_add(request.bytes / SECTOR);
                let before = self.last_read_end.insert(request.device, end);
                sample.own_reads_adjacent += u64::from(before == Some(request.sector));
            }
            Operation::Write => {
                self.sample.own_written_bytes = self.sample.own_written_bytes.saturating_add(request.bytes);
            }
            Operation::Flush | Operation::Discard | Operation::Other => {}
        }
    }

    fn done(&mut self, now: u64, request: &BlockRequest<'_>, in_flight: Option<&mut InFlight>) {
        let Some(at_device) = self.under_way.get_mut(&request.address) else { return };
        // A device may do a request in parts.
        if request.bytes < at_device.left_bytes {
            at_device.left_bytes -= request.bytes;
            at_device.sector = at_device.sector.saturating_add(request.bytes / SECTOR);
            return;
        }
        let at_device = *at_device;
        self.under_way.remove(&request.address);
        if at_device.phase == Phase::Queued {
            // It never got to the device: it was refused.
            return forget(in_flight, now, Some(at_device), false);
        }
        self.issued.completed += 1;
        if let Some(kept) = &mut self.kept {
            kept.add(&at_device, now);
        }
        let served = at_device.ticket.zip(in_flight).and_then(|(ticket, f)| f.complete(now, &ticket));
        if let Some(times) = self.times(at_device.by.owner) {
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

/// A request as it is when it comes somewhere.
fn under_way(phase: Phase, since_ns: u64, by: Submitter, request: &BlockRequest<'_>) -> UnderWay {
    let BlockRequest { device, sector, operation, metadata, bytes, .. } = *request;
    UnderWay {
        phase,
        since_ns,
        by,
        device,
        sector,
        operation,
        metadata,
        left_bytes: bytes,
        ticket: None,
        issued: false,
        inserted_ns: None,
        whole: (sector, bytes),
    }
}

/// A request that is no longer followed.
fn forget(in_flight: Option<&mut InFlight>, now: u64, request: Option<UnderWay>, lost: bool) {
    if let Some((in_flight, ticket)) = in_flight.zip(request.and_then(|request| request.ticket)) {
        in_flight.forget(now, &ticket, lost);
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
