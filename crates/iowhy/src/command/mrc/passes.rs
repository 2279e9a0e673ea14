//! The two passes over a trace: what it touches and its LRU curve, then every other cache. The trace is streamed; memory grows
//! with distinct blocks, and is refused before it is taken where it would not be there.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::machine::memory_available_bytes;
use iowhy_sim::curve::bank::{Bank, Order, PIECE, Piece, Point};
use iowhy_sim::curve::ids::{IdTable, MAX_DISTINCT};
use iowhy_sim::curve::keys::{Counted, Keys, LeftOut, Unit};
use iowhy_sim::curve::lru::{LruCounter, LruCurve};
use iowhy_sim::curve::shards::{SampledCurve, Sampling, Shards};
use iowhy_sim::policy::PolicyId;
use iowhy_trace::Trace;

use crate::cli::TraceInputArgs;
use crate::trace_file::{self, Meter};

/// References that are kept between the passes (64 MiB), so that a short trace need not be read twice.
const KEPT: usize = 16 << 20;
/// Share of the available memory that may be filled.
const SHARE: f64 = 0.8;
/// Bytes that numbering a block and following its LRU distance take at their worst moment, when tables double: three
/// sizes of the table of numbers at 70 % (69), positions and counts of the stack (44).
const BYTES_EACH: f64 = 113.0;

/// Blocks for each request on average from which requests are wide: 1 MiB in blocks of 4 KiB, more than a device takes at once.
const WIDE_BLOCKS: u64 = 256;
/// Distinct blocks that wide requests may touch: 340 MiB at [`BYTES_EACH`].
const MAX_WIDE: u64 = 3 << 20;
/// References that wide requests may make: a second or so; and where only a sample is followed, which costs less for each.
const MAX_WIDE_REFERENCES: u64 = 1 << 25;
const MAX_WIDE_REFERENCES_SAMPLED: u64 = 1 << 27;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    pub(super) input: &'a TraceInputArgs,
    pub(super) unit: Unit,
    pub(super) counted: Counted,
    pub(super) sampling: Option<Sampling>,
    /// Whether other caches than LRU will be run.
    pub(super) second_pass: bool,
    pub(super) quiet: bool,
}

/// The LRU curve.
#[derive(Debug)]
pub(super) enum Lru {
    Exact(LruCurve),
    Sampled(SampledCurve),
}

impl Lru {
    /// Distinct blocks, or what a sample makes of them.
    pub(super) fn distinct(&self) -> u64 {
        match self {
            Lru::Exact(curve) => curve.distinct(),
            Lru::Sampled(curve) => curve.distinct().round() as u64,
        }
    }

    pub(super) fn references(&self) -> u64 {
        match self {
            Lru::Exact(curve) => curve.references(),
            Lru::Sampled(curve) => curve.references(),
        }
    }
}

/// What the first pass found.
#[derive(Debug)]
pub(super) struct First {
    pub(super) trace: Trace,
    pub(super) lru: Lru,
    pub(super) requests: u64,
    pub(super) left_out: LeftOut,
    pub(super) warnings: Vec<Warning>,
    /// Whether bytes of different sizes were counted.
    pub(super) sized: bool,
    kept: Option<Kept>,
}

/// The references themselves, as dense numbers, with their bytes.
#[derive(Debug, Default)]
struct Kept {
    ids: Vec<u32>,
    bytes: Vec<u64>,
}

/// The memory that may be filled, and the blocks whose numbers fit into it.
fn limits() -> (u64, u32) {
    // Where nobody knows, nothing is refused.
    let memory = memory_available_bytes().map_or(u64::MAX, |bytes| (bytes as f64 * SHARE) as u64);
    (memory, (memory as f64 / BYTES_EACH).min(f64::from(MAX_DISTINCT)) as u32)
}

/// Whether a trace can be read again from its beginning.
fn rereadable(path: &Path) -> bool {
    path.as_os_str() != "-" && std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Reads a whole trace and hands on the keys that it touches, in pieces, with their bytes if they are wanted, and with
/// the requests so far.
fn stream(
    trace: &mut Trace,
    keys: &mut Keys,
    sized: impl Fn(&Trace) -> bool,
    meter: &Meter,
    mut hand_on: impl FnMut(&[u64], Option<&[u64]>, u64) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let (mut batch, mut piece, mut bytes) = (Vec::new(), Vec::with_capacity(PIECE), Vec::new());
    loop {
        let more = trace.next_batch(&mut batch)?;
        // Some files say at their beginning what they hold.
        let with_bytes = sized(trace);
        for request in &batch {
            keys.push(request, &mut piece, with_bytes.then_some(&mut bytes));
            if piece.len() >= PIECE {
                hand_on(&piece, with_bytes.then_some(&bytes), keys.requests())?;
                piece.clear();
                bytes.clear();
            }
        }
        meter.at(trace);
        if !more {
            return hand_on(&piece, with_bytes.then_some(&bytes), keys.requests());
        }
    }
}

/// The first pass: distinct blocks and the LRU curve.
///
/// # Errors
/// A trace that cannot be read, or touches more distinct blocks than memory can tell apart.
pub(super) fn first(plan: Plan<'_>) -> Result<First, Problem> {
    let mut trace = trace_file::open(plan.input)?;
    let mut keys = Keys::new(plan.unit, plan.counted);
    let meter = Meter::new(plan.quiet);
    let (memory, most) = limits();
    let mut sized = false;
    let wants_bytes = |trace: &Trace| plan.unit == Unit::Objects && trace.has_sizes();
    let mut references = 0;
    let mut kept = (plan.sampling.is_none() && plan.second_pass).then(Kept::default);
    let lru = match plan.sampling {
        Some(sampling) => {
            let mut shards = Shards::new(sampling);
            stream(
                &mut trace,
                &mut keys,
                |_| false,
                &meter,
                |keys, _, requests| {
                    shards.references(keys);
                    references += keys.len() as u64;
                    not_too_long(plan.unit, references, requests, MAX_WIDE_REFERENCES_SAMPLED)
                },
            )?;
            Lru::Sampled(shards.finish())
        }
        None => {
            let again = rereadable(&plan.input.file);
            let mut table = IdTable::with_max(most);
            let mut counter = LruCounter::new();
            let mut ids = Vec::with_capacity(PIECE);
            stream(&mut trace, &mut keys, wants_bytes, &meter, |keys, bytes, requests| {
                ids.clear();
                table.numbers(keys, &mut ids).map_err(|_| too_many(plan.unit, most, memory))?;
                not_too_wide(plan.unit, u64::from(table.distinct()), requests)?;
                references += ids.len() as u64;
                not_too_long(plan.unit, references, requests, MAX_WIDE_REFERENCES)?;
                match bytes {
                    Some(bytes) => counter.references_of_sizes(&ids, bytes),
                    None => counter.references(&ids),
                }
                keep(&mut kept, &ids, bytes, again, memory)
            })?;
            let curve = counter.finish();
            sized = curve.sizes_differ();
            Lru::Exact(curve)
        }
    };
    drop(meter);
    let warnings = trace_file::warnings(&trace);
    Ok(First { lru, requests: keys.requests(), left_out: keys.left_out(), warnings, sized, kept, trace })
}

/// Keeps references for the second pass: all of what cannot be read again, as far as memory allows.
fn keep(
    kept: &mut Option<Kept>,
    ids: &[u32],
    bytes: Option<&[u64]>,
    again: bool,
    memory: u64,
) -> Result<(), Problem> {
    let Some(all) = kept else { return Ok(()) };
    let length = all.ids.len().saturating_add(ids.len());
    if again && length > KEPT {
        *kept = None;
        return Ok(());
    }
    // Vectors double: old and new side by side.
    let taken = (length as u64).saturating_mul(if bytes.is_some() { 36 } else { 12 });
    if !again && taken > memory / 2 {
        return Err(Problem::failed(format!(
            "stdin cannot be read twice, and keeping its {length} references so far takes {} of {} that are free",
            Bytes(taken),
            Bytes(memory)
        ))
        .hint("save the trace as a file and name that: files are streamed"));
    }
    all.ids.extend_from_slice(ids);
    all.bytes.extend_from_slice(bytes.unwrap_or_default());
    Ok(())
}

/// Refuses what a few requests would make of the memory: blocks that are far smaller than any request tell nothing that
/// larger ones do not.
fn not_too_wide(unit: Unit, distinct: u64, requests: u64) -> Result<(), Problem> {
    let Unit::Blocks(bytes) = unit else { return Ok(()) };
    if distinct <= MAX_WIDE || distinct / requests.max(1) <= WIDE_BLOCKS {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "the first {requests} requests alone touch {distinct} distinct blocks of {}: the blocks are far smaller than the \
         requests, and following each of them takes more memory than it is worth",
        Bytes(bytes)
    ))
    .hint("follow a sample: `--sample 1%`; or larger blocks, as `--block 1m`"))
}

/// Refuses to spend minutes on requests that are far larger than the blocks, as a damaged trace or one of whole objects has them.
fn not_too_long(unit: Unit, references: u64, requests: u64, most: u64) -> Result<(), Problem> {
    let Unit::Blocks(bytes) = unit else { return Ok(()) };
    let each = references / requests.max(1);
    if references <= most || each <= WIDE_BLOCKS {
        return Ok(());
    }
    let larger = bytes.saturating_mul(each).min(1 << 30).next_power_of_two() >> 10;
    Err(Problem::refused(format!(
        "the first {requests} requests alone are {references} references to blocks of {}, {each} each: that takes minutes, and \
         caching says nothing of such small parts of a request",
        Bytes(bytes)
    ))
    .hint(format!(
        "give larger blocks, as `--block {larger}k`, or `--objects`, which counts a request as one; `iowhy trace stat` shows whether the \
         trace is damaged"
    )))
}

fn too_many(unit: Unit, most: u32, memory: u64) -> Problem {
    let what = match unit {
        Unit::Blocks(bytes) => format!("blocks of {}", Bytes(bytes)),
        Unit::Objects => "objects".to_owned(),
    };
    let why = match most {
        MAX_DISTINCT => "more than can be told apart".to_owned(),
        _ => format!(
            "more than fit: each takes up to {BYTES_EACH} bytes while it is counted, and {} may be filled",
            Bytes(memory)
        ),
    };
    let larger = if matches!(unit, Unit::Blocks(_)) { "; or larger blocks, as `--block 64k`" } else { "" };
    Problem::failed(format!("the trace touches more than {most} distinct {what}, {why}")).hint(format!(
        "follow a sample: `--sample 1%`, or `--sample 100000` for a fixed amount of memory{larger}"
    ))
}

/// The second pass: every cache that was ordered.
///
/// # Errors
/// More memory than there is; a trace that cannot be read again, or has changed.
pub(super) fn second(plan: Plan<'_>, first: &First, orders: &[Order]) -> Result<Vec<Point>, Problem> {
    if orders.is_empty() {
        return Ok(Vec::new());
    }
    let file = std::fs::metadata(&plan.input.file).map_or(0, |found| found.len());
    let each = file.saturating_mul(GROUP_BYTES_FOR_EACH).max(MIN_GROUP_BYTES).min(limits().0);
    let (distinct, references) = (first.lru.distinct(), first.lru.references());
    let cost = |orders: &[Order]| needed(orders, distinct, references, first.sized, true);
    let mut points = Vec::with_capacity(orders.len());
    for group in groups(orders, each, cost) {
        points.extend(one_group(plan, first, &group)?);
    }
    Ok(points)
}

/// Caches that run at once take so much memory for each byte of the trace, and this much in any case: what is more runs later, over
/// the references again. A small file cannot fill the memory, and a large one is not read many times.
const GROUP_BYTES_FOR_EACH: u64 = 16;
const MIN_GROUP_BYTES: u64 = 192 << 20;

/// Splits orders into groups that cost no more than `most`, each of one order at least.
fn groups(orders: &[Order], most: u64, cost: impl Fn(&[Order]) -> u64) -> Vec<Vec<Order>> {
    let mut groups: Vec<Vec<Order>> = Vec::new();
    for order in orders {
        if let Some(group) = groups.last_mut() {
            group.push(*order);
            if cost(group) <= most {
                continue;
            }
            group.pop();
        }
        groups.push(vec![*order]);
    }
    groups
}

fn one_group(plan: Plan<'_>, first: &First, orders: &[Order]) -> Result<Vec<Point>, Problem> {
    let (distinct, references) = (first.lru.distinct(), first.lru.references());
    let (memory, most) = limits();
    let dense = needed(orders, distinct, references, first.sized, true) <= memory / 4;
    let wanted = needed(orders, distinct, references, first.sized, dense);
    if wanted > memory {
        return Err(Problem::refused(format!(
            "{} caches over {distinct} distinct blocks and {references} references take about {}, and {} may be filled",
            orders.len(),
            Bytes(wanted),
            Bytes(memory)
        ))
        .hint("name fewer policies and sizes, set `--points 0`, leave `belady` out, or follow a sample: `--sample 1%`"));
    }
    let mut bank = Bank::new(orders, dense)?;
    if let Some(kept) = &first.kept {
        let mut keys = Vec::with_capacity(PIECE);
        let line = crate::progress::Progress::new(plan.quiet);
        let begun = std::time::Instant::now();
        for (number, ids) in kept.ids.chunks(PIECE).enumerate() {
            keys.clear();
            keys.extend(ids.iter().map(|id| u64::from(*id)));
            let from = number * PIECE;
            bank.feed(Piece {
                keys: &keys,
                ids,
                bytes: kept.bytes.get(from..from + ids.len()).filter(|_| first.sized),
            });
            let share = (from + ids.len()) as f64 / kept.ids.len() as f64;
            line.at(share, begun.elapsed().mul_f64((1.0 - share) / share), "simulating caches");
        }
        return bank.finish();
    }
    if !rereadable(&plan.input.file) {
        return Err(Problem::refused(
            "`--sample` with other policies than LRU reads the trace twice, and this is no file",
        )
        .hint("save the trace as a file and name that, or `--policy lru`"));
    }
    let mut trace = trace_file::open(plan.input)?;
    let mut keys = Keys::new(plan.unit, plan.counted);
    let meter = Meter::new(plan.quiet);
    let numbering = plan.sampling.is_none();
    let mut table = IdTable::with_max(most);
    let (mut ids, mut numbers, mut seen) = (Vec::new(), Vec::new(), 0u64);
    stream(
        &mut trace,
        &mut keys,
        |_| first.sized,
        &meter,
        |keys, bytes, _| {
            ids.clear();
            seen += keys.len() as u64;
            if !numbering {
                bank.feed(Piece { keys, ids: &ids, bytes: None });
                return Ok(());
            }
            table.numbers(keys, &mut ids).map_err(|_| too_many(plan.unit, most, memory))?;
            // Samples are chosen by number, so that they do not depend on how the trace was read.
            numbers.clear();
            numbers.extend(ids.iter().map(|id| u64::from(*id)));
            bank.feed(Piece { keys: &numbers, ids: &ids, bytes });
            Ok(())
        },
    )?;
    drop(meter);
    if seen != references {
        return Err(Problem::failed(format!(
            "`{}` changed while it was read: {references} references the first time, {seen} the second",
            trace.name()
        ))
        .hint("wait until it is complete, or read a copy"));
    }
    bank.finish()
}

/// Bytes of memory that so many caches take, estimated from above.
fn needed(orders: &[Order], distinct: u64, references: u64, sized: bool, dense: bool) -> u64 {
    let one = |order: &Order| {
        let followed = |share: f64| (order.room.min(distinct) as f64 * share) as u64;
        match (order.policy, order.sample) {
            (PolicyId::Belady, _) => iowhy_sim::policy::belady::memory_bytes(references),
            // Two entries for each block where ghosts are kept; the parts of a sample are as much again.
            (_, Some(share)) => followed(share) * 2 * 2 * 32,
            _ if dense => distinct.next_power_of_two() * 4 + followed(1.0) * 2 * 17,
            _ => followed(1.0) * 2 * 32,
        }
    };
    let caches: u64 = orders.iter().map(one).fold(0, u64::saturating_add);
    let history = match orders.iter().any(|order| order.policy == PolicyId::Belady) {
        // Vectors double: old and new side by side.
        true => references.saturating_mul(if sized { 36 } else { 12 }).saturating_add(distinct * 4),
        false => 0,
    };
    caches.saturating_add(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_caches_need_more_memory_and_the_bound_needs_all_references() {
        let order = |policy, room| Order { policy, room, sample: None };
        let lru = [order(PolicyId::Lru, 1000)];
        let two = [order(PolicyId::Lru, 1000), order(PolicyId::Arc, 1000)];
        let of = |orders: &[Order], dense| needed(orders, 1 << 20, 1 << 30, false, dense);
        assert!(of(&lru, true) < of(&two, true));
        assert!(of(&lru, false) < of(&lru, true), "a small cache over many blocks");
        assert!(of(&[order(PolicyId::Belady, 10)], true) > 4 << 30);
    }

    #[test]
    fn caches_run_in_groups_that_fit_and_none_is_lost() {
        let orders: Vec<Order> =
            (1..=9).map(|room| Order { policy: PolicyId::Arc, room, sample: None }).collect();
        let cost = |orders: &[Order]| orders.iter().map(|order| order.room).sum();
        let split = groups(&orders, 12, cost);
        assert_eq!(split.concat(), orders);
        assert!(split.iter().all(|group| group.len() == 1 || cost(group) <= 12), "{split:?}");
        assert!(split.len() > 3 && split.len() < 9, "{split:?}");
        assert_eq!(groups(&orders, u64::MAX, cost).len(), 1);
        assert!(groups(&[], 1, cost).is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_refused_and_what_can_be_read_again_is_let_go() {
        let mut kept = Some(Kept::default());
        keep(&mut kept, &[1, 2, 3], None, false, 1000).unwrap();
        assert!(keep(&mut kept, &[0; 100], None, false, 1000).unwrap_err().hint.is_some());
        keep(&mut kept, &vec![0; KEPT], None, true, 1000).unwrap();
        assert!(kept.is_none());
    }
}
