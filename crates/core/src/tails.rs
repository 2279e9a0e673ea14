//! The calls of a program by their time, and its slow calls wait by wait: what was seen. Raw facts: which layer a stack belongs to is
//! decided elsewhere.
//!
//! Invariant: of a slow call, running, queued and asleep sum to its time; its waits sum to no more than the time asleep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::machine::{Caused, Subject};

/// A watch of a program's calls. Subjects, stacks and devices are referred to by index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailsProfile {
    /// Process that was watched, with its threads and children.
    pub pid: u32,
    /// Operation of the condition.
    pub operation: String,
    /// A call of that operation that takes longer is an event, in nanoseconds.
    pub limit_ns: u64,
    /// How long it was watched, in nanoseconds.
    pub wall_ns: u64,
    /// Why it ended.
    pub ended: Ended,
    /// All calls by operation.
    pub operations: Vec<OperationTimes>,
    /// Calls that took longer than the limit, those beyond the number that was asked for included.
    pub over: u64,
    /// The first of these, in the order of their ends.
    pub events: Vec<SlowCall>,
    /// The slowest calls of the operation, slowest first, whether or not they exceed the limit.
    pub slowest: Vec<SlowCall>,
    /// Processes, kernel threads by name, and pools of those beyond the bound.
    pub subjects: Vec<Subject>,
    /// Kernel functions, innermost first.
    pub stacks: Vec<Vec<String>>,
    /// Names of block devices.
    pub devices: Vec<String>,
    /// What is not seen on this kernel.
    pub gaps: Vec<String>,
    /// What did not fit, and what was lost.
    pub lost: TailsLost,
    /// CPU time of iowhy itself, in nanoseconds.
    pub own_cpu_ns: u64,
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EndOfWatch")]
pub enum Ended {
    /// As many events as were asked for.
    #[default]
    Events,
    /// Its time was over.
    Time,
    /// The process ended.
    Process,
    /// Somebody interrupted.
    Interrupted,
}

/// Times of all calls of an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTimes {
    /// Operation.
    pub operation: String,
    /// Calls that failed; they are among the times.
    pub failed: u64,
    /// The times. Buckets are at most 1/128 of their value wide.
    pub times: Histogram,
}

/// A call, from its entry to its return.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowCall {
    /// System call.
    pub call: String,
    /// When it began, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// Its time, in nanoseconds.
    pub time_ns: u64,
    /// Index into `subjects`: its process.
    pub subject: u32,
    /// Its thread.
    pub tid: u32,
    /// Name of the thread.
    pub thread: String,
    /// Path of its file when it was first met, or what the file is; `null`: the call names none by a descriptor, or failed.
    pub file: Option<String>,
    /// Error with which it failed.
    pub error: Option<String>,
    /// On a CPU, in nanoseconds.
    pub running_ns: u64,
    /// Able to run, without a CPU.
    pub queued_ns: u64,
    /// Asleep.
    pub asleep_ns: u64,
    /// Waits that were lost or could not be told apart: they are in `asleep_ns` alone.
    pub waits_lost: u64,
    /// What it slept for.
    pub waits: Vec<CallWait>,
    /// Devices in the seconds around it, in their order; of events only.
    pub seconds: Vec<Second>,
}

/// Waits of one call with one stack, on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallWait {
    /// Index into `stacks`; `null`: the stack is not known.
    pub stack: Option<u32>,
    /// Index into `devices`: the device whose request ended the wait, or that the thread which ended it had waited for itself.
    pub device: Option<u32>,
    /// Index into `subjects`: the process or thread of the kernel that ended the wait, where no request of a device did.
    pub ended_by: Option<u32>,
    /// Waits.
    pub count: u64,
    /// Their time, in nanoseconds.
    pub time_ns: u64,
    /// The part in which the request that ended the wait was in the queue of the device.
    pub queue_ns: u64,
    /// The part in proportion to requests of others at the device, by subject.
    pub caused: Vec<Caused>,
    /// What the thread of the kernel that ended it waited for meanwhile.
    pub helper: Vec<HelperWait>,
}

/// Waits of a thread of the kernel while somebody waited for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelperWait {
    /// Index into `stacks`.
    pub stack: Option<u32>,
    /// Index into `devices`.
    pub device: Option<u32>,
    /// Index into `subjects`: the process whose data the request held whose end woke the thread.
    pub data_of: Option<u32>,
    /// Time, in nanoseconds.
    pub time_ns: u64,
}

/// A second of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// When it began, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// Calls of the operation that returned.
    pub calls: u64,
    /// Devices with requests.
    pub devices: Vec<DeviceSecond>,
}

/// A device in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSecond {
    /// Index into `devices`.
    pub device: u32,
    /// Requests that were done.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of the times of requests in the queue, in nanoseconds.
    pub queue_ns: u64,
    /// Sum of the times at the device.
    pub service_ns: u64,
    /// Who made most of them: index into `subjects`, requests.
    pub users: Vec<(u32, u64)>,
}

/// What did not fit. All 0: nothing is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TailsLost {
    /// Calls that were not timed: the table of those under way was full.
    pub calls: u64,
    /// Calls of 32-bit programs, which are not timed.
    pub compat: u64,
    /// Slow calls that were not told: the buffer was full.
    pub told: u64,
    /// Waits of the machine that were not followed or told.
    pub waits: u64,
    /// Events of block requests that were lost, and requests that there was no room to remember.
    pub requests: u64,
    /// Waits of slow calls without a stack: another one had its place in the kernel's table, or that was just given back.
    pub stacks: u64,
    /// Events of processes that share an entry of their name: there were too many.
    pub pooled: u64,
}
