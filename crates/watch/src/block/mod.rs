//! Requests between the block layer and the devices: who made them, how long they queue, how long the device takes.
//! A request is known by its device and first sector; splits and merges lose the pair, never the count.
//! Invariant: every issued request is counted once, as the program's, the kernel's, or another program's.

mod busy;
mod flags;
mod outstanding;

use std::collections::HashMap;

use iowhy_core::profile::{BlockSample, OtherUser};

use crate::event::{BlockRequest, Event, Kind, Trace};
use busy::BusyTime;
use flags::{Operation, operation};
use outstanding::Outstanding;

/// Requests under way that are remembered.
const OUTSTANDING: usize = 65_536;
/// Other programs told apart, by name.
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

/// A request that waits in a queue.
#[derive(Debug)]
struct Waiting {
    since_ns: u64,
    owner: Owner,
    /// Thread and name of another program: the task that issues may be any.
    other: Option<(u32, Box<str>)>,
}

/// A request at the device.
#[derive(Clone, Copy, Debug)]
struct AtDevice {
    since_ns: u64,
    owner: Owner,
    left_bytes: u64,
}

/// A mean in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    n: u64,
}

impl Mean {
    fn add(&mut self, value_ns: u64) {
        self.sum += value_ns as f64;
        self.n += 1;
    }

    fn value(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

/// Times of the requests of one owner.
#[derive(Debug, Default)]
struct Times {
    queue: Mean,
    device: Mean,
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
    others: HashMap<String, OtherUser>,
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
            others: HashMap::new(),
            pooled: OtherUser { name: "others".to_owned(), ..OtherUser::default() },
        }
    }

    /// Takes an event; all that are not about block requests are ignored. `owner(pid, tid, name)` says whom a task
    /// belongs to. Where the insertion was seen, the task that inserted owns the request: the one that issues it may
    /// be a kernel thread that only empties the queue.
    pub fn event(&mut self, event: &Event<'_>, owner: &dyn Fn(u32, u32, &str) -> Owner) {
        let whose = |request: &BlockRequest<'_>| match event.tid {
            0 => Owner::Kernel,
            tid => owner(event.pid, tid, request.task),
        };
        match &event.kind {
            Kind::Trace(Trace::BlockInsert(request)) => {
                let owner = whose(request);
                let other = (owner == Owner::Other).then(|| (event.tid, request.task.into()));
                let waiting = Waiting { since_ns: event.time_ns, owner, other };
                self.waiting.put(request.device, request.sector, waiting);
            }
            Kind::Trace(Trace::BlockIssue(request)) => {
                let inserted = self.waiting.take(request.device, request.sector);
                let owner = inserted.as_ref().map_or_else(|| whose(request), |waiting| waiting.owner);
                self.issue(event, request, owner, inserted);
            }
            Kind::Trace(Trace::BlockComplete(request)) => self.complete(event.time_ns, request),
            _ => {}
        }
    }

    fn times(&mut self, owner: Owner) -> Option<&mut Times> {
        match owner {
            Owner::Own => Some(&mut self.own),
            Owner::Kernel => Some(&mut self.kernel),
            Owner::Other => None,
        }
    }

    fn issue(
        &mut self,
        event: &Event<'_>,
        request: &BlockRequest<'_>,
        owner: Owner,
        inserted: Option<Waiting>,
    ) {
        let now = event.time_ns;
        let queued_ns = inserted.as_ref().map(|waiting| now.saturating_sub(waiting.since_ns));
        if let (Some(times), Some(queued_ns)) = (self.times(owner), queued_ns) {
            times.queue.add(queued_ns);
        }
        match owner {
            Owner::Own => self.own_request(request),
            Owner::Kernel => self.issued.kernel += 1,
            Owner::Other => match inserted.and_then(|waiting| waiting.other) {
                Some((tid, name)) => self.other_request(tid, &name, request.bytes),
                None => self.other_request(event.tid, request.task, request.bytes),
            },
        }
        let at_device = AtDevice { since_ns: now, owner, left_bytes: request.bytes };
        self.at_device.put(request.device, request.sector, at_device);
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

    fn other_request(&mut self, tid: u32, name: &str, bytes: u64) {
        self.issued.others += 1;
        let room = self.others.len() < OTHERS;
        let user = match self.others.get_mut(name) {
            Some(user) => user,
            None if room => self.others.entry(name.to_owned()).or_insert_with(|| OtherUser {
                name: name.to_owned(),
                tid,
                ..OtherUser::default()
            }),
            None => &mut self.pooled,
        };
        user.requests += 1;
        user.bytes = user.bytes.saturating_add(bytes);
    }

    fn complete(&mut self, now: u64, request: &BlockRequest<'_>) {
        let Some(mut at_device) = self.at_device.take(request.device, request.sector) else { return };
        // A device may complete a request in parts: the rest begins where this part ended.
        if request.bytes > 0 && request.bytes < at_device.left_bytes {
            at_device.left_bytes -= request.bytes;
            let rest = request.sector.saturating_add(request.bytes / SECTOR);
            self.at_device.put(request.device, rest, at_device);
            return;
        }
        self.issued.completed += 1;
        if let Some(times) = self.times(at_device.owner) {
            times.device.add(now.saturating_sub(at_device.since_ns));
            times.busy.add(at_device.since_ns, now);
        }
    }

    /// Requests issued so far.
    pub fn issued(&self) -> Issued {
        self.issued
    }

    /// All that was seen. Means are over the program's own requests; where none of its own has completed (it left
    /// writing to the kernel), over those of kernel threads. No time at the device is given when completions are not
    /// seen: the few that are depend on which CPU happened to be idle.
    pub fn finish(self) -> BlockSample {
        let all = self.issued.own + self.issued.kernel + self.issued.others;
        let completions_seen = self.issued.completed as f64 >= SEEN * all as f64;
        let times = if self.own.device.n + self.own.queue.n > 0 { self.own } else { self.kernel };
        let mut others: Vec<OtherUser> = self.others.into_values().collect();
        others.sort_by(|a, b| {
            (b.requests, b.bytes).cmp(&(a.requests, a.bytes)).then_with(|| a.name.cmp(&b.name))
        });
        let mut pooled = self.pooled;
        for user in others.drain(others.len().min(REPORTED)..) {
            pooled.requests += user.requests;
            pooled.bytes = pooled.bytes.saturating_add(user.bytes);
        }
        if pooled.requests > 0 {
            others.push(pooled);
        }
        let busy_ns = times.busy.total_ns();
        BlockSample {
            own_requests: self.issued.own,
            kernel_requests: self.issued.kernel,
            queue_ns: times.queue.value(),
            device_ns: times.device.value().filter(|_| completions_seen),
            pairs: times.device.n,
            // Little's law: the sum of times at the device over the time in which at least one was there.
            in_flight: (completions_seen && busy_ns > 0).then(|| times.device.sum / busy_ns as f64),
            others,
            completions_seen,
            ..self.sample
        }
    }
}

#[cfg(test)]
mod tests;
