//! Rounds of interleaved cells: prepares and verifies the cache state around each slice and keeps every sample.
//!
//! Goal: alternatives measured side by side in seeded order, until each is known precisely enough or the budget is
//! gone. Non-goal: choosing the cells, explaining the result. Invariant: a cell that fails keeps its samples and its
//! reason and does not stop the others; an interrupt ends the campaign with what is known.

use std::time::{Duration, Instant};

use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::histogram::Histogram;
use iowhy_core::problem::Problem;
use iowhy_core::schedule;
use iowhy_core::stats;
use iowhy_core::workload::{CacheState, Workload};

use crate::counters::KernelThreads;
use crate::residency;
use crate::runner::{self, Arm, Bounds};
use crate::target::{How, Target};
use crate::interrupt;

/// One cell of a plan. Several arms run side by side from one barrier.
#[derive(Debug)]
pub struct Cell<'a> {
    /// Stable key, unique in the plan.
    pub key: String,
    /// What to do, and to what; one entry per target.
    pub arms: Vec<(Workload, &'a Target)>,
    /// Bounds of one slice of it.
    pub bounds: Bounds,
}

/// How long a campaign goes on.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds that are run even when the budget is gone (an interrupt still ends them).
    pub least_rounds: u32,
    /// Rounds that are never exceeded.
    pub most_rounds: u32,
    /// Wall time after which no new round is begun.
    pub budget: Duration,
    /// Relative half width of the 95 % interval at which a cell is known well enough.
    pub precision: f64,
    /// Seed of the order of cells and of the bootstrap.
    pub seed: u64,
}

/// Where a campaign stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Share done, 0 to 1, by time.
    pub share: f64,
    /// Estimated time to the end.
    pub remaining: Duration,
    /// The cell that is being measured.
    pub cell: &'a str,
}

/// What a campaign found out, in the order of the plan: one run for each arm of each cell.
#[derive(Debug)]
pub struct Outcome {
    /// One entry per cell, each with one run per arm.
    pub cells: Vec<Vec<CellRun>>,
    /// Rounds completed.
    pub rounds: u32,
    /// Whether somebody asked us to stop.
    pub interrupted: bool,
}

/// Measures a plan.
pub fn run(cells: &[Cell<'_>], effort: Effort, progress: &mut dyn FnMut(Progress<'_>)) -> Outcome {
    let begun = Instant::now();
    let mut kernel_threads = KernelThreads::open();
    let mut states: Vec<CellState> = cells.iter().map(CellState::new).collect();
    let mut rounds = 0;
    let mut first_round = Duration::ZERO;
    while rounds < effort.most_rounds && !interrupt::requested() {
        let open: Vec<usize> =
            (0..cells.len()).filter(|&i| states[i].wants_more(rounds, &effort)).collect();
        if open.is_empty() || (rounds >= effort.least_rounds && begun.elapsed() + first_round > effort.budget) {
            break;
        }
        for (position, &pick) in schedule::interleave(open.len(), rounds, effort.seed).iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            let index = open[pick];
            let (share, remaining) = ahead(&begun, rounds, position, open.len(), &effort);
            progress(Progress { share, remaining, cell: &cells[index].key });
            states[index].slice(&cells[index], rounds, begun, kernel_threads.as_mut());
        }
        rounds += 1;
        if rounds == 1 {
            first_round = begun.elapsed();
        }
    }
    Outcome {
        cells: states.into_iter().map(|s| s.finish()).collect(),
        rounds,
        interrupted: interrupt::requested(),
    }
}

/// Share done and time to the end. The end is whichever comes later of the budget and the least number of rounds, or
/// earlier when the greatest number of rounds is reached first, at the pace seen so far.
fn ahead(begun: &Instant, rounds: u32, position: usize, cells: usize, effort: &Effort) -> (f64, Duration) {
    let spent = begun.elapsed().as_secs_f64();
    let done = f64::from(rounds) + position as f64 / cells.max(1) as f64;
    if done == 0.0 {
        return (0.0, effort.budget);
    }
    let per_round = spent / done;
    let least = per_round * f64::from(effort.least_rounds);
    let most = per_round * f64::from(effort.most_rounds);
    let end = effort.budget.as_secs_f64().max(least).min(most).max(spent);
    (spent / end, Duration::from_secs_f64(end - spent))
}

/// A cell while it is measured.
struct CellState {
    runs: Vec<CellRun>,
    checks: Vec<Vec<StateCheck>>,
    failed: bool,
}

impl CellState {
    fn new(cell: &Cell<'_>) -> Self {
        let many = cell.arms.len() > 1;
        let runs = cell
            .arms
            .iter()
            .map(|(workload, target)| CellRun {
                workload: workload.clone(),
                key: if many { format!("{}@{}", cell.key, target.facts.name) } else { cell.key.clone() },
                samples: Vec::new(),
                latency: Histogram::default(),
                state_check: StateCheck::NotApplicable,
                dropped: Vec::new(),
                failure: None,
            })
            .collect::<Vec<_>>();
        CellState { checks: vec![Vec::new(); runs.len()], runs, failed: false }
    }

    /// Not failed, and not yet known as precisely as asked.
    fn wants_more(&self, rounds: u32, effort: &Effort) -> bool {
        if self.failed {
            return false;
        }
        rounds < effort.least_rounds
            || self.runs.iter().any(|run| {
                let values: Vec<f64> = run.samples.iter().map(Sample::ns_per_request).collect();
                stats::bootstrap_median(&values, effort.seed, iowhy_core::estimate::Unit::Nanoseconds)
                    .is_none_or(|e| e.relative_half_width() > effort.precision)
            })
    }

    /// Prepares, runs and verifies one slice; books it.
    fn slice(&mut self, cell: &Cell<'_>, round: u32, begun: Instant, kernel_threads: Option<&mut KernelThreads>) {
        let mut before = Vec::with_capacity(cell.arms.len());
        for (workload, target) in &cell.arms {
            match prepare(workload, target) {
                Ok(seen) => before.push(seen),
                Err(problem) => return self.fail(&problem),
            }
        }
        let arms: Vec<Arm<'_>> = cell.arms.iter().map(|(workload, target)| Arm { workload, target }).collect();
        let start_ns = begun.elapsed().as_nanos() as u64;
        let slices = match runner::run(&arms, cell.bounds, kernel_threads) {
            Ok(slices) => slices,
            Err(problem) => return self.fail(&problem),
        };
        for (i, mut slice) in slices.into_iter().enumerate() {
            let (workload, target) = &cell.arms[i];
            let after = look(workload, target);
            slice.sample.round = round;
            slice.sample.start_ns = start_ns;
            slice.sample.resident_before = before[i].as_ref().and_then(|l| l.as_ref().ok().copied());
            slice.sample.resident_after = after.as_ref().and_then(|l| l.as_ref().ok().copied());
            let share = |seen: &Seen| seen.clone().unwrap_or(Err("not looked at".to_owned()));
            if before[i].is_some() {
                let once = slice.sample.requests <= workload.blocks() && !workload.pattern.revisits();
                self.checks[i].push(StateCheck::of(
                    workload.state,
                    share(&before[i]),
                    share(&after),
                    once,
                ));
            }
            let run = &mut self.runs[i];
            if slice.sample.requests > 0 {
                run.latency.merge(&slice.latency);
                run.samples.push(slice.sample);
            }
            for note in slice.dropped {
                if !run.dropped.contains(&note) {
                    run.dropped.push(note);
                }
            }
            if slice.failure.is_some() {
                run.failure = slice.failure;
                self.failed = true;
            }
        }
    }

    fn fail(&mut self, problem: &Problem) {
        self.failed = true;
        let text = match &problem.hint {
            Some(hint) => format!("{problem} (hint: {hint})"),
            None => problem.to_string(),
        };
        for run in &mut self.runs {
            run.failure = Some(text.clone());
        }
    }

    /// A cell is what it claims only if every round was.
    fn finish(mut self) -> Vec<CellRun> {
        for (run, checks) in self.runs.iter_mut().zip(self.checks) {
            run.state_check = StateCheck::all(checks);
        }
        self.runs
    }
}

/// Share of the region in the cache, why it cannot be seen, or `None` where no page cache is involved.
type Seen = Option<Result<f64, String>>;

/// Brings the page cache into the claimed state and looks at it.
fn prepare(workload: &Workload, target: &Target) -> Result<Seen, Problem> {
    if !target.has_page_cache() {
        return Ok(None);
    }
    let file = target.open(How::default())?;
    use std::os::fd::AsFd;
    let (fd, offset, bytes) = (file.as_fd(), workload.region_offset, workload.region_bytes);
    match workload.state {
        CacheState::Cold => residency::evict(fd, offset, bytes)?,
        CacheState::Warm => {
            let there = residency::look(fd, offset, bytes).is_ok_and(|seen| seen.resident == seen.pages);
            if !there {
                residency::fetch(fd, offset, bytes)?;
            }
        }
        CacheState::Direct => {}
        CacheState::None => return Ok(None),
    }
    Ok(look(workload, target))
}

/// Looks at the region without changing anything.
fn look(workload: &Workload, target: &Target) -> Seen {
    if !target.has_page_cache() || workload.state == CacheState::None {
        return None;
    }
    use std::os::fd::AsFd;
    Some(match target.open(How::default()) {
        Ok(file) => residency::look(file.as_fd(), workload.region_offset, workload.region_bytes)
            .map(|seen| seen.share()),
        Err(problem) => Err(problem.to_string()),
    })
}
