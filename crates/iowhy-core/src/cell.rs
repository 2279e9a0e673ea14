//! What came out of measuring one cell: raw per-round samples, and what was verified about them.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::workload::Workload;

/// Totals of one round of one cell: the raw material of every estimate. Times are sums over the cell's threads
/// unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round it was taken in; samples of one round may be compared as a pair.
    pub round: u32,
    /// Start, counted from the start of the measurement.
    pub start_ns: u64,
    /// Requests completed.
    pub requests: u64,
    /// Bytes that the requests claim to have moved.
    pub claimed_bytes: u64,
    /// Wall time from the common start to the last thread's end.
    pub wall_ns: u64,
    /// Wall time from the common start to the first thread's end.
    pub first_done_ns: u64,
    /// Thread time: for each thread its own elapsed time, summed.
    pub thread_ns: u64,
    /// CPU time of the measuring threads.
    pub cpu_ns: u64,
    /// Of which in user mode (the kernel's own split, coarser than `cpu_ns`).
    pub cpu_user_ns: u64,
    /// Time runnable but without a CPU.
    pub run_delay_ns: u64,
    /// CPU time of kernel threads over the round, where it can be seen.
    pub kernel_thread_ns: Option<u64>,
    /// Bytes the devices under the target moved in the direction of the cell, exactly at start and end.
    pub device_bytes: Option<u64>,
    /// Requests those devices completed in that direction.
    pub device_requests: Option<u64>,
    /// Sum over those requests of the time from request allocation to completion (1 ms grain over the round).
    pub device_request_ns: Option<u64>,
    /// Share of the region that was in the cache before, 0 to 1.
    pub resident_before: Option<f64>,
    /// Share after.
    pub resident_after: Option<f64>,
    /// Major faults of the measuring threads.
    pub major_faults: u64,
    /// Minor faults of the measuring threads.
    pub minor_faults: u64,
    /// Context switches that waited.
    pub voluntary_switches: u64,
    /// Context switches that were forced.
    pub involuntary_switches: u64,
    /// Time of one-off preparation inside the method (mapping, registering), not part of `thread_ns`.
    pub setup_ns: u64,
    /// Open loop: sum of lateness against the plan.
    pub lateness_ns: u64,
    /// Requests that the kernel first refused (RWF_NOWAIT: not in the cache).
    pub refused: u64,
}

impl Sample {
    /// Thread time per completed request, the quantity that layers are split from.
    pub fn ns_per_request(&self) -> f64 {
        self.thread_ns as f64 / self.requests.max(1) as f64
    }
}

/// How a claimed cache state stood up to verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum StateCheck {
    /// Seen before and after, and it was what the cell claims.
    Verified,
    /// Nothing to verify: no page cache is involved.
    NotApplicable,
    /// It was something else; the cell must not be reported as what it claims.
    Violated {
        /// What was seen, in words.
        reason: String,
    },
    /// It could not be seen.
    CannotTell {
        /// Why, and what would let us see.
        reason: String,
    },
}

/// All that was measured for one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRun {
    /// What was asked.
    pub workload: Workload,
    /// A short stable key, unique in the record.
    pub key: String,
    /// One sample a round.
    pub samples: Vec<Sample>,
    /// Latency of every request over all rounds.
    pub latency: Histogram,
    /// How the claimed cache state stood up.
    pub state_check: StateCheck,
    /// Options the method asked for and did not get, in words (`IOPOLL: EOPNOTSUPP`).
    pub dropped: Vec<String>,
    /// Why the cell failed, when it did; samples before the failure are kept.
    pub failure: Option<String>,
}
