//! The cross-check: extra slices of measured cells, profiled as any program is, and compared with their accounts. Cells that a
//! first pass leaves undecided are profiled further in the time that is left.
//!
//! The profiled slices come after all measured ones and enter no median.

use std::sync::Arc;
use std::time::{Duration, Instant};

use iowhy_core::cell::CellRun;
use iowhy_core::profile::{Profile, Thread, Tier};
use iowhy_core::workload::{CacheState, Method};
use iowhy_path::costs::Layers;
use iowhy_path::cross_check::{self, CrossCheck, Observed};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::interrupt;
use iowhy_watch::perf;
use iowhy_watch::session::Observer;

use crate::analyzer::Analyzer;
use crate::progress::Progress;
use crate::record::Record;

/// Nanoseconds between two ticks of the clock: 4999 a second, ten times as many as where a program is watched. A tick makes a
/// request longer and is in no sample, so that it takes nothing from the shares; their totals come from requests without it.
const CLOCK_PERIOD_NS: u64 = 1_000_000_000 / 4999;
/// Time that a cell is profiled in a pass, preparation between slices included.
const PER_PASS: Duration = Duration::from_millis(400);
/// Time that a profile takes to begin and to end.
const AROUND: Duration = Duration::from_millis(150);
/// Passes that a cell gets at most.
const MAX_PASSES: u32 = 6;
/// Length of a slice: that of a measured one is too short where its preparation takes longer.
const SLICE: Duration = Duration::from_millis(100);
/// Slices of one cell at most: a page of a mapping faults once, so that some slices are short.
const MAX_SLICES: u32 = 100;
/// Share of the time left that profiling may take.
const MAX_SHARE: f64 = 0.25;
/// Cells that are profiled at most.
const MAX_CELLS: usize = 12;

/// The cells to be profiled.
#[derive(Debug, Default)]
pub(crate) struct CrossCheckPlan {
    /// Indexes of cells.
    cells: Vec<usize>,
    /// Why nothing is profiled, where it was possible in principle.
    limitation: Option<String>,
    /// Time for all passes.
    time: Duration,
}

impl CrossCheckPlan {
    /// Nothing is profiled, without a reason to report.
    pub(crate) fn none() -> CrossCheckPlan {
        CrossCheckPlan::default()
    }

    /// Those of the cells that can be profiled, if the kernel shows their stacks and `left` is enough time.
    pub(crate) fn make(cells: &[Cell<'_>], wanted: impl Fn(usize) -> bool, left: Duration) -> CrossCheckPlan {
        let mut cells: Vec<usize> =
            (0..cells.len()).filter(|i| wanted(*i) && watchable(&cells[*i])).collect();
        if cells.is_empty() {
            return CrossCheckPlan::none();
        }
        cells.truncate(MAX_CELLS);
        let rights = perf::rights();
        if rights.tier < Tier::Stacks {
            let why = rights
                .limitations
                .iter()
                .find(|limitation| limitation.id == "kernel-stacks")
                .or(rights.limitations.first());
            let why = why.map_or("no kernel stacks", |limitation| limitation.sentence.as_str()).to_owned();
            return CrossCheckPlan { limitation: Some(why), ..CrossCheckPlan::none() };
        }
        let pass = (PER_PASS + AROUND) * cells.len() as u32;
        let time = left.mul_f64(MAX_SHARE);
        if pass > time {
            let needed = pass.as_secs_f64() / MAX_SHARE;
            let why = format!(
                "it takes {:.1} s, too much of the {:.0} s for measuring; use `--time {:.0}s`",
                pass.as_secs_f64(),
                left.as_secs_f64().floor(),
                needed.ceil()
            );
            return CrossCheckPlan { limitation: Some(why), ..CrossCheckPlan::none() };
        }
        CrossCheckPlan { cells, limitation: None, time: time.min(pass * MAX_PASSES) }
    }

    /// Time that is to be kept for it.
    pub(crate) fn takes(&self) -> Duration {
        self.time
    }

    /// Profiles the cells, those of which `undecided` says that more samples could decide repeatedly. A cell that fails, or whose
    /// profile fails, has no cross-check. `from`: the share of the progress at which it begins; `spare`: time that earlier work
    /// did not use.
    pub(crate) fn run(
        self,
        cells: &[Cell<'_>],
        (seed, from, spare): (u64, f64, Duration),
        progress: &Progress,
        undecided: impl Fn(&CellRun, &Observed) -> bool,
    ) -> Watched {
        let (begun, time) = (Instant::now(), self.time + spare);
        let meaning = Arc::new(Analyzer::new());
        let mut watched = Watched { cells: Vec::new(), limitation: self.limitation };
        let mut open = self.cells;
        for pass in 0..MAX_PASSES {
            for index in std::mem::take(&mut open) {
                let left = time.saturating_sub(begun.elapsed());
                if interrupt::requested() || (pass > 0 && left < PER_PASS + AROUND) {
                    return watched;
                }
                let Some(cell) = cells.get(index) else { continue };
                let done = 1.0 - left.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
                progress.at(from + (1.0 - from) * done, left, &format!("cross-check: {}", cell.key));
                match watch(cell, seed + u64::from(pass), &meaning) {
                    Ok(Some(seen)) => {
                        let (run, seen) = watched.add(seen);
                        if undecided(run, seen) {
                            open.push(index);
                        }
                    }
                    Ok(None) => {}
                    Err(why) => watched.limitation = Some(why),
                }
            }
        }
        watched
    }
}

/// Whether a cell's requests are real system calls for data, made as fast as they go.
fn watchable(cell: &Cell<'_>) -> bool {
    // Threads of several arms are not separated, nor those that do a part of each request. Costs of polling are not fitted.
    let [(workload, target)] = cell.arms.as_slice() else { return false };
    target.script().is_none()
        && target.stripe().is_none()
        && target.has_page_cache()
        && workload.rate_per_second.is_none()
        && !workload.method.scsi()
        && !matches!(
            workload.method,
            Method::Null | Method::Syscall | Method::PreadEnd | Method::UringSqpoll | Method::UringIopoll
        )
}

/// Profiles a cell.
fn watch(cell: &Cell<'_>, seed: u64, meaning: &Arc<Analyzer>) -> Result<Option<(CellRun, Observed)>, String> {
    Ok(observe(cell, seed, meaning)?.map(|(run, profile)| {
        let seen = cross_check::observed(&profile, &meaning.account(&profile), &run.workload, measuring());
        (run, seen)
    }))
}

/// Profiles slices of a cell. `None` when one failed.
pub(crate) fn observe(
    cell: &Cell<'_>,
    seed: u64,
    meaning: &Arc<Analyzer>,
) -> Result<Option<(CellRun, Profile)>, String> {
    let table = Arc::clone(meaning);
    // Requests are recorded where the caller waits for those of others: read-ahead, write-back, the journal. They cost CPU time.
    let others = cell
        .arms
        .iter()
        .any(|(w, _)| w.state == CacheState::Cold || (w.direction.writes() && w.state != CacheState::Direct));
    let tier = if others { Tier::Observer } else { Tier::Clock };
    let observer = Observer::start(&[this_thread()], tier, CLOCK_PERIOD_NS, move |kernel: &[&str]| {
        table.on_path(kernel)
    })
    .map_err(|problem| problem.to_string())?;
    let effort = Effort { min_rounds: 1, max_rounds: MAX_SLICES, time: PER_PASS, precision: 0.0, seed };
    let mut cell = cell.clone();
    cell.bounds.wall = cell.bounds.wall.max(SLICE);
    let outcome = campaign::run(&[cell], effort, &mut |_| {});
    let profile = observer.stop().map_err(|problem| problem.to_string())?;
    let run = outcome.cells.into_iter().flatten().next().filter(|run| run.failure.is_none());
    Ok(run.map(|run| (run, profile)))
}

/// Picks the measuring threads: the calling one prepares and waits, those that it starts measure.
pub(crate) fn measuring() -> impl Fn(&Thread) -> bool {
    let this = this_thread();
    move |thread: &Thread| thread.tid != this
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// The profiles of cells.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    cells: Vec<(CellRun, Observed)>,
    limitation: Option<String>,
}

impl Watched {
    /// Adds the profile of a cell to an earlier one of the same.
    fn add(&mut self, (run, seen): (CellRun, Observed)) -> (&CellRun, &Observed) {
        let at = match self.cells.iter().position(|(known, _)| known.key == run.key) {
            Some(at) => {
                let (known, sum) = &mut self.cells[at];
                known.samples.extend(run.samples);
                sum.add(seen);
                at
            }
            None => {
                self.cells.push((run, seen));
                self.cells.len() - 1
            }
        };
        let (run, seen) = &self.cells[at];
        (run, seen)
    }

    /// Compares profiles and the accounts of the measured cells, splits the accounts further by the samples, and puts both into
    /// the record.
    pub(crate) fn fill<'a>(
        self,
        record: &mut Record,
        measured: impl Iterator<Item = &'a CellRun> + Clone,
        account: impl Fn(&CellRun) -> Option<Layers>,
    ) {
        record.cross_check_limitation = self.limitation;
        for (run, seen) in self.cells {
            let Some(unwatched) = measured.clone().find(|measured| measured.key == run.key) else { continue };
            let Some(layers) = account(unwatched) else { continue };
            let Some(cell) = record.cells.iter_mut().find(|c| c.key == run.key) else { continue };
            cell.cross_check = cross_check::compare(&seen, &run, unwatched, &layers);
            if cell.layers.is_some() && cell.cross_check.as_ref().is_some_and(CrossCheck::may_split) {
                let layers = cross_check::split(&seen, unwatched, layers, record.seed);
                (cell.layers, cell.layer_estimates) = (layers.ledger, layers.estimates);
                cell.layer_notes = layers.notes;
            }
        }
    }
}
