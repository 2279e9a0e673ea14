//! The load simulated on every stripe of the disks: the fastest interleave, its cost for a single stream, and how sure that
//! is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::service::{DiskCurves, ServiceCurve};
use iowhy_core::stripe::Stripe;
use iowhy_core::warning::Warning;
use iowhy_probe::interrupt;
use iowhy_sim::machine::Machine;
use iowhy_sim::outcome::{DeviceUse, Outcome};
use iowhy_sim::sweep::{self, Settings};
use iowhy_sim::workload::{What, Workload};
use rayon::prelude::*;

use crate::load::Question;
use crate::split;

/// Most requests simulated at each point: rates are steady long before.
pub const MAX_REQUESTS: u64 = 60_000;
/// Requests of a single stream.
const STREAM_REQUESTS: u64 = 256;
const STREAM_BYTES: u64 = 1 << 20;
/// The measured curve may be off by this factor either way.
const OFF_BY: f64 = 1.25;

/// One stripe.
#[derive(Clone, Debug)]
pub struct Point {
    /// Which of the disks, in their order.
    pub members: Vec<usize>,
    /// Bytes of one turn; for one disk it says nothing.
    pub interleave_bytes: u64,
    /// Time of the workload.
    pub time_s: f64,
    /// What stripes are compared by: the time, or the mean latency of an open load.
    pub cost_s: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes of the busiest disk over the mean.
    pub most_over_mean: f64,
    /// Utilisation of each disk, or of its limit.
    pub loads: Vec<f64>,
    /// Share of the requests that are split; absent for a trace.
    pub split_share: Option<f64>,
    /// One sequential stream of 1 MiB requests, bytes a second.
    pub stream_bytes_per_second: f64,
}

/// All points.
pub struct Simulated {
    /// All disks, by interleave.
    pub points: Vec<Point>,
    /// The fastest interleave of each number of disks, from one on; of fewer than all the fastest disks.
    pub by_disks: Vec<Point>,
    /// The slowest disk, where they are not all alike.
    pub slowest: Option<usize>,
    /// Greatest ratio of each interleave's cost to the best one, over curves that are off; in the order of `points`.
    pub regret: Vec<f64>,
    /// Limitations.
    pub warnings: Vec<Warning>,
}

impl Simulated {
    /// The best of all disks but the slowest, where they are not all alike.
    pub fn without_slowest(&self) -> Option<&Point> {
        let slowest = self.slowest?;
        let all = self.points.first()?.members.len();
        self.by_disks.iter().find(|point| point.members.len() + 1 == all && !point.members.contains(&slowest))
    }
}

/// Disks, curves that may be off, and an interleave.
struct Task {
    members: Vec<usize>,
    curves: Vec<DiskCurves>,
    bytes: u64,
    /// Whether a single stream is of interest, too.
    streams: bool,
}

/// Simulates every point.
///
/// # Errors
/// A workload that does not fit on the disks, keys that are none, a trace that breaks off, Ctrl-C.
pub fn simulate(question: &Question<'_>) -> Result<Simulated, Problem> {
    let begun = Instant::now();
    let mut warnings = Vec::new();
    let all_disks: Vec<usize> = (0..question.disks.len()).collect();
    let usable = usable(question, &mut warnings)?;
    // One run shows what is refused before all are started.
    let first = run(&lineup(question.disks, &all_disks), question, usable[0], &mut warnings)?;
    drop(first);
    let one = begun.elapsed();
    let by_speed = by_speed(question);
    let mut tasks = Vec::new();
    for count in 1..=question.disks.len() {
        let mut members = by_speed[..count].to_vec();
        members.sort_unstable();
        let curves = lineup(question.disks, &members);
        // One disk has no turns.
        let of: &[u64] = if count == 1 { &usable[..1] } else { &usable };
        tasks.extend(of.iter().map(|bytes| Task {
            members: members.clone(),
            curves: curves.clone(),
            bytes: *bytes,
            streams: true,
        }));
    }
    let plain = tasks.len();
    for variant in off(&lineup(question.disks, &all_disks)) {
        tasks.extend(usable.iter().map(|bytes| Task {
            members: all_disks.clone(),
            curves: variant.clone(),
            bytes: *bytes,
            streams: false,
        }));
    }
    let finished = AtomicUsize::new(0);
    let results: Vec<Option<Point>> = tasks
        .par_iter()
        .map(|task| {
            if interrupt::requested() {
                return Err(Problem::failed(
                    "interrupted while simulating: the disks were measured, nothing is advised",
                )
                .hint("let it end; fewer `--interleave` take less time"));
            }
            let outcome = match run(&task.curves, question, task.bytes, &mut Vec::new()) {
                // The load fits on all disks, but not on fewer.
                Err(_) if task.members.len() < question.disks.len() => return Ok(None),
                outcome => outcome?,
            };
            let stream = if task.streams { stream(&task.curves, task.bytes)? } else { 0.0 };
            let done = finished.fetch_add(1, Ordering::Relaxed) + 1;
            let share = done as f64 / tasks.len() as f64;
            let left = one.mul_f64((tasks.len() - done) as f64 / rayon::current_num_threads().max(1) as f64);
            (question.progress)(share, left.min(Duration::from_secs(86_400)), "simulating");
            Ok(Some(point(question, &outcome, task, stream)))
        })
        .collect::<Result<_, Problem>>()?;
    let (on_disks, off) = results.split_at(plain);
    let of = |count: usize| on_disks.iter().flatten().filter(move |point| point.members.len() == count);
    let points: Vec<Point> = of(question.disks.len()).cloned().collect();
    let fastest = |count| of(count).min_by(|a, b| a.cost_s.total_cmp(&b.cost_s)).cloned();
    let by_disks = (1..=question.disks.len()).filter_map(fastest).collect();
    let off: Vec<Point> = off.iter().flatten().cloned().collect();
    let regret = regret(&points, &off, usable.len());
    let differ = question.disks.windows(2).any(|pair| pair[0] != pair[1]);
    let slowest = by_speed.last().copied().filter(|_| differ);
    Ok(Simulated { points, by_disks, slowest, regret, warnings })
}

/// The interleaves that the smallest member has room for.
fn usable(question: &Question<'_>, warnings: &mut Vec<Warning>) -> Result<Vec<u64>, Problem> {
    let smallest = question.disks.iter().map(|disk| disk.read.size_bytes).min().unwrap_or(0);
    let usable: Vec<u64> = question.interleaves.iter().copied().filter(|bytes| *bytes <= smallest).collect();
    if usable.len() < question.interleaves.len() {
        warnings.push(Warning::new(
            "interleave-too-large",
            format!(
                "{} interleaves are larger than a member and are left out",
                question.interleaves.len() - usable.len()
            ),
        ));
    }
    if usable.is_empty() {
        return Err(Problem::refused("every interleave is larger than the smallest member")
            .hint("give smaller ones with `--interleave`, or larger members"));
    }
    Ok(usable)
}

/// Requests whose size is not known: those of a trace.
const USUAL_REQUEST_BYTES: u64 = 64 << 10;

/// The disks from the fastest to the slowest at the load's requests; equals in the order in which they were named.
fn by_speed(question: &Question<'_>) -> Vec<usize> {
    let bytes = question.load.workload().map_or(USUAL_REQUEST_BYTES, Workload::request_bytes);
    // Many, so that disks that serve several side by side have them full.
    const MANY: u64 = 1000;
    let (reads, writes) = match question.load.workload().map(|workload| &workload.what) {
        Some(What::Region { write_percent, .. }) => (100 - (*write_percent).min(100), *write_percent),
        _ => (100, 0),
    };
    let of = |share: u64| (MANY * share / 100, (MANY * share / 100).saturating_mul(bytes));
    let mut order: Vec<usize> = (0..question.disks.len()).collect();
    let work_s = |index: usize| question.disks[index].work_s(of(reads), of(writes));
    order.sort_by(|a, b| work_s(*a).total_cmp(&work_s(*b)));
    order
}

/// The curves of some of the disks, each used as far as the smallest of them.
pub fn lineup(disks: &[DiskCurves], members: &[usize]) -> Vec<DiskCurves> {
    let chosen: Vec<DiskCurves> = members.iter().filter_map(|index| disks.get(*index).copied()).collect();
    let size_bytes = chosen.iter().map(|disk| disk.read.size_bytes).min().unwrap_or(0);
    chosen.into_iter().map(|disk| disk.map(|curve| ServiceCurve { size_bytes, ..curve })).collect()
}

/// Curves that are off in one of their figures, either way: all disks by the same.
fn off(disks: &[DiskCurves]) -> Vec<Vec<DiskCurves>> {
    let all =
        |change: &dyn Fn(ServiceCurve) -> ServiceCurve| disks.iter().map(|disk| disk.map(change)).collect();
    let mut variants = Vec::new();
    for factor in [OFF_BY, 1.0 / OFF_BY] {
        // Limits are rates: what takes longer is a lower limit.
        variants.push(all(&|curve| ServiceCurve {
            access_ns: curve.access_ns * factor,
            positioning_ns: curve.positioning_ns * factor,
            most_requests_per_second: curve.most_requests_per_second / factor,
            ..curve
        }));
        variants.push(all(&|curve| ServiceCurve {
            per_byte_ns: curve.per_byte_ns * factor,
            most_bytes_per_second: curve.most_bytes_per_second / factor,
            ..curve
        }));
    }
    variants
}

/// The greatest ratio of each point's time to the best of its curve.
fn regret(points: &[Point], off: &[Point], row: usize) -> Vec<f64> {
    let mut worst = vec![1.0f64; points.len()];
    for times in std::iter::once(points).chain(off.chunks(row.max(1))) {
        let best = times.iter().map(|point| point.cost_s).fold(f64::INFINITY, f64::min);
        for (worst, point) in worst.iter_mut().zip(times) {
            *worst = worst.max(if best > 0.0 { point.cost_s / best } else { 1.0 });
        }
    }
    worst
}

/// The machine that a stripe of these disks is simulated on.
///
/// # Errors
/// Keys that cannot be set.
pub fn machine(curves: &[DiskCurves], settings: &Settings, bytes: u64) -> Result<Machine, Problem> {
    let machine = Machine::from_disks(curves, (bytes / 512).max(1));
    let machine = sweep::machine_at(&machine, settings)?;
    machine.check()?;
    Ok(machine)
}

fn run(
    curves: &[DiskCurves],
    question: &Question<'_>,
    bytes: u64,
    warnings: &mut Vec<Warning>,
) -> Result<Outcome, Problem> {
    let machine = machine(curves, question.settings, bytes)?;
    question.load.run_first(&machine, question.seed, MAX_REQUESTS, warnings)
}

/// One stream of large requests in order: what a large interleave takes away.
fn stream(curves: &[DiskCurves], bytes: u64) -> Result<f64, Problem> {
    let size: u64 = curves.iter().map(|disk| disk.read.size_bytes).fold(0, u64::saturating_add);
    let size = size / 2 / STREAM_BYTES * STREAM_BYTES;
    if size < STREAM_BYTES {
        return Ok(0.0);
    }
    let text = format!(
        "readers=1,requests={},bytes={STREAM_BYTES},size={size},pattern=sequential,method=direct",
        STREAM_REQUESTS.min(size / STREAM_BYTES)
    );
    let machine = Machine::from_disks(curves, (bytes / 512).max(1));
    Ok(iowhy_sim::run(&machine, Workload::parse(&text)?.load(1), 1)?.bytes_per_second())
}

fn point(question: &Question<'_>, outcome: &Outcome, task: &Task, stream: f64) -> Point {
    let moved: Vec<f64> = outcome.devices.iter().map(|device| device.bytes as f64).collect();
    let time_s = outcome.time_ns as f64 / 1e9;
    let latency_s = outcome.latency_sum_ns as f64 / 1e9 / outcome.requests.max(1) as f64;
    let each = task.curves.iter().zip(&outcome.devices);
    Point {
        members: task.members.clone(),
        interleave_bytes: task.bytes,
        time_s,
        cost_s: if question.load.is_open() { latency_s } else { time_s },
        bytes_per_second: outcome.bytes_per_second(),
        requests_per_second: outcome.requests_per_second(),
        most_over_mean: imbalance(&moved),
        loads: each.map(|(disk, used)| load(disk, used, outcome.settled_ns)).collect(),
        split_share: question
            .load
            .workload()
            .and_then(|workload| split_share(workload, task.members.len(), task.bytes)),
        stream_bytes_per_second: stream,
    }
}

/// The most over the mean; 1 where nothing was moved.
fn imbalance(moved: &[f64]) -> f64 {
    let total: f64 = moved.iter().sum();
    let most = moved.iter().copied().fold(0.0, f64::max);
    if total > 0.0 { most * moved.len() as f64 / total } else { 1.0 }
}

/// Share of the time that a disk is at work, or at the limit that it has: by what it was asked for and its curve. How long an
/// arm needs depends on where it stands, which only the simulated disk knows.
fn load(disk: &DiskCurves, used: &DeviceUse, time_ns: u64) -> f64 {
    if disk.read.positioning_ns > 0.0 {
        return used.utilisation(time_ns);
    }
    let reads = (used.done.saturating_sub(used.writes), used.bytes.saturating_sub(used.written_bytes));
    let work_s = disk.work_s(reads, (used.writes, used.written_bytes));
    // A bucket that was full at the start lets a little more through than its rate.
    if time_ns > 0 { (work_s * 1e9 / time_ns as f64).min(1.0) } else { 0.0 }
}

/// Share of a workload's requests that a stripe splits.
fn split_share(workload: &Workload, disks: usize, interleave: u64) -> Option<f64> {
    let stripe = Stripe::new(interleave, disks)?;
    match &workload.what {
        // They begin at multiples of themselves.
        What::Region { bytes, .. } => Some(split::split(&stripe, *bytes, *bytes)?.share),
        What::Tree { sizes, .. } => {
            let shares: Vec<f64> =
                sizes.iter().filter_map(|bytes| Some(split::split(&stripe, *bytes, 4096)?.share)).collect();
            Some(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A stripe of three disks.
    pub(crate) fn point(interleave_bytes: u64, time_s: f64, stream: f64) -> Point {
        Point {
            members: vec![0, 1, 2],
            interleave_bytes,
            time_s,
            cost_s: time_s,
            bytes_per_second: 1.0,
            requests_per_second: 1.0,
            most_over_mean: 1.0,
            loads: vec![0.5; 3],
            split_share: Some(0.0),
            stream_bytes_per_second: stream,
        }
    }

    #[test]
    fn what_can_be_lost_is_the_worst_over_all_curves() {
        let points = [point(8, 10.0, 0.0), point(16, 11.0, 0.0)];
        let off = [point(8, 30.0, 0.0), point(16, 10.0, 0.0), point(8, 10.0, 0.0), point(16, 10.0, 0.0)];
        assert_eq!(regret(&points, &off, 2), [3.0, 1.1]);
    }
}
