//! The two passes over a trace: what it touches and its LRU curve, then every other cache. The trace is streamed; memory grows
//! with distinct blocks, and is refused before it is taken where it would not be there.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::machine::memory_available_bytes;
use iowhy_sim::curve::bank::{self, Bank, Order, PIECE, Point};
use iowhy_sim::curve::ids::{IdTable, MAX_DISTINCT};
use iowhy_sim::curve::keys::{Counted, Keys, LeftOut, Unit};
use iowhy_sim::curve::lru::{LruCounter, LruCurve};
use iowhy_sim::curve::shards::{SampledCurve, Sampling, Shards};
use iowhy_sim::policy::PolicyId;
use iowhy_trace::Trace;

use super::pieces::{self, Piece};
use crate::cli::TraceInputArgs;
use crate::trace_file::{self, Meter};

/// The share of the memory that may be filled, one in so many, that references kept between the passes may take, so that
/// a trace need not be read and numbered twice.
const KEPT_SHARE: u64 = 16;
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
    /// Whether the LRU curve is asked for.
    pub(super) lru: bool,
    /// Whether other caches than LRU will be run.
    pub(super) second_pass: bool,
    pub(super) quiet: bool,
}

/// The LRU curve.
#[derive(Debug)]
pub(super) enum Lru {
    Exact(LruCurve),
    Sampled(SampledCurve),
    /// Everything was followed, but no LRU cache.
    NotAsked {
        distinct: u64,
        references: u64,
    },
}

impl Lru {
    /// Distinct blocks, or what a sample makes of them.
    pub(super) fn distinct(&self) -> u64 {
        match self {
            Lru::Exact(curve) => curve.distinct(),
            Lru::Sampled(curve) => curve.distinct().round() as u64,
            Lru::NotAsked { distinct, .. } => *distinct,
        }
    }

    pub(super) fn references(&self) -> u64 {
        match self {
            Lru::Exact(curve) => curve.references(),
            Lru::Sampled(curve) => curve.references(),
            Lru::NotAsked { references, .. } => *references,
        }
    }
}

/// What the first pass found.
#[derive(Debug)]
pub(super) struct First {
    pub(super) trace: Trace,
    pub(super) found: Found,
    pub(super) requests: u64,
    pub(super) left_out: LeftOut,
    pub(super) warnings: Vec<Warning>,
}

/// The same of the references alone.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) lru: Lru,
    /// Whether bytes of different sizes were counted.
    sized: bool,
    kept: Option<Kept>,
    /// The points of the early caches, if they were run.
    points: Option<Vec<Point>>,
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

/// The first pass: distinct blocks, the LRU curve, and those caches whose sizes are known before (`early`), where memory
/// allows.
///
/// # Errors
/// A trace that cannot be read, or touches more distinct blocks than memory can tell apart.
pub(super) fn first(plan: Plan<'_>, early: &[Order]) -> Result<First, Problem> {
    let mut trace = trace_file::open(plan.input)?;
    let mut keys = Keys::new(plan.unit, plan.counted);
    let meter = Meter::new(plan.quiet);
    let found = match plan.sampling {
        Some(sampling) => {
            let mut shards = Shards::new(sampling);
            let mut references = 0;
            pieces::stream(
                &mut trace,
                &mut keys,
                None,
                |_| false,
                &meter,
                |piece| {
                    shards.references(&piece.keys);
                    references += piece.keys.len() as u64;
                    not_too_long(plan.unit, references, piece.requests, MAX_WIDE_REFERENCES_SAMPLED)
                },
            )?;
            Found { lru: Lru::Sampled(shards.finish()), sized: false, kept: None, points: None }
        }
        None => {
            let mut table = IdTable::with_max(limits().1);
            let mut exact = Exact::new(plan, early)?;
            let wants_bytes = |trace: &Trace| plan.unit == Unit::Objects && trace.has_sizes();
            pieces::stream(&mut trace, &mut keys, Some(&mut table), wants_bytes, &meter, |piece| {
                exact.feed(piece)
            })?;
            exact.finish()?
        }
    };
    drop(meter);
    let warnings = trace_file::warnings(&trace);
    Ok(First { found, requests: keys.requests(), left_out: keys.left_out(), warnings, trace })
}

/// All that is made of the references of a first pass that follows every one of them.
struct Exact<'a> {
    plan: Plan<'a>,
    /// `None`: the curve is not asked for.
    lru: Option<LruCounter>,
    early: &'a [Order],
    /// Early caches; gone where they would take too much memory.
    bank: Option<Bank>,
    kept: Option<Kept>,
    sizes: Sizes,
    /// Whether the trace can be read a second time.
    again: bool,
    memory: u64,
    most: u32,
    references: u64,
    distinct: u32,
}

impl<'a> Exact<'a> {
    fn new(plan: Plan<'a>, early: &'a [Order]) -> Result<Exact<'a>, Problem> {
        let (memory, most) = limits();
        let again = rereadable(&plan.input.file);
        // Caches that might have to go need a second reading.
        let bank = (again && !early.is_empty()).then(|| Bank::new(early, true)).transpose()?;
        Ok(Exact {
            plan,
            lru: plan.lru.then(LruCounter::new),
            early,
            kept: (plan.second_pass && bank.is_none()).then(Kept::default),
            bank,
            sizes: Sizes::default(),
            again,
            memory,
            most,
            references: 0,
            distinct: 0,
        })
    }

    fn feed(&mut self, piece: &Piece) -> Result<(), Problem> {
        let unit = self.plan.unit;
        if piece.too_many {
            return Err(too_many(unit, self.most, self.memory));
        }
        self.distinct = piece.distinct;
        self.references += piece.ids.len() as u64;
        not_too_wide(unit, u64::from(piece.distinct), piece.requests)?;
        not_too_long(unit, self.references, piece.requests, MAX_WIDE_REFERENCES)?;
        let bytes = piece.bytes().filter(|bytes| self.sizes.differ(bytes));
        if self.bank.is_some() {
            let wanted = needed(self.early, u64::from(self.distinct), self.references, bytes.is_some(), true);
            if wanted > self.memory / 4 {
                self.bank = None;
            }
        }
        let (lru, bank) = (&mut self.lru, &mut self.bank);
        rayon::join(
            || {
                if let Some(lru) = lru {
                    match piece.bytes() {
                        Some(bytes) => lru.references_of_sizes(&piece.ids, bytes),
                        None => lru.references(&piece.ids),
                    }
                }
            },
            || {
                if let Some(bank) = bank {
                    bank.feed(bank::Piece { keys: &piece.keys, ids: &piece.ids, bytes: piece.bytes() });
                }
            },
        );
        keep(&mut self.kept, &piece.ids, bytes, self.sizes.one, self.again, self.memory)
    }

    fn finish(self) -> Result<Found, Problem> {
        let lru = match self.lru {
            Some(counter) => Lru::Exact(counter.finish()),
            None => Lru::NotAsked { distinct: u64::from(self.distinct), references: self.references },
        };
        let points = self.bank.map(Bank::finish).transpose()?;
        Ok(Found { lru, sized: self.sizes.differ, kept: self.kept, points })
    }
}

/// Whether references move different numbers of bytes.
#[derive(Debug, Default)]
struct Sizes {
    /// The bytes of the first.
    one: Option<u64>,
    differ: bool,
}

impl Sizes {
    /// Sees more, and says whether any differ by now.
    fn differ(&mut self, bytes: &[u64]) -> bool {
        let one = *self.one.get_or_insert(bytes.first().copied().unwrap_or(0));
        self.differ = self.differ || bytes.iter().any(|bytes| *bytes != one);
        self.differ
    }
}

/// Keeps references for the second pass: all of what cannot be read again, as far as memory allows. Bytes are kept from
/// where they differ; before, each reference moved `one`.
fn keep(
    kept: &mut Option<Kept>,
    ids: &[u32],
    bytes: Option<&[u64]>,
    one: Option<u64>,
    again: bool,
    memory: u64,
) -> Result<(), Problem> {
    let Some(all) = kept else { return Ok(()) };
    let length = all.ids.len().saturating_add(ids.len());
    // Vectors double: old and new side by side.
    let taken = (length as u64).saturating_mul(if bytes.is_some() { 36 } else { 12 });
    if again && taken > memory / KEPT_SHARE {
        *kept = None;
        return Ok(());
    }
    if !again && taken > memory / 2 {
        return Err(Problem::failed(format!(
            "stdin cannot be read twice, and keeping its {length} references so far takes {} of {} that are free",
            Bytes(taken),
            Bytes(memory)
        ))
        .hint("save the trace as a file and name that: files are streamed"));
    }
    if let Some(bytes) = bytes {
        all.bytes.resize(all.ids.len(), one.unwrap_or(0));
        all.bytes.extend_from_slice(bytes);
    }
    all.ids.extend_from_slice(ids);
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
    if let Some(points) = &first.found.points {
        return Ok(points.clone());
    }
    if orders.is_empty() {
        return Ok(Vec::new());
    }
    let file = std::fs::metadata(&plan.input.file).map_or(0, |found| found.len());
    let each = file.saturating_mul(GROUP_BYTES_FOR_EACH).max(MIN_GROUP_BYTES).min(limits().0);
    let (distinct, references) = (first.found.lru.distinct(), first.found.lru.references());
    let cost = |orders: &[Order]| needed(orders, distinct, references, first.found.sized, true);
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
/// Kept references that all caches take at once: each cache finds its own memory in the processor's caches for longer.
const KEPT_PIECE: usize = 8 * PIECE;

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
    let (distinct, references) = (first.found.lru.distinct(), first.found.lru.references());
    let (memory, most) = limits();
    let dense = needed(orders, distinct, references, first.found.sized, true) <= memory / 4;
    let wanted = needed(orders, distinct, references, first.found.sized, dense);
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
    if let Some(kept) = &first.found.kept {
        let mut keys = Vec::new();
        let line = crate::progress::Progress::new(plan.quiet);
        let begun = std::time::Instant::now();
        for (number, ids) in kept.ids.chunks(KEPT_PIECE).enumerate() {
            keys.clear();
            keys.extend(ids.iter().map(|id| u64::from(*id)));
            let from = number * KEPT_PIECE;
            bank.feed(bank::Piece { keys: &keys, ids, bytes: kept.bytes.get(from..from + ids.len()) });
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
    let mut table = IdTable::with_max(most);
    let table = plan.sampling.is_none().then_some(&mut table);
    let (mut numbers, mut seen) = (Vec::new(), 0u64);
    let sized = first.found.sized;
    let wants_bytes = move |_: &Trace| sized;
    pieces::stream(&mut trace, &mut keys, table, wants_bytes, &meter, |piece| {
        if piece.too_many {
            return Err(too_many(plan.unit, most, memory));
        }
        seen += piece.keys.len() as u64;
        if plan.sampling.is_some() {
            bank.feed(bank::Piece { keys: &piece.keys, ids: &[], bytes: None });
            return Ok(());
        }
        // Samples are chosen by number, so that they do not depend on how the trace was read.
        numbers.clear();
        numbers.extend(piece.ids.iter().map(|id| u64::from(*id)));
        bank.feed(bank::Piece { keys: &numbers, ids: &piece.ids, bytes: piece.bytes() });
        Ok(())
    })?;
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
    // State and position of each number; vectors have up to twice the length.
    let numbers = |distinct: u64| distinct.saturating_add(1).next_power_of_two() * 5;
    let one = |order: &Order| {
        let followed = |share: f64| (order.room.min(distinct) as f64 * share) as u64;
        match (order.policy, order.sample) {
            (PolicyId::Belady, _) => iowhy_sim::policy::belady::memory_bytes(references),
            // Two entries for each block where ghosts are kept; the parts of a sample are as much again.
            (_, Some(share)) => numbers((distinct as f64 * share) as u64) * 2 + followed(share) * 2 * 2 * 16,
            _ if dense => numbers(distinct) + followed(1.0) * 2 * 16,
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
        keep(&mut kept, &[1, 2, 3], None, None, false, 1000).unwrap();
        assert!(keep(&mut kept, &[0; 100], None, None, false, 1000).unwrap_err().hint.is_some());
        keep(&mut kept, &[0; 100], None, None, true, 1000).unwrap();
        assert!(kept.is_none());
    }

    #[test]
    fn bytes_are_kept_from_where_they_differ_and_stand_beside_their_references() {
        let (mut kept, mut sizes) = (Some(Kept::default()), Sizes::default());
        for bytes in [[5, 5], [5, 6], [5, 5]] {
            let differ = sizes.differ(&bytes);
            keep(&mut kept, &[0, 1], differ.then_some(&bytes), sizes.one, true, 1 << 20).unwrap();
        }
        let kept = kept.unwrap();
        assert_eq!((kept.ids.len(), kept.bytes), (6, vec![5, 5, 5, 6, 5, 5]));
    }
}
