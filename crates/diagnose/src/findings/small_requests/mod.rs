//! The rule `small-requests`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::model::Part;

use super::facts::{PAGE_BYTES, Side, Tally, share_of};
use super::gain::SavedTime;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, loops, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::SmallRequests,
    claim: "many calls for few bytes: the calls are the cost",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::one(repair::repaired) },
};

/// What a repaired program asks for in one call.
const REPAIRED_BYTES: f64 = 65_536.0;
/// Requests of more than this are not called small.
const SMALL_BYTES: f64 = 16_384.0;
/// Direct I/O is the habit of the program from this share of its calls on.
const MOSTLY: f64 = 0.5;

/// Below this many bytes, what was not named within a call is hardly the copy.
const TINY_BYTES: f64 = 1024.0;

/// One side of the traffic.
struct Finds {
    cost_ns: f64,
    saved_time: SavedTime,
    evidence: Vec<String>,
    calls: f64,
    mean: f64,
    side: Side,
    /// CPU time of the calls beside the copy.
    busy_ns: f64,
    /// Part of the calls that can be merged.
    removed_share: Range,
    direct: bool,
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let sides = Side::BOTH.into_iter().filter(|side| !facts.is_claimed(*side));
    let sides: Vec<Finds> = sides.filter_map(|side| one_side(facts, side)).collect();
    let worst = sides.iter().max_by(|a, b| a.saved_time.0.likely.total_cmp(&b.saved_time.0.likely))?;
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
    let mut evidence: Vec<String> = sides.iter().flat_map(|s| s.evidence.iter().cloned()).collect();
    let around = around_the_calls(facts, &sides);
    if facts.wall_share(around.0.likely) >= WORTH_SAVING {
        evidence.push(format!(
            "the program's own code takes only {} per call, so the loop around the calls goes with them: {} of \
             wall time in the gain",
            say::time(loops::own_ns(facts) / sides.iter().map(|s| s.calls).sum::<f64>().max(1.0)),
            say::percent(facts.wall_share(around.0.likely))
        ));
    }
    // The parts rest on the same samples: their upper ends cannot all be true. The bytes stay, in fewer calls.
    let left = sides.iter().map(|s| s.mean).fold(f64::INFINITY, f64::min) / REPAIRED_BYTES;
    let most = facts.account.wall_ns * (1.0 - left).max(0.0);
    let sum =
        |part: fn(&Finds) -> SavedTime| sides.iter().map(part).fold(SavedTime::default(), SavedTime::and);
    Draft {
        id: FindingId::SmallRequests,
        cost_ns: sides.iter().map(|s| s.cost_ns).sum(),
        saved_time: Some(SavedTime(sum(|s| s.saved_time).and(around).0.at_most(most))),
        sentence,
        evidence,
        advice: advice.to_owned(),
    }
    .finding(facts)
}

/// What goes with the calls though it is outside of them. Each call that is merged spares its turn.
fn around_the_calls(facts: &Facts<'_>, sides: &[Finds]) -> SavedTime {
    let calls: f64 = sides.iter().map(|s| s.calls).sum();
    let merged =
        |of: fn(&Range) -> f64| sides.iter().map(|s| s.calls * of(&s.removed_share)).sum::<f64>() / calls;
    let merged = Range::new(merged(|r| r.low), merged(|r| r.likely), merged(|r| r.high));
    loops::around(facts, calls, sides.iter().map(|s| s.busy_ns).sum(), merged)
}

fn one_side(facts: &Facts<'_>, side: Side) -> Option<Finds> {
    let (calls, bytes) = (facts.calls(side)?, facts.bytes(side)?);
    let mean = facts.mean_bytes(side)?;
    let operation = side.operation();
    if !(1.0..=SMALL_BYTES).contains(&mean) {
        return None;
    }
    let tally = facts.tally(side);
    let direct = facts.direct_share(side) >= MOSTLY;
    let in_order = order(facts, side, &tally);
    // Most small requests of unknown order are sequential.
    let mergeable = in_order.unwrap_or(Range::new(0.3, 0.8, 1.0));
    // The size of calls on pipes, sockets and terminals depends on the other end; on /dev/null it does not.
    let storage = facts.sizable_part(side).map_or(Range::new(0.5, 1.0, 1.0), Range::exact);

    let per_call =
        |e: &Entry| e.busy && e.class.operation == operation && is_per_call(e.class.layer, direct, mean);
    // Entering and leaving the kernel is often seen before it is known which call it is: each call has the same part.
    let entry_part = facts.part_of_calls(side).unwrap_or(0.0);
    let entering =
        |e: &Entry| e.busy && e.class.operation == Operation::Unknown && e.class.layer == Layer::Call;
    let own = facts.account.sum(per_call);
    let entries = facts.account.sum(entering);
    let busy = Sum {
        time_ns: own.time_ns + entry_part * entries.time_ns,
        wall_ns: own.wall_ns + entry_part * entries.wall_ns,
        events: own.events,
        ..Sum::default()
    };
    if busy.wall_ns <= 0.0 || calls < 1.0 {
        return None;
    }
    let fraction = fraction(facts, side, direct, busy.time_ns, calls, bytes);
    let saved_cpu = facts
        .saved_without(|e| if entering(e) { entry_part } else { f64::from(per_call(e)) })
        .part(fraction)
        .part(mergeable)
        .part(storage);
    let device = |e: &Entry| {
        direct
            && e.class.operation == operation
            && matches!(e.class.wait, Some(Wait::DeviceRead | Wait::DeviceWrite))
    };
    let waits = facts.account.sum(device);
    let saved_waits = facts
        .saved_without(|e| f64::from(device(e)))
        .part(facts.saved_by_larger(mean, REPAIRED_BYTES))
        .part(if in_order.is_some() { mergeable } else { Range::default() });

    let noun = side.noun();
    let mut evidence = vec![
        format!(
            "{} {noun} moved {}; a call costs {} of CPU excluding the copy, {} of wall time in total",
            say::count(calls),
            say::bytes(bytes),
            say::time(busy.time_ns / calls),
            say::percent(facts.wall_share(busy.wall_ns))
        ),
        order_in_words(side, &tally, in_order),
    ];
    if waits.wall_ns > 0.0 {
        evidence.push(format!(
            "they bypass the cache (O_DIRECT) and wait for the device: {} of wall time",
            say::percent(facts.wall_share(waits.wall_ns))
        ));
    }
    Some(Finds {
        cost_ns: busy.wall_ns + waits.wall_ns,
        saved_time: saved_cpu.and(saved_waits),
        evidence,
        calls,
        mean,
        side,
        busy_ns: busy.time_ns,
        removed_share: fraction.times(mergeable).times(storage),
        direct,
    })
}

/// The part of the CPU time of `calls` that goes when they become calls of [`REPAIRED_BYTES`]. What is paid for each
/// page stays: `bytes / page * p`; and the rest of each call is paid by the fewer calls. `p` is the model's for cached
/// reads, else 10 to 150 ns for a page that is looked up and 100 to 1500 ns for one that is made dirty.
fn fraction(facts: &Facts<'_>, side: Side, direct: bool, busy_ns: f64, calls: f64, bytes: f64) -> Range {
    let page = facts.model.map_or(PAGE_BYTES, |m| m.page_bytes.max(1) as f64);
    let known = facts.model.filter(|_| side == Side::Read && !direct).map(|m| {
        let from_device = facts.profile.io.device_read_bytes.unwrap_or(0) as f64 / bytes.max(1.0);
        m.cost(Layer::Cache).per_page_ns + m.part(Part::Insert).per_page_ns * from_device.min(1.0)
    });
    let per_page = match (known, side) {
        (Some(p), _) => Range::new(p * 0.7, p, p * 1.5),
        (None, Side::Read) => Range::new(10.0, 40.0, 150.0),
        (None, Side::Write) => Range::new(100.0, 400.0, 1500.0),
    };
    let touched = bytes.max(1.0) / calls.max(1.0) / page;
    // A device such as /dev/null has no pages; and no page costs more than the calls that touch it were seen to.
    let no_pages = facts.tally(side).calls == 0 && facts.sizable_part(side).is_some_and(|p| p > 0.5);
    let per_page = if no_pages { Range::default() } else { per_page };
    let left = |p: f64| {
        let p = p.min(busy_ns / calls.max(1.0) / touched.max(1.0));
        let pages_ns = (bytes / page * p).min(busy_ns);
        let call_ns = (busy_ns / calls.max(1.0) - p * touched.max(1.0)).max(0.0);
        ((pages_ns + call_ns * bytes / REPAIRED_BYTES) / busy_ns.max(1.0)).min(1.0)
    };
    Range::new(left(per_page.low), left(per_page.likely), left(per_page.high)).rest()
}

fn order_in_words(side: Side, tally: &Tally, in_order: Option<Range>) -> String {
    let noun = side.noun();
    match in_order {
        Some(_) if tally.calls == 0 => {
            format!("the {noun} go to a device without an order, such as /dev/null")
        }
        Some(share) => {
            format!("{} of the sampled {noun} (n = {}) are sequential", say::share(share), tally.sequential.n)
        }
        None => format!("the order of the {noun} is unknown; the interval of the gain covers both cases"),
    }
}

/// The sequential share; all of the calls on /dev/null and the like, which have no order.
fn order(facts: &Facts<'_>, side: Side, tally: &Tally) -> Option<Range> {
    let no_order = tally.calls == 0 && facts.sizable_part(side).is_some_and(|p| p > 0.5);
    share_of(tally.sequential).or_else(|| no_order.then_some(Range::exact(1.0)))
}

/// Whether the CPU time of a layer is paid per call. With O_DIRECT that is all but the copy.
fn is_per_call(layer: Layer, direct: bool, mean_bytes: f64) -> bool {
    matches!(layer, Layer::Call | Layer::Filesystem | Layer::Cache)
        || (direct && layer != Layer::Copy)
        || (mean_bytes <= TINY_BYTES && matches!(layer, Layer::Unexplained | Layer::Elsewhere))
}
