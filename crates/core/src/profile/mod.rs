//! What was seen of a program while it ran: threads and their time, stacks, calls, files, devices. Raw facts: the layer
//! of a stack, and whether a wait is a problem, are decided by the reader of the profile.
//! Invariant ([`Profile::check`]): the stacks of a thread sum to its time by state, and the wall shares of all stacks with
//! [`Profile::idle_wall_ns`] sum to [`Profile::wall_ns`]. Running time is at least the CPU time that the kernel counted.

mod calls;
mod course;
mod group;
mod pattern;
mod served;
mod sight;
mod storage;

pub use calls::{
    Access, CallCount, CallCounts, Connections, FileUse, KindUse, SIZE_CLASSES, SampledShare, SocketUse,
    size_class,
};
pub use course::{
    Course, DeviceCourse, DeviceStep, GroupCourse, GroupDeviceCourse, GroupStep, Step as CourseStep,
};
pub use group::{GroupLimit, Limited, LimitedGroup};
pub use pattern::{
    CallPattern, CompleteRecord, FileIdentity, Lookups, PatternFile, Step, StepKind, StepTotal, Stretch,
    buffer_offset,
};
pub use served::{RpcUse, ServedMount, ServerProcess};
pub use sight::{Limitation, Observer, Sight, Tier};
pub use storage::{
    BlockSample, DeviceTime, DeviceUse, IoCounters, MemoryUse, OtherOnCpu, OtherUser, OverLimit, OwnIo,
    Pressure, RingRequests, RingUse,
};

use std::borrow::Cow;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Everything that was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Time from the first instruction of the program (or from the start of watching) to its end (or to the end of
    /// watching).
    pub wall_ns: u64,
    /// How it ended.
    pub end: End,
    /// What could be seen and what could not.
    pub sight: Sight,
    /// What watching cost, and what it lost.
    pub observer: Observer,
    /// The directory that the first process was in when watching began, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The processes, the first one first.
    pub processes: Vec<Process>,
    /// The threads. Those beyond a number that memory allows are pooled by name: see [`Thread::count`].
    pub threads: Vec<Thread>,
    /// Where the threads' time went. Sorted by `time_ns`, greatest first.
    pub stacks: Vec<StackTime>,
    /// Names of kernel and user functions that `stacks` refers to by index.
    pub symbols: Vec<Symbol>,
    /// Part of `wall_ns` in which no thread was active: none ran, was queued, or waited on the I/O path.
    pub idle_wall_ns: f64,
    /// Exact counters of all processes together, from start to end.
    pub io: IoCounters,
    /// How often each system call was made; absent where they could not be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallCounts>,
    /// Stretches of calls in their order; empty where none were recorded.
    #[serde(default, skip_serializing_if = "CallPattern::is_empty")]
    pub pattern: CallPattern,
    /// Files that were seen, the one with most bytes first.
    pub files: Vec<FileUse>,
    /// Sum of the sizes of files that were mapped as code and not read by calls: programs, and libraries that nobody read. Absent where
    /// not all were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Calls by kind of file, of all files; empty where calls were not counted in the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindUse>,
    /// Calls on sockets by the side of the program; absent where calls were not counted in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Block devices under those files, with their own counters over the whole time, whoever caused them.
    pub devices: Vec<DeviceUse>,
    /// Mounts that the program saw whose bytes another machine or a user-space program serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedMount>,
    /// Requests between the block layer and the devices; absent where the observer could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockSample>,
    /// What was in flight on rings of io_uring; absent where none was seen with a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<RingUse>,
    /// Memory and control groups under pressure, others at work.
    pub pressure: Pressure,
    /// The program and its machine in steps of time; absent from a run shorter than a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Control groups with limits that the program was in for most of the time; one for each hierarchy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<LimitedGroup>,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It was still running when watching ended.
    #[default]
    Running,
    /// Exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// It ended, but was not a child of iowhy: the exit code is not known.
    Gone,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent, where that was seen.
    pub parent: Option<u32>,
    /// Its last name.
    pub name: String,
    /// Path of the last program it executed, where that was seen.
    pub program: Option<String>,
    /// How many processes this entry stands for: above 1, processes of one name are pooled.
    pub count: u64,
    /// Ends of pipes that looks found open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeEnd>,
    /// Whether a look found it listening for connections.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listens: bool,
    /// What its own threads moved; absent where a counter of it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnIo>,
}

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PipeEnd {
    /// The pipe: both ends have this inode.
    pub inode: u64,
    /// Whether it is the end that is written to.
    pub writes: bool,
}

/// One thread, or a pool of threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its process; of a pool, one of them.
    pub pid: u32,
    /// Its number; of a pool, one of them.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// How many threads this entry stands for; 0: none, it is CPU time of processes that were not seen.
    pub count: u64,
    /// Time it existed while it was watched. The other three sum to it.
    pub lifetime_ns: u64,
    /// Time on a CPU, interrupts included.
    pub running_ns: u64,
    /// Time runnable without a CPU.
    pub queued_ns: u64,
    /// Time asleep.
    pub blocked_ns: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Times it was put off its CPU while it could have gone on.
    pub preemptions: u64,
    /// Samples of the clock that hit it.
    pub samples: u64,
}

/// What a thread did with a piece of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// On a CPU.
    Running,
    /// Runnable without a CPU.
    Queued,
    /// Asleep.
    Blocked,
}

/// Index into [`Profile::symbols`].
pub type SymbolId = u32;

/// Time of one thread in one state with one stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackTime {
    /// Index into [`Profile::threads`].
    pub thread: u32,
    /// Running, queued or blocked.
    pub state: State,
    /// Kernel frames, innermost first. Empty while running: user mode if `known`.
    pub kernel: Vec<SymbolId>,
    /// User frames, innermost first, as far as they could be followed.
    pub user: Vec<SymbolId>,
    /// Whether a stack was taken. False: this time was measured, but where it went was not seen.
    pub known: bool,
    /// Thread time. Exact totals, split over stacks by samples where not every event was seen.
    pub time_ns: f64,
    /// Its part of the wall clock: each instant is shared evenly among the threads that were active in it (running,
    /// queued, or blocked on the I/O path); 0 for blocked time off the path.
    pub wall_ns: f64,
    /// Samples (running) or sleeps (blocked) that were seen with this stack.
    pub events: u64,
    /// Part of `time_ns` that rests on recorded intervals: of sleeps with this stack, of running time also without one. The
    /// rest is inferred: from readings, looks, similar sleeps or the time beside it.
    #[serde(default)]
    pub seen_ns: f64,
    /// What requests did in the sleeps of `seen_ns`. Absent: not known, because requests were not seen, or not while blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestTime>,
}

/// Parts of sleeping time by the requests between the block layer and the devices. A thread that submitted a request which
/// completed in its sleep waited for the last such one; any other for all requests of the program and of kernel threads.
/// That this was what the sleep was for, its stack must tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTime {
    /// A request was at the device.
    pub device_ns: f64,
    /// Requests were in a queue of the block layer, and none was at the device.
    pub queued_ns: f64,
    /// Part of `queued_ns` in which a request of another program was at the same device: delay that it caused.
    pub behind_others_ns: f64,
    /// Part of `device_ns` in which a request of another program was there too: an upper bound of further delay.
    pub beside_others_ns: f64,
    /// Time in which a request on a file was under way on a ring of the program; absent where these were not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring_ns: Option<f64>,
}

impl RequestTime {
    /// Whether it can be part of this sleeping time. `tolerance` in nanoseconds.
    fn fits(&self, seen_ns: f64, tolerance: f64) -> bool {
        let parts = [self.device_ns, self.queued_ns, self.behind_others_ns, self.beside_others_ns];
        parts.iter().all(|part| *part >= 0.0)
            && self.device_ns + self.queued_ns <= seen_ns + tolerance
            && self.behind_others_ns <= self.queued_ns + tolerance
            && self.beside_others_ns <= self.device_ns + tolerance
            && self.ring_ns.is_none_or(|ns| (0.0..=seen_ns + tolerance).contains(&ns))
    }
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Symbol {
    /// Its name without suffixes such as `.isra.0`; an address where there is no name.
    pub name: String,
    /// The module or file it is in, where it is not the kernel itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Whether it is a function of a script or byte code that the process translated while it ran, named by the process itself
    /// (`/tmp/perf-PID.map`); `object` is then the file of the script, where that is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_at_run_time: bool,
}

impl Symbol {
    /// A kernel function as the kernel writes it: `nfs_file_read [nfs]`, and its name alone where it is in no module.
    pub fn frame(&self) -> Cow<'_, str> {
        match &self.object {
            Some(module) => Cow::Owned(format!("{} [{module}]", self.name)),
            None => Cow::Borrowed(&self.name),
        }
    }
}

/// A tick of the kernel's accounting of CPU time (USER_HZ).
const CPU_CLOCK_NS: f64 = 10e6;

impl Profile {
    /// The kernel frames of a stack with their modules, innermost first: see [`Symbol::frame`].
    pub fn kernel_frames<'a>(&'a self, stack: &'a StackTime) -> impl Iterator<Item = Cow<'a, str>> {
        stack.kernel.iter().filter_map(|id| self.symbols.get(*id as usize)).map(Symbol::frame)
    }

    /// Names of the kernel frames of a stack, innermost first.
    pub fn kernel_names<'a>(&'a self, stack: &'a StackTime) -> impl Iterator<Item = &'a str> {
        stack.kernel.iter().filter_map(|id| self.symbols.get(*id as usize)).map(|s| s.name.as_str())
    }

    /// Thread time of all threads, in nanoseconds.
    pub fn thread_ns(&self) -> u64 {
        self.threads.iter().map(|t| t.lifetime_ns).sum()
    }

    /// Number of threads, pools unfolded.
    pub fn thread_count(&self) -> u64 {
        crate::units::total(self.threads.iter().map(|t| t.count))
    }

    /// Holds the profile against its own laws. `tolerance` is relative to the whole each law is about.
    ///
    /// # Errors
    /// The first law that is broken, in words.
    pub fn check(&self, tolerance: f64) -> Result<(), String> {
        let near = |a: f64, b: f64, whole: f64| (a - b).abs() <= tolerance * whole.max(1.0);
        for (index, thread) in self.threads.iter().enumerate() {
            let life = thread.lifetime_ns as f64;
            for (state, whole) in [
                (State::Running, thread.running_ns),
                (State::Queued, thread.queued_ns),
                (State::Blocked, thread.blocked_ns),
            ] {
                let sum: f64 = self
                    .stacks
                    .iter()
                    .filter(|s| s.thread as usize == index && s.state == state)
                    .map(|s| s.time_ns)
                    .sum();
                if !near(sum, whole as f64, life) {
                    return Err(format!(
                        "thread {}: {state:?} stacks {sum} ns, thread {whole} ns",
                        thread.tid
                    ));
                }
            }
            let parts = (thread.running_ns + thread.queued_ns + thread.blocked_ns) as f64;
            if !near(parts, life, life) {
                return Err(format!("thread {}: its states sum to {parts} ns of {life} ns", thread.tid));
            }
        }
        if let Some(lost) = self.stacks.iter().find(|s| s.thread as usize >= self.threads.len()) {
            return Err(format!("a stack of thread index {} that is not there", lost.thread));
        }
        self.check_requests(tolerance)?;
        let wall: f64 = self.stacks.iter().map(|s| s.wall_ns).sum::<f64>() + self.idle_wall_ns;
        if !near(wall, self.wall_ns as f64, self.wall_ns as f64) {
            return Err(format!("wall shares sum to {wall} ns of {} ns", self.wall_ns));
        }
        self.check_threads(tolerance)?;
        self.check_cpu_time(tolerance)
    }

    /// What was seen is part of the time, and requests take part of the sleeps that were seen.
    fn check_requests(&self, tolerance: f64) -> Result<(), String> {
        for s in &self.stacks {
            let slack = tolerance * s.time_ns.max(1.0);
            if !(0.0..=s.time_ns + slack).contains(&s.seen_ns) {
                return Err(format!("a stack of {} ns was seen for {} ns", s.time_ns, s.seen_ns));
            }
            let blocked = s.state == State::Blocked;
            if s.requests.is_some_and(|r| !blocked || !r.fits(s.seen_ns, slack)) {
                return Err(format!("requests {:?} in {:?} time of {} ns", s.requests, s.state, s.seen_ns));
            }
        }
        Ok(())
    }

    /// No thread lives longer than the run. An entry that stands for no thread holds CPU time and nothing else.
    fn check_threads(&self, tolerance: f64) -> Result<(), String> {
        for t in &self.threads {
            let most = t.count as f64 * self.wall_ns as f64;
            if t.count > 0 && t.lifetime_ns as f64 > most + tolerance * most.max(1.0) {
                return Err(format!("thread {}: lived {} ns of {most} ns", t.tid, t.lifetime_ns));
            }
            if t.count == 0 && (t.tid != 0 || t.running_ns != t.lifetime_ns) {
                return Err(format!(
                    "`{}` is no thread: it has a number or other time than CPU time",
                    t.name
                ));
            }
        }
        Ok(())
    }

    /// The kernel's total (rusage) is exact for a command that was waited for. No program uses more than all its CPUs.
    fn check_cpu_time(&self, tolerance: f64) -> Result<(), String> {
        let (End::Code(_) | End::Signal(_), Some(user_ns), Some(system_ns)) =
            (self.end, self.io.user_ns, self.io.system_ns)
        else {
            return Ok(());
        };
        let counted = user_ns.saturating_add(system_ns) as f64;
        let cpus = if self.pressure.cpus == 0 { f64::INFINITY } else { self.pressure.cpus as f64 };
        // An infinite number of CPUs for no time is not a number; `min` then takes the other.
        // Nor do threads run for longer than the run; time of no thread stands for itself.
        let of_nobody: u64 = self.threads.iter().filter(|t| t.count == 0).map(|t| t.running_ns).sum();
        let threads = self.thread_count() as f64 * self.wall_ns as f64 + of_nobody as f64;
        let due = counted.min(self.wall_ns as f64 * cpus).min(threads);
        let running: f64 = self.threads.iter().map(|t| t.running_ns as f64).sum();
        if running + CPU_CLOCK_NS + tolerance * due < due {
            return Err(format!("threads ran for {running} ns, the kernel counted {counted} ns of CPU time"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
