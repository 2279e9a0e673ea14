//! One living thread: what it does now, since when, and what was measured of it so far.

use super::account::Kind;
use super::stacks::{StackId, UNKNOWN};
use crate::block::Marks;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Running,
    Queued,
    Blocked,
    /// Switches are not recorded, or a record was lost: a gap.
    Unseen,
}

/// Measured time by state, and gaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) running_ns: u64,
    pub(super) queued_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) gap_ns: u64,
}

/// An exact reading of the kernel's own counters, and what was measured until then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) running_ns: u64,
    pub(super) queued_ns: u64,
    pub(super) measured: Measured,
}

/// What the last look at the thread found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    pub(super) running: bool,
    pub(super) stack: StackId,
    pub(super) active: bool,
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) account: u32,
    /// Its index in the log, where one is kept.
    pub(super) logged: u32,
    pub(super) cpu: u32,
    pub(super) doing: Doing,
    /// Begin of the present interval.
    pub(super) since_ns: u64,
    /// Stack of the present interval, if it does not run.
    pub(super) stack: StackId,
    /// Stack with which it is about to leave its CPU.
    pub(super) leaving: StackId,
    /// It takes part in the wall clock; V when it began to, and what it got before in this interval.
    pub(super) active: bool,
    pub(super) virtual_ns: f64,
    pub(super) wall_ns: f64,
    /// `doing` is what it did before a window began; the next event says whether it was right.
    pub(super) presumed: bool,
    /// It may not be watched any more: the kernel has closed its events.
    pub(super) hidden: bool,
    /// Records of its CPU were lost in this interval.
    pub(super) doubtful: bool,
    /// This sleep or queueing has been counted already.
    pub(super) counted: bool,
    /// Whether a sleep without a stack is taken to be on the path: as the last one with a stack.
    pub(super) guess: bool,
    pub(super) measured: Measured,
    pub(super) reading: Option<Reading>,
    pub(super) look: Option<Looked>,
    /// What it did when recording stopped.
    pub(super) before: (Doing, StackId),
    /// Where the present sleep began; how much of it was booked, and the last part under which kind.
    pub(super) marks: Marks,
    pub(super) asleep_ns: u64,
    pub(super) asleep_kind: Kind,
}

impl Live {
    pub(super) fn new(pid: u32, tid: u32, account: u32, now_ns: u64, guess: bool) -> Live {
        Live {
            tid,
            pid,
            account,
            logged: u32::MAX,
            cpu: u32::MAX,
            doing: Doing::Unseen,
            since_ns: now_ns,
            stack: UNKNOWN,
            leaving: UNKNOWN,
            active: false,
            virtual_ns: 0.0,
            wall_ns: 0.0,
            presumed: false,
            hidden: false,
            doubtful: false,
            counted: false,
            guess,
            measured: Measured::default(),
            reading: None,
            look: None,
            before: (Doing::Unseen, UNKNOWN),
            marks: Marks::default(),
            asleep_ns: 0,
            asleep_kind: 0,
        }
    }
}
