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
use super::own_requests::ABOUT_ONE;
use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};
use crate::paces::{self, Pace};

pub(super) const RULE: Rule = Rule {
    id: FindingId::QueueDepthOne,
    claim: "one request at a time to a device",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, choices: repair::CHOICES, ..Repairs::one(repair::repaired) },
};

/// The transfer rate limits larger requests; more depth hardly helps.
const LARGE_BYTES: f64 = 262_144.0;
/// Where the order of requests was not seen: the device's own requests are this small when nothing is read ahead.
const SCATTERED_BYTES: f64 = 32_768.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;
/// With more announcements than this for each read, they are part of how the program reads.
const ANNOUNCED: f64 = 0.05;

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
    let threads = facts.concurrency(waiting);
    let depth = in_flight.map_or(threads, |n| n.max(1.0));
    if asked_at_once(facts, waiting, depth) > ABOUT_ONE {
        return None;
    }
    let parallel = facts.model.map(|m| m.device_parallelism).filter(|p| *p > 1.0);
    if parallel.is_some_and(|p| depth >= p) {
        return None;
    }
    let removable = removable(facts, waiting, parallel.map_or(0.0, |p| depth / p.max(depth)));
    let mut evidence = vec![format!(
        "{}: {} of wall time; {} at a time",
        facts.waits_in_words(sum, "wait for the device", "waits for the device"),
        say::percent(facts.wall_share(sum.wall_ns)),
        threads_words(threads)
    )];
    evidence.extend(in_flight.map(|n| {
        let beside = if n > ABOUT_ONE {
            ", with read-ahead and other requests that the program does not wait for"
        } else {
            ""
        };
        format!("the device had {n:.1} requests in flight while it was busy{beside}")
    }));
    evidence.extend(mean.map(|b| format!("its read requests are {} on average", say::bytes(b))));
    evidence.push(match parallel {
        Some(p) => format!("it serves {p:.1} requests at once (measured)"),
        None => "its parallelism was not measured (`iowhy DIR` measures it)".into(),
    });
    if let Some(slower) = slower(facts) {
        evidence.insert(1, slower);
    }
    let side = if reads >= writes { Side::Read } else { Side::Write };
    let order_known =
        facts.sequential_reads().or_else(|| share_of(facts.tally(Side::Write).sequential)).is_some();
    if !order_known {
        evidence.push("the order of the requests is unknown".to_owned());
    }
    Draft {
        id: FindingId::QueueDepthOne,
        cost_ns: sum.wall_ns,
        removable: Some(removable),
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

/// Requests that the program itself keeps in flight. Where each read waits for its own, these are the threads that wait at once: what else
/// is at the device is the kernel's read-ahead, which nobody waits for, and other programs. Rings and reads that are announced are seen
/// at the device alone.
fn asked_at_once(facts: &Facts<'_>, waiting: impl Fn(&Entry) -> bool, depth: f64) -> f64 {
    let announced = facts.counted_calls(&["fadvise64", "readahead", "madvise"]).unwrap_or(0.0);
    let reads = facts.calls(Side::Read).unwrap_or(0.0);
    let of_rings =
        facts.account.sum(|e| waiting(e) && matches!(e.class.operation, Operation::Ring | Operation::Aio));
    if of_rings.wall_ns > 0.0 || announced > ANNOUNCED * reads {
        return depth;
    }
    depth.min(facts.concurrency(waiting))
}

/// Where the device became slower: a rate that is a limit is one for any number of requests.
fn slower(facts: &Facts<'_>) -> Option<String> {
    let device = &facts.device()?.name;
    let slower = paces::slower(facts.profile.course.as_ref()?).into_iter().find(|of| of.device == *device)?;
    let each = |of: Pace| say::time(1e9 / of.per_second);
    Some(format!(
        "{device} took {} for each request from {} on, {} before (medians of steps of time): if a limit of the volume holds them back, more in flight only wait longer",
        each(slower.after),
        say::time(slower.at_ns as f64),
        each(slower.before)
    ))
}

fn threads_words(threads: f64) -> String {
    if threads < 1.05 { "one thread waits".into() } else { format!("{threads:.1} threads wait") }
}

/// Whether nothing but depth can help: direct requests out of order, or cached reads out of order.
fn scattered(facts: &Facts<'_>, mean: Option<f64>) -> bool {
    match facts.sequential_reads().or_else(|| share_of(facts.tally(Side::Write).sequential)) {
        Some(sequential) => sequential.value < MOSTLY,
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
         AsynchronousFileChannel. Where all places are known before the first read, read in their order: then the kernel reads ahead."
    }
    .to_owned();
    if !order_known {
        advice.push_str(
            " If the requests are sequential, larger ones (64 KiB or more) help as much and are simpler.",
        );
    }
    advice
}

/// The waits, of which this part is left where the device's parallelism is known, and the handing over: several requests at a time
/// are handed to the driver together, and their completions come together.
fn removable(facts: &Facts<'_>, waiting: impl Fn(&Entry) -> bool, left: f64) -> Removable {
    let moves = [Operation::Read, Operation::Write, Operation::Ring, Operation::Aio];
    let handing_over = |e: &Entry| {
        let claimed = facts.is_claimed(Side::Write) && e.class.operation == Operation::Write;
        e.busy && e.class.layer == Layer::Device && moves.contains(&e.class.operation) && !claimed
    };
    facts.removable(|e| if waiting(e) { 1.0 - left } else { f64::from(handing_over(e)) })
}
