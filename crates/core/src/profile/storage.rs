//! Counters of processes and devices, and what the block layer showed.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Exact counters of the program, from the kernel's own accounting (`/proc/PID/io`, rusage), children included.
/// A counter that could not be read is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoCounters {
    /// Calls of the read family (read, pread, readv, sendfile, ...; not mapped or ring reads on all kernels).
    pub read_calls: Option<u64>,
    /// Calls of the write family.
    pub write_calls: Option<u64>,
    /// Bytes those reads returned, from any kind of file: pipes, terminals and sockets too.
    pub read_bytes: Option<u64>,
    /// Bytes those writes took.
    pub written_bytes: Option<u64>,
    /// Bytes that the program caused to be fetched from block devices, read-ahead included.
    pub device_read_bytes: Option<u64>,
    /// Bytes that the program made dirty or wrote to block devices directly. A page that is made dirty again counts
    /// again, with its whole folio: it may be many times what reached a device.
    pub device_written_bytes: Option<u64>,
    /// Page faults that needed no device.
    pub minor_faults: Option<u64>,
    /// Page faults that began a read from a device. One that waits for what another began is a minor fault.
    pub major_faults: Option<u64>,
    /// CPU time in user mode (precise sum, split by ticks).
    pub user_ns: Option<u64>,
    /// CPU time in the kernel.
    pub system_ns: Option<u64>,
    /// Largest resident memory of any one process.
    pub peak_memory_bytes: Option<u64>,
}

/// What the threads of one process did, without its children: calls as the observer counted them, and of devices the kernel's
/// counters of each thread (task_io_accounting). Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnIo {
    /// Calls that read from files and block devices; sockets, pipes and terminals are in `kinds` of the profile.
    pub read_calls: u64,
    /// Calls that wrote to files and block devices.
    pub write_calls: u64,
    /// Bytes read from files and block devices.
    pub read_bytes: u64,
    /// Bytes written to files and block devices.
    pub written_bytes: u64,
    /// Bytes fetched from block devices.
    pub device_read_bytes: u64,
    /// Bytes made dirty, or written to block devices directly.
    pub device_written_bytes: u64,
    /// Calls of fsync and fdatasync that succeeded.
    pub syncs: u64,
}

impl OwnIo {
    /// Field by field.
    pub fn plus(self, more: OwnIo) -> OwnIo {
        self.with(more, u64::saturating_add)
    }

    /// Field by field, not below 0.
    pub fn minus(self, less: OwnIo) -> OwnIo {
        self.with(less, u64::saturating_sub)
    }

    fn with(self, other: OwnIo, of: impl Fn(u64, u64) -> u64) -> OwnIo {
        OwnIo {
            read_calls: of(self.read_calls, other.read_calls),
            write_calls: of(self.write_calls, other.write_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
            device_read_bytes: of(self.device_read_bytes, other.device_read_bytes),
            device_written_bytes: of(self.device_written_bytes, other.device_written_bytes),
            syncs: of(self.syncs, other.syncs),
        }
    }
}

/// One block device over the time of watching, all users together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Kernel name such as `nvme0n1`.
    pub name: String,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Sum of their times, queueing in the block layer included.
    pub read_ns: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Sum of their times.
    pub write_ns: u64,
    /// Cache flushes completed.
    pub flushes: u64,
    /// Sum of their times.
    pub flush_ns: u64,
    /// Time in which at least one request was in flight.
    pub busy_ns: u64,
    /// Whether the kernel believes it rotates.
    pub rotational: Option<bool>,
    /// Its read-ahead window.
    pub read_ahead_bytes: Option<u64>,
    /// Requests its queue admits.
    pub queue_requests: Option<u64>,
    /// Its active scheduler.
    pub scheduler: Option<String>,
    /// A configured limit that applies to the program on it, in words.
    pub throttle: Option<String>,
    /// How long more was asked of it than its provider allows; absent where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_limit: Option<OverLimit>,
}

/// Time in which more was asked of a volume than its provider allows, by the volume's own count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverLimit {
    /// More requests a second than the volume's limit.
    pub volume_requests_ns: u64,
    /// More bytes a second than the volume's limit.
    pub volume_bytes_ns: u64,
    /// More requests a second than the machine may send to all its volumes.
    pub machine_requests_ns: u64,
    /// More bytes a second than that.
    pub machine_bytes_ns: u64,
}

impl OverLimit {
    /// What was added since an earlier count; nothing of what ran backwards.
    pub fn since(self, earlier: OverLimit) -> OverLimit {
        OverLimit {
            volume_requests_ns: self.volume_requests_ns.saturating_sub(earlier.volume_requests_ns),
            volume_bytes_ns: self.volume_bytes_ns.saturating_sub(earlier.volume_bytes_ns),
            machine_requests_ns: self.machine_requests_ns.saturating_sub(earlier.machine_requests_ns),
            machine_bytes_ns: self.machine_bytes_ns.saturating_sub(earlier.machine_bytes_ns),
        }
    }

    /// The limit that was exceeded longest, in words, and for how long.
    pub fn longest(self) -> Option<(&'static str, u64)> {
        let all = [
            ("the volume's limit of requests a second", self.volume_requests_ns),
            ("the volume's limit of bytes a second", self.volume_bytes_ns),
            ("the machine's limit of requests a second to its volumes", self.machine_requests_ns),
            ("the machine's limit of bytes a second to its volumes", self.machine_bytes_ns),
        ];
        all.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0)
    }
}

/// Requests seen between the block layer and the devices. Means are over matched pairs of the program's
/// own requests; where it has none (it left writing to the kernel), of those of kernel threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSample {
    /// Requests issued on behalf of the program's own threads.
    pub own_requests: u64,
    /// Bytes of those that read.
    pub own_read_bytes: u64,
    /// Read requests among them.
    pub own_reads: u64,
    /// Bytes of those that read because read-ahead asked.
    pub own_read_ahead_bytes: u64,
    /// Bytes of those that read what the file system keeps beside the contents of files: inodes, directories, maps of blocks. Those that were
    /// read for the program's own use of a block device through the page cache are among them.
    #[serde(default, skip_serializing_if = "super::calls::is_zero")]
    pub own_metadata_bytes: u64,
    /// Bytes of those that wrote.
    pub own_written_bytes: u64,
    /// Requests issued by kernel threads (write-back, journal).
    pub kernel_requests: u64,
    /// Mean time from insertion into the queue to issue, where both were seen.
    pub queue_ns: Option<f64>,
    /// Mean time from issue to completion, where both were seen.
    pub device_ns: Option<f64>,
    /// Pairs the two means rest on.
    pub pairs: u64,
    /// Time at the device of those pairs in which no request of another program was there. Absent: there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<DeviceTime>,
    /// The same of those pairs in which one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_others: Option<DeviceTime>,
    /// Mean number of requests in flight while at least one was.
    pub in_flight: Option<f64>,
    /// Read requests of the program that began where the one before on that device ended.
    pub own_reads_adjacent: u64,
    /// Requests of other programs, the one that delayed the program most first, then by requests.
    pub others: Vec<OtherUser>,
    /// Whether completions could be seen (some kernels lose those that arrive on an idle CPU).
    pub completions_seen: bool,
}

/// Mean time of requests at the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTime {
    /// The mean.
    pub mean_ns: f64,
    /// Its standard error, as if the times were independent of each other.
    pub error_ns: f64,
    /// Requests it rests on.
    pub n: u64,
}

/// Requests on rings of io_uring, by looks at `/proc/PID/fdinfo`: also those that a limit holds back before they reach a
/// device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingUse {
    /// Rounds of looks at which a ring had requests in flight.
    pub looks: u64,
    /// Requests that the kernel had taken and not completed, on all rings together: the median of these rounds.
    pub in_flight: f64,
    /// Requests by operation, most first; empty where they could not be followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RingRequests>,
}

/// Requests of one operation on rings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingRequests {
    /// The operation, as the manual of io_uring_enter(2) names it, in lower case: `read`, `recv`, `fsync`.
    pub operation: String,
    /// Requests that were submitted. One that completes many times counts once.
    pub requests: u64,
    /// Of those that work on files: how many completed.
    pub done: u64,
    /// The time of those from submission to completion.
    pub time_ns: u64,
    /// Bytes that those of them moved that read or write.
    #[serde(default, skip_serializing_if = "super::calls::is_zero")]
    pub bytes: u64,
}

/// Another program that used the devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherUser {
    /// Its name; `others` for all that are not told apart.
    pub name: String,
    /// Its process number; 0 where the entry stands for several.
    pub pid: u32,
    /// Its command line when its first request was seen, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether it is iowhy itself, which read the program's files for names and frames while it watched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch: bool,
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sleeping time of the program's threads while their request was queued and one of this program was at the same
    /// device. The threads' sleeps are added up. Absent: completions were not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<u64>,
    /// The same while both were at the device: an upper bound of the delay, because a device works for several at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_ns: Option<u64>,
}

/// Other threads of one name that ran on the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherOnCpu {
    /// Their name.
    pub name: String,
    /// The process of one of them.
    pub pid: u32,
    /// The command line of that process when it was first seen, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether they are threads of the kernel.
    pub kernel: bool,
    /// Part of the busy CPU time of the machine that was theirs, 0 to 1, by samples.
    pub share: f64,
    /// Samples that hit them.
    pub samples: u64,
}

/// Pressure from outside the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Part of the CPU time of the machine that was used by others (not the program, not the watcher), 0 to 1.
    pub others_cpu_share: Option<f64>,
    /// Who the others were, as far as a clock on every CPU hit them: most first, a few at most, pooled by name. Empty
    /// where there was no such clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_on_cpu: Vec<OtherOnCpu>,
    /// CPUs that the program may use.
    pub cpus: u64,
    /// Physical memory, or the control group's limit where that is lower.
    pub memory_bytes: Option<u64>,
    /// Time that the control group spent throttled for CPU.
    pub cpu_throttled_ns: Option<u64>,
    /// The control group's CPU limit in CPUs.
    pub cpu_limit: Option<f64>,
    /// Time stolen by the hypervisor from all CPUs.
    pub stolen_ns: Option<u64>,
    /// What the kernel counted of memory that was short, while the program ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
}

/// Counters of short memory from start to end: of the control group whose memory limit is the smallest one above the
/// program, else of the whole machine. All users of that group, or of the machine, together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// Directory of that group; absent: the whole machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Times that the group was at its limit and memory had to be freed first (`max` of `memory.events`; `memory.failcnt`
    /// in version 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_limit: Option<u64>,
    /// Times that a process was killed for want of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed: Option<u64>,
    /// Pages of files that were read again soon after their eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted_file_pages: Option<u64>,
    /// Pages of other memory that were swapped in soon after they had been swapped out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted_anon_pages: Option<u64>,
    /// Pages that were taken from where they were because memory was short: by reclaim in the background and by threads that wanted memory, not
    /// what somebody asked to be freed. Absent: not counted (control groups of version 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_pages: Option<u64>,
    /// Pages that were swapped in; of the whole machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_in_pages: Option<u64>,
}
