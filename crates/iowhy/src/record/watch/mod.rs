//! The record of a watched program: the promised keys first, the raw profile last.
//!
//! Shares are of thread time unless said otherwise, and come with the 95 % interval that sampling leaves; where both
//! ends equal the value it was not sampled but measured. What may not enter: how it is shown.

mod build;
mod commands;
mod interval;
mod io;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;

pub use build::{Invocation, record};

use iowhy_core::environment::Environment;
use iowhy_core::finding::Finding;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{DeviceUse, End, FileUse, Limitation, Profile, Tier};
use iowhy_core::warning::Warning;

use crate::record::Kind;
use crate::record::phases::OverTime;
use crate::record::prove::Proof;
use crate::record::rank::RankRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found out about a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The program that was watched: its command line, or its number and name.
    pub subject: String,
    /// Who ran the program, where an option or sudo decided it; absent: the user who ran iowhy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_as: Option<RanAs>,
    /// Which process of a parallel job it was; absent outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankRecord>,
    /// Machine, and the device under the files that moved most bytes.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// From start to end.
    pub wall_s: f64,
    /// Life times of all threads together.
    pub thread_s: f64,
    /// Of it, time on a CPU.
    pub cpu_s: f64,
    /// Part of `wall_s` in which no thread ran, wanted to run or waited on the I/O path.
    pub idle_s: f64,
    /// How it ended; `null` when it still runs, or when that cannot be known.
    pub exit: Option<Exit>,
    /// Processes by command, those that took most of the wall clock first.
    pub processes: Vec<CommandRecord>,
    /// Threads that idle throughout: active for less than 1 % of their life, in at most ten sleeps. 0 if all do.
    pub idle_threads: u64,
    /// CPU time that the hypervisor took from all CPUs of the machine together; `null` where the kernel does not tell.
    pub stolen_s: Option<f64>,
    /// What could be seen.
    pub tier: Tier,
    /// What could not.
    pub limitations: Vec<Limitation>,
    /// What watching cost.
    pub observer: ObserverRecord,
    /// Bytes and calls.
    pub io: IoRecord,
    /// Thread time by layer, which sums to `thread_s`; the wall times sum to the run's `wall_s`.
    pub layers: Vec<LayerShare>,
    /// Thread time by what the program asked for, most first.
    pub operations: Vec<OperationRecord>,
    /// Sleeps by what they waited for, most first.
    pub waits: Vec<WaitRecord>,
    /// Part of the thread time whose layer is not known, 0 to 1.
    pub unexplained_share: f64,
    /// Part of the thread time that rests on recorded intervals, 0 to 1.
    #[serde(default)]
    pub seen_share: f64,
    /// The other part: inferred from the kernel's counters, from looks, or from the recorded time beside it.
    #[serde(default)]
    pub inferred_share: f64,
    /// Causes, most valuable first.
    pub findings: Vec<Finding>,
    /// What a run takes that finds its files in the page cache; absent where little of this one was waiting for them, where they came from
    /// devices more than once or past the page cache, or where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<ColdRecord>,
    /// Devices under the files, all their users together.
    pub devices: Vec<DeviceUse>,
    /// Threads, or pools of threads of one name, the longest-lived first.
    pub threads: Vec<ThreadRecord>,
    /// Functions of the program that asked for it, most time first.
    pub call_sites: Vec<CallSite>,
    /// How the program is started so that functions of its script have names on stacks; absent where they have, or where it is not known to
    /// run a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_of_scripts: Option<String>,
    /// The file of the program whose functions, next to its calls, have no names here although a tenth of the thread time or more is theirs.
    /// Most files of distributions are stripped; a file may also be gone, or not be readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_without_names: Option<String>,
    /// What happened over time; phases and pauses are those of the program's calls.
    #[serde(flatten)]
    pub over_time: OverTime,
    /// What became of the findings when they were tried (`--prove`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Everything that was seen.
    pub profile: Profile,
}

/// A run whose bytes came from devices, and hardly any of them twice. Inferred from the account of this run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColdRecord {
    /// Bytes that came from devices, without those from swap.
    pub device_bytes: u64,
    /// Of them inodes, directories and what else file systems keep beside files.
    pub metadata_bytes: u64,
    /// Memory of the machine or of the control group, without what a process of the program took at most; `null` where it is not known.
    pub memory_bytes: Option<u64>,
    /// Wall time of a run that finds them in the page cache, in seconds: no less than this; `null` where several threads work, so that it is
    /// not known.
    pub warm_low_s: Option<f64>,
    /// And no more than this.
    pub warm_high_s: f64,
}

/// The user who ran a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RanAs {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// `null`: the number has no entry in the user database.
    pub name: Option<String>,
}

impl RanAs {
    /// `as user alice (uid 1000)`
    pub fn words(&self) -> String {
        format!("as {}", iowhy_linux::identity::words(self.uid, self.name.as_deref()))
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// `None`: it still runs, or nobody was told.
    pub fn from_end(end: End) -> Option<Exit> {
        match end {
            End::Code(code) => Some(Exit::Code(code)),
            End::Signal(signal) => Some(Exit::Signal(signal)),
            End::Running | End::Gone => None,
        }
    }
}

/// What watching cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObserverRecord {
    /// CPU time of watching, in the watcher and in the program, over the wall time: 0.01 is 1 % of one CPU.
    pub cost_share: f64,
    /// Of it, CPU time of the watcher.
    pub own_cpu_s: f64,
    /// Of it, CPU time taken out of the program: events times their self-tested cost, or what samples at tracepoints show, where their
    /// 95 % interval lies above it.
    pub in_program_s: f64,
    /// Records that were read.
    pub events: u64,
    /// Records that the kernel lost.
    pub lost: u64,
    /// Part of the run in which every switch was recorded with its stack.
    pub switch_duty: f64,
    /// System calls that were recorded in their order, of those that were counted.
    pub recorded_calls: u64,
    /// Greatest resident memory of the watcher.
    pub peak_memory_bytes: Option<u64>,
}

/// Bytes and calls of the program, counted by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoRecord {
    /// Calls of the read and write families.
    pub calls: Option<u64>,
    /// Bytes they moved, to and from any kind of file.
    pub bytes: Option<u64>,
    /// Bytes that the program caused to move between memory and block devices.
    pub device_bytes: Option<u64>,
    /// Calls of the read family.
    pub read_calls: Option<u64>,
    /// Calls of the write family.
    pub write_calls: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
    /// Bytes fetched from devices, read-ahead included.
    pub device_read_bytes: Option<u64>,
    /// Bytes made dirty or written directly.
    pub device_written_bytes: Option<u64>,
    /// The same by kind of file, with `send` and `recv` on sockets; empty where calls were not all counted with their file.
    pub by_kind: Vec<KindRecord>,
    /// Requests through io_uring by operation, most first; empty where none was made or they were not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<RingRecord>,
    /// Part of the bytes read from regular files that did not come from a device, 0 to 1; at least, where read-ahead
    /// fetched what was not read. `null` where it cannot be known.
    pub cache_hit_share: Option<f64>,
    /// Page faults that began a read from a device.
    pub major_faults: Option<u64>,
    /// Files, most bytes first.
    pub files: Vec<FileUse>,
}

/// Requests of one operation through io_uring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingRecord {
    /// Which, as the manual of io_uring_enter(2) names it, in lower case.
    pub operation: String,
    /// Requests that were submitted.
    pub requests: u64,
    /// Mean time from submission to completion, of those that work on files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_s: Option<f64>,
    /// Bytes that those moved; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Calls and bytes of one kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindRecord {
    /// Which.
    pub kind: FileKind,
    /// Calls of the read family.
    pub read_calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Calls of the write family.
    pub write_calls: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// Kinds of files that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// Regular files, directories and block devices.
    Files,
    /// Sockets.
    Sockets,
    /// Pipes.
    Pipes,
    /// Terminals and other character devices.
    CharacterDevices,
    /// Event descriptors and others.
    Others,
}

/// The processes of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRecord {
    /// Their last name.
    pub command: String,
    /// How many.
    pub count: u64,
    /// CPU time.
    pub cpu_s: f64,
    /// Thread time asleep on the I/O path.
    pub path_wait_s: f64,
    /// Part of the wall clock in which their threads were active; an instant is shared among all threads active in it.
    pub wall_s: f64,
    /// The same as a part of the run.
    pub wall_share: f64,
    /// Bytes that they read themselves, from any kind of file; `null` where the counters of one of them could not be read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
    /// Syncs that succeeded.
    pub syncs: Option<u64>,
    /// Whom or what they slept for off the path, most first.
    pub waits_for: Vec<String>,
}

/// Time in a layer. Its share is of the whole that is split: the program's thread time, or that of an operation or a
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerShare {
    /// Which.
    pub id: Layer,
    /// On a CPU.
    pub busy_s: f64,
    /// Off it.
    pub wait_s: f64,
    /// Its part of the wall clock: an instant belongs to the threads active in it; an idle one to sleeps off the path.
    pub wall_s: f64,
    /// Part of the whole.
    pub share: f64,
    /// Lower end of the interval of `share`.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
}

/// Time of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// Which.
    pub id: String,
    /// Calls, where each was counted.
    pub calls: Option<u64>,
    /// Thread time.
    pub time_s: f64,
    /// Its part of the wall clock, idle time included: see `LayerShare`.
    pub wall_s: f64,
    /// Part of the program's thread time.
    pub share: f64,
    /// Lower end of the interval of `share`.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
    /// Samples and sleeps it rests on.
    pub events: u64,
    /// Where its time went; sums to `seconds`.
    pub layers: Vec<LayerShare>,
    /// What it waited for.
    pub waits: Vec<WaitRecord>,
}

/// Time asleep on one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitRecord {
    /// On what.
    pub id: String,
    /// The same in words.
    pub words: String,
    /// Whether it is on the path between the program and the disk.
    pub on_path: bool,
    /// Thread time.
    pub time_s: f64,
    /// Its part of the wall clock, idle time included: see `LayerShare`.
    pub wall_s: f64,
    /// Part of the program's thread time.
    pub share: f64,
    /// Sleeps that were seen.
    pub events: u64,
    /// Part of `time_s` in the layer `device`. Where requests were seen, it is the time in which one was at the device.
    #[serde(default)]
    pub device_s: f64,
    /// Part of `time_s` in which requests were in a queue of the block layer; 0 where none was seen.
    #[serde(default)]
    pub queued_s: f64,
    /// Part of it in which a request of another program was at the same device: delay that it caused.
    #[serde(default)]
    pub behind_others_s: f64,
    /// Part of `device_s` in which a request of another program was there too: an upper bound of further delay.
    #[serde(default)]
    pub beside_others_s: f64,
}

/// A thread, or a pool of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRecord {
    /// Its name.
    pub name: String,
    /// Its process; of a pool, one of them.
    pub pid: u32,
    /// Its number; of a pool, one of them.
    pub tid: u32,
    /// Threads that this entry stands for.
    pub count: u64,
    /// Time it existed.
    pub lifetime_s: f64,
    /// Time on a CPU.
    pub running_s: f64,
    /// Time without a CPU that it wanted.
    pub queued_s: f64,
    /// Time asleep.
    pub blocked_s: f64,
    /// Where its time went.
    pub layers: Vec<LayerShare>,
}

/// A function that led to a call site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caller {
    /// Its name.
    pub function: String,
    /// The file it is in.
    pub object: Option<String>,
}

/// A function of the program that asked the kernel for something, or computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSite {
    /// Name of the thread.
    pub thread: String,
    /// The innermost function with a name outside of the system's libraries.
    pub function: String,
    /// The file it is in.
    pub object: Option<String>,
    /// The functions that led there, innermost first, as far as one way there is that of more than half of its time. A function that calls
    /// itself is there once; functions of the system's and of standard libraries, and those without a name, are left out.
    pub callers: Vec<Caller>,
    /// The part of its time that came by all of them, in the stacks that were seen; no interval is known.
    pub callers_share: f64,
    /// What it asked for.
    pub operation: String,
    /// Thread time.
    pub time_s: f64,
    /// Its part of the wall clock, idle time included: see `LayerShare`.
    pub wall_s: f64,
    /// Part of the program's thread time.
    pub share: f64,
    /// Lower end of the interval of `share`.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
    /// Samples and sleeps it rests on.
    pub events: u64,
}
