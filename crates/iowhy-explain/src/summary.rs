//! The numbers of one cell that people ask for first, each with its interval.
//!
//! Every estimate is a median over rounds: a round's own figure is a mean over its requests, so that cost and
//! throughput stay consistent with each other; the spread between rounds gives the interval.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;

/// Summary of one cell; `None` where fewer rounds were measured than an interval needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Thread time per request: threads x elapsed / requests. At depth 1 the mean latency.
    pub time_per_request: Option<Estimate>,
    /// Bytes moved per second of wall time, all threads together.
    pub throughput: Option<Estimate>,
    /// Requests per second of wall time, all threads together.
    pub requests_per_second: Option<Estimate>,
    /// CPU time of the measuring threads per request.
    pub cpu_per_request: Option<Estimate>,
    /// CPU time of the measuring threads per byte.
    pub cpu_per_byte: Option<Estimate>,
    /// Bytes claimed over all rounds.
    pub claimed_bytes: u64,
    /// Bytes that the devices under the target moved, over all rounds.
    pub device_bytes: Option<u64>,
    /// First thread done, from the barrier, median over rounds.
    pub first_done: Option<Estimate>,
    /// Last thread done, from the barrier, median over rounds.
    pub last_done: Option<Estimate>,
    /// Mean lateness per request against the plan (open loop).
    pub lateness: Option<Estimate>,
}

/// Summarises a cell; the bootstrap is seeded, so the same record gives the same intervals.
pub fn summarize(run: &CellRun, seed: u64) -> Summary {
    let median = |unit: Unit, value: &dyn Fn(&Sample) -> f64| {
        let values: Vec<f64> = run.samples.iter().map(value).collect();
        stats::bootstrap_median(&values, seed, unit)
    };
    let per_second = |count: u64, wall_ns: u64| count as f64 * 1e9 / wall_ns.max(1) as f64;
    Summary {
        time_per_request: median(Unit::Nanoseconds, &Sample::ns_per_request),
        throughput: median(Unit::BytesPerSecond, &|s| per_second(s.claimed_bytes, s.wall_ns)),
        requests_per_second: median(Unit::PerSecond, &|s| per_second(s.requests, s.wall_ns)),
        cpu_per_request: median(Unit::Nanoseconds, &|s| s.cpu_ns as f64 / s.requests.max(1) as f64),
        cpu_per_byte: (run.samples.iter().all(|s| s.claimed_bytes > 0))
            .then(|| median(Unit::NanosecondsPerByte, &|s| s.cpu_ns as f64 / s.claimed_bytes.max(1) as f64))
            .flatten(),
        claimed_bytes: run.samples.iter().map(|s| s.claimed_bytes).sum(),
        device_bytes: run.samples.iter().map(|s| s.device_bytes).sum(),
        first_done: median(Unit::Nanoseconds, &|s| s.first_done_ns as f64),
        last_done: median(Unit::Nanoseconds, &|s| s.wall_ns as f64),
        lateness: run
            .workload
            .rate_per_second
            .and_then(|_| median(Unit::Nanoseconds, &|s| s.lateness_ns as f64 / s.requests.max(1) as f64)),
    }
}
