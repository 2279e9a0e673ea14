//! What was seen of a whole machine: who waited, on which device, beside whose requests, and what the kernel's own pressure
//! figures (PSI) say of the same time. Raw facts: which layer a stack belongs to is decided elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Course;

/// A watch of the whole machine. Subjects, devices and stacks are referred to by index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineProfile {
    /// How long it was watched, in nanoseconds.
    pub wall_ns: u64,
    /// CPUs that were online.
    pub cpus: u64,
    /// Somebody ended it before its time.
    pub interrupted: bool,
    /// It ended itself before its time, since it took too much of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_exceeded: Option<OverheadExceeded>,
    /// What PSI counted meanwhile; `null`: this kernel has none.
    pub counted: Option<Stalls>,
    /// The same, computed from the waits of each task by PSI's own rules.
    pub computed: Stalls,
    /// Why a figure of `computed` is missing or too small.
    pub gaps: Vec<String>,
    /// Processes, kernel threads by name, and pools of those beyond the bound.
    pub subjects: Vec<Subject>,
    /// Their waits.
    pub waits: Vec<Wait>,
    /// Kernel functions, innermost first.
    pub stacks: Vec<Vec<String>>,
    /// Block devices with requests.
    pub devices: Vec<Device>,
    /// The machine in steps of time, and the control group that was asked about; with `--live` from the beginning of the watch on. Absent from
    /// a watch shorter than a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// What did not fit, and what was lost.
    pub lost: Lost,
    /// What watching cost.
    pub cost: Cost,
}

/// Stall times as `/proc/pressure` counts them, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// At least one task was runnable without a CPU.
    pub cpu_some_ns: f64,
    /// At least one task waited for I/O.
    pub io_some_ns: f64,
    /// Tasks waited for I/O, and none ran.
    pub io_full_ns: f64,
    /// At least one task waited for memory.
    pub memory_some_ns: f64,
    /// Tasks waited for memory, and none ran for another purpose.
    pub memory_full_ns: f64,
}

/// Who waits, and who causes waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Process id; 0: kernel threads of one name, or a pool of processes.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its control groups in all hierarchies, each path once; none: the root, or not known.
    pub groups: Vec<String>,
    /// A thread of the kernel.
    pub kernel: bool,
    /// Its part of PSI's I/O stall: what several tasks of a CPU wait for at once is shared equally.
    pub io_some_ns: f64,
    /// Its part of PSI's memory stall.
    pub memory_some_ns: f64,
    /// Its threads were runnable without a CPU, in thread nanoseconds. Of threads that lived at both ends.
    pub queued_ns: u64,
    /// Its threads ran, in thread nanoseconds. Of threads that lived at both ends.
    pub cpu_ns: u64,
}

/// Waits of one subject with one stack, on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Index into `subjects`.
    pub subject: u32,
    /// Index into `stacks`; `null`: the stack is not known.
    pub stack: Option<u32>,
    /// Index into `devices`: the device whose request ended the wait, or that the thread which ended it had waited for itself.
    pub device: Option<u32>,
    /// Index into `subjects`: the process that ended the wait.
    pub ended_by: Option<u32>,
    /// A task freed memory itself; it may have been running.
    pub reclaim: bool,
    /// Waits.
    pub count: u64,
    /// Their time, in thread nanoseconds.
    pub time_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// Of `time_ns`, the part in which nobody's request was at the device or in its queue.
    pub without_requests_ns: f64,
    /// Of `time_ns`, the part in proportion to requests of others at the device, by subject.
    pub caused: Vec<Caused>,
}

/// A part of a wait that another subject caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caused {
    /// Index into `subjects`.
    pub subject: u32,
    /// Thread nanoseconds.
    pub time_ns: f64,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Major and minor number.
    pub number: (u32, u32),
    /// Its name; the number where sysfs has none.
    pub name: String,
    /// Mount points on it, first ones only.
    pub mounts: Vec<String>,
    /// Requests that were done.
    pub reads: u64,
    /// Writes that were done.
    pub writes: u64,
    /// Flushes, discards and the rest.
    pub others: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Sum of the times of requests in the queue of the scheduler, in nanoseconds.
    pub queue_ns: u64,
    /// Sum of the times at the device of those that were done.
    pub service_ns: u64,
    /// Time at the device of all requests, those under way included, as far as it lies inside of the watch: divided by the time of the
    /// watch, the requests there on average.
    pub in_flight_ns: u64,
    /// Time in which at least one request was at the device.
    pub busy_ns: u64,
    /// Requests by subject.
    pub users: Vec<DeviceUser>,
}

/// Requests of one subject at a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUser {
    /// Index into `subjects`.
    pub subject: u32,
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that a kernel thread made of pages that this subject had written.
    pub written_back: u64,
}

/// What did not fit. All 0: nothing is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Waits that the kernel's table had no room for.
    pub waits: u64,
    /// Waits whose end was not told: the buffer was full.
    pub events: u64,
    /// Events of requests that found the buffer full, and requests that there was no room to remember.
    pub requests: u64,
    /// Waits without a stack: another one had its place in the kernel's table, or that was just given back.
    pub stacks: u64,
    /// Events of processes that were put into a pool of their name: there were too many.
    pub pooled: u64,
    /// Requests whose owner is not told apart at the device: it had too many.
    pub owners: u64,
    /// Waits that were put into a row without stack and device.
    pub rows: u64,
}

impl Lost {
    /// What was lost since.
    #[must_use]
    pub fn since(&self, earlier: &Lost) -> Lost {
        Lost {
            waits: self.waits.saturating_sub(earlier.waits),
            events: self.events.saturating_sub(earlier.events),
            requests: self.requests.saturating_sub(earlier.requests),
            stacks: self.stacks.saturating_sub(earlier.stacks),
            pooled: self.pooled.saturating_sub(earlier.pooled),
            owners: self.owners.saturating_sub(earlier.owners),
            rows: self.rows.saturating_sub(earlier.rows),
        }
    }
}

/// What watching cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MachineCost")]
pub struct Cost {
    /// CPU time of iowhy itself.
    pub own_cpu_ns: u64,
    /// Waits that were told.
    pub waits: u64,
    /// What the observer's programs took in the kernel, as a share of the time of all CPUs; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<TimedShare>,
    /// Why the kernel does not tell that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer_unknown: Option<String>,
}

/// A share, from samples at random times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedShare {
    /// The mean of the samples.
    pub share: f64,
    /// Its 95 % interval; `null`: fewer than 5 samples.
    pub interval: Option<[f64; 2]>,
    /// How many.
    pub samples: u64,
    /// How long one is, in nanoseconds, on average.
    pub sample_ns: u64,
}

/// A watch took more of the machine than was allowed, and ended itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverheadExceeded {
    /// Share of the time of all CPUs, of the last three seconds, in iowhy itself: counted.
    pub own_share: f64,
    /// In its programs in the kernel: sampled. `null`: not known, and not in what was exceeded.
    pub observer_share: Option<f64>,
    /// In how many samples.
    pub samples: u64,
    /// What was allowed.
    pub limit: f64,
}

impl OverheadExceeded {
    /// What is known of both.
    pub fn share(&self) -> f64 {
        self.own_share + self.observer_share.unwrap_or(0.0)
    }
}
