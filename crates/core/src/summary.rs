//! The numbers of one cell that people ask for first, each with its interval.
//!
//! Every estimate is a median over rounds: a round's own figure is a mean over its requests, so that cost and
//! throughput stay consistent with each other; the spread between rounds gives the interval.

use crate::cell::{CellRun, Sample};
use crate::estimate::{Estimate, Unit};
use crate::stats;

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
    /// Of `cpu_per_request`, user mode, by the kernel's own coarse split.
    pub cpu_user_per_request: Option<Estimate>,
    /// CPU time of all kernel threads while the cell ran, per request; theirs may have served others too.
    pub kernel_threads_per_request: Option<Estimate>,
    /// Spread of the rounds: median absolute deviation over the median of the time per request.
    pub noise_share: Option<f64>,
    /// Change of the time per request over the run, where a trend is statistically clear.
    pub drift_share: Option<f64>,
}

/// Summarises a cell; the bootstrap is seeded, so the same record gives the same intervals.
pub fn summarize(run: &CellRun, seed: u64) -> Summary {
    let median = |unit: Unit, value: &dyn Fn(&Sample) -> f64| {
        let values: Vec<f64> = run.samples.iter().map(value).collect();
        stats::bootstrap_median(&values, seed, unit)
    };
    let per_second = |count: u64, wall_ns: u64| count as f64 * 1e9 / wall_ns.max(1) as f64;
    let times: Vec<f64> = run.samples.iter().map(Sample::ns_per_request).collect();
    // Some requests move nothing by nature (`/dev/null`, the bare call): then there is no rate of bytes.
    let moved = run.samples.iter().all(|s| s.claimed_bytes > 0);
    let kernel_seen = run.samples.iter().all(|s| s.kernel_thread_ns.is_some());
    Summary {
        time_per_request: median(Unit::Nanoseconds, &Sample::ns_per_request),
        throughput: moved
            .then(|| median(Unit::BytesPerSecond, &|s| per_second(s.claimed_bytes, s.wall_ns)))
            .flatten(),
        requests_per_second: median(Unit::PerSecond, &|s| per_second(s.requests, s.wall_ns)),
        cpu_per_request: median(Unit::Nanoseconds, &|s| s.cpu_ns as f64 / s.requests.max(1) as f64),
        cpu_per_byte: moved
            .then(|| median(Unit::NanosecondsPerByte, &|s| s.cpu_ns as f64 / s.claimed_bytes.max(1) as f64))
            .flatten(),
        claimed_bytes: run.samples.iter().map(|s| s.claimed_bytes).sum(),
        device_bytes: run.samples.iter().map(|s| s.device_bytes).sum(),
        first_done: median(Unit::Nanoseconds, &|s| s.first_done_ns as f64),
        last_done: median(Unit::Nanoseconds, &|s| s.wall_ns as f64),
        cpu_user_per_request: median(Unit::Nanoseconds, &|s| s.cpu_user_ns as f64 / s.requests.max(1) as f64),
        kernel_threads_per_request: kernel_seen
            .then(|| {
                median(Unit::Nanoseconds, &|s| {
                    s.kernel_thread_ns.unwrap_or(0) as f64 / s.requests.max(1) as f64
                })
            })
            .flatten(),
        noise_share: stats::noise(&times),
        drift_share: stats::drift(&times).filter(|d| d.significant).map(|d| d.slope_share_over_run),
        lateness: run
            .workload
            .rate_per_second
            .and_then(|_| median(Unit::Nanoseconds, &|s| s.lateness_ns as f64 / s.requests.max(1) as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::StateCheck;
    use crate::workload::{CacheState, Method, Workload};

    fn run(times: &[u64]) -> CellRun {
        let sample = |(round, &ns): (usize, &u64)| Sample {
            round: round as u32,
            requests: 100,
            claimed_bytes: 100 * 4096,
            thread_ns: ns * 100,
            wall_ns: ns * 100,
            cpu_ns: ns * 50,
            cpu_user_ns: ns * 10,
            device_bytes: Some(4096),
            kernel_thread_ns: Some(200),
            ..Sample::default()
        };
        CellRun {
            workload: Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20),
            key: "x".into(),
            samples: times.iter().enumerate().map(sample).collect(),
            latency: crate::histogram::Histogram::default(),
            state_check: StateCheck::Verified,
            dropped: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn every_figure_follows_from_the_rounds() {
        let s = summarize(&run(&[1000, 1000, 1000, 1000, 1000]), 1);
        assert_eq!(s.time_per_request.unwrap().value, 1000.0);
        assert_eq!(s.requests_per_second.unwrap().value, 1e6);
        assert_eq!(s.throughput.unwrap().value, 4096.0 * 1e6);
        assert_eq!(s.cpu_per_request.unwrap().value, 500.0);
        assert_eq!(s.cpu_user_per_request.unwrap().value, 100.0);
        assert_eq!(s.kernel_threads_per_request.unwrap().value, 2.0);
        assert_eq!((s.claimed_bytes, s.device_bytes), (5 * 100 * 4096, Some(5 * 4096)));
        assert_eq!((s.noise_share, s.drift_share), (Some(0.0), None));
    }

    #[test]
    fn a_trend_is_drift_and_a_spread_is_noise() {
        let rising = summarize(&run(&[1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1100]), 1);
        assert!(rising.drift_share.unwrap() > 0.08, "{:?}", rising.drift_share);
        let spread = summarize(&run(&[1000, 1500, 900, 1400, 1000, 1600, 950, 1450]), 1);
        assert!(spread.noise_share.unwrap() > 0.1 && spread.drift_share.is_none());
    }

    #[test]
    fn too_few_rounds_give_no_number() {
        assert_eq!(summarize(&run(&[1000, 1000]), 1).time_per_request, None);
    }
}
