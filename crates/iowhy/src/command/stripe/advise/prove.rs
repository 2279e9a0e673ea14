//! The proof: stripes in user space of the disks themselves, measured in interleaved rounds: the pick, the defaults, the worst
//! (or all that were simulated), and those without the slowest disk. What is asked of them is in `replay`, or a pattern.

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::summary;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Target, stripe};
use iowhy_sim::workload::{self as simulated_workload, What};

use super::pick::Pick;
use super::points::{Point, Question, Simulated};
use super::{replay, words};
use crate::cli::{Proofs, StripeAdviseArgs};
use crate::command::sim::Demand;
use crate::record::member::MemberRecord;
use crate::record::stripe_advice::{ProofRecord, left_out};

/// What LVM and btrfs take without being told, and what mdadm takes.
const DEFAULTS: [u64; 2] = [64 << 10, 512 << 10];
/// Time for each stripe when nobody says, over all rounds.
const DEFAULT_RUNTIME: Duration = Duration::from_secs(8);
/// Rounds: an interval needs them.
const ROUNDS: u32 = 5;
/// A slice that makes listed requests ends after so many times its share of the time, done or not.
const PATIENCE: u32 = 4;
/// What a simulated machine may have and a stripe of the proof has not.
const NOT_HERE: [&str; 4] = ["cache.", "pool.", "readahead.", "mapping."];

/// What is measured.
pub(super) struct Plan {
    how: How,
    /// The load writes, and is worth nothing without.
    must_write: bool,
    /// Time of each stripe, over all rounds.
    runtime: Duration,
    all: bool,
}

/// How the load is carried out.
enum How {
    /// Readers that go on by a pattern until the time is over.
    Pattern(Box<Workload>),
    /// The requests themselves, one by one.
    Listed,
}

impl Plan {
    /// Reads the options; `None` without `--prove`.
    ///
    /// # Errors
    /// Loads that stripes of ours cannot carry out, by the key that cannot be.
    pub(super) fn of(args: &StripeAdviseArgs, demand: &Demand) -> Result<Option<Plan>, Problem> {
        let runtime = args.prove_time.unwrap_or(DEFAULT_RUNTIME);
        let Some(which) = args.prove else {
            return match args.prove_time {
                None => Ok(None),
                Some(_) => Err(Problem::refused("`--prove-time` has no effect without `--prove`")
                    .hint("add `--prove`, or leave `--prove-time` out")),
            };
        };
        let all = which == Proofs::All;
        if let Some(key) = args
            .set
            .iter()
            .map(|(key, _)| key)
            .find(|key| NOT_HERE.iter().any(|layer| key.starts_with(layer)))
        {
            return cannot(&format!("`--set {key}`, and its stripes are read past every cache"));
        }
        let mut plan = Plan { how: How::Listed, must_write: false, runtime, all };
        let Some(workload) = demand.workload() else { return Ok(Some(plan)) };
        if workload.think_ns > 0 || workload.lock_step {
            return cannot("readers that pause or wait for each other (`think`, `lockstep`)");
        }
        if matches!(workload.method, simulated_workload::Method::Mapped | simulated_workload::Method::Mlock) {
            return cannot("mappings go through the page cache");
        }
        if let What::Region { size, bytes, pattern, own, write_percent, .. } = &workload.what {
            plan.must_write = *write_percent > 0;
            let files_of_their_own = *own && workload.clients > 1;
            if !(demand.is_open() || files_of_their_own) {
                plan.how = How::Pattern(Box::new(Workload {
                    direction: match *write_percent {
                        0 => Direction::Read,
                        100.. => Direction::Write,
                        percent => Direction::Mixed(100 - percent as u8),
                    },
                    pattern: *pattern,
                    threads: workload.clients as usize,
                    touch: Touch::None,
                    seed: args.seed,
                    ..Workload::reads(Method::Uring, CacheState::Direct, *bytes, *size)
                }));
            }
        }
        Ok(Some(plan))
    }

    /// Holds it against the disks, before they are measured.
    ///
    /// # Errors
    /// A load that writes, and a disk that is only read.
    pub(super) fn check(&self, disks: &[Target]) -> Result<(), Problem> {
        match disks.iter().find(|disk| self.must_write && !disk.writable()) {
            None => Ok(()),
            Some(disk) => Err(Problem::refused(format!(
                "`--prove` cannot carry out this load: it writes, and `{}` is only read",
                disk.facts.name
            ))
            .hint(format!(
                "name directories, and scratch files in them are written; to destroy all data on the disks: \
                 `--destroy-data {}`, once for each",
                disk.facts.name
            ))),
        }
    }
}

fn cannot<T>(why: &str) -> Result<T, Problem> {
    Err(Problem::refused(format!("`--prove` cannot carry out this load: {why}"))
        .hint("leave `--prove` out, and it is simulated all the same"))
}

/// Measures the stripes.
///
/// # Errors
/// Stripes that cannot be made of these disks; a cell that fails is in its record instead.
pub(super) fn run(
    plan: &Plan,
    disks: Vec<Target>,
    simulated: &Simulated,
    pick: &Pick,
    question: &Question<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<ProofRecord>, Problem> {
    let disks: Vec<Arc<Target>> = disks.into_iter().map(Arc::new).collect();
    let chosen = chosen(plan, simulated, pick);
    let stripes =
        chosen.iter().map(|(point, _)| target_of(&disks, point)).collect::<Result<Vec<_>, Problem>>()?;
    let slice = plan.runtime / ROUNDS;
    // What each is expected to move: the rate of the load, with all that a layout asks for beside it.
    let (cells, expected): (Vec<Cell<'_>>, Vec<f64>) = match &plan.how {
        How::Pattern(template) => {
            let rates = chosen.iter().map(|(point, _)| point.bytes_per_second);
            (by_pattern(template, slice, &stripes)?, rates.collect())
        }
        How::Listed => {
            let pick = &simulated.points[pick.index];
            let first = replay::requests_for(slice, pick, question);
            let points: Vec<&Point> = chosen.iter().map(|(point, _)| *point).collect();
            let listed = replay::cells(question, &points, &stripes, first, slice * PATIENCE, warnings)?;
            let with = listed.into_iter().zip(&points);
            with.map(|((cell, bytes), point)| (cell, bytes * point.requests_per_second)).unzip()
        }
    };
    let effort = Effort {
        least_rounds: ROUNDS,
        most_rounds: ROUNDS,
        budget: plan.runtime * cells.len() as u32,
        precision: 0.0,
        seed: question.seed,
    };
    let progress = question.progress;
    let outcome = campaign::run(&cells, effort, &mut |p| progress.at(p.share, p.remaining, "proving"));
    let runs: Vec<Option<&CellRun>> = outcome.cells.iter().map(|runs| runs.first()).collect();
    let names: Vec<String> = disks.iter().map(|disk| disk.facts.name.clone()).collect();
    let chosen = chosen
        .into_iter()
        .zip(expected)
        .map(|((point, role), rate)| Proved { point, role, rate })
        .collect::<Vec<_>>();
    Ok(records(&chosen, &runs, &stripes, &names, question))
}

/// The stripe of a point, or the one disk that it is.
fn target_of(disks: &[Arc<Target>], point: &Point) -> Result<Arc<Target>, Problem> {
    let members: Vec<Arc<Target>> = point.members.iter().map(|index| Arc::clone(&disks[*index])).collect();
    if let [one] = members.as_slice() {
        return Ok(Arc::clone(one));
    }
    let names: Vec<&str> = members.iter().map(|disk| disk.facts.name.as_str()).collect();
    let spec = format!("stripe:{}:{}", point.interleave_bytes, names.join(","));
    Ok(Arc::new(stripe::join(&spec, point.interleave_bytes, members)?))
}

/// The state that its reads can be in: past the cache; false members have a model of that, too, and files that allow no
/// O_DIRECT are cold.
pub(super) fn state_of(target: &Target, direct: bool) -> CacheState {
    match (target.facts.memory_backed, direct) {
        (true, _) => CacheState::Warm,
        (false, true) => CacheState::Direct,
        (false, false) => CacheState::Cold,
    }
}

/// Whether all of them can be read past the cache: else none is.
pub(super) fn all_direct(stripes: &[Arc<Target>]) -> bool {
    stripes.iter().all(|target| target.facts.direct_supported != Some(false))
}

/// Readers that go on by a pattern.
fn by_pattern<'a>(
    template: &Workload,
    slice: Duration,
    stripes: &'a [Arc<Target>],
) -> Result<Vec<Cell<'a>>, Problem> {
    let smallest = stripes.iter().map(|target| target.facts.size_bytes).min().unwrap_or(0);
    let region = template.region_bytes.min(smallest) / template.block_bytes * template.block_bytes;
    if region / template.block_bytes < template.threads as u64 {
        return Err(Problem::refused(format!(
            "`--prove`: {} readers of {} do not fit into {} of stripe",
            template.threads,
            words(template.block_bytes),
            words(smallest)
        ))
        .hint("fewer readers, smaller requests, or larger members"));
    }
    let direct = all_direct(stripes);
    let cell = |target: &'a Arc<Target>| {
        let mut workload = template.clone();
        workload.region_bytes = region;
        workload.state = state_of(target, direct);
        let requests = match workload.state {
            CacheState::Cold => workload.blocks() / workload.threads.max(1) as u64,
            _ => u64::MAX,
        };
        Cell {
            key: target.facts.name.clone(),
            arms: vec![(workload, target.as_ref())],
            bounds: Bounds { wall: slice, requests_per_thread: requests.max(1) },
            listed: None,
        }
    };
    Ok(stripes.iter().map(cell).collect())
}

/// Which points are measured, and why; the pick first.
fn chosen<'s>(plan: &Plan, simulated: &'s Simulated, pick: &Pick) -> Vec<(&'s Point, &'static str)> {
    let points = &simulated.points;
    let mut chosen = vec![(pick.index, "pick")];
    let mut add = |index: Option<usize>, role: &'static str| {
        if let Some(index) = index.filter(|index| chosen.iter().all(|(other, _)| other != index)) {
            chosen.push((index, role));
        }
    };
    let fastest = (0..points.len()).min_by(|a, b| points[*a].cost_s.total_cmp(&points[*b].cost_s));
    add(fastest, "fastest");
    for bytes in DEFAULTS {
        add(points.iter().position(|point| point.interleave_bytes == bytes), "default");
    }
    let slowest = (0..points.len()).max_by(|a, b| points[*a].cost_s.total_cmp(&points[*b].cost_s));
    add(slowest, "worst");
    if plan.all {
        (0..points.len()).for_each(|index| add(Some(index), "other"));
    }
    let without = simulated.without_slowest().map(|point| (point, "without"));
    chosen.into_iter().map(|(index, role)| (&points[index], role)).chain(without).collect()
}

fn rate(sample: &Sample) -> f64 {
    sample.claimed_bytes as f64 * 1e9 / sample.wall_ns.max(1) as f64
}

/// How fast a round was, in what stripes are compared by: bytes a second, or answers for each second of waiting.
fn speed(sample: &Sample, open: bool) -> f64 {
    if open { sample.requests as f64 * 1e9 / sample.latency_sum_ns.max(1) as f64 } else { rate(sample) }
}

/// A stripe that was measured.
struct Proved<'s> {
    point: &'s Point,
    role: &'static str,
    /// Bytes a second that are expected.
    rate: f64,
}

/// The results, by disks and interleave; each against the fastest measured one of all disks, within rounds.
fn records(
    chosen: &[Proved<'_>],
    runs: &[Option<&CellRun>],
    stripes: &[Arc<Target>],
    names: &[String],
    question: &Question<'_>,
) -> Vec<ProofRecord> {
    let (open, seed) = (question.demand.is_open(), question.seed);
    let speeds = |run: &CellRun| run.samples.iter().map(|sample| speed(sample, open)).collect::<Vec<f64>>();
    let fastest = chosen
        .iter()
        .zip(runs)
        .filter(|(proved, _)| proved.point.members.len() == names.len())
        .filter_map(|(_, run)| run.filter(|run| run.failure.is_none()))
        .filter_map(|run| Some((stats::median(&speeds(run))?, run)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, run)| speeds(run));
    let mut records: Vec<(usize, ProofRecord)> = chosen
        .iter()
        .zip(runs.iter().zip(stripes))
        .filter_map(|(Proved { point, role, rate }, (run, target))| {
            let run = (*run)?;
            let throughput = summary::summarize(run, seed).throughput;
            let latency = open.then(|| mean_latency(run, seed)).flatten();
            let error = |predicted: f64, measured: Estimate| (predicted / measured.value - 1.0) * 100.0;
            let record = ProofRecord {
                interleave_bytes: point.interleave_bytes,
                role,
                left_out: left_out(&point.members, names),
                predicted_bytes_per_second: *rate,
                throughput,
                predicted_latency_ns: open.then_some(point.cost_s * 1e9),
                latency,
                error_percent: match open {
                    true => latency.map(|measured| error(point.cost_s * 1e9, measured)),
                    false => throughput.map(|measured| error(*rate, measured)),
                },
                of_fastest: fastest.as_ref().and_then(|best| stats::paired_ratio(&speeds(run), best, seed)),
                members: MemberRecord::all_of(run, &target.member_names()),
                failure: run.failure.clone(),
                samples: run.samples.clone(),
            };
            Some((point.members.len(), record))
        })
        .collect();
    records.sort_by_key(|(disks, record)| (usize::MAX - disks, record.interleave_bytes));
    records.into_iter().map(|(_, record)| record).collect()
}

/// The mean latency of a round: median over rounds.
fn mean_latency(run: &CellRun, seed: u64) -> Option<Estimate> {
    let means: Vec<f64> = run
        .samples
        .iter()
        .map(|sample| sample.latency_sum_ns as f64 / sample.requests.max(1) as f64)
        .collect();
    stats::bootstrap_median(&means, seed, Unit::Nanoseconds)
}
