//! Completed requests with their times, where they are kept. Bounded: those after the bound are left out, and the time is told.

use super::{Owner, Submitter, UnderWay};
use crate::event::Operation;

/// Most requests: about 25 MB.
const MAX_REQUESTS: usize = 250_000;

/// A request that a device completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// What it did.
    pub operation: Operation,
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
    full_ns: Option<u64>,
}

impl Kept {
    /// A device has done all of a request.
    pub(super) fn add(&mut self, request: &UnderWay, now_ns: u64) {
        if self.requests.len() >= MAX_REQUESTS {
            self.full_ns.get_or_insert(now_ns);
            return;
        }
        let Submitter { owner, tid, program } = request.by;
        let (sector, bytes) = request.whole;
        let kept = Request {
            device: request.device,
            operation: request.operation,
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

    /// All of them, and when there was no room for more. `name`: of the other program of this number.
    pub(super) fn finish(self, name: impl Fn(u32) -> Option<String>) -> (Vec<Request>, Option<u64>) {
        let named = |(request, program): (Request, Option<u32>)| Request {
            program: program.and_then(&name),
            ..request
        };
        (self.requests.into_iter().map(named).collect(), self.full_ns)
    }
}
