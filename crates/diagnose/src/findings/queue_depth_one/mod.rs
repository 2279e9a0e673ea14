//! The rule `queue-depth-one`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, share_of};
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, SavedTime, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::QueueDepthOne,
    claim: "one request at a time to a device",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::one(repair::repaired) },
};

/// Up to this queue depth requests count as one at a time.
const ABOUT_ONE: f64 = 1.6;
/// The transfer rate limits larger requests; more depth hardly helps.
const LARGE_BYTES: f64 = 262_144.0;
/// Where the order of requests was not seen: the device's own requests are this small when nothing is read ahead.
const SCATTERED_BYTES: f64 = 32_768.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let reads = facts.waiting(Operation::Read, Wait::DeviceRead).wall_ns;
    let writes = facts.waiting(Operation::Write, Wait::DeviceWrite).wall_ns;
    let in_flight = facts.in_flight_of(if reads >= writes { Side::Read } else { Side::Write });
    let waiting = |e: &Entry| match (e.class.operation, e.class.wait) {
        (Operation::Read, Some(Wait::DeviceRead)) => true,
        (Operation::Write, Some(Wait::DeviceWrite)) => !facts.is_claimed(Side::Write),
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
    let saved_time = saved_time(facts, waiting, depth, lanes);
    let mut evidence = vec![format!(
        "{}: {} of wall time; {} at a time",
        facts.waits_in_words(sum, "wait for the device", "waits for the device"),
        say::percent(facts.wall_share(sum.wall_ns)),
        threads_words(threads)
    )];
    evidence.extend(in_flight.map(|n| format!("the device had {n:.1} requests in flight while it was busy")));
    evidence.extend(mean.map(|b| format!("its read requests are {} on average", say::bytes(b))));
    evidence.push(match parallel {
        Some(p) => format!("it serves {p:.1} requests at once (measured)"),
        None => "its parallelism was not measured; 2 to 32 is assumed (`iowhy DIR` measures it)".into(),
    });
    let side = if reads >= writes { Side::Read } else { Side::Write };
    let order_known =
        facts.sequential_reads().or_else(|| share_of(facts.tally(Side::Write).sequential)).is_some();
    if !order_known {
        evidence.push("the order of the requests is unknown".to_owned());
    }
    Draft {
        id: FindingId::QueueDepthOne,
        cost_ns: sum.wall_ns,
        saved_time: Some(saved_time),
        sentence: format!(
            "Queue depth 1: {} of wall time waits for one request at a time{}",
            say::percent(facts.wall_share(sum.wall_ns)),
            // Only a measurement shows that the device has room for more.
            if parallel.is_some() { "; the device could serve several" } else { "" }
        ),
        evidence,
        advice: advice(facts.direct_share(side) >= MOSTLY, order_known),
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

fn advice(direct: bool, order_known: bool) -> String {
    let mut advice = if direct {
        "Keep several requests in flight: io_uring, or 4 to 16 threads (pread, pwrite). Read-ahead and hints about it do not \
         apply to O_DIRECT."
    } else {
        "Keep several requests in flight: read with 4 to 16 threads (pread), with io_uring, or announce the next reads with \
         posix_fadvise(POSIX_FADV_WILLNEED) or readahead(); in Python a ThreadPoolExecutor around os.pread, in Java \
         AsynchronousFileChannel."
    }
    .to_owned();
    if !order_known {
        advice.push_str(
            " If the requests are sequential, larger ones (64 KiB or more) help as much and are simpler.",
        );
    }
    advice
}

/// The waits become shorter by the number of lanes; batches of requests need less CPU time.
fn saved_time(facts: &Facts<'_>, waiting: impl Fn(&Entry) -> bool, depth: f64, lanes: Range) -> SavedTime {
    let waits_ns = facts.account.sum(&waiting).wall_ns;
    let saved = |lanes: f64| 1.0 - depth / lanes.max(depth);
    // Several requests at a time are handed to the driver together and their completions come together.
    let handing_over = |e: &Entry| {
        e.busy
            && e.class.layer == Layer::Device
            && matches!(
                e.class.operation,
                Operation::Read | Operation::Write | Operation::Ring | Operation::Aio
            )
            && !(facts.is_claimed(Side::Write) && e.class.operation == Operation::Write)
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
    let device_ns = waits_ns * (1.0 - saved(lanes.high));
    let overlapped = facts.account.wall_ns - device_ns.max((busy.wall_ns - 0.9 * handed.wall_ns) / cpus);
    SavedTime(Range::new(removed.low, removed.likely, removed.high.max(overlapped)))
}
