//! The members of a stripe to be: found, and measured one by one and all together. A disk of the user's is only written to
//! where `--destroy-data` names it; what may not enter: what the figures mean for a stripe (`curves`).

use std::path::Path;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::service::ServiceCurve;
use iowhy_core::summary;
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::environment;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Needs, Target, stripe};
use iowhy_stripe::curve::{self, Point};

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
/// What is measured of each disk.
const SHAPES: [Shape; 6] = [
    Shape::by_chance(4 << 10, 1),
    Shape::by_chance(64 << 10, 1),
    Shape::by_chance(256 << 10, 1),
    Shape::by_chance(1 << 20, 1),
    Shape::by_chance(4 << 10, 16),
    Shape { sequential: true, ..Shape::by_chance(64 << 10, 1) },
];
/// All members together.
const TOGETHER: Shape = Shape::by_chance(256 << 10, 4);
/// Members that together reach less than this share of the sum of each alone share something.
const ADDS_UP: f64 = 0.9;
const MOST_DISKS: usize = 64;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes.
    pub(crate) bytes: u64,
    /// In flight.
    pub(crate) depth: usize,
    /// In order, and not by chance.
    pub(crate) sequential: bool,
    /// Writes.
    pub(crate) write: bool,
}

impl Shape {
    const fn by_chance(bytes: u64, depth: usize) -> Shape {
        Shape { bytes, depth, sequential: false, write: false }
    }

    /// As a point to fit, of requests that take so long each.
    pub(super) fn point(self, ns: f64) -> Point {
        Point { bytes: self.bytes, depth: self.depth as u64, sequential: self.sequential, ns }
    }

    fn key(self) -> String {
        let order = if self.sequential { "seq" } else { "chance" };
        format!("{}-d{}-{order}-{}", self.bytes, self.depth, if self.write { "write" } else { "read" })
    }
}

/// What is known of one member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// The curve of its reads; `None` when too little was measured.
    pub(crate) read: Option<ServiceCurve>,
    /// The curve of its writes; `None` where they were not measured.
    pub(crate) write: Option<ServiceCurve>,
    /// What they were fitted to, with intervals: time for each request at the rate that was reached.
    pub(crate) points: Vec<(Shape, Estimate)>,
    /// What one of ten of the smallest requests by chance took at most, nanoseconds: where a limit holds the others back, that is
    /// what a request takes which nothing holds back.
    pub(crate) unhindered_ns: Option<f64>,
    /// Why a cell failed.
    pub(crate) failure: Option<String>,
}

impl Measured {
    /// Its points of one direction, for the fit.
    fn of(&self, write: bool) -> Vec<Point> {
        let own = self.points.iter().filter(|(shape, _)| shape.write == write);
        own.map(|(shape, ns)| shape.point(ns.value)).collect()
    }
}

/// What measuring brought.
pub(super) struct Outcome {
    pub(super) members: Vec<Measured>,
    /// Whether a control group throttles one of them.
    pub(super) throttled: bool,
    pub(super) warnings: Vec<Warning>,
}

/// Finds or makes the members; those that `destroy` names may be written to, and are where the load `writes`.
///
/// # Errors
/// What one of them refuses; the same one twice; fewer than two; a permission that names none of them.
pub(super) fn resolve(
    names: &[String],
    destroy: &[String],
    writes: bool,
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
    if let Some(stranger) = destroy.iter().find(|name| !names.contains(name)) {
        return Err(Problem::refused(format!("`--destroy-data {stranger}` names none of the disks")).hint(
            "give a disk's name exactly as it stands among the disks, once for each that may be written to",
        ));
    }
    let mut members: Vec<Target> = Vec::new();
    for name in names {
        if name.starts_with("stripe:") || (name.contains(',') && !Path::new(name).exists()) {
            return Err(Problem::refused(format!("`{name}` is not one disk"))
                .hint("name the members one after the other, with blanks between"));
        }
        let permitted = destroy.contains(name);
        let needs = Needs {
            scratch_bytes: scratch_bytes.div_ceil(names.len() as u64),
            write: permitted && writes,
            destroy_data: permitted.then(|| name.clone()),
        };
        let member = shared::resolve(name, &needs, progress)?;
        stripe::check_member("stripe advise", &member, &members, stripe::SECTOR_BYTES)?;
        members.push(member);
    }
    Ok(members)
}

/// Measures every member alone, and all together; also what they take for writes, if that is wanted and they all may be
/// written to past the cache.
///
/// # Errors
/// A budget that is none.
pub(super) fn measure(
    disks: &[Target],
    writes: bool,
    args: &StripeAdviseArgs,
    progress: &Progress,
) -> Result<Outcome, Problem> {
    let budget = args.time.unwrap_or(DEFAULT_BUDGET);
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let mut of: Vec<(usize, Shape)> = Vec::new();
    let directions: &[bool] =
        if writes && disks.iter().all(writes_can_be_measured) { &[false, true] } else { &[false] };
    for (index, disk) in disks.iter().enumerate() {
        for shape in directions.iter().flat_map(|write| SHAPES.map(|shape| Shape { write: *write, ..shape }))
        {
            if let Some(workload) = workload(disk, shape, args.seed) {
                cells.push(cell(format!("{}-{index}", shape.key()), vec![(workload, disk)]));
                of.push((index, shape));
            }
        }
    }
    let alone = cells.len();
    let each: Option<Vec<_>> =
        disks.iter().map(|disk| Some((workload(disk, TOGETHER, args.seed)?, disk))).collect();
    if let Some(arms) = each {
        for (index, arm) in arms.iter().enumerate() {
            cells.push(cell(format!("one-{index}"), vec![arm.clone()]));
        }
        cells.push(cell("together".to_owned(), arms));
    }
    let throttled = disks.iter().any(|disk| environment::environment(disk).throttle.is_some());
    let least = if throttled && args.time.is_none() { THROTTLED_SLICE } else { LEAST_SLICE };
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
    let mut members: Vec<Measured> = vec![Measured::default(); disks.len()];
    for ((index, shape), runs) in of.iter().zip(&outcome.cells) {
        let Some(run) = runs.first() else { continue };
        let member = &mut members[*index];
        if let Some(ns) = ns_per_request(run, args.seed) {
            member.points.push((*shape, ns));
        }
        if *shape == SHAPES[0] && !run.latency.is_empty() {
            member.unhindered_ns = Some(run.latency.quantile(0.1) as f64);
        }
        member.failure = member.failure.take().or_else(|| run.failure.clone());
    }
    for (member, disk) in members.iter_mut().zip(disks) {
        if member.failure.is_none() {
            member.read = curve::fit(&member.of(false), disk.facts.size_bytes);
            member.write = curve::fit(&member.of(true), disk.facts.size_bytes);
        }
    }
    let warnings = together(&outcome.cells[alone..], disks.len(), args.seed).into_iter().collect();
    Ok(Outcome { members, throttled, warnings })
}

/// Whether writes to it may be measured: it may be written to, and past the cache.
pub(super) fn writes_can_be_measured(disk: &Target) -> bool {
    let direct = disk.facts.direct_supported != Some(false) && !disk.facts.memory_backed;
    disk.writable() && (direct || disk.script().is_some())
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

/// One cell of a member; `None` where it cannot do it: memory, or a member smaller than the request.
fn workload(disk: &Target, shape: Shape, seed: u64) -> Option<Workload> {
    let Shape { bytes, depth, sequential, write } = shape;
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
    workload.direction = if write { Direction::Write } else { Direction::Read };
    (workload.blocks() >= depth as u64).then_some(workload)
}

fn cell<'a>(key: String, arms: Vec<(Workload, &'a Target)>) -> Cell<'a> {
    let once = arms.iter().any(|(workload, _)| workload.state == CacheState::Cold);
    let blocks = arms.iter().map(|(workload, _)| workload.blocks()).min().unwrap_or(1);
    let bounds = Bounds { wall: Duration::ZERO, requests_per_thread: if once { blocks } else { u64::MAX } };
    Cell { key, arms, bounds, listed: None }
}

/// Time for each request at the rate that was reached.
fn ns_per_request(run: &CellRun, seed: u64) -> Option<Estimate> {
    let rate = summary::summarize(run, seed).requests_per_second?;
    (rate.value > 0.0).then(|| rate.reciprocal(1e9, iowhy_core::estimate::Unit::Nanoseconds))
}
