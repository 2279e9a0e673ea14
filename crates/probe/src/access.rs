//! The narrow interface of a method: two functions submit and reap, the rest is provided or describes the method.

use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

use crate::counters::ThreadUsage;

/// One request. Offsets are absolute in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: usize,
    /// Write instead of read.
    pub write: bool,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was submitted in.
    pub slot: usize,
    /// Bytes moved. Zero is valid (`/dev/null`, end of file) and is judged by the runner.
    pub bytes: usize,
}

/// Requests sent to one member of a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests, after splitting.
    pub requests: u64,
    /// Bytes requested.
    pub bytes: u64,
}

/// Why a request failed. The runner ends the cell and keeps earlier samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A system call failed.
    Io {
        /// Its name, e.g. `pread`.
        call: &'static str,
        /// Offset of the request.
        offset: u64,
        /// The error.
        errno: Errno,
    },
    /// The pages under a mapping went away (SIGBUS): the file was truncated or its device failed.
    Vanished {
        /// Offset of the request that hit the hole.
        offset: u64,
    },
    /// A read brought nothing where there were bytes when the target was looked at.
    Ended {
        /// Offset of the read.
        offset: u64,
    },
    /// A part of a request failed on a member of a stripe.
    Member {
        /// The member, as it was named.
        name: Arc<str>,
        /// The failure; its offsets are the member's.
        failure: Box<Failure>,
    },
    /// A helper thread of iowhy ended.
    HelperGone,
}

impl Failure {
    /// Shorthand for [`Failure::Io`] in `map_err`.
    pub fn io(call: &'static str, offset: u64) -> impl FnOnce(Errno) -> Failure {
        move |errno| Failure::Io { call, offset, errno }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io { call, offset, errno } => {
                write!(f, "{call} at offset {offset} failed: {}", std::io::Error::from(*errno))
            }
            Failure::Vanished { offset } => write!(
                f,
                "the mapped page at offset {offset} vanished (SIGBUS): the file was truncated or its device failed"
            ),
            Failure::Ended { offset } => {
                write!(
                    f,
                    "the target ended at offset {offset}: it was truncated, or its device went away, while it was measured"
                )
            }
            Failure::Member { name, failure } => write!(f, "member `{name}` of the stripe: {failure}"),
            Failure::HelperGone => f.write_str("a helping thread ended before its time"),
        }
    }
}

/// A method, bound to one open target and used by one thread.
///
/// Contract: `slot` is below [`Access::capacity`]; a slot is not reused before its completion was reaped; the bytes
/// of a completed read stay in [`Access::data`] until its slot is submitted again.
pub trait Access {
    /// The greatest number of requests in flight.
    fn capacity(&self) -> usize;

    /// Queues one request, or carries it out at once if the method is synchronous.
    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure>;

    /// Waits until at least `at_least` queued requests have ended and appends them to `done` (which may then hold
    /// more). Called with `at_least` no greater than the number in flight.
    fn reap(&mut self, at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure>;

    /// The bytes that arrived in a slot; `None` when the method leaves none in user memory.
    fn data(&self, slot: usize) -> Option<&[u8]>;

    /// Carries out one request from start to end, at depth 1. The hot loop of synchronous methods.
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.submit(0, request)?;
        let mut done = Vec::with_capacity(1);
        self.reap(1, &mut done)?;
        Ok(done.first().map_or(0, |c| c.bytes))
    }

    /// Ends a slice within its timed part: frees what the requests built up and a program would free too (page tables
    /// of a mapping).
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Requested options that the kernel refused, in words: `IOPOLL: not supported (EOPNOTSUPP)`.
    fn dropped(&self) -> &[String] {
        &[]
    }

    /// Requests that the kernel first refused (RWF_NOWAIT: not in the cache) and that were then carried out.
    fn refused(&self) -> u64 {
        0
    }

    /// Begins a slice, outside its timed part: resets what was sent and what helpers used.
    fn begin(&mut self) {}

    /// Requests sent to each member of a stripe since [`Access::begin`]; else empty.
    fn sent(&self) -> &[Sent] {
        &[]
    }

    /// Usage of helper threads between [`Access::begin`] and [`Access::finish`].
    fn helpers(&self) -> ThreadUsage {
        ThreadUsage::default()
    }
}

/// Makes an [`Access`] out of something that can only carry out one request from start to end.
pub struct Blocking<P> {
    inner: P,
    ended: Option<Completion>,
}

/// A synchronous method.
pub trait Perform {
    /// Carries out one request and returns the bytes moved.
    fn perform(&mut self, request: Request) -> Result<usize, Failure>;
    /// See [`Access::data`].
    fn data(&self) -> Option<&[u8]>;
    /// See [`Access::finish`].
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// See [`Access::dropped`].
    fn dropped(&self) -> &[String] {
        &[]
    }
    /// See [`Access::refused`].
    fn refused(&self) -> u64 {
        0
    }
}

impl<P: Perform> Blocking<P> {
    /// Wraps a synchronous method.
    pub fn new(inner: P) -> Self {
        Blocking { inner, ended: None }
    }
}

impl<P: Perform> Access for Blocking<P> {
    fn capacity(&self) -> usize {
        1
    }
    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let bytes = self.inner.perform(request)?;
        self.ended = Some(Completion { slot, bytes });
        Ok(())
    }
    fn reap(&mut self, _at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        done.extend(self.ended.take());
        Ok(())
    }
    fn data(&self, _slot: usize) -> Option<&[u8]> {
        self.inner.data()
    }
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.inner.perform(request)
    }
    fn finish(&mut self) -> Result<(), Failure> {
        self.inner.finish()
    }
    fn dropped(&self) -> &[String] {
        self.inner.dropped()
    }
    fn refused(&self) -> u64 {
        self.inner.refused()
    }
}
