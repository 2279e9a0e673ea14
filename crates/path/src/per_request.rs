//! Costs of one request from the totals of a round, and cells compared within rounds: the one definition of "busy", "wait"
//! and "rate".
//!
//! Invariant: a pair is two samples of the same round, so that drift cancels. Rounds without a completed request are left
//! out.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::model::Cost;
use iowhy_core::stats;

/// CPU time of the measuring threads for one request, in nanoseconds.
pub fn busy_ns(sample: &Sample) -> f64 {
    sample.cpu_ns as f64 / requests(sample)
}

/// Time off the CPU for one request, in nanoseconds: thread time less CPU time less the time spent runnable without
/// a CPU. May be slightly negative, because the three come from different clocks.
pub fn wait_ns(sample: &Sample) -> f64 {
    (sample.thread_ns as f64 - sample.cpu_ns as f64 - sample.run_delay_ns as f64) / requests(sample)
}

/// Thread time for one request without the time spent runnable without a CPU, in nanoseconds: busy and wait.
pub fn undisturbed_ns(sample: &Sample) -> f64 {
    (sample.thread_ns as f64 - sample.run_delay_ns as f64) / requests(sample)
}

/// Claimed bytes over wall time; zero for a round without wall time.
pub fn bytes_per_second(sample: &Sample) -> f64 {
    per_second(sample.claimed_bytes, sample)
}

/// Requests over wall time; zero for a round without wall time.
pub fn requests_per_second(sample: &Sample) -> f64 {
    per_second(sample.requests, sample)
}

/// Requests of the block layer for one request, where the device's counters are known.
pub fn device_requests(sample: &Sample) -> Option<f64> {
    sample.device_requests.map(|n| n as f64 / requests(sample))
}

/// Bytes the device moved for one request, where its counters are known.
pub fn device_bytes(sample: &Sample) -> Option<f64> {
    sample.device_bytes.map(|n| n as f64 / requests(sample))
}

/// Time that block-layer requests were under way for one request, where the device's counters are known.
pub fn device_request_ns(sample: &Sample) -> Option<f64> {
    sample.device_request_ns.map(|n| n as f64 / requests(sample))
}

/// Time that requests were under way in a stacked device (dm, md) and below it for one request, where there is one.
pub fn stack_request_ns(sample: &Sample) -> Option<f64> {
    sample.stack_request_ns.map(|n| n as f64 / requests(sample))
}

/// The rounds in which something was completed.
pub fn rounds(run: &CellRun) -> impl Iterator<Item = &Sample> {
    run.samples.iter().filter(|s| s.requests > 0)
}

/// A quantity of every round.
pub fn series(run: &CellRun, quantity: impl Fn(&Sample) -> f64) -> Vec<f64> {
    rounds(run).map(quantity).collect()
}

/// Median over the rounds with its seeded bootstrap interval; `None` without a completed round.
pub fn estimate(run: &CellRun, unit: Unit, quantity: impl Fn(&Sample) -> f64) -> Option<Estimate> {
    stats::bootstrap_median(&series(run, quantity), run.workload.seed, unit)
}

/// Median of the quantity over the rounds; `None` without a completed round.
pub fn median(run: &CellRun, quantity: impl Fn(&Sample) -> f64) -> Option<f64> {
    stats::median(&series(run, quantity))
}

/// The rounds whose thread time per request is the median: one, or the two in the middle of an even number. Real
/// rounds, so that the parts of each add up.
pub fn median_rounds(run: &CellRun) -> Vec<&Sample> {
    median_of_rounds(rounds(run).collect())
}

/// The same of some rounds, which may stand there more than once.
pub(crate) fn median_of_rounds(mut samples: Vec<&Sample>) -> Vec<&Sample> {
    samples.sort_by(|a, b| a.ns_per_request().total_cmp(&b.ns_per_request()));
    let (lower, upper) = (samples.len().saturating_sub(1) / 2, samples.len() / 2);
    samples.get(lower..=upper).unwrap_or_default().to_vec()
}

/// A quantity of two samples of the same round, for every round that both cells completed.
pub fn paired(a: &CellRun, b: &CellRun, quantity: impl Fn(&Sample, &Sample) -> f64) -> Vec<f64> {
    rounds(a)
        .filter_map(|x| rounds(b).find(|y| y.round == x.round).map(|y| quantity(x, y)))
        .filter(|v| v.is_finite())
        .collect()
}

/// Median of a paired quantity with its seeded bootstrap interval; `None` when the cells share no round.
pub fn paired_estimate(
    a: &CellRun,
    b: &CellRun,
    unit: Unit,
    quantity: impl Fn(&Sample, &Sample) -> f64,
) -> Option<Estimate> {
    stats::bootstrap_median(&paired(a, b, quantity), a.workload.seed, unit)
}

/// Pages that one request of `block_bytes` touches on average when requests follow one another without a gap:
/// `(b + p − gcd(b, p)) / p`. One for every power of two up to the page, exact multiples above it, and more than
/// the quotient for sizes that straddle pages.
pub fn mean_pages(block_bytes: u64, page_bytes: u64) -> f64 {
    let page_bytes = page_bytes.max(1);
    let block_bytes = block_bytes.max(1);
    (block_bytes + page_bytes - gcd(block_bytes, page_bytes)) as f64 / page_bytes as f64
}

/// CPU time of the block layer for a request that became `requests` block requests of `bytes` in all.
pub fn block_busy_ns(cost: &Cost, requests: f64, bytes: f64, page_bytes: u64) -> f64 {
    cost.per_call_ns * requests
        + cost.per_page_ns * bytes / page_bytes.max(1) as f64
        + cost.per_byte_ns * bytes
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn requests(sample: &Sample) -> f64 {
    sample.requests.max(1) as f64
}

fn per_second(count: u64, sample: &Sample) -> f64 {
    if sample.wall_ns == 0 { 0.0 } else { count as f64 * 1e9 / sample.wall_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Rounds;
    use iowhy_core::workload::{CacheState, Method, Workload};

    #[test]
    fn mean_pages_counts_look_ups() {
        // Walked by hand: 3000-byte requests in 4096-byte pages, over one period of 512 requests.
        let walked: u64 = (0..512u64).map(|k| (k * 3000 + 2999) / 4096 - k * 3000 / 4096 + 1).sum();
        assert!((mean_pages(3000, 4096) - walked as f64 / 512.0).abs() < 1e-12);
        assert_eq!(
            [512, 2048, 4096, 8192, 1 << 20].map(|b| mean_pages(b, 4096)),
            [1.0, 1.0, 1.0, 2.0, 256.0]
        );
        assert!(mean_pages(0, 0).is_finite());
    }

    #[test]
    fn only_samples_of_the_same_round_make_a_pair() {
        let cell = |rounds: &[u32], busy: f64| {
            let mut run = Rounds::new(Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20))
                .busy(busy)
                .build();
            run.samples.truncate(rounds.len());
            run.samples.iter_mut().zip(rounds).for_each(|(s, &r)| s.round = r);
            run
        };
        let (a, b) = (cell(&[1, 2, 3], 100.0), cell(&[3, 4, 1], 250.0));
        let pairs = paired(&a, &b, |x, y| busy_ns(y) / busy_ns(x));
        assert_eq!(pairs.len(), 2);
        assert!(pairs.iter().all(|r| (r - 2.5).abs() < 1e-6));
        assert!(paired_estimate(&a, &cell(&[9], 1.0), Unit::Ratio, |_, _| 1.0).is_none());
    }

    #[test]
    fn a_round_without_requests_is_left_out() {
        let mut run =
            Rounds::new(Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20)).busy(100.0).build();
        run.samples[0].requests = 0;
        assert_eq!(series(&run, busy_ns).len(), run.samples.len() - 1);
        run.samples.iter_mut().for_each(|s| s.requests = 0);
        assert!(median_rounds(&run).is_empty() && median(&run, busy_ns).is_none());
    }
}
