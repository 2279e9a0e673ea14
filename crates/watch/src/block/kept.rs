//! Completed requests with their times, where they are kept. Bounded: those after the bound are left out, and the time is told. Other
//! programs have a bound of their own: a busy neighbour must not take the room of the program.

use super::{Owner, Submitter, UnderWay};
use crate::event::Operation;

/// Most requests of the program and the kernel, and of other programs: about 12 MB each.
const MAX_REQUESTS: usize = 125_000;

/// A request that a device completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// What it did.
    pub operation: Operation,
    /// It read what the file system keeps beside files.
    pub metadata: bool,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length.
    pub bytes: u64,
    /// Whose it was.
    pub owner: Owner,
    /// The thread that submitted it; 0 is an idle CPU.
    pub tid: u32,
    /// The other program that submitted it, where that is known.
    pub program: Option<String>,
    /// When it entered the queue of the scheduler; `None`: it went to the driver at once.
    pub inserted_ns: Option<u64>,
    /// When it went to the driver, the last time.
    pub issued_ns: u64,
    /// When the device had done all of it.
    pub done_ns: u64,
}

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    requests: Vec<(Request, Option<u32>)>,
    of_others: usize,
    full_ns: Option<u64>,
    others_full_ns: Option<u64>,
}

/// Requests that were kept.
#[derive(Debug, Default)]
pub struct KeptRequests {
    /// In the order of their completions.
    pub requests: Vec<Request>,
    /// When there was no room for more of the program and the kernel.
    pub full_ns: Option<u64>,
    /// When there was no room for more of other programs.
    pub others_full_ns: Option<u64>,
}

impl Kept {
    /// A device has done all of a request.
    pub(super) fn add(&mut self, request: &UnderWay, now_ns: u64) {
        let Submitter { owner, tid, program } = request.by;
        let (kept, full_ns) = match owner {
            Owner::Other => (self.of_others, &mut self.others_full_ns),
            Owner::Own | Owner::Kernel => (self.requests.len() - self.of_others, &mut self.full_ns),
        };
        if kept >= MAX_REQUESTS {
            full_ns.get_or_insert(now_ns);
            return;
        }
        self.of_others += usize::from(owner == Owner::Other);
        let (sector, bytes) = request.whole;
        let kept = Request {
            device: request.device,
            operation: request.operation,
            metadata: request.metadata,
            sector,
            bytes,
            owner,
            tid,
            program: None,
            inserted_ns: request.inserted_ns,
            issued_ns: request.since_ns,
            done_ns: now_ns,
        };
        self.requests.push((kept, program));
    }

    /// All of them. `name`: of the other program of this number.
    pub(super) fn finish(self, name: impl Fn(u32) -> Option<String>) -> KeptRequests {
        let named = |(request, program): (Request, Option<u32>)| Request {
            program: program.and_then(&name),
            ..request
        };
        KeptRequests {
            requests: self.requests.into_iter().map(named).collect(),
            full_ns: self.full_ns,
            others_full_ns: self.others_full_ns,
        }
    }
}
