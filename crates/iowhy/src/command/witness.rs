//! The second witness: extra slices of cells that were measured, watched from outside as any program is.
//!
//! The watched slices come after all measured ones and enter no median. What the watcher saw is held against what the
//! ladder's fit says of the same slices. What may not enter: how either of them knows.

use std::sync::Arc;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::model::StackModel;
use iowhy_core::profile::{Profile, Thread, Tier};
use iowhy_core::workload::Method;
use iowhy_explain::witness::{self, Context, Sighting};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::interrupt;
use iowhy_probe::target::Target;
use iowhy_watch::perf;
use iowhy_watch::session::Observer;

use crate::meaning::Meaning;
use crate::progress::Progress;
use crate::record::Record;

/// The watcher's tier at most: it looks at our own threads, and the parts that are compared need no tracepoints.
const TIER: Tier = Tier::Clock;
/// Time that a cell is watched, its preparation between slices included.
const PER_CELL: Duration = Duration::from_millis(400);
/// Time that a watch takes to begin and to end.
const AROUND: Duration = Duration::from_millis(150);
/// Slices of one cell at most: a page of a mapping faults once, so that some slices are short.
const MOST_SLICES: u32 = 100;
/// Part of the time left that watching may take.
const MOST_SHARE: f64 = 0.25;
/// Cells that are watched at most.
const MOST_CELLS: usize = 12;

/// What is to be watched.
#[derive(Debug, Default)]
pub(super) struct Appointment {
    /// Indexes of cells.
    cells: Vec<usize>,
    /// Why nothing is watched, where somebody might expect it.
    lack: Option<String>,
}

impl Appointment {
    /// Nothing is watched, and nothing is to be said about it.
    pub(super) fn none() -> Appointment {
        Appointment::default()
    }

    /// Of these cells those that can be watched, if the kernel lets us see their stacks and `left` is time enough.
    pub(super) fn make(cells: &[Cell<'_>], wanted: impl Fn(usize) -> bool, left: Duration) -> Appointment {
        let mut cells: Vec<usize> =
            (0..cells.len()).filter(|i| wanted(*i) && watchable(&cells[*i])).collect();
        if cells.is_empty() {
            return Appointment::none();
        }
        cells.truncate(MOST_CELLS);
        let rights = perf::rights();
        if rights.tier < Tier::Stacks {
            let why = rights
                .limitations
                .iter()
                .find(|lack| lack.id == "kernel-stacks")
                .or(rights.limitations.first());
            let why = why.map_or("no kernel stacks", |lack| lack.sentence.as_str()).to_owned();
            return Appointment { cells: Vec::new(), lack: Some(why) };
        }
        let appointment = Appointment { cells, lack: None };
        let takes = appointment.takes();
        if takes > left.mul_f64(MOST_SHARE) {
            let needed = takes.as_secs_f64() / MOST_SHARE;
            let why = format!(
                "it takes {:.1} s, too much of the {:.0} s there are to measure in; with {:.0} s there is one",
                takes.as_secs_f64(),
                left.as_secs_f64().floor(),
                needed.ceil()
            );
            return Appointment { cells: Vec::new(), lack: Some(why) };
        }
        appointment
    }

    /// Time that it takes.
    pub(super) fn takes(&self) -> Duration {
        (PER_CELL + AROUND) * self.cells.len() as u32
    }

    /// Watches. A cell whose watch fails, or that fails while it is watched, has no witness.
    pub(super) fn keep(self, cells: &[Cell<'_>], seed: u64, progress: &Progress) -> Watched {
        let meaning = Arc::new(Meaning::new());
        let all = self.takes();
        let mut watched = Watched { cells: Vec::new(), lack: self.lack };
        for (done, index) in self.cells.iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            let Some(cell) = cells.get(*index) else { continue };
            let remaining = all.saturating_sub((PER_CELL + AROUND) * done as u32);
            progress.at(1.0, remaining, &format!("second witness: {}", cell.key));
            match watch(cell, seed, &meaning) {
                Ok(Some(seen)) => watched.cells.push(seen),
                Ok(None) => {}
                Err(why) => watched.lack = Some(why),
            }
        }
        watched
    }
}

/// Whether a cell's requests are real system calls for data, made as fast as they go.
fn watchable(cell: &Cell<'_>) -> bool {
    // Threads of several arms cannot be told apart, nor those that do a part of each request. The costs of polling are not
    // fitted.
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

/// Watches a cell.
fn watch(cell: &Cell<'_>, seed: u64, meaning: &Arc<Meaning>) -> Result<Option<(CellRun, Sighting)>, String> {
    Ok(observe(cell, seed, meaning)?.map(|(run, profile)| {
        let seen = witness::sighting(&profile, &meaning.account(&profile), &run.workload, measuring());
        (run, seen)
    }))
}

/// Slices of a cell under the eyes of the watcher. `None` when one failed.
pub(super) fn observe(
    cell: &Cell<'_>,
    seed: u64,
    meaning: &Arc<Meaning>,
) -> Result<Option<(CellRun, Profile)>, String> {
    let again = Cell {
        key: cell.key.clone(),
        arms: cell.arms.clone(),
        bounds: cell.bounds,
        listed: cell.listed.clone(),
    };
    let table = Arc::clone(meaning);
    let observer = Observer::start(&[this_thread()], TIER, move |kernel: &[&str]| table.on_path(kernel))
        .map_err(|problem| problem.to_string())?;
    let effort = Effort { least_rounds: 1, most_rounds: MOST_SLICES, budget: PER_CELL, precision: 0.0, seed };
    let outcome = campaign::run(std::slice::from_ref(&again), effort, &mut |_| {});
    let profile = observer.stop().map_err(|problem| problem.to_string())?;
    let run = outcome.cells.into_iter().flatten().next().filter(|run| run.failure.is_none());
    Ok(run.map(|run| (run, profile)))
}

/// Tells the threads that measure: the calling one prepares and waits, and those that it starts measure.
pub(super) fn measuring() -> impl Fn(&Thread) -> bool {
    let this = this_thread();
    move |thread: &Thread| thread.tid != this
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// What was seen of which cells.
#[derive(Debug, Default)]
pub(super) struct Watched {
    cells: Vec<(CellRun, Sighting)>,
    lack: Option<String>,
}

impl Watched {
    /// Holds what was seen against the fit and puts it into the record, beside the cells.
    pub(super) fn tell(
        self,
        record: &mut Record,
        model: Option<&StackModel>,
        harness: Option<Estimate>,
        measured: &[(&CellRun, &Target)],
    ) {
        record.witness_lack = self.lack;
        let Some(model) = model else { return };
        for (run, seen) in self.cells {
            let Some((unwatched, target)) = measured.iter().find(|(m, _)| m.key == run.key) else { continue };
            let context = Context { model, facts: Some(&target.facts), harness };
            let Some(cell) = record.cells.iter_mut().find(|c| c.key == run.key) else { continue };
            cell.witness = witness::compare(&seen, &run, unwatched, &context);
        }
    }
}
