//! The workload on every stripe of the disks, simulated: which interleave is the fastest, what it costs a single stream, and
//! how sure that is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::service::ServiceCurve;
use iowhy_core::stripe::Stripe;
use iowhy_core::warning::Warning;
use iowhy_explain::striping::splits;
use iowhy_probe::interrupt;
use iowhy_sim::machine::Machine;
use iowhy_sim::outcome::Outcome;
use iowhy_sim::sweep;
use iowhy_sim::workload::{What, Workload};
use rayon::prelude::*;

use super::Set;
use crate::command::sim::Demand;
use crate::progress::Progress;

/// Requests that are simulated at most at each point: rates are steady long before.
const MOST_REQUESTS: u64 = 60_000;
/// Requests of a single stream.
const STREAM_REQUESTS: u64 = 256;
const STREAM_BYTES: u64 = 1 << 20;
/// Within this share of the fastest an interleave is as good for the workload, and the single stream decides.
const AS_GOOD: f64 = 1.03;
/// The measured curve may be off by this factor either way.
const OFF_BY: f64 = 1.25;
/// The pick may lose so much to another interleave when the curve is off, and still be called firm or fair.
const FIRM: f64 = 1.05;
const FAIR: f64 = 1.15;

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) demand: &'a Demand,
    pub(super) set: &'a Set,
    pub(super) interleaves: &'a [u64],
    pub(super) disks: usize,
    pub(super) seed: u64,
    pub(super) progress: &'a Progress,
}

/// One stripe.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Disks.
    pub(crate) disks: usize,
    /// Bytes of one turn; for one disk it says nothing.
    pub(crate) interleave_bytes: u64,
    /// Time of the workload.
    pub(crate) time_s: f64,
    /// Bytes a second.
    pub(crate) bytes_per_second: f64,
    /// Requests a second.
    pub(crate) requests_per_second: f64,
    /// Bytes of the busiest disk over the mean.
    pub(crate) most_over_mean: f64,
    /// Share of the time that disks are at work, the mean of them; absent for disks that are nothing but limits.
    pub(crate) utilisation: Option<f64>,
    /// Share of the requests that are split; absent for a trace.
    pub(crate) split_share: Option<f64>,
    /// One stream of 1 MiB requests in order, bytes a second.
    pub(crate) stream_bytes_per_second: f64,
}

/// All points.
pub(crate) struct Simulated {
    /// All disks, by interleave.
    pub(crate) points: Vec<Point>,
    /// The fastest interleave of each number of disks, from one on.
    pub(crate) by_disks: Vec<Point>,
    /// The greatest loss of each interleave against the best, over curves that are off; in the order of `points`.
    pub(crate) regret: Vec<f64>,
    /// What a reader must know.
    pub(crate) warnings: Vec<Warning>,
}

/// How sure a pick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// It stays within 5 % of the best when the curve is off by a quarter.
    Firm,
    /// Within 15 %.
    Fair,
    /// Beyond.
    Weak,
}

impl Confidence {
    /// The stable identifier.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Confidence::Firm => "firm",
            Confidence::Fair => "fair",
            Confidence::Weak => "weak",
        }
    }
}

/// What is recommended.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    /// Which of the points.
    pub(crate) index: usize,
    /// Those that are as good for the workload.
    pub(crate) as_good: Vec<usize>,
    /// How sure.
    pub(crate) confidence: Confidence,
}

/// Simulates every point.
///
/// # Errors
/// A workload that does not fit on the disks, keys that are none, a trace that breaks off, Ctrl-C.
pub(super) fn simulate(curve: &ServiceCurve, question: &Question<'_>) -> Result<Simulated, Problem> {
    let begun = Instant::now();
    let mut warnings = Vec::new();
    let usable: Vec<u64> =
        question.interleaves.iter().copied().filter(|bytes| *bytes <= curve.size_bytes).collect();
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
    // One run tells what cannot be before all are begun.
    let first = run(curve, question, usable[0], question.disks, &mut warnings)?;
    drop(first);
    let one = begun.elapsed();
    let counts: Vec<usize> = (1..=question.disks).collect();
    let mut tasks: Vec<(ServiceCurve, usize, u64)> = Vec::new();
    for disks in &counts {
        // One disk has no turns.
        let of: &[u64] = if *disks == 1 { &usable[..1] } else { &usable };
        tasks.extend(of.iter().map(|bytes| (*curve, *disks, *bytes)));
    }
    let plain = tasks.len();
    let variants = off(curve);
    for variant in &variants {
        tasks.extend(usable.iter().map(|bytes| (*variant, question.disks, *bytes)));
    }
    let finished = AtomicUsize::new(0);
    let all = tasks.len();
    let results: Vec<Option<Point>> = tasks
        .par_iter()
        .enumerate()
        .map(|(index, (curve, disks, bytes))| {
            if interrupt::requested() {
                return Err(Problem::failed(
                    "interrupted while simulating: the disks were measured, nothing is advised",
                )
                .hint("let it end; fewer `--interleave` take less time"));
            }
            let outcome = match run(curve, question, *bytes, *disks, &mut Vec::new()) {
                // The load fits on all disks, but not on fewer.
                Err(_) if *disks < question.disks => return Ok(None),
                outcome => outcome?,
            };
            let stream = if index < plain { stream(curve, *disks, *bytes)? } else { 0.0 };
            let done = finished.fetch_add(1, Ordering::Relaxed) + 1;
            let share = done as f64 / all as f64;
            let left = one.mul_f64((all - done) as f64 / rayon::current_num_threads().max(1) as f64);
            question.progress.at(share, left.min(Duration::from_secs(86_400)), "simulating");
            let mut point = point(question, &outcome, *disks, *bytes, stream);
            if curve.access_ns <= 0.0 && curve.per_byte_ns <= 0.0 {
                point.utilisation = None;
            }
            Ok(Some(point))
        })
        .collect::<Result<_, Problem>>()?;
    let (on_disks, off) = results.split_at(plain);
    let points: Vec<Point> =
        on_disks.iter().flatten().filter(|point| point.disks == question.disks).cloned().collect();
    let fastest = |disks: usize| {
        let of = on_disks.iter().flatten().filter(|point| point.disks == disks);
        of.min_by(|a, b| a.time_s.total_cmp(&b.time_s)).cloned()
    };
    let by_disks = counts.iter().filter_map(|disks| fastest(*disks)).collect();
    let off: Vec<Point> = off.iter().flatten().cloned().collect();
    let regret = regret(&points, &off, usable.len());
    Ok(Simulated { points, by_disks, regret, warnings })
}

/// Curves that are off in one of their figures, either way.
fn off(curve: &ServiceCurve) -> Vec<ServiceCurve> {
    let mut all = Vec::new();
    for factor in [OFF_BY, 1.0 / OFF_BY] {
        // Limits are rates: what takes longer is a lower limit.
        all.push(ServiceCurve {
            access_ns: curve.access_ns * factor,
            positioning_ns: curve.positioning_ns * factor,
            most_requests_per_second: curve.most_requests_per_second / factor,
            ..*curve
        });
        all.push(ServiceCurve {
            per_byte_ns: curve.per_byte_ns * factor,
            most_bytes_per_second: curve.most_bytes_per_second / factor,
            ..*curve
        });
    }
    all
}

/// The greatest ratio of each point's time to the best of its curve.
fn regret(points: &[Point], off: &[Point], row: usize) -> Vec<f64> {
    let mut worst = vec![1.0f64; points.len()];
    for times in std::iter::once(points).chain(off.chunks(row.max(1))) {
        let best = times.iter().map(|point| point.time_s).fold(f64::INFINITY, f64::min);
        for (worst, point) in worst.iter_mut().zip(times) {
            *worst = worst.max(if best > 0.0 { point.time_s / best } else { 1.0 });
        }
    }
    worst
}

fn run(
    curve: &ServiceCurve,
    question: &Question<'_>,
    bytes: u64,
    disks: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Outcome, Problem> {
    let machine = Machine::of_disks(curve, disks as u64, (bytes / 512).max(1));
    let machine = sweep::machine_at(&machine, question.set)?;
    machine.check()?;
    question.demand.run_first(&machine, question.seed, MOST_REQUESTS, warnings)
}

/// One stream of large requests in order: what a large interleave takes away.
fn stream(curve: &ServiceCurve, disks: usize, bytes: u64) -> Result<f64, Problem> {
    let size = curve.size_bytes.saturating_mul(disks as u64) / 2 / STREAM_BYTES * STREAM_BYTES;
    if size < STREAM_BYTES {
        return Ok(0.0);
    }
    let text = format!(
        "readers=1,requests={},bytes={STREAM_BYTES},size={size},pattern=sequential,method=direct",
        STREAM_REQUESTS.min(size / STREAM_BYTES)
    );
    let machine = Machine::of_disks(curve, disks as u64, (bytes / 512).max(1));
    Ok(iowhy_sim::run(&machine, Workload::parse(&text)?.load(1), 1)?.bytes_per_second())
}

fn point(question: &Question<'_>, outcome: &Outcome, disks: usize, bytes: u64, stream: f64) -> Point {
    let moved: Vec<f64> = outcome.devices.iter().map(|device| device.bytes as f64).collect();
    let busy: f64 = outcome.devices.iter().map(|device| device.utilisation(outcome.settled_ns)).sum();
    Point {
        disks,
        interleave_bytes: bytes,
        time_s: outcome.time_ns as f64 / 1e9,
        bytes_per_second: outcome.bytes_per_second(),
        requests_per_second: outcome.requests_per_second(),
        most_over_mean: crate::render::members::imbalance(&moved).unwrap_or(1.0),
        utilisation: Some(busy / outcome.devices.len().max(1) as f64),
        split_share: question.demand.workload().and_then(|workload| split_share(workload, disks, bytes)),
        stream_bytes_per_second: stream,
    }
}

/// Share of a workload's requests that a stripe splits.
fn split_share(workload: &Workload, disks: usize, interleave: u64) -> Option<f64> {
    let stripe = Stripe::new(interleave, disks)?;
    match &workload.what {
        // They begin at multiples of themselves.
        What::Region { bytes, .. } => Some(splits::split(&stripe, *bytes, *bytes)?.share),
        What::Tree { sizes, .. } => {
            let shares: Vec<f64> =
                sizes.iter().filter_map(|bytes| Some(splits::split(&stripe, *bytes, 4096)?.share)).collect();
            Some(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
        }
    }
}

/// Chooses: the fastest for the workload; among those as good the one that is kindest to a single stream, then the one with
/// the least to lose, then the larger.
pub(super) fn pick(simulated: &Simulated, good_fit: bool) -> Option<Pick> {
    let points = &simulated.points;
    let best = points.iter().map(|point| point.time_s).fold(f64::INFINITY, f64::min);
    let as_good: Vec<usize> = (0..points.len()).filter(|at| points[*at].time_s <= best * AS_GOOD).collect();
    let kindest = as_good.iter().map(|at| points[*at].stream_bytes_per_second).fold(0.0, f64::max);
    let index = as_good
        .iter()
        .copied()
        .filter(|at| points[*at].stream_bytes_per_second * AS_GOOD >= kindest)
        .min_by(|a, b| {
            let loss = |at: usize| (simulated.regret[at] * 100.0).round();
            loss(*a).total_cmp(&loss(*b)).then(points[*b].interleave_bytes.cmp(&points[*a].interleave_bytes))
        })?;
    let mut confidence = match simulated.regret.get(index) {
        Some(loss) if *loss <= FIRM => Confidence::Firm,
        Some(loss) if *loss <= FAIR => Confidence::Fair,
        _ => Confidence::Weak,
    };
    if !good_fit {
        confidence = match confidence {
            Confidence::Firm => Confidence::Fair,
            _ => Confidence::Weak,
        };
    }
    Some(Pick { index, as_good, confidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(interleave_bytes: u64, time_s: f64, stream: f64) -> Point {
        Point {
            disks: 3,
            interleave_bytes,
            time_s,
            bytes_per_second: 1.0,
            requests_per_second: 1.0,
            most_over_mean: 1.0,
            utilisation: Some(0.5),
            split_share: Some(0.0),
            stream_bytes_per_second: stream,
        }
    }

    #[test]
    fn among_equals_the_single_stream_decides_and_then_the_larger() {
        let points = vec![
            point(8, 20.0, 60.0),
            point(64, 10.2, 60.0),
            point(128, 10.1, 60.0),
            point(1024, 10.0, 20.0),
        ];
        let simulated = Simulated {
            regret: vec![2.0, 1.02, 1.02, 1.0],
            points,
            by_disks: Vec::new(),
            warnings: Vec::new(),
        };
        let pick = pick(&simulated, true).unwrap();
        assert_eq!((pick.index, pick.as_good.clone(), pick.confidence), (2, vec![1, 2, 3], Confidence::Firm));
        assert_eq!(super::pick(&simulated, false).unwrap().confidence, Confidence::Fair);
        let none =
            Simulated { points: Vec::new(), by_disks: Vec::new(), regret: Vec::new(), warnings: Vec::new() };
        assert!(super::pick(&none, true).is_none());
    }

    #[test]
    fn what_can_be_lost_is_the_worst_over_all_curves() {
        let points = [point(8, 10.0, 0.0), point(16, 11.0, 0.0)];
        let off = [point(8, 30.0, 0.0), point(16, 10.0, 0.0), point(8, 10.0, 0.0), point(16, 10.0, 0.0)];
        assert_eq!(regret(&points, &off, 2), [3.0, 1.1]);
    }
}
