//! The rule `queue-depth-one`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, share_of};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, Savings, say, sync_per_write};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::QueueDepthOne, manual: include_str!("page.md"), judge };

/// Up to so many requests in flight count as one at a time.
const ABOUT_ONE: f64 = 1.6;
/// Requests larger than this are limited by the device's transfer rate, which depth does not raise much.
const LARGE_BYTES: f64 = 262_144.0;
/// Where the order of requests was not seen: the device's own requests are this small when nothing is read ahead.
const SCATTERED_BYTES: f64 = 32_768.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let reads = facts.waiting(Operation::Read, Wait::DeviceRead).wall_ns;
    let writes = facts.waiting(Operation::Write, Wait::DeviceWrite).wall_ns;
    let in_flight = facts.in_flight_of(if reads >= writes { Side::Read } else { Side::Write });
    let durable = sync_per_write::claims_writes(facts);
    let waiting = |e: &Entry| match (e.class.operation, e.class.wait) {
        (Operation::Read, Some(Wait::DeviceRead)) => true,
        // Writes that are made durable one by one wait for that.
        (Operation::Write, Some(Wait::DeviceWrite)) => !durable,
        (Operation::Ring | Operation::Aio, Some(Wait::Completion)) => in_flight.is_some(),
        _ => false,
    };
    let sum = facts.account.sum(waiting);
    let mean = facts.device_read_bytes_mean();
    if sum.wall_ns <= 0.0 || mean.is_some_and(|b| b >= LARGE_BYTES) || !scattered(facts, mean) {
        return None;
    }
    // The number that the program itself keeps in flight is at most the number of threads that wait at once; the
    // device's own number counts other programs too.
    let threads = facts.concurrency(waiting);
    let depth = in_flight.map_or(threads, |n| n.max(1.0));
    if depth > ABOUT_ONE {
        return None;
    }
    let parallel = facts.model.map(|m| m.device_parallelism).filter(|p| *p > 1.0);
    let lanes = match parallel {
        Some(p) => Range::new((0.6 * p).max(1.2), p, 1.3 * p),
        None => Range::new(2.0, 8.0, 32.0),
    };
    let saved = |lanes: f64| 1.0 - depth / lanes.max(depth);
    // Several requests at a time are handed to the driver together and their completions come together.
    let handing_over = |e: &Entry| {
        e.busy
            && e.class.layer == Layer::Device
            && matches!(
                e.class.operation,
                Operation::Read | Operation::Write | Operation::Ring | Operation::Aio
            )
            && !(durable && e.class.operation == Operation::Write)
    };
    let removed = facts
        .saved_without(|e| f64::from(waiting(e)))
        .part(Range::new(saved(lanes.low), saved(lanes.likely), saved(lanes.high)))
        .and(facts.saved_without(|e| f64::from(handing_over(e))).part(Range::new(0.0, 0.6, 0.9)))
        .0;
    // At best the CPU time that is left is shared by threads on all CPUs, and what the device takes goes on meanwhile.
    let cpus = facts.profile.pressure.cpus.max(1) as f64;
    let busy = facts.account.sum(|e| e.busy);
    let handed = facts.account.sum(handing_over);
    let device_ns = sum.wall_ns * (1.0 - saved(lanes.high));
    let overlapped = facts.account.wall_ns - device_ns.max((busy.wall_ns - 0.9 * handed.wall_ns) / cpus);
    let savings = Savings(Range::new(removed.low, removed.likely, removed.high.max(overlapped)));
    let mut evidence = vec![format!(
        "{}: {} of the wall time; {} at a time",
        facts.waits_in_words(sum, "wait for the device", "waits for the device"),
        say::percent(facts.wall_share(sum.wall_ns)),
        threads_words(threads)
    )];
    evidence.extend(in_flight.map(|n| format!("the device had {n:.1} requests in flight while it was busy")));
    evidence.extend(mean.map(|b| format!("its read requests are {} on average", say::bytes(b))));
    evidence.push(match parallel {
        Some(p) => format!("it was measured to serve {p:.1} requests at once"),
        None => "how many requests it serves at once was not measured: 2 to 32 is assumed (`iowhy DIR` measures it)".into(),
    });
    let side = if reads >= writes { Side::Read } else { Side::Write };
    let order_known =
        facts.sequential_reads().or_else(|| share_of(facts.tally(Side::Write).sequential)).is_some();
    let mut advice = if facts.direct_share(side) >= MOSTLY {
        "Keep several requests in flight: io_uring, or 4 to 16 threads (pread, pwrite). Read-ahead and hints about it do not \
         apply to O_DIRECT."
    } else {
        "Keep several requests in flight: read with 4 to 16 threads (pread), with io_uring, or announce what comes next \
         with posix_fadvise(POSIX_FADV_WILLNEED) or readahead(); in Python a ThreadPoolExecutor around os.pread, in Java \
         AsynchronousFileChannel."
    }
    .to_owned();
    if !order_known {
        evidence.push("whether the requests follow each other was not seen".to_owned());
        advice.push_str(
            " If the requests follow each other, larger ones (64 KiB or more) help as much and are simpler.",
        );
    }
    Draft {
        id: FindingId::QueueDepthOne,
        cost_ns: sum.wall_ns,
        savings: Some(savings),
        sentence: format!(
            "{} of the time goes in waiting for one request after the other; the device could serve several at once",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

fn threads_words(threads: f64) -> String {
    if threads < 1.05 { "one thread waits".into() } else { format!("{threads:.1} threads wait") }
}

/// Whether nothing but depth can help: direct requests out of order, or cached reads out of order.
fn scattered(facts: &Facts<'_>, mean: Option<f64>) -> bool {
    match facts.sequential_reads().or_else(|| share_of(facts.tally(Side::Write).sequential)) {
        Some(sequential) => sequential.likely < MOSTLY,
        None => mean.is_none_or(|b| b <= SCATTERED_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::findings::synthetic::{Run, access, looked, model, slow_and_repaired};

    /// Random reads of 4 KiB with so many in flight.
    fn random(depth: f64) -> Run {
        let mut run = Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.8)
            .busy(Operation::Read, Layer::Device, 0.2)
            .io((100_000, 409_600_000), (0, 0))
            .device_read(409_600_000)
            .file(8 << 30, |f| f.reads = access(1000, 4_096_000, 0))
            .device(0.8, depth, |d| (d.reads, d.read_bytes) = (100_000, 409_600_000));
        run.model = Some(model());
        run
    }

    #[test]
    fn random_reads_one_at_a_time_are_named_and_eight_at_a_time_not() {
        let found = slow_and_repaired(FindingId::QueueDepthOne, &random(1.0), &random(8.0));
        // By hand: four at once leave a quarter of 8 s of waiting and 0.4 of 2 s of handing over: 10 s becomes 2.8 s.
        assert!((found.gain.unwrap().predicted - 10.0 / 2.8).abs() < 1e-6, "{:?}", found.gain);
    }

    #[test]
    fn sequential_reads_want_read_ahead_and_large_ones_a_faster_device() {
        let mut run = random(1.0);
        run.profile.files[0].reads = access(1000, 4_096_000, 990);
        assert!(!run.ids().contains(&FindingId::QueueDepthOne));
        let mut run = random(1.0);
        run.profile.devices[0].reads = 100;
        assert!(!run.ids().contains(&FindingId::QueueDepthOne));
    }

    #[test]
    fn an_unknown_order_is_said_and_both_cures_are_named() {
        let mut run = random(1.0);
        run.profile.files.clear();
        let found = &run.findings()[0];
        assert!(found.advice.contains("If the requests follow each other"), "{found:?}");
        assert!(!random(1.0).findings()[0].advice.contains("If the requests follow"));
    }

    #[test]
    fn direct_requests_are_not_told_to_read_ahead() {
        let run = random(1.0).with(|p| p.files[0].reads.direct = looked(1000, 1000));
        let advice = &run.findings()[0].advice;
        assert!(advice.contains("io_uring") && !advice.contains("WILLNEED"), "{advice}");
    }

    #[test]
    fn an_unknown_device_widens_the_interval() {
        let known = random(1.0).findings()[0].gain.unwrap();
        let mut run = random(1.0);
        run.model = None;
        let unknown = run.findings()[0].gain.unwrap();
        assert!(unknown.low < known.low && unknown.high > known.high);
    }
}
