//! What threads and devices did at which time, and its back ends: the Firefox Profiler and Perfetto.
//! Deliberately absent: where the facts come from, and a time for anything that has none. All times are nanoseconds since the start.
//! Invariant: the back ends write each interval, sample, request and call once, and none that is not here.

pub mod firefox;
mod lanes;
pub mod perfetto;
mod protobuf;
#[cfg(test)]
mod tests;

use iowhy_core::layer::Layer;
use iowhy_core::profile::State;

/// Everything that has a time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The program that wrote the file, with its version.
    pub writer: String,
    /// What was watched.
    pub subject: String,
    /// The start: nanoseconds since 1970, and of CLOCK_MONOTONIC.
    pub start_unix_ns: u64,
    /// The start by CLOCK_MONOTONIC.
    pub start_monotonic_ns: u64,
    /// Length of the run.
    pub wall_ns: u64,
    /// Period of the clock that took the samples; 0: there was none.
    pub clock_period_ns: u64,
    /// Processes by number.
    pub processes: Vec<Process>,
    /// The threads; those of the first process come first.
    pub threads: Vec<Thread>,
    /// The stacks that intervals and samples refer to.
    pub stacks: Vec<Stack>,
    /// Block devices with the requests that they completed.
    pub devices: Vec<Device>,
    /// Statements about the whole run.
    pub findings: Vec<Finding>,
    /// What the reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Since when it was watched.
    pub begin_ns: u64,
    /// Until when.
    pub end_ns: u64,
    /// What it did, in order and without an overlap.
    pub intervals: Vec<Interval>,
    /// Where the clock found it, in order.
    pub samples: Vec<Sample>,
    /// Its slow calls, in order and without an overlap.
    pub calls: Vec<Call>,
}

/// What a thread did for a while.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Its begin.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// `None`: not recorded.
    pub state: Option<State>,
    /// Index into [`Timeline::stacks`]; of running time it means nothing.
    pub stack: u32,
    /// What requests did in a sleep, where that is known.
    pub requests: Option<RequestParts>,
}

/// Parts of a sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts {
    /// A request that it waited for was at a device.
    pub device_ns: u64,
    /// Such requests were in a queue.
    pub queued_ns: u64,
    /// Part of that in which another program's request was at the same device.
    pub behind_others_ns: u64,
}

/// A tick of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub time_ns: u64,
    /// Index into [`Timeline::stacks`].
    pub stack: u32,
}

/// A stack with its meaning. Equal stacks of running and of waiting threads are two.
#[derive(Clone, Debug)]
pub struct Stack {
    /// User frames, outermost first.
    pub user: Vec<Frame>,
    /// Kernel frames, outermost first.
    pub kernel: Vec<Frame>,
    /// Whether a stack was taken.
    pub known: bool,
    /// Where its time belongs.
    pub layer: Layer,
    /// What the program asked for.
    pub operation: &'static str,
    /// What the thread waits for, as a name: `waiting: a CPU`; `None`: it runs.
    pub waits: Option<String>,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// The file or module that it is in.
    pub object: Option<String>,
}

/// A system call that took long.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Its name in the manual.
    pub name: &'static str,
    /// The file that it worked on.
    pub path: Option<String>,
    /// What it returned.
    pub value: i64,
    /// Its begin.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// A block device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Requests that it completed, by begin.
    pub requests: Vec<Request>,
}

/// A request to a device.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `read`, `read-ahead`, `write` or `other`.
    pub operation: &'static str,
    /// Whose it was: `the program`, `the kernel`, or the name of another program.
    pub owner: String,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length.
    pub bytes: u64,
    /// When it entered a queue, or went to the driver at once.
    pub begin_ns: u64,
    /// When it went to the driver.
    pub issued_ns: u64,
    /// When it was done.
    pub done_ns: u64,
}

/// A statement about the whole run.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Its title.
    pub title: String,
    /// The cause in a sentence.
    pub sentence: String,
    /// What to change.
    pub advice: String,
    /// Part of the wall time.
    pub share: f64,
}

impl Interval {
    /// Its length.
    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

impl Timeline {
    /// The name of a process.
    fn process(&self, pid: u32) -> &str {
        self.processes.iter().find(|process| process.pid == pid).map_or("", |process| &process.name)
    }

    /// The name of what a thread does in an interval.
    fn label(&self, interval: &Interval) -> &str {
        match interval.state {
            None => NOT_RECORDED,
            Some(State::Running) => RUNNING,
            Some(State::Queued | State::Blocked) => {
                let stack = self.stacks.get(interval.stack as usize);
                stack.and_then(|stack| stack.waits.as_deref()).unwrap_or(WAITING)
            }
        }
    }
}

const NOT_RECORDED: &str = "not recorded";
const RUNNING: &str = "running";
const WAITING: &str = "waiting";
