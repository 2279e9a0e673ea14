//! `iowhy mrc TRACE`: how often caches of each policy and size would miss.

mod passes;
mod pieces;
mod sizes;

use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_sim::curve::bank::{Basis, Order, Point};
use iowhy_sim::curve::keys::{Counted, Unit};
use iowhy_sim::curve::shape::{Cliff, cliffs, saves};
use iowhy_sim::curve::shards::{MIN_FOLLOWED, Sampling};
use iowhy_sim::policy::PolicyId;
use iowhy_view::document::Detail;

use self::passes::{First, Lru, Plan};
use crate::cli::mrc::CacheSize;
use crate::cli::{MrcArgs, MrcOnly, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::Kind;
use crate::record::trace::{
    CliffRecord, CurvePoint, CurveRecord, LeftOutRecord, RatiosFound, ShapeRecord, TraceRecord,
};
use crate::screen;

/// References times caches of the dense curves that are worth running whole: some ten seconds of one core.
const EXACT_STEPS: u64 = 400_000_000;
/// Distinct blocks that a miniature should follow.
const MINIATURE: f64 = 50_000.0;
/// A miniature cache of fewer blocks says little.
const MIN_ROOM: f64 = 64.0;
/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;

/// Runs the command.
///
/// # Errors
/// Refusals for options and files; a trace that breaks off or touches nothing; more memory than there is.
pub fn run(args: &MrcArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let unit = match args.objects {
        true => Unit::Objects,
        false => Unit::Blocks(args.block),
    };
    let policies = args.policy.clone();
    let asked = args.size.clone().unwrap_or_else(sizes::default);
    sizes::check(&asked, unit)?;
    let sampling = args.sample.flatten();
    if sampling.is_some() && policies.contains(&PolicyId::Belady) {
        return Err(Problem::refused(
            "`--sample` and the policy `belady`: the bound is computed from whole traces only",
        )
        .hint("leave one of them out"));
    }
    let counted = match args.only {
        MrcOnly::All => Counted::ReadsAndWrites,
        MrcOnly::Reads => Counted::Reads,
        MrcOnly::Writes => Counted::Writes,
    };
    let outputs = Outputs::open_apart(options, &[&args.input.file])?;
    let second_pass = policies.iter().any(|policy| *policy != PolicyId::Lru);
    let lru = policies.contains(&PolicyId::Lru);
    let quiet = outputs.quiet();
    let plan = Plan { input: &args.input, unit, counted, sampling, lru, second_pass, quiet };
    let early = early(plan, &policies, &asked, args.points);
    let first = passes::first(plan, &early)?;
    if first.found.lru.references() == 0 {
        return Err(nothing_counts(&first));
    }
    if let Lru::Sampled(curve) = &first.found.lru
        && curve.followed() == 0
    {
        return Err(empty_sample(&first, unit));
    }
    let rooms = Rooms::new(&asked, args.points, &first, unit);
    let points = all_points(plan, &first, &policies, &rooms)?;
    let mut warnings = first.warnings.clone();
    warnings.extend(warnings_of(&first));
    outputs.warn(&warnings);

    let record = record(&first, &policies, &rooms, &points, unit, &warnings);
    let chapter = screen::mrc::chapter(&record, Detail::Screen);
    outputs.finish(&screen::text(&chapter, output::width().min(MAX_COLUMNS)), &record)?;
    Ok(Ending::done())
}

/// The sizes, as room in blocks or objects.
struct Rooms {
    asked: Vec<u64>,
    /// Those of the dense curves that are not asked for.
    between: Vec<u64>,
}

impl Rooms {
    fn new(sizes: &[CacheSize], points: u32, first: &First, unit: Unit) -> Rooms {
        let distinct = first.found.lru.distinct();
        let asked = sizes::rooms(sizes, distinct, unit);
        let mut between = sizes::spread(distinct, points);
        between.retain(|room| !asked.contains(room));
        Rooms { asked, between }
    }
}

/// Every point of every curve, by policy in the order asked for, then by size.
fn all_points(
    plan: Plan<'_>,
    first: &First,
    policies: &[PolicyId],
    rooms: &Rooms,
) -> Result<Vec<Point>, Problem> {
    let others: Vec<PolicyId> = policies.iter().copied().filter(|policy| *policy != PolicyId::Lru).collect();
    let mut points = passes::second(plan, first, &orders(plan, first, &others, rooms))?;
    if policies.contains(&PolicyId::Lru) {
        points.extend(
            rooms.asked.iter().chain(&rooms.between).filter_map(|room| lru_point(&first.found.lru, *room)),
        );
    }
    if matches!(&first.found.lru, Lru::Sampled(curve) if curve.followed() < MIN_FOLLOWED) {
        // The miniatures follow the same blocks, and know as little of their error.
        for point in &mut points {
            if let Basis::Sampled { error, .. } = &mut point.basis {
                *error = None;
            }
        }
    }
    let place = |policy: PolicyId| policies.iter().position(|p| *p == policy);
    points.sort_by_key(|point| (place(point.policy), point.room));
    Ok(points)
}

/// Caches that can run in the first pass: all, if their sizes are known before the trace is.
fn early(plan: Plan<'_>, policies: &[PolicyId], sizes: &[CacheSize], points: u32) -> Vec<Order> {
    let of_trace = sizes.iter().any(|size| matches!(size, CacheSize::Share(_)));
    if of_trace || points > 0 || plan.sampling.is_some() {
        return Vec::new();
    }
    let rooms = sizes::rooms(sizes, 0, plan.unit);
    let others = policies.iter().filter(|policy| **policy != PolicyId::Lru);
    others.flat_map(|&policy| rooms.iter().map(move |&room| Order { policy, room, sample: None })).collect()
}

/// What the second pass has to run: sizes that were asked for whole, those between them whole where that is quick.
fn orders(plan: Plan<'_>, first: &First, policies: &[PolicyId], rooms: &Rooms) -> Vec<Order> {
    let distinct = first.found.lru.distinct().max(1) as f64;
    let sampled = plan.sampling.map(|sampling| match sampling {
        Sampling::Rate(rate) => rate,
        Sampling::Blocks(blocks) => (f64::from(blocks) / distinct).min(1.0),
    });
    let caches = (policies.len() * rooms.between.len()) as u64;
    let quick = first.found.lru.references().saturating_mul(caches) <= EXACT_STEPS;
    let between = sampled.or((!quick).then_some((MINIATURE / distinct).min(1.0)));
    let order =
        |policy, room, sample: Option<f64>| Order { policy, room, sample: sample.filter(|rate| *rate < 1.0) };
    let says_something = |order: &Order| match order.sample {
        Some(rate) => order.policy != PolicyId::Belady && order.room as f64 * rate >= MIN_ROOM,
        None => true,
    };
    policies
        .iter()
        .flat_map(|&policy| {
            let asked = rooms.asked.iter().map(move |room| order(policy, *room, sampled));
            let more = rooms.between.iter().map(move |room| order(policy, *room, between));
            asked.chain(more.filter(says_something))
        })
        .collect()
}

fn lru_point(lru: &Lru, room: u64) -> Option<Point> {
    let (miss_ratio, byte_miss_ratio, basis) = match lru {
        Lru::Exact(curve) => (curve.miss_ratio(room), curve.byte_miss_ratio(room), Basis::Exact),
        Lru::NotAsked { .. } => return None,
        Lru::Sampled(curve) => {
            let basis = Basis::Sampled { rate: curve.rate(), error: curve.error(room) };
            (curve.miss_ratio(room)?, None, basis)
        }
    };
    Some(Point { policy: PolicyId::Lru, room, miss_ratio, byte_miss_ratio, basis })
}

fn empty_sample(first: &First, unit: Unit) -> Problem {
    let what = if unit == Unit::Objects { "objects" } else { "blocks" };
    Problem::refused(format!(
        "the sample is empty: none of the {what} that the {} references touch is in it, so nothing can be told",
        first.found.lru.references()
    ))
    .hint("follow more: a larger share or a number, as `--sample 8192`; without `--sample` everything is followed")
}

fn nothing_counts(first: &First) -> Problem {
    let left = first.left_out;
    Problem::failed(format!(
        "`{}`: none of its {} requests counts: {} move no bytes, {} are empty, {} are too large, {} are of the other kind",
        first.trace.name(),
        first.trace.requests(),
        left.no_access,
        left.empty,
        left.too_large,
        left.other_kind
    ))
    .hint("`iowhy trace stat` shows what it holds; `--format` names another format, `--only all` counts reads and writes")
}

/// What a reader of the curves must know of the trace.
fn warnings_of(first: &First) -> Vec<Warning> {
    let mut list = Vec::new();
    if first.trace.below_page_cache() == Some(true) {
        list.push(
            Warning::new(
                "below-page-cache",
                "the trace was taken below a page cache: what that cache answered is not in it, so these are ratios of \
                 a cache beneath it (in a disk, an array, a host), not of the page cache",
            )
            .next("for the page cache itself, trace the calls: `strace -f -ttt -T -e trace=file,desc -o FILE CMD`"),
        );
    }
    if let Lru::Sampled(curve) = &first.found.lru
        && curve.followed() < MIN_FOLLOWED
    {
        list.push(
                Warning::new(
                    "small-sample",
                    format!(
                        "the sample holds {} different blocks or objects: with fewer than {MIN_FOLLOWED} nobody can tell \
                         how far off its ratios are",
                        curve.followed()
                    ),
                )
                .next("follow more, as `--sample 8192`, or leave `--sample` out"),
            );
    }
    if first.left_out.too_large > 0 {
        list.push(Warning::new(
            "too-large",
            format!(
                "{} requests of more than {} blocks were left out: perhaps the format is another one",
                first.left_out.too_large,
                iowhy_sim::curve::keys::MAX_BLOCKS_OF_REQUEST
            ),
        ));
    }
    list
}

fn record(
    first: &First,
    policies: &[PolicyId],
    rooms: &Rooms,
    points: &[Point],
    unit: Unit,
    warnings: &[Warning],
) -> TraceRecord<RatiosFound> {
    let block = match unit {
        Unit::Blocks(bytes) => Some(bytes),
        Unit::Objects => None,
    };
    let one = |point: &Point| {
        let (basis, rate, error) = match point.basis {
            Basis::Exact => ("exact", 1.0, Some(0.0)),
            Basis::Sampled { rate, error } => ("sampled", rate, error),
        };
        CurvePoint {
            blocks: point.room,
            size_bytes: block.map(|bytes| point.room.saturating_mul(bytes)),
            miss_ratio: point.miss_ratio,
            byte_miss_ratio: point.byte_miss_ratio,
            sampling_error: error,
            basis: basis.to_owned(),
            sample_rate: rate,
            asked: rooms.asked.contains(&point.room),
        }
    };
    let curve = |policy: &PolicyId| CurveRecord {
        policy: policy.id().to_owned(),
        points: points.iter().filter(|point| point.policy == *policy).map(one).collect(),
    };
    let left = first.left_out;
    let found = RatiosFound {
        unit: if block.is_some() { "blocks" } else { "objects" }.to_owned(),
        block_bytes: block,
        counted_requests: first.requests,
        references: first.found.lru.references(),
        distinct: first.found.lru.distinct(),
        distinct_exact: !matches!(first.found.lru, Lru::Sampled(_)),
        cold_miss_ratio: first.found.lru.distinct() as f64 / first.found.lru.references().max(1) as f64,
        left_out: LeftOutRecord {
            no_access: left.no_access,
            empty: left.empty,
            too_large: left.too_large,
            other_kind: left.other_kind,
        },
        curves: policies.iter().map(curve).collect(),
        lru_shape: match &first.found.lru {
            Lru::Exact(curve) => Some(ShapeRecord {
                cliffs: cliffs(curve).iter().map(cliff_record).collect(),
                saves_90_percent_blocks: saves(curve, 0.9),
                saves_all_blocks: saves(curve, 1.0),
            }),
            Lru::Sampled(_) | Lru::NotAsked { .. } => None,
        },
    };
    TraceRecord::new(&first.trace, Kind::MissRatios, "mrc", warnings, found)
}

fn cliff_record(cliff: &Cliff) -> CliffRecord {
    CliffRecord {
        from_blocks: cliff.from,
        to_blocks: cliff.to,
        middle_blocks: cliff.middle,
        miss_ratio_before: cliff.before,
        miss_ratio_behind: cliff.behind,
        like_a_loop: cliff.is_loop(),
    }
}
