//! The rule `small-requests`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{PAGE_BYTES, Side, share_of};
use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::SmallRequests,
    claim: "many calls for few bytes: the calls are the cost",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs {
        others: repair::others,
        choices: repair::CHOICES,
        ..Repairs::of_calls(repair::repaired)
    },
};

/// Requests of more than this are not called small.
const SMALL_BYTES: f64 = 16_384.0;
/// Direct I/O is the habit of the program from this share of its calls on.
const MOSTLY: f64 = 0.5;

/// Below this many bytes, what was not named within a call is hardly the copy.
const TINY_BYTES: f64 = 1024.0;

/// One side of the traffic.
struct Finds {
    cost_ns: f64,
    evidence: Vec<String>,
    calls: f64,
    mean: f64,
    side: Side,
    /// Part of the calls that follow each other; all where that is not known, or there is no order.
    mergeable: f64,
    mergeable_at_most: f64,
    order_known: bool,
    /// Pages that each take several of the calls, where that is more than the calls in order.
    pages: Option<f64>,
    /// Part of them whose size the program chooses.
    sizable: f64,
    /// Part of the entries into the kernel that are these calls'.
    entry_part: f64,
    direct: bool,
}

impl Finds {
    /// The part of an entry that goes if this part of the calls is merged.
    fn part(&self, e: &Entry, mergeable: f64) -> f64 {
        if is_entering(e) {
            mergeable * self.sizable * self.entry_part
        } else if self.is_per_call(e) {
            let of_page = !self.direct && e.class.layer == Layer::Cache;
            // Each call looks its page up: of a page that takes several calls, one look-up stays.
            mergeable * self.sizable * if of_page { (1.0 - self.mean / PAGE_BYTES).max(0.0) } else { 1.0 }
        } else if self.waits(e) && self.order_known {
            // Only requests that follow each other become one request of the device.
            mergeable
        } else {
            0.0
        }
    }

    /// Whether the time of an entry on a CPU is paid per call. With O_DIRECT that is all but the copy.
    fn is_per_call(&self, e: &Entry) -> bool {
        let layer = e.class.layer;
        let per_call = matches!(layer, Layer::Call | Layer::Filesystem | Layer::Cache)
            || (self.direct && layer != Layer::Copy)
            || (self.mean <= TINY_BYTES && matches!(layer, Layer::Unexplained | Layer::Elsewhere));
        e.busy && e.class.operation == self.side.operation() && per_call
    }

    /// The part of an entry that is copying of less than a page.
    fn copying(&self, e: &Entry) -> f64 {
        let copies = e.busy && e.class.operation == self.side.operation() && e.class.layer == Layer::Copy;
        if copies && self.mean <= PAGE_BYTES { self.sizable } else { 0.0 }
    }

    /// Whether an entry is a wait for the device of a direct request.
    fn waits(&self, e: &Entry) -> bool {
        self.direct
            && e.class.operation == self.side.operation()
            && matches!(e.class.wait, Some(Wait::DeviceRead | Wait::DeviceWrite))
    }
}

/// Entering and leaving the kernel is often seen before it is known which call it is: each call has the same part.
fn is_entering(e: &Entry) -> bool {
    e.busy && e.class.operation == Operation::Unknown && e.class.layer == Layer::Call
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let sides = Side::BOTH.into_iter().filter(|side| !facts.is_claimed(*side));
    let sides: Vec<Finds> = sides.filter_map(|side| one_side(facts, side)).collect();
    let worst = sides.iter().max_by(|a, b| a.cost_ns.total_cmp(&b.cost_ns))?;
    let sentence = format!(
        "{} {} of {} each: the calls are the cost, not the bytes",
        say::count(worst.calls),
        worst.side.noun(),
        say::bytes(worst.mean)
    );
    let advice = match worst.side {
        _ if worst.direct => {
            "Use requests of 64 KiB to 1 MiB with an aligned buffer (posix_memalign, offset and length multiples \
             of 4 KiB), \
             and keep several such requests in flight with io_uring. Library buffers and read-ahead hints do not apply to O_DIRECT."
        }
        Side::Read if worst.pages.is_some() => {
            "Keep what was read: read blocks of 64 KiB or more into memory and look there, or map the file (mmap), so that a page is \
             asked for once instead of again and again."
        }
        Side::Write if worst.pages.is_some() => {
            "Gather the output in memory and write each part once, 64 KiB or more at a time: work through the data in blocks whose output \
             is contiguous, or map the file (mmap) and write through the mapping."
        }
        Side::Read => {
            "Read 64 KiB or more at a time into a buffer: BufReader::with_capacity(1 << 16, f), \
             setvbuf(f, NULL, _IOFBF, 1 << 16), Python open(path, buffering=1 << 20), Java new BufferedInputStream(in, \
             1 << 16)."
        }
        Side::Write => {
            "Collect records in memory and write 64 KiB or more at a time: BufWriter::with_capacity(1 << 16, f), \
             setvbuf(f, NULL, _IOFBF, 1 << 16) without a flush after each record, writev, Python open(path, \"w\", \
             buffering=1 << 20), Java new BufferedOutputStream(out, 1 << 16)."
        }
    };
    let evidence: Vec<String> = sides.iter().flat_map(|s| s.evidence.iter().cloned()).collect();
    Draft {
        id: FindingId::SmallRequests,
        cost_ns: sides.iter().map(|s| s.cost_ns).sum(),
        removable: Some(removable(facts, &sides)),
        sentence,
        evidence,
        advice: advice.to_owned(),
    }
    .finding(facts)
}

/// The calls that can be merged, and the samples in the functions of calls.
fn removable(facts: &Facts<'_>, sides: &[Finds]) -> Removable {
    let within_calls = loops::within_calls(facts);
    let calls: f64 = sides.iter().map(|s| s.calls).sum();
    let merged = sides.iter().map(|s| s.calls * s.mergeable * s.sizable).sum::<f64>() / calls;
    let going = |part: fn(&Finds, &Entry) -> f64| {
        facts.removable(|e| sides.iter().map(|s| part(s, e)).sum::<f64>().max(merged * within_calls(e)))
    };
    // Copying less than a page costs about the same whatever its size, and may go as well.
    let most = going(|s, e| s.part(e, s.mergeable_at_most).max(s.mergeable_at_most * s.copying(e)));
    Removable { most_ns: most.most_ns, ..going(|s, e| s.part(e, s.mergeable)) }
}

fn one_side(facts: &Facts<'_>, side: Side) -> Option<Finds> {
    let (calls, bytes) = (facts.calls(side)?, facts.bytes(side)?);
    let mean = facts.mean_bytes(side)?;
    if !(1.0..=SMALL_BYTES).contains(&mean) || calls < 1.0 {
        return None;
    }
    let tally = facts.tally(side);
    let in_order = share_of(tally.sequential);
    let no_order = tally.calls == 0 && facts.sizable_part(side).is_some_and(|p| p > 0.5);
    let direct = facts.direct_share(side) >= MOSTLY;
    // Calls of a fraction of a page, in whatever order: one for each page would do if the page stayed with the program.
    let beyond = facts.calls_beyond_pages(side).filter(|_| mean <= TINY_BYTES && !direct);
    let beyond = beyond.filter(|(part, _)| in_order.is_some_and(|s| s.value < *part));
    let kept = beyond.map_or(0.0, |(part, _)| part);
    let mut finds = Finds {
        cost_ns: 0.0,
        evidence: Vec::new(),
        calls,
        mean,
        side,
        mergeable: in_order.map_or(1.0, |s| s.value).max(kept),
        mergeable_at_most: in_order.map_or(1.0, |s| s.high).max(kept),
        order_known: in_order.is_some() || no_order,
        // The size of calls on pipes, sockets and terminals depends on the other end; on /dev/null it does not.
        sizable: facts.sizable_part(side).unwrap_or(1.0),
        entry_part: facts.part_of_calls(side).unwrap_or(0.0),
        pages: beyond.map(|(_, pages)| pages),
        direct,
    };
    let own = facts.account.sum(|e| finds.is_per_call(e));
    let entries = facts.account.sum(is_entering);
    let busy = Sum {
        time_ns: own.time_ns + finds.entry_part * entries.time_ns,
        wall_ns: own.wall_ns + finds.entry_part * entries.wall_ns,
        ..Sum::default()
    };
    let waits = facts.account.sum(|e| finds.waits(e));
    // No sample of the clock need have met calls that wait nearly all the time.
    if busy.wall_ns + waits.wall_ns <= 0.0 {
        return None;
    }
    let part = |e: &Entry| finds.part(e, finds.mergeable);
    finds.cost_ns = facts.wall_ns_of(part);
    let noun = side.noun();
    finds.evidence = vec![
        format!(
            "{} {noun} moved {}; a call costs {} of CPU excluding the copy, {} of wall time in total",
            say::count(calls),
            say::bytes(bytes),
            say::time(busy.time_ns / calls),
            say::percent(facts.wall_share(busy.wall_ns))
        ),
        order_in_words(side, in_order, no_order),
    ];
    if let Some(pages) = finds.pages {
        finds.evidence.push(format!(
            "{} {noun} go to {} pages of 4 KiB, each again and again",
            say::count(calls),
            say::count(pages)
        ));
    }
    if waits.wall_ns > 0.0 {
        finds.evidence.push(format!(
            "they bypass the cache (O_DIRECT) and wait for the device: {} of wall time",
            say::percent(facts.wall_share(waits.wall_ns))
        ));
    }
    Some(finds)
}

fn order_in_words(side: Side, in_order: Option<Estimate>, no_order: bool) -> String {
    let noun = side.noun();
    match in_order {
        Some(share) => {
            format!("{} of the sampled {noun} (n = {}) are sequential", say::share(share), share.n)
        }
        None if no_order => format!("the {noun} go to a device without an order, such as /dev/null"),
        None => format!("the order of the {noun} is unknown: they may not be sequential"),
    }
}
