//! The rule `small-requests`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::model::Part;

use super::facts::{PAGE_BYTES, Side, share_of};
use super::gain::Savings;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, WORTH_SAVING, loops, say, sync_per_write};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::SmallRequests, manual: include_str!("page.md"), judge };

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
    savings: Savings,
    evidence: Vec<String>,
    calls: f64,
    mean: f64,
    side: Side,
    /// CPU time of the calls beside the copy.
    busy_ns: f64,
    /// Part of the calls that can be merged.
    spared: Range,
    direct: bool,
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    // Writes that are made durable one by one are small for that reason.
    let sides = Side::BOTH.into_iter().filter(|s| *s == Side::Read || !sync_per_write::claims_writes(facts));
    let sides: Vec<Finds> = sides.filter_map(|side| one_side(facts, side)).collect();
    let worst = sides.iter().max_by(|a, b| a.savings.0.likely.total_cmp(&b.savings.0.likely))?;
    let sentence = format!(
        "{} {} of {} each: the cost is the calls, not the bytes",
        say::count(worst.calls),
        worst.side.noun(),
        say::bytes(worst.mean)
    );
    let advice = match worst.side {
        _ if worst.direct => {
            "Ask for 64 KiB to 1 MiB at a time from an aligned buffer (posix_memalign, offset and length multiples of 4 KiB), \
             and keep several such requests in flight with io_uring. Buffers of I/O libraries and read-ahead hints do not \
             apply to O_DIRECT."
        }
        Side::Read => {
            "Read 64 KiB or more at a time and hand out pieces from memory: BufReader::with_capacity(1 << 16, f), \
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
            "the program's own code takes only {} for each call: it mostly loops around them, and the gain counts {} of the \
             wall time for that (with the queueing that goes with it)",
            say::time(loops::own_ns(facts) / sides.iter().map(|s| s.calls).sum::<f64>().max(1.0)),
            say::percent(facts.wall_share(around.0.likely))
        ));
    }
    // The parts rest on the same samples: their upper ends cannot all be true. The bytes stay, in fewer calls.
    let left = sides.iter().map(|s| s.mean).fold(f64::INFINITY, f64::min) / REPAIRED_BYTES;
    let most = facts.account.wall_ns * (1.0 - left).max(0.0);
    let sum = |part: fn(&Finds) -> Savings| sides.iter().map(part).fold(Savings::default(), Savings::and);
    Draft {
        id: FindingId::SmallRequests,
        cost_ns: sides.iter().map(|s| s.cost_ns).sum(),
        savings: Some(Savings(sum(|s| s.savings).and(around).0.at_most(most))),
        sentence,
        evidence,
        advice: advice.to_owned(),
    }
    .finding(facts)
}

/// What goes with the calls though it is outside of them. Each call that is merged spares its turn.
fn around_the_calls(facts: &Facts<'_>, sides: &[Finds]) -> Savings {
    let calls: f64 = sides.iter().map(|s| s.calls).sum();
    let merged = |of: fn(&Range) -> f64| sides.iter().map(|s| s.calls * of(&s.spared)).sum::<f64>() / calls;
    let merged = Range::new(merged(|r| r.low), merged(|r| r.likely), merged(|r| r.high));
    loops::around(facts, calls, sides.iter().map(|s| s.busy_ns).sum(), merged)
}

fn one_side(facts: &Facts<'_>, side: Side) -> Option<Finds> {
    let (calls, bytes) = (facts.calls(side)?.likely, facts.bytes(side)?);
    let mean = facts.mean_bytes(side)?;
    let operation = side.operation();
    if !(1.0..=SMALL_BYTES).contains(&mean) {
        return None;
    }
    let tally = facts.tally(side);
    let direct = facts.direct_share(side) >= MOSTLY;
    // What goes to /dev/null has no order: all of it can be merged.
    let in_order = share_of(tally.sequential).or_else(|| {
        (tally.calls == 0 && facts.sizable_part(side).is_some_and(|p| p > 0.5)).then_some(Range::exact(1.0))
    });
    // Not seen: most small requests are sequential, but it may be otherwise.
    let mergeable = in_order.unwrap_or(Range::new(0.3, 0.8, 1.0));
    // Calls that go to pipes, sockets and terminals wait for others; their size is not ours to choose. That of calls to
    // /dev/null and the like is, and such a call costs what any other does.
    let storage = facts.sizable_part(side).map_or(Range::new(0.5, 1.0, 1.0), Range::exact);

    let per_call = |e: &Entry| {
        // On the way to the device and back all of it is for one request, but the copy.
        let own_layer = matches!(e.class.layer, Layer::Call | Layer::Filesystem | Layer::Cache)
            || (direct && e.class.layer != Layer::Copy)
            || (mean <= TINY_BYTES && matches!(e.class.layer, Layer::Unexplained | Layer::Elsewhere));
        e.busy && e.class.operation == operation && own_layer
    };
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
    let mut evidence = vec![format!(
        "{} {noun} moved {}; a call costs {} of CPU beside the copying, {} of the wall time in all",
        say::count(calls),
        say::bytes(bytes),
        say::time(busy.time_ns / calls),
        say::percent(facts.wall_share(busy.wall_ns))
    )];
    evidence.push(match in_order {
        Some(_) if tally.calls == 0 => {
            format!("the {noun} go to a device that knows no order, such as /dev/null")
        }
        Some(share) => format!(
            "{} of the {noun} that were looked at (n = {}) began where the one before ended",
            say::share(share),
            tally.sequential.n
        ),
        None => format!(
            "whether the {noun} follow each other was not seen; the interval of the gain allows for both"
        ),
    });
    if waits.wall_ns > 0.0 {
        evidence.push(format!(
            "they bypass the cache (O_DIRECT), so each waits for the device: {} of the wall time",
            say::percent(facts.wall_share(waits.wall_ns))
        ));
    }
    Some(Finds {
        cost_ns: busy.wall_ns + waits.wall_ns,
        savings: saved_cpu.and(saved_waits),
        evidence,
        calls,
        mean,
        side,
        busy_ns: busy.time_ns,
        spared: fraction.times(mergeable).times(storage),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::{Run, access, looked, model, slow_and_repaired};

    /// Cached reads of so many bytes: 240 ns a call, 20 ns a page, 0.05 ns a byte, and 1 GB in all; the rest is waiting
    /// for a pipe.
    fn cached(request: f64) -> Run {
        let calls = (1e9 / request) as u64;
        let busy = |ns: f64| ns * calls as f64 / 4e9;
        let pages = (request / 4096.0).max(1.0);
        let (call, filesystem, cache, copy) =
            (busy(100.0), busy(80.0), busy(60.0 + 20.0 * pages), busy(0.05 * request));
        Run::new(4.0)
            .busy(Operation::Read, Layer::Call, call)
            .busy(Operation::Read, Layer::Filesystem, filesystem)
            .busy(Operation::Read, Layer::Cache, cache)
            .busy(Operation::Read, Layer::Copy, copy)
            .wait(Operation::Read, Wait::Pipe, 1.0 - call - filesystem - cache - copy)
            .io((calls, 1_000_000_000), (0, 0))
            .file(1 << 30, |f| f.reads = access(1000, 1000 * request as u64, 980))
    }

    #[test]
    fn reads_of_128_bytes_are_named_and_of_64_kib_not() {
        let found = slow_and_repaired(FindingId::SmallRequests, &cached(128.0), &cached(65_536.0));
        // By hand: 260 ns a call of 7.8 million calls is 2.03 s of 4 s; 98 % of them merge, hardly anything stays.
        let gain = found.gain.unwrap();
        assert!((found.share - 0.508).abs() < 0.01, "{}", found.share);
        assert!(gain.low < 1.98 && gain.high > 1.95 && (gain.predicted - 1.98).abs() < 0.05, "{gain:?}");
    }

    /// dd with blocks of 512 bytes, from a file to /dev/null: 150 ns of its own, 250 ns in each call.
    fn dd(own_ns: f64) -> Run {
        let calls = 1_000_000;
        let wall = (2.0 * 250.0 + 2.0 * own_ns) * 1e-9 * calls as f64;
        let part = |ns: f64| ns * 1e-9 * calls as f64 / wall;
        Run::new(wall)
            .busy(Operation::Read, Layer::Call, part(250.0))
            .busy(Operation::Write, Layer::Call, part(250.0))
            .busy(Operation::User, Layer::Program, part(2.0 * own_ns))
            .io((calls, calls * 512), (calls, calls * 512))
            .file(1 << 30, |f| f.reads = access(1000, 512_000, 999))
            .with(|p| {
                p.files.push(iowhy_core::profile::FileUse {
                    path: "/dev/null".into(),
                    kind: "character-device".into(),
                    writes: access(1000, 512_000, 0),
                    ..Default::default()
                });
            })
    }

    #[test]
    fn both_sides_and_the_loop_around_them_go_together() {
        let found = &dd(150.0).findings()[0];
        assert_eq!(found.id, FindingId::SmallRequests);
        let gain = found.gain.unwrap();
        // By hand: both calls (500 of 800 ns), and nearly nine tenths of the loop of 150 ns.
        assert!(gain.predicted > 3.0 && gain.high > 8.0 && gain.low < 3.0, "{gain:?}");
        assert!(found.evidence.iter().any(|e| e.contains("/dev/null")), "{found:?}");
        assert!(found.evidence.iter().any(|e| e.contains("loops around")), "{found:?}");
        // A program that works 10 us on each piece does not loop around calls.
        assert!(dd(10_000.0).findings()[0].id == FindingId::CpuBound);
    }

    #[test]
    fn small_but_random_requests_cannot_be_merged() {
        let mut run = cached(128.0);
        run.profile.files[0].reads.sequential = looked(10, 1000);
        assert!(!run.ids().contains(&FindingId::SmallRequests));
    }

    #[test]
    fn unseen_order_widens_the_interval() {
        let seen = cached(128.0).findings()[0].gain.unwrap();
        let mut run = cached(128.0);
        run.profile.files.clear();
        let unseen = run.findings()[0].gain.unwrap();
        assert!(unseen.low < seen.low && unseen.high >= seen.high, "{unseen:?} {seen:?}");
    }

    #[test]
    fn counts_alone_are_no_reason() {
        // A million small reads that cost 1 % of the time.
        let run = Run::new(100.0)
            .busy(Operation::Read, Layer::Call, 0.01)
            .busy(Operation::User, Layer::Program, 0.99)
            .io((1_000_000, 128_000_000), (0, 0));
        assert_eq!(run.ids(), [FindingId::CpuBound]);
    }

    #[test]
    fn small_direct_reads_in_order_save_the_device_too() {
        let mut run = Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.8)
            .busy(Operation::Read, Layer::Block, 0.2)
            .io((100_000, 409_600_000), (0, 0))
            .file(1 << 30, |f| {
                f.reads = access(1000, 4_096_000, 1000);
                f.reads.direct = looked(1000, 1000);
            })
            .device(0.9, 1.0, |d| (d.reads, d.read_bytes) = (100_000, 409_600_000));
        run.model = Some(model());
        assert_eq!(run.ids(), [FindingId::SmallRequests]);
        let gain = run.findings()[0].gain.unwrap();
        assert!(gain.predicted > 5.0 && gain.low > 2.0, "{gain:?}");
        let advice = &run.findings()[0].advice;
        assert!(advice.contains("io_uring") && !advice.contains("BufReader") && !advice.contains("setvbuf"));
    }
}
