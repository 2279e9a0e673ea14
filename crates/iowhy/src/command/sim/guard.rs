//! What a run may cost: memory and time are estimated before anything large is begun. What may not enter: the runs that
//! count.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_probe::machine::memory_available_bytes;
use iowhy_sim::machine::Machine;
use iowhy_sim::sweep::{self, Settings};
use iowhy_sim::workload::{Load, Workload};
use iowhy_trace::Options;

use crate::simulation::{Demand, Feed, MEMORY_SHARE_AT_MOST, Watch};

/// A sweep that takes longer is only run with `--force`.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Share of the available memory that may be filled.
const MEMORY_SHARE: f64 = 0.5;
/// Requests that are run to know how long a sweep will take, and blocks that they ask for.
const TRIAL_REQUESTS: u64 = 20_000;
const TRIAL_BLOCKS: u64 = 1 << 20;

/// Refuses what would fill the memory: as many of the largest points as run side by side. What others may miss it is only
/// refused until the user says yes.
///
/// # Errors
/// The refusal, and what a point refuses.
pub(super) fn fits(
    base: &Machine,
    points: &[Settings],
    demand: &Demand,
    lanes: usize,
    yes: bool,
) -> Result<(), Problem> {
    let (Demand::Workload(workload, _), Some(available)) = (demand, memory_available_bytes()) else {
        return Ok(());
    };
    let mut needed = Vec::with_capacity(points.len());
    for set in points {
        needed.push(workload.memory_bytes(&sweep::machine_at(base, set)?));
    }
    needed.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let wanted = needed.iter().take(lanes).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let share = if yes { MEMORY_SHARE_AT_MOST } else { MEMORY_SHARE };
    let limit = (available as f64 * share) as u64;
    if wanted <= limit {
        return Ok(());
    }
    let or_yes =
        if wanted <= (available as f64 * MEMORY_SHARE_AT_MOST) as u64 { ", or `--force`" } else { "" };
    Err(Problem::refused(format!(
        "the simulation would take up to {} of memory; {} are free, and {} of them may be filled",
        Bytes(wanted),
        Bytes(available),
        Bytes(limit)
    ))
    .hint(format!("give fewer `readers`, a smaller `size` or `population`, a smaller or colder cache (`--set cache.bytes=`, `warm=no`){or_yes}")))
}

/// Refuses a sweep that would take too long, before its first point is run: by the speed of its first requests.
///
/// # Errors
/// The refusal, and what a point refuses.
pub(super) fn quick(
    base: &Machine,
    points: &[Settings],
    demand: &Demand,
    seed: u64,
    lanes: usize,
    watch: &Watch<'_>,
) -> Result<(), Problem> {
    let Some(set) = points.first() else { return Ok(()) };
    let machine = sweep::machine_at(base, set)?;
    let trial = match demand {
        Demand::Workload(workload, _) => of_workload(&machine, workload, seed),
        Demand::Trace { path, options, clients, most } => {
            of_trace(&machine, path, options, *clients, (*most, seed), watch)
        }
    };
    let Some(trial) = trial.map_err(|problem| named(problem, set))? else { return Ok(()) };
    let rows = points.len().div_ceil(lanes.min(points.len()).max(1));
    let each = trial.took.as_secs_f64() / trial.tried.max(1) as f64;
    let whole = (trial.building.as_secs_f64() + each * trial.requests as f64) * rows as f64;
    if whole <= PATIENCE.as_secs_f64() {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "the sweep has {} points of {} requests and would take about {}, by the speed of the first {}; {lanes} run side by side",
        points.len(),
        trial.requests,
        // Hours beyond counting are all the same.
        spoken(Duration::from_secs_f64(whole.min(1e12))),
        trial.tried,
    ))
    .hint("give fewer values, a shorter workload or fewer `--requests` of a trace, or `--force` to run it all"))
}

/// The first requests of a point, run to know how long all will take.
struct Trial {
    /// What does not grow with the number of requests.
    building: Duration,
    took: Duration,
    tried: u64,
    /// All that there are.
    requests: u64,
}

/// `None`: so few requests that there is nothing to try.
fn of_workload(machine: &Machine, workload: &Workload, seed: u64) -> Result<Option<Trial>, Problem> {
    let blocks = workload.request_bytes() / machine.cache.block_bytes.max(1);
    let tried = (TRIAL_BLOCKS / blocks.max(1)).clamp(1, TRIAL_REQUESTS);
    let requests = workload.requests();
    if requests / 10 < tried {
        return Ok(None);
    }
    let timed = |most: u64| {
        let begun = Instant::now();
        iowhy_sim::run(machine, workload.load(seed).first(most), seed)?;
        Ok::<_, Problem>(begun.elapsed())
    };
    // What is built before the first request does not grow with their number.
    let building = timed(1)?;
    let took = timed(tried)?.saturating_sub(building);
    Ok(Some(Trial { building, took, tried, requests }))
}

/// `None`: the trace is short, or says nothing of its length.
fn of_trace(
    machine: &Machine,
    path: &Path,
    options: &Options,
    clients: Option<u32>,
    (most, seed): (u64, u64),
    watch: &Watch<'_>,
) -> Result<Option<Trial>, Problem> {
    let first = most.min(TRIAL_REQUESTS);
    let mut feed = Feed::open(path, options, first)?;
    feed.refuse_wide(machine, watch);
    let begun = Instant::now();
    let load = Load::replay(&mut feed);
    let load = match clients {
        Some(clients) => load.closed(clients),
        None => load,
    };
    iowhy_sim::run_guarded(machine, load, seed, &mut |_| watch.memory())?;
    let (took, tried) = (begun.elapsed(), feed.handed_out(first));
    if tried < first {
        return Ok(None);
    }
    let requests = feed.requests_in_all().map(|requests| requests.min(most));
    Ok(requests.map(|requests| Trial { building: Duration::ZERO, took, tried, requests }))
}

/// A problem of one point of a sweep.
pub(super) fn named(problem: Problem, set: &Settings) -> Problem {
    if set.is_empty() {
        return problem;
    }
    let at: Vec<String> = set.iter().map(|(path, value)| format!("{path}={value}")).collect();
    Problem { message: format!("at {}: {}", at.join(", "), problem.message), ..problem }
}

/// A time as one says it.
pub(super) fn spoken(time: Duration) -> String {
    match time.as_secs() {
        0..=119 => format!("{} s", time.as_secs()),
        120..=7199 => format!("{} minutes", time.as_secs() / 60),
        seconds => format!("{} hours", seconds / 3600),
    }
}
