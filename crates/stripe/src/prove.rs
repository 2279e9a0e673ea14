//! The proof: stripes in user space of the disks themselves, measured in interleaved rounds: the pick, the defaults, the worst
//! (or all that were simulated), and those without the slowest disk. The requests are listed one by one, or a pattern.

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::summary;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Target, stripe};
use iowhy_sim::workload::{self as simulated_workload, What};
use serde::{Deserialize, Serialize};

use crate::listed::{self, all_direct, state_of};
use crate::load::{Load, Question};
use crate::pick::{Pick, WORTH_LEAVING_OUT};
use crate::simulate::{Point, Simulated};

/// What LVM and btrfs take without being told, and what mdadm takes.
const DEFAULTS: [u64; 2] = [64 << 10, 512 << 10];
/// Rounds: an interval needs them.
pub const ROUNDS: u32 = 5;
/// A slice of listed requests ends after this many times its share of the time, done or not.
const PATIENCE: u32 = 4;
/// Layers that a simulated machine may have and a stripe of the proof does not.
const NOT_HERE: [&str; 4] = ["cache.", "pool.", "readahead.", "mapping."];

/// Why a stripe is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The recommended interleave.
    Pick,
    /// The fastest simulated one.
    Fastest,
    /// What a volume manager takes without being told.
    Default,
    /// The slowest simulated one.
    Worst,
    /// Any other of `--prove=all`.
    Other,
    /// The fastest without the slowest disk.
    Without,
}

impl Purpose {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Purpose::Pick => "pick",
            Purpose::Fastest => "fastest",
            Purpose::Default => "default",
            Purpose::Worst => "worst",
            Purpose::Other => "other",
            Purpose::Without => "without",
        }
    }
}

/// The answer of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above the bound.
    Proven,
    /// The whole interval is below the bound.
    Contradicted,
    /// The interval includes the bound.
    Inconclusive,
}

impl Verdict {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Verdict::Proven => "proven",
            Verdict::Contradicted => "contradicted",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// Whether the recommended stripe is about as fast as the fastest measured one; `speed` is relative to that.
    pub fn of_pick(speed: &Estimate) -> Verdict {
        /// A tenth less is not worth another interleave.
        const CLOSE: f64 = 0.9;
        match (speed.low >= CLOSE, speed.high < CLOSE) {
            (true, _) => Verdict::Proven,
            (_, true) => Verdict::Contradicted,
            _ => Verdict::Inconclusive,
        }
    }

    /// Whether a stripe without the slowest disk is faster.
    pub fn of_leaving_out(speed: &Estimate) -> Verdict {
        match (speed.low > WORTH_LEAVING_OUT, speed.high < 1.0) {
            (true, _) => Verdict::Proven,
            (_, true) => Verdict::Contradicted,
            _ => Verdict::Inconclusive,
        }
    }
}

/// What is measured.
pub struct Plan {
    how: How,
    /// The load writes: the disks must allow that.
    must_write: bool,
    /// Time of each stripe, over all rounds.
    time: Duration,
    all: bool,
}

/// How the load is carried out.
enum How {
    /// Readers that follow a pattern until the time is over.
    Pattern(Box<Workload>),
    /// The requests themselves, one by one.
    Listed,
}

impl Plan {
    /// A plan that gives each stripe `time` over all rounds; `all`: every interleave that was simulated.
    ///
    /// # Errors
    /// Loads that stripes in user space cannot carry out, by the key that cannot be.
    pub fn new(
        load: &dyn Load,
        settings: &iowhy_sim::sweep::Settings,
        (time, all): (Duration, bool),
        seed: u64,
    ) -> Result<Plan, Problem> {
        let elsewhere = settings.iter().find(|(key, _)| NOT_HERE.iter().any(|layer| key.starts_with(layer)));
        if let Some((key, value)) = elsewhere {
            return cannot(&format!("`--set {key}={value}`: the proof reads past every cache"));
        }
        let mut plan = Plan { how: How::Listed, must_write: false, time, all };
        let Some(workload) = load.workload() else { return Ok(plan) };
        if workload.think_ns > 0 || workload.lock_step {
            return cannot("readers that pause or wait for each other (`think`, `lockstep`)");
        }
        if matches!(workload.method, simulated_workload::Method::Mapped | simulated_workload::Method::Mlock) {
            return cannot("mappings go through the page cache");
        }
        if let What::Region { size, bytes, pattern, own, write_percent, .. } = &workload.what {
            plan.must_write = *write_percent > 0;
            let file_per_reader = *own && workload.clients > 1;
            if !(load.is_open() || file_per_reader) {
                plan.how = How::Pattern(Box::new(Workload {
                    direction: match *write_percent {
                        0 => Direction::Read,
                        100.. => Direction::Write,
                        percent => Direction::Mixed(100 - percent as u8),
                    },
                    pattern: *pattern,
                    threads: workload.clients as usize,
                    touch: Touch::None,
                    seed,
                    ..Workload::reads(Method::Uring, CacheState::Direct, *bytes, *size)
                }));
            }
        }
        Ok(plan)
    }

    /// Refuses disks that the load cannot be carried out on, before they are measured.
    ///
    /// # Errors
    /// A load that writes, and a disk that may only be read.
    pub fn check(&self, disks: &[Target]) -> Result<(), Problem> {
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
        .hint("leave `--prove` out: the load is simulated all the same"))
}

/// A stripe of the proof.
struct Arm<'s> {
    point: &'s Point,
    role: Purpose,
    target: Arc<Target>,
}

impl Arm<'_> {
    fn key(&self) -> &str {
        &self.target.facts.name
    }
}

/// A stripe that was measured.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Which of the disks it has.
    pub members: Vec<usize>,
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Why it was measured.
    pub role: Purpose,
    /// The simulated rate; of listed requests with directories, inodes and whole blocks.
    pub predicted_bytes_per_second: f64,
    /// What was measured.
    pub throughput: Option<Estimate>,
    /// The simulated mean latency of an open load.
    pub predicted_latency_ns: Option<f64>,
    /// The measured mean latency of a round of an open load.
    pub latency: Option<Estimate>,
    /// Prediction error of the quantity that stripes are compared by.
    pub error_percent: Option<f64>,
    /// Speed relative to the fastest measured stripe of all disks, paired within rounds.
    pub relative_speed: Option<Estimate>,
    /// Names of the members of the target.
    pub member_names: Vec<String>,
    /// The rounds.
    pub run: CellRun,
}

/// Measures the stripes.
///
/// # Errors
/// Stripes that cannot be made of these disks. A cell that fails is in its proof instead.
pub fn run(
    plan: &Plan,
    disks: Vec<Target>,
    simulated: &Simulated,
    pick: &Pick,
    question: &Question<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Proof>, Problem> {
    let disks: Vec<Arc<Target>> = disks.into_iter().map(Arc::new).collect();
    let arms = chosen(plan, simulated, pick)
        .into_iter()
        .map(|(point, role)| Ok(Arm { point, role, target: target_for(&disks, point)? }))
        .collect::<Result<Vec<_>, Problem>>()?;
    let slice = plan.time / ROUNDS;
    let stripes: Vec<(&Point, &Target)> = arms.iter().map(|arm| (arm.point, arm.target.as_ref())).collect();
    // Each cell with the rate that is expected of it: that of the load, with all that a layout adds.
    let planned: Vec<(Cell<'_>, f64)> = match &plan.how {
        How::Pattern(template) => by_pattern(template, slice, &stripes)?,
        How::Listed => {
            let pick = &simulated.points[pick.index];
            let first = listed::requests_for(slice, pick, question);
            listed::cells(question, &stripes, first, slice * PATIENCE, warnings)?
        }
    };
    let expected: Vec<(String, f64)> = planned.iter().map(|(cell, rate)| (cell.key.clone(), *rate)).collect();
    let cells: Vec<Cell<'_>> = planned.into_iter().map(|(cell, _)| cell).collect();
    let effort = Effort {
        min_rounds: ROUNDS,
        max_rounds: ROUNDS,
        time: plan.time * cells.len() as u32,
        precision: 0.0,
        seed: question.seed,
    };
    let progress = question.progress;
    let outcome = campaign::run(&cells, effort, &mut |p| progress(p.share, p.remaining, "proving"));
    let runs: Vec<&CellRun> = outcome.cells.iter().flatten().collect();
    Ok(proofs(&arms, &expected, &runs, disks.len(), question))
}

/// The stripe of a point, or the one disk that it is.
fn target_for(disks: &[Arc<Target>], point: &Point) -> Result<Arc<Target>, Problem> {
    let members: Vec<Arc<Target>> = point.members.iter().map(|index| Arc::clone(&disks[*index])).collect();
    if let [one] = members.as_slice() {
        return Ok(Arc::clone(one));
    }
    let names: Vec<&str> = members.iter().map(|disk| disk.facts.name.as_str()).collect();
    let spec = format!("stripe:{}:{}", point.interleave_bytes, names.join(","));
    Ok(Arc::new(stripe::join(&spec, point.interleave_bytes, members)?))
}

/// Readers that follow a pattern, each cell with the rate that was simulated.
fn by_pattern<'a>(
    template: &Workload,
    slice: Duration,
    stripes: &[(&Point, &'a Target)],
) -> Result<Vec<(Cell<'a>, f64)>, Problem> {
    let smallest = stripes.iter().map(|(_, target)| target.facts.size_bytes).min().unwrap_or(0);
    let region = template.region_bytes.min(smallest) / template.block_bytes * template.block_bytes;
    if region / template.block_bytes < template.threads as u64 {
        return Err(Problem::refused(format!(
            "`--prove`: {} readers of {} do not fit into {} of stripe",
            template.threads,
            Bytes(template.block_bytes),
            Bytes(smallest)
        ))
        .hint("fewer readers, smaller requests, or larger members"));
    }
    let direct = all_direct(stripes);
    let cell = |(point, target): &(&Point, &'a Target)| {
        let mut workload = template.clone();
        workload.region_bytes = region;
        workload.state = state_of(target, direct);
        let requests = match workload.state {
            CacheState::Cold => workload.blocks() / workload.threads.max(1) as u64,
            _ => u64::MAX,
        };
        let cell = Cell {
            key: target.facts.name.clone(),
            arms: vec![(workload, *target)],
            bounds: Bounds { wall: slice, requests_per_thread: requests.max(1) },
            listed: None,
            group: None,
            request_bytes: None,
        };
        (cell, point.bytes_per_second)
    };
    Ok(stripes.iter().map(cell).collect())
}

/// Which points are measured, and why; the pick first.
fn chosen<'s>(plan: &Plan, simulated: &'s Simulated, pick: &Pick) -> Vec<(&'s Point, Purpose)> {
    let points = &simulated.points;
    let mut chosen = vec![(pick.index, Purpose::Pick)];
    let mut add = |index: Option<usize>, role: Purpose| {
        if let Some(index) = index.filter(|index| chosen.iter().all(|(other, _)| other != index)) {
            chosen.push((index, role));
        }
    };
    let fastest = (0..points.len()).min_by(|a, b| points[*a].cost_s.total_cmp(&points[*b].cost_s));
    add(fastest, Purpose::Fastest);
    for bytes in DEFAULTS {
        add(points.iter().position(|point| point.interleave_bytes == bytes), Purpose::Default);
    }
    let slowest = (0..points.len()).max_by(|a, b| points[*a].cost_s.total_cmp(&points[*b].cost_s));
    add(slowest, Purpose::Worst);
    if plan.all {
        (0..points.len()).for_each(|index| add(Some(index), Purpose::Other));
    }
    let without = simulated.without_slowest().map(|point| (point, Purpose::Without));
    chosen.into_iter().map(|(index, role)| (&points[index], role)).chain(without).collect()
}

fn rate(sample: &Sample) -> f64 {
    sample.claimed_bytes as f64 * 1e9 / sample.wall_ns.max(1) as f64
}

/// Speed of a round, in what stripes are compared by: bytes a second, or requests for each second of latency.
fn speed(sample: &Sample, open: bool) -> f64 {
    if open { sample.requests as f64 * 1e9 / sample.latency_sum_ns.max(1) as f64 } else { rate(sample) }
}

/// The results, by disks and interleave.
fn proofs(
    arms: &[Arm<'_>],
    expected: &[(String, f64)],
    runs: &[&CellRun],
    disks: usize,
    question: &Question<'_>,
) -> Vec<Proof> {
    let (open, seed) = (question.load.is_open(), question.seed);
    let speeds = |run: &CellRun| run.samples.iter().map(|sample| speed(sample, open)).collect::<Vec<f64>>();
    let run_of = |arm: &Arm<'_>| runs.iter().find(|run| run.key == arm.key()).copied();
    let fastest = arms
        .iter()
        .filter(|arm| arm.point.members.len() == disks)
        .filter_map(|arm| run_of(arm).filter(|run| run.failure.is_none()))
        .filter_map(|run| Some((stats::median(&speeds(run))?, run)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, run)| speeds(run));
    let proof = |arm: &Arm<'_>| {
        let run = run_of(arm)?;
        let rate = expected.iter().find(|(key, _)| key == arm.key())?.1;
        let throughput = summary::summarize(run, seed).throughput;
        let latency = open.then(|| mean_latency(run, seed)).flatten();
        let latency_ns = arm.point.cost_s * 1e9;
        let error = |predicted: f64, measured: Estimate| (predicted / measured.value - 1.0) * 100.0;
        Some(Proof {
            members: arm.point.members.clone(),
            interleave_bytes: arm.point.interleave_bytes,
            role: arm.role,
            predicted_bytes_per_second: rate,
            throughput,
            predicted_latency_ns: open.then_some(latency_ns),
            latency,
            error_percent: match open {
                true => latency.map(|measured| error(latency_ns, measured)),
                false => throughput.map(|measured| error(rate, measured)),
            },
            relative_speed: fastest.as_ref().and_then(|best| stats::paired_ratio(&speeds(run), best, seed)),
            member_names: arm.target.member_names(),
            run: run.clone(),
        })
    };
    let mut proofs: Vec<Proof> = arms.iter().filter_map(proof).collect();
    proofs.sort_by_key(|proof| (usize::MAX - proof.members.len(), proof.interleave_bytes));
    proofs
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
