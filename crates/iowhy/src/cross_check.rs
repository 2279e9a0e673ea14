//! The cross-check: extra slices of measured cells, profiled as any program is, and compared with the fitted costs.
//!
//! The profiled slices come after all measured ones and enter no median.

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::profile::{Profile, Thread, Tier};
use iowhy_core::workload::Method;
use iowhy_path::costs::Layers;
use iowhy_path::cross_check::{self, Observed};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::interrupt;
use iowhy_watch::perf;
use iowhy_watch::session::Observer;

use crate::analyzer::Analyzer;
use crate::progress::Progress;
use crate::record::Record;

/// The highest tier used: the profiled threads are those of iowhy, and the compared parts need no tracepoints.
const TIER: Tier = Tier::Clock;
/// Time that a cell is profiled, preparation between slices included.
const PER_CELL: Duration = Duration::from_millis(400);
/// Time that a profile takes to begin and to end.
const AROUND: Duration = Duration::from_millis(150);
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
            return CrossCheckPlan { cells: Vec::new(), limitation: Some(why) };
        }
        let plan = CrossCheckPlan { cells, limitation: None };
        let takes = plan.takes();
        if takes > left.mul_f64(MAX_SHARE) {
            let needed = takes.as_secs_f64() / MAX_SHARE;
            let why = format!(
                "it takes {:.1} s, too much of the {:.0} s for measuring; use `--time {:.0}s`",
                takes.as_secs_f64(),
                left.as_secs_f64().floor(),
                needed.ceil()
            );
            return CrossCheckPlan { cells: Vec::new(), limitation: Some(why) };
        }
        plan
    }

    pub(crate) fn takes(&self) -> Duration {
        (PER_CELL + AROUND) * self.cells.len() as u32
    }

    /// Profiles the cells. A cell that fails, or whose profile fails, has no cross-check.
    pub(crate) fn run(self, cells: &[Cell<'_>], seed: u64, progress: &Progress) -> Watched {
        let meaning = Arc::new(Analyzer::new());
        let all = self.takes();
        let mut watched = Watched { cells: Vec::new(), limitation: self.limitation };
        for (done, index) in self.cells.iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            let Some(cell) = cells.get(*index) else { continue };
            let remaining = all.saturating_sub((PER_CELL + AROUND) * done as u32);
            progress.at(1.0, remaining, &format!("cross-check: {}", cell.key));
            match watch(cell, seed, &meaning) {
                Ok(Some(seen)) => watched.cells.push(seen),
                Ok(None) => {}
                Err(why) => watched.limitation = Some(why),
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
    let observer = Observer::start(&[this_thread()], TIER, move |kernel: &[&str]| table.on_path(kernel))
        .map_err(|problem| problem.to_string())?;
    let effort = Effort { min_rounds: 1, max_rounds: MAX_SLICES, time: PER_CELL, precision: 0.0, seed };
    let outcome = campaign::run(std::slice::from_ref(cell), effort, &mut |_| {});
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
    /// Compares profiles and the accounts of the measured cells, and puts the result into the record beside the cells.
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
        }
    }
}
