//! The timed facts of a watch, kept only on request: what each thread did and when, clock samples, requests at devices, slow calls.
//! Deliberately absent: what they mean, and a time for anything that is known only as a sum.
//! Invariant: memory is bounded. Where a bound is reached, intervals, samples and requests all end there, and the log says so.

use iowhy_core::profile::{State, SymbolId};

use crate::block::Request;

/// Most threads, intervals and samples: about 60 MB together.
pub(crate) const MAX_THREADS: usize = 4_096;
pub(crate) const MAX_INTERVALS: usize = 500_000;
pub(crate) const MAX_SAMPLES: usize = 500_000;
/// Slow calls that are kept: the longest ones.
pub(crate) const MAX_CALLS: usize = 1_000;

/// Everything that has a time of its own. All times are nanoseconds since [`EventLog::start_ns`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// Start of the wall time (CLOCK_MONOTONIC).
    pub start_ns: u64,
    /// Period of the clock that takes the samples.
    pub clock_period_ns: u64,
    /// The threads, in the order of their births.
    pub threads: Vec<LoggedThread>,
    /// What they did. Those of one thread are in order, do not overlap, and leave no time of its life out.
    pub intervals: Vec<Interval>,
    /// Where the clock found them.
    pub samples: Vec<Sample>,
    /// The stacks that intervals and samples refer to.
    pub stacks: Vec<LoggedStack>,
    /// Requests that a device completed, in the order of their completions.
    pub requests: Vec<Request>,
    /// Whether sleeps were divided by the requests in them; if not, those parts of an [`Interval`] are 0 and mean nothing.
    pub requests_followed: bool,
    /// The longest of the calls that were recorded, in order of time.
    pub calls: Vec<SlowCall>,
    /// Calls that were recorded.
    pub recorded_calls: u64,
    /// When a bound was reached: intervals, samples and requests that end later are left out.
    pub full_ns: Option<u64>,
    /// When there was no room for more requests of other programs: later ones are left out.
    pub others_full_ns: Option<u64>,
}

/// A thread that was there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedThread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its last name.
    pub name: String,
    /// Since when it was watched.
    pub begin_ns: u64,
    /// Until when.
    pub end_ns: u64,
}

/// What a thread did for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Index into [`EventLog::threads`].
    pub thread: u32,
    /// `None`: not recorded.
    pub state: Option<State>,
    /// Index into [`EventLog::stacks`]: the stack with which it left its CPU.
    pub stack: u32,
    /// Its begin.
    pub begin_ns: u64,
    /// Its end. A sleep ends when the thread gets a CPU: the wait for one after the wake-up is in it.
    pub end_ns: u64,
    /// Part of a sleep in which a request that it waited for was at a device, see [`RequestTime`](iowhy_core::profile::RequestTime).
    pub device_ns: u64,
    /// Part in which such requests were in a queue.
    pub queued_ns: u64,
    /// Part of that in which another program's request was at the same device.
    pub behind_others_ns: u64,
}

/// A tick of the clock that hit a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index into [`EventLog::threads`].
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// Index into [`EventLog::stacks`].
    pub stack: u32,
}

/// A stack, with the symbols of the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedStack {
    /// Kernel frames, innermost first.
    pub kernel: Vec<SymbolId>,
    /// User frames, innermost first.
    pub user: Vec<SymbolId>,
    /// Whether a stack was taken.
    pub known: bool,
}

/// A system call that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// Thread that made it.
    pub tid: u32,
    /// Its name in the manual.
    pub name: &'static str,
    /// The file that it worked on, where that is known.
    pub path: Option<String>,
    /// Its begin.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// What it returned.
    pub value: i64,
}

impl EventLog {
    /// Leaves out what ends after the bound was reached.
    pub(crate) fn cut(&mut self) {
        let Some(until) = self.full_ns else { return };
        self.intervals.retain(|interval| interval.end_ns < until);
        self.samples.retain(|sample| sample.time_ns < until);
        self.requests.retain(|request| request.done_ns < until);
        for thread in &mut self.threads {
            thread.end_ns = thread.end_ns.min(until).max(thread.begin_ns);
        }
    }
}
