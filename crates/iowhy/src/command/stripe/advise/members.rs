//! The members of a stripe to be: found, and measured one by one and all together. Nothing is ever written to a disk of the
//! user's.

use std::path::Path;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::service::ServiceCurve;
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_explain::striping::curve::{self, Point};
use iowhy_explain::summary;
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::environment;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Needs, Target, stripe};

use crate::cli::StripeAdviseArgs;
use crate::command::shared;
use crate::progress::Progress;

/// Time for measuring the members when nobody says.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);
/// Rounds of each cell.
const ROUNDS: u32 = 4;
/// A throttle of a control group lets a tenth of a second's worth through at once after a pause: slices must be long
/// against that, unless the user sets the time.
const THROTTLED_SLICE: Duration = Duration::from_millis(600);
const LEAST_SLICE: Duration = Duration::from_millis(20);
/// Sizes, depth, and whether in order.
const CELLS: [(u64, usize, bool); 6] = [
    (4 << 10, 1, false),
    (64 << 10, 1, false),
    (256 << 10, 1, false),
    (1 << 20, 1, false),
    (4 << 10, 16, false),
    (64 << 10, 1, true),
];
/// All members together: size and depth for each.
const TOGETHER: (u64, usize) = (256 << 10, 4);
/// Members that together reach less than this share of the sum of each alone share something.
const ADDS_UP: f64 = 0.9;
const MOST_DISKS: usize = 64;

/// What is known of one member.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Its curve; `None` when too little was measured.
    pub(crate) curve: Option<ServiceCurve>,
    /// What it was fitted to, with intervals: bytes, depth, in order, time for each request at that rate.
    pub(crate) points: Vec<(u64, u64, bool, Estimate)>,
    /// Why a cell failed.
    pub(crate) failure: Option<String>,
}

impl Measured {
    /// Its points, for the fit.
    fn plain(&self) -> Vec<Point> {
        let plain = |(bytes, depth, sequential, ns): &(u64, u64, bool, Estimate)| Point {
            bytes: *bytes,
            depth: *depth,
            sequential: *sequential,
            ns: ns.value,
        };
        self.points.iter().map(plain).collect()
    }

    /// How much longer than the others it takes: the median over its points of their times against the pooled ones.
    pub(super) fn slowness(&self, pooled: &[Point]) -> f64 {
        let ratio = |own: &Point| Some(own.ns / pooled.iter().find(|point| alike(own, point))?.ns);
        let ratios: Vec<f64> = self.plain().iter().filter_map(ratio).collect();
        stats::median(&ratios).unwrap_or(1.0)
    }
}

/// Whether two points are of the same request.
fn alike(a: &Point, b: &Point) -> bool {
    (a.bytes, a.depth, a.sequential) == (b.bytes, b.depth, b.sequential)
}

/// The medians over members of each request that all of them made.
fn pooled(members: &[Measured]) -> Vec<Point> {
    let all: Vec<Vec<Point>> = members.iter().map(Measured::plain).collect();
    let Some(first) = all.first() else { return Vec::new() };
    let of_all = |point: &Point| {
        let times: Option<Vec<f64>> =
            all.iter().map(|points| Some(points.iter().find(|other| alike(point, other))?.ns)).collect();
        Some(Point { ns: stats::median(&times?)?, ..*point })
    };
    first.iter().filter_map(of_all).collect()
}

/// What measuring brought.
pub(super) struct Outcome {
    pub(super) members: Vec<Measured>,
    /// The medians over members.
    pub(super) pooled: Vec<Point>,
    /// What was fitted to them.
    pub(super) pooled_curve: Option<ServiceCurve>,
    /// Whether a control group throttles one of them.
    pub(super) throttled: bool,
    pub(super) warnings: Vec<Warning>,
}

/// Finds or makes the members.
///
/// # Errors
/// What one of them refuses; the same one twice; fewer than two.
pub(super) fn resolve(
    names: &[String],
    scratch_bytes: u64,
    progress: &Progress,
) -> Result<Vec<Target>, Problem> {
    if names.len() < 2 || names.len() > MOST_DISKS {
        return Err(Problem::refused(format!(
            "{} disk(s): a stripe has 2 to {MOST_DISKS} members",
            names.len()
        ))
        .hint("name them one after the other: `iowhy stripe advise /dev/sdb /dev/sdc --workload ...`"));
    }
    let needs =
        Needs { scratch_bytes: scratch_bytes.div_ceil(names.len() as u64), write: false, destroy_data: None };
    let mut members: Vec<Target> = Vec::new();
    for name in names {
        if name.starts_with("stripe:") || (name.contains(',') && !Path::new(name).exists()) {
            return Err(Problem::refused(format!("`{name}` is not one disk"))
                .hint("name the members one after the other, with blanks between"));
        }
        let member = shared::resolve(name, &needs, progress)?;
        stripe::check_member("stripe advise", &member, &members, stripe::SECTOR_BYTES)?;
        members.push(member);
    }
    Ok(members)
}

/// Measures every member alone, and all together.
///
/// # Errors
/// A budget that is none.
pub(super) fn measure(
    disks: &[Target],
    args: &StripeAdviseArgs,
    progress: &Progress,
) -> Result<Outcome, Problem> {
    let budget = match &args.budget {
        Some(text) => units::parse_duration("--budget", text)?,
        None => DEFAULT_BUDGET,
    };
    if budget < Duration::from_secs(1) {
        return Err(Problem::refused("`--budget` leaves less than a second to know the disks")
            .hint("for example `--budget 30s`"));
    }
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let mut of: Vec<(usize, (u64, usize, bool))> = Vec::new();
    for (index, disk) in disks.iter().enumerate() {
        for shape in CELLS {
            if let Some(workload) = workload(disk, shape, args.seed) {
                cells.push(cell(format!("{}-{index}", key(shape)), vec![(workload, disk)]));
                of.push((index, shape));
            }
        }
    }
    let alone = cells.len();
    let (bytes, depth) = TOGETHER;
    let each: Option<Vec<_>> =
        disks.iter().map(|disk| Some((workload(disk, (bytes, depth, false), args.seed)?, disk))).collect();
    if let Some(arms) = each {
        for (index, arm) in arms.iter().enumerate() {
            cells.push(cell(format!("one-{index}"), vec![arm.clone()]));
        }
        cells.push(cell("together".to_owned(), arms));
    }
    let throttled = disks.iter().any(|disk| environment::environment(disk).throttle.is_some());
    let least = if throttled && args.budget.is_none() { THROTTLED_SLICE } else { LEAST_SLICE };
    let slice = (budget / (cells.len().max(1) as u32 * ROUNDS)).max(least);
    for cell in &mut cells {
        cell.bounds.wall = slice;
    }
    let effort = Effort {
        least_rounds: ROUNDS,
        most_rounds: ROUNDS,
        budget: slice * cells.len() as u32 * ROUNDS,
        precision: 0.0,
        seed: args.seed,
    };
    let outcome =
        campaign::run(&cells, effort, &mut |p| progress.at(p.share, p.remaining, "measuring the disks"));
    let mut members: Vec<Measured> =
        disks.iter().map(|_| Measured { curve: None, points: Vec::new(), failure: None }).collect();
    for ((index, shape), runs) in of.iter().zip(&outcome.cells) {
        let Some(run) = runs.first() else { continue };
        let member = &mut members[*index];
        if let Some(ns) = ns_per_request(run, args.seed) {
            member.points.push((shape.0, shape.1 as u64, shape.2, ns));
        }
        member.failure = member.failure.take().or_else(|| run.failure.clone());
    }
    for (member, disk) in members.iter_mut().zip(disks) {
        let points = member.plain();
        if member.failure.is_none() {
            member.curve = curve::fit(&points, disk.facts.size_bytes);
        }
    }
    let warnings = together(&outcome.cells[alone..], disks.len(), args.seed).into_iter().collect();
    let pooled = pooled(&members);
    let pooled_curve = curve::fit(&pooled, disks.iter().map(|disk| disk.facts.size_bytes).min().unwrap_or(0));
    Ok(Outcome { members, pooled, pooled_curve, throttled, warnings })
}

/// Whether the members together are slower than their sum.
fn together(cells: &[Vec<CellRun>], disks: usize, seed: u64) -> Option<Warning> {
    let rate = |run: &CellRun| Some(summary::summarize(run, seed).throughput?.value);
    let sum: f64 = cells.iter().take(disks).map(|runs| rate(runs.first()?)).sum::<Option<f64>>()?;
    let joint: f64 = cells.get(disks)?.iter().map(rate).sum::<Option<f64>>()?;
    (joint < ADDS_UP * sum).then(|| {
        Warning::new(
            "members-share-something",
            format!(
                "all members together move {}, each alone {} in sum: they share a bus, a link, a device below or this \
                 machine's CPUs, which the simulation does not know",
                units::rate_bytes(joint),
                units::rate_bytes(sum)
            ),
        )
        .next("`--prove` measures what that costs")
    })
}

fn key((bytes, depth, sequential): (u64, usize, bool)) -> String {
    format!("{bytes}-d{depth}-{}", if sequential { "seq" } else { "chance" })
}

/// One cell of a member; `None` where it cannot do it: memory, or a member smaller than the request.
fn workload(disk: &Target, (bytes, depth, sequential): (u64, usize, bool), seed: u64) -> Option<Workload> {
    let direct = disk.facts.direct_supported != Some(false) && !disk.facts.memory_backed;
    let state = match (direct, disk.facts.memory_backed) {
        (true, _) => CacheState::Direct,
        (false, true) => CacheState::Warm,
        (false, false) => CacheState::Cold,
    };
    let method = match (depth, direct) {
        (1, true) => Method::Direct,
        // Chance without read-ahead: what a stripe of ours is asked for.
        (1, false) if !sequential => Method::PreadRandom,
        (1, false) => Method::Pread,
        _ => Method::Uring,
    };
    let method =
        if disk.script().is_some() && method == Method::PreadRandom { Method::Pread } else { method };
    let mut workload = Workload::reads(method, state, bytes, disk.facts.size_bytes / bytes * bytes);
    workload.pattern = if sequential { Pattern::Sequential } else { Pattern::Permuted };
    workload.depth = depth;
    workload.seed = seed;
    (workload.blocks() >= depth as u64).then_some(workload)
}

fn cell<'a>(key: String, arms: Vec<(Workload, &'a Target)>) -> Cell<'a> {
    let once = arms.iter().any(|(workload, _)| workload.state == CacheState::Cold);
    let blocks = arms.iter().map(|(workload, _)| workload.blocks()).min().unwrap_or(1);
    let bounds = Bounds { wall: Duration::ZERO, requests_per_thread: if once { blocks } else { u64::MAX } };
    Cell { key, arms, bounds }
}

/// Time for each request at the rate that was reached.
fn ns_per_request(run: &CellRun, seed: u64) -> Option<Estimate> {
    let rate = summary::summarize(run, seed).requests_per_second?;
    (rate.value > 0.0).then(|| rate.reciprocal(1e9, iowhy_core::estimate::Unit::Nanoseconds))
}
