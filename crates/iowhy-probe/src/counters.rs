//! The kernel's own counters, read exactly at start and end: devices, this thread, kernel threads.

use crate::clock::Clock;

/// Totals of one or more block devices since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Read requests completed.
    pub read_requests: u64,
    /// Sum of their times from allocation to completion.
    pub read_ns: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Write requests completed.
    pub write_requests: u64,
    /// Sum of their times.
    pub write_ns: u64,
    /// Flush requests completed.
    pub flush_requests: u64,
    /// Sum of their times.
    pub flush_ns: u64,
    /// Time in which at least one request was in flight.
    pub busy_ns: u64,
}

impl DeviceCounters {
    /// What passed between an earlier reading and this one.
    #[must_use]
    pub fn since(&self, _earlier: &DeviceCounters) -> DeviceCounters {
        unimplemented!("helper: residency")
    }
}

/// Reads and sums the counters of the named devices (`vda`, `nvme0n1`, `dm-0`: leaf devices, so that nothing is
/// counted twice); `None` when one has none or iostats are off.
pub fn devices(_names: &[String]) -> Option<DeviceCounters> {
    unimplemented!("helper: residency")
}

/// What the calling thread has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, exact.
    pub cpu_ns: u64,
    /// Of which user mode, by the kernel's own (coarser) split.
    pub cpu_user_ns: u64,
    /// Time runnable without a CPU; 0 where schedstats cannot be read.
    pub run_delay_ns: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Context switches that waited.
    pub voluntary_switches: u64,
    /// Context switches that were forced.
    pub involuntary_switches: u64,
}

/// Reads the calling thread's usage; on a virtual clock its busy time and nothing else.
pub fn thread_usage(_clock: &Clock) -> ThreadUsage {
    unimplemented!("helper: residency")
}

/// CPU time of all kernel threads, kept open for cheap repeated readings.
#[derive(Debug)]
pub struct KernelThreads {}

impl KernelThreads {
    /// Finds the kernel threads that can be seen; `None` when none can.
    pub fn open() -> Option<Self> {
        unimplemented!("helper: residency")
    }

    /// Sum of their CPU time so far, in nanoseconds.
    pub fn cpu_ns(&mut self) -> u64 {
        unimplemented!("helper: residency")
    }
}
