//! The members of a stripe, measured one by one and all together. A member is written to only where its target allows that.
//! What the figures mean for a stripe is in `disks`.

use std::collections::BTreeMap;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::pattern::Pattern;
use iowhy_core::service::ServiceCurve;
use iowhy_core::summary;
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::environment;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::Target;

use crate::curve::{self, Point};
use crate::load::Progress;

/// Rounds of each cell.
const ROUNDS: u32 = 4;
/// A throttle of a control group lets a tenth of a second's worth through at once after a pause: slices must be long
/// against that, unless the user sets the time.
const THROTTLED_SLICE: Duration = Duration::from_millis(600);
const MIN_SLICE: Duration = Duration::from_millis(20);
/// What is measured of each disk.
const SHAPES: [Shape; 6] = [
    Shape::random(4 << 10, 1),
    Shape::random(64 << 10, 1),
    Shape::random(256 << 10, 1),
    Shape::random(1 << 20, 1),
    Shape::random(4 << 10, 16),
    Shape { sequential: true, ..Shape::random(64 << 10, 1) },
];
/// All members together.
const TOGETHER: Shape = Shape::random(256 << 10, 4);
/// Members that together reach less than this share of the sum of each alone share something.
const ADDS_UP: f64 = 0.9;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes.
    pub bytes: u64,
    /// Queue depth.
    pub depth: usize,
    /// Sequential, else random.
    pub sequential: bool,
    /// Writes.
    pub write: bool,
}

impl Shape {
    const fn random(bytes: u64, depth: usize) -> Shape {
        Shape { bytes, depth, sequential: false, write: false }
    }

    /// A point to fit.
    pub(crate) fn point(self, ns: f64) -> Point {
        Point { bytes: self.bytes, depth: self.depth as u64, sequential: self.sequential, ns }
    }

    fn key(self) -> String {
        let order = if self.sequential { "seq" } else { "random" };
        format!("{}-d{}-{order}-{}", self.bytes, self.depth, if self.write { "write" } else { "read" })
    }
}

/// What is known of one member.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The curve of its reads; `None` when too little was measured.
    pub read: Option<ServiceCurve>,
    /// The curve of its writes; `None` where they were not measured.
    pub write: Option<ServiceCurve>,
    /// What they were fitted to, with intervals: time for each request at the rate that was reached.
    pub points: Vec<(Shape, Estimate)>,
    /// 10th percentile of the latency of the smallest random requests, nanoseconds: the latency without a throttle, where
    /// one delays the others.
    pub unhindered_ns: Option<f64>,
    /// Why a cell failed.
    pub failure: Option<String>,
}

impl Measured {
    /// Its points of one direction, for the fit.
    fn of(&self, write: bool) -> Vec<Point> {
        let own = self.points.iter().filter(|(shape, _)| shape.write == write);
        own.map(|(shape, ns)| shape.point(ns.value)).collect()
    }
}

/// The measured members.
pub struct Outcome {
    /// In the order of the disks.
    pub members: Vec<Measured>,
    /// Whether a control group throttles one of them.
    pub throttled: bool,
    /// How many members lie on the most shared disk of each; 1: it has its disks alone.
    pub sharers: Vec<u64>,
    /// Whether the members share a limit.
    pub warnings: Vec<Warning>,
}

/// How the members are measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Time for all members.
    pub time: Duration,
    /// The user chose that time: slices keep to it even where a throttle wants longer ones.
    pub time_chosen: bool,
    /// The load writes: writes are measured too, where every member may be written to past the cache.
    pub writes: bool,
    /// Seed of orders and offsets.
    pub seed: u64,
}

/// Measures every member alone, and all together.
pub fn measure(disks: &[Target], plan: Plan, progress: Progress<'_>) -> Outcome {
    let (mut cells, asked) = alone(disks, plan);
    let together: Option<Vec<_>> =
        disks.iter().map(|disk| Some((workload(disk, TOGETHER, plan.seed)?, disk))).collect();
    if let Some(arms) = together {
        let one = |(index, arm): (usize, &(Workload, _))| cell(format!("{ONE}{index}"), vec![arm.clone()]);
        cells.extend(arms.iter().enumerate().map(one));
        cells.push(cell(ALL.to_owned(), arms));
    }
    let throttled = disks.iter().any(|disk| environment::environment(disk).throttle.is_some());
    let least = if throttled && !plan.time_chosen { THROTTLED_SLICE } else { MIN_SLICE };
    let slice = (plan.time / (cells.len().max(1) as u32 * ROUNDS)).max(least);
    for cell in &mut cells {
        cell.bounds.wall = slice;
    }
    let effort = Effort {
        min_rounds: ROUNDS,
        max_rounds: ROUNDS,
        time: slice * cells.len() as u32 * ROUNDS,
        precision: 0.0,
        seed: plan.seed,
    };
    let outcome =
        campaign::run(&cells, effort, &mut |p| progress(p.share, p.remaining, "measuring the disks"));
    let runs: Vec<&CellRun> = outcome.cells.iter().flatten().collect();
    let mut members: Vec<Measured> = vec![Measured::default(); disks.len()];
    for run in &runs {
        let Some((index, shape)) = asked.get(&run.key) else { continue };
        let member = &mut members[*index];
        if let Some(ns) = ns_per_request(run, plan.seed) {
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
    let devices: Vec<Vec<String>> = disks.iter().map(|disk| environment::environment(disk).devices).collect();
    let names: Vec<&str> = disks.iter().map(|disk| disk.facts.name.as_str()).collect();
    let warning = one_disk(&devices, &names).or_else(|| shared_something(&runs, disks.len(), plan.seed));
    Outcome { members, throttled, sharers: sharers(&devices), warnings: warning.into_iter().collect() }
}

/// The cells of each member alone, and by their keys which member and which requests they are.
fn alone(disks: &[Target], plan: Plan) -> (Vec<Cell<'_>>, BTreeMap<String, (usize, Shape)>) {
    let (mut cells, mut asked) = (Vec::new(), BTreeMap::new());
    let directions: &[bool] =
        if plan.writes && disks.iter().all(writes_can_be_measured) { &[false, true] } else { &[false] };
    for (index, disk) in disks.iter().enumerate() {
        for shape in directions.iter().flat_map(|write| SHAPES.map(|shape| Shape { write: *write, ..shape }))
        {
            if let Some(workload) = workload(disk, shape, plan.seed) {
                let key = format!("{}-{index}", shape.key());
                cells.push(cell(key.clone(), vec![(workload, disk)]));
                asked.insert(key, (index, shape));
            }
        }
    }
    (cells, asked)
}

/// Whether writes to it may be measured: it may be written to, and past the cache.
pub fn writes_can_be_measured(disk: &Target) -> bool {
    let direct = disk.facts.direct_supported != Some(false) && !disk.facts.memory_backed;
    disk.writable() && (direct || disk.script().is_some())
}

/// Keys of one member with the requests that all of them answer together, and of all of them.
const ONE: &str = "one-";
const ALL: &str = "together";

/// For each member, the members on the most shared of its devices, itself included.
fn sharers(devices: &[Vec<String>]) -> Vec<u64> {
    let on = |device: &String| devices.iter().filter(|others| others.contains(device)).count() as u64;
    devices.iter().map(|own| own.iter().map(on).max().unwrap_or(1)).collect()
}

/// Members that lie on one disk are no independent disks.
fn one_disk(devices: &[Vec<String>], names: &[&str]) -> Option<Warning> {
    let on = |device: &String| -> Vec<String> {
        let members = devices.iter().zip(names).filter(|(own, _)| own.contains(device));
        members.map(|(_, name)| format!("`{name}`")).collect()
    };
    let (device, members) = devices
        .iter()
        .flatten()
        .map(|device| (device, on(device)))
        .max_by_key(|(_, members)| members.len())?;
    (members.len() > 1).then(|| {
        Warning::new(
            "members-on-one-disk",
            format!(
                "{} lie on one disk, `{device}`: each is simulated with 1/{} of its speed, and a stripe of them is no faster \
                 than the disk",
                members.join(", "),
                members.len()
            ),
        )
        .next("name one directory or partition of each disk")
    })
}

/// Whether the members together are slower than their sum.
fn shared_something(runs: &[&CellRun], disks: usize, seed: u64) -> Option<Warning> {
    let sum_of = |key: &str| {
        let of = runs.iter().filter(|run| run.key.starts_with(key));
        let rates: Option<Vec<f64>> =
            of.map(|run| Some(summary::summarize(run, seed).throughput?.value)).collect();
        rates.filter(|rates| rates.len() == disks).map(|rates| rates.iter().sum::<f64>())
    };
    let (sum, joint) = (sum_of(ONE)?, sum_of(ALL)?);
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

/// One cell of a member; `None` for a member smaller than the requests in flight.
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
        // Random reads without read-ahead, as a stripe in user space sends them.
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
    Cell { key, arms, bounds, listed: None, group: None, request_bytes: None }
}

/// Time for each request at the rate that was reached.
fn ns_per_request(run: &CellRun, seed: u64) -> Option<Estimate> {
    let rate = summary::summarize(run, seed).requests_per_second?;
    (rate.value > 0.0).then(|| rate.reciprocal(1e9, iowhy_core::estimate::Unit::Nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_on_one_disk_are_counted_and_named() {
        let devices = [&["vda"][..], &["vdb"], &["vda", "vdc"], &[]]
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(sharers(&devices), [2, 1, 2, 1]);
        let told = one_disk(&devices, &["a", "b", "c", "memory"]).unwrap();
        assert!(told.message.starts_with("`a`, `c` lie on one disk, `vda`"), "{told:?}");
        assert_eq!(one_disk(&devices[1..], &["b", "c", "memory"]), None);
    }
}
