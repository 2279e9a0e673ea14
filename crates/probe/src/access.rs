//! The waist: what every way of moving bytes can do. Two methods submit and reap, the rest is provided or describes.

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

/// What was sent to one member of a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests, after splitting.
    pub requests: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
}

/// Why a request failed. The runner ends the cell and keeps what was measured before.
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
        /// What failed there; offsets are the member's own.
        failure: Box<Failure>,
    },
    /// A thread of ours that does a part of each request is gone.
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

/// One way of moving bytes, bound to one open target and used by one thread.
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

    /// Ends a slice, inside its timed part: gives back what the requests have built up and a program would have to give
    /// back too (the page tables of a mapping).
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Options that were asked for and refused by the kernel, in words: `IOPOLL: not supported (EOPNOTSUPP)`.
    fn dropped(&self) -> &[String] {
        &[]
    }

    /// Requests that the kernel first refused (RWF_NOWAIT: not in the cache) and that were then carried out.
    fn refused(&self) -> u64 {
        0
    }

    /// A slice begins: what was sent, and what helpers used, before this does not count. Outside the timed part.
    fn begin(&mut self) {}

    /// What was sent to each member of a stripe since [`Access::begin`]; empty for everything else.
    fn sent(&self) -> &[Sent] {
        &[]
    }

    /// What threads of ours that work for this access used between [`Access::begin`] and [`Access::finish`].
    fn helpers(&self) -> ThreadUsage {
        ThreadUsage::default()
    }
}

/// Makes an [`Access`] out of something that can only carry out one request from start to end.
pub struct Blocking<P> {
    inner: P,
    ended: Option<Completion>,
}

/// A synchronous way of moving bytes.
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
