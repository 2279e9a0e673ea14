//! What every experiment does alike: targets, cells in interleaved rounds, and the report with its cells.

use std::path::Path;
use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_linux::identity::FilesAs;
use iowhy_path::facts;
use iowhy_probe::campaign::{self, Cell, Effort, Outcome};
use iowhy_probe::environment;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Needs, Target};

use crate::report::{MeasuredCell, Report};

/// Fewest rounds, for an interval by resampling, and the rounds that the time is divided by.
const MIN_ROUNDS: u32 = 5;
const ROUNDS: u32 = 7;
/// Share of the time that slices take; caches, threads and mappings take the rest.
const MEASURING: f64 = 0.45;

/// What the caller provides.
pub trait World: Sync {
    /// Finds or makes a target.
    ///
    /// # Errors
    /// A refusal.
    fn resolve(&self, spec: &str, needs: &Needs) -> Result<Target, Problem>;

    /// Refuses targets that an output would overwrite.
    ///
    /// # Errors
    /// The refusal.
    fn spare(&self, targets: &[&Target]) -> Result<(), Problem>;

    /// Shows the share that is done, the time left, the present step.
    fn at(&self, share: f64, left: Duration, doing: &str);

    /// Makes files as the user that the run is for, as long as the guard lives.
    ///
    /// # Errors
    /// A user that cannot be had.
    fn files_of_the_user(&self) -> Result<FilesAs, Problem>;

    /// Why no kernel stacks can be sampled; `None` where they can.
    fn no_stacks(&self) -> Option<String>;

    /// Profiles slices of a cell; `None` when a slice failed. Its measuring threads are those of `measuring`.
    ///
    /// # Errors
    /// Why there is no profile.
    fn profile(&self, cell: &Cell<'_>, seed: u64) -> Result<Option<(CellRun, Profile)>, String>;
}

/// What an experiment is run with.
#[derive(Clone, Copy)]
pub struct Lab<'a> {
    /// The target as the user named it.
    pub spec: &'a str,
    /// The same as several targets, where it names several (`A:B`).
    pub specs: &'a [String],
    /// Time for one experiment.
    pub time: Duration,
    /// Bytes of the scratch file, or of the part of the file that is used.
    pub size: Option<u64>,
    /// Bytes a second of the question about direct I/O.
    pub rate: f64,
    /// Whether the read-ahead of the disk's queue may be changed for a while.
    pub queue_read_ahead: bool,
    /// Files of the news tree.
    pub files: Option<u64>,
    /// A null block device.
    pub null_block: Option<&'a Path>,
    /// Whether file systems may be made and mounted, out of sight.
    pub block_size_test: bool,
    /// Members of the real stripes, separated by commas.
    pub members: Option<&'a str>,
    /// A directory where the news tree stays.
    pub keep: Option<&'a Path>,
    /// Seed of orders and intervals.
    pub seed: u64,
    /// Options, outputs and profiles.
    pub world: &'a dyn World,
}

impl Lab<'_> {
    /// Finds or makes the target, with at least `bytes` in it where it is made.
    ///
    /// # Errors
    /// What resolving says; a refusal when an output is the target itself.
    pub fn target(&self, bytes: u64) -> Result<Target, Problem> {
        let needs = Needs { scratch_bytes: self.size.unwrap_or(bytes), write: false, destroy_data: None };
        let target = self.world.resolve(self.spec, &needs)?;
        self.world.spare(&[&target])?;
        Ok(target)
    }

    /// Measures the cells: the time is shared evenly, each slice ends with its share or with its region.
    pub fn measure(&self, cells: &mut [Cell<'_>]) -> Outcome {
        let wall = self.time.mul_f64(MEASURING) / (ROUNDS * cells.len().max(1) as u32);
        for cell in cells.iter_mut() {
            cell.bounds.wall = wall.clamp(Duration::from_micros(500), Duration::from_millis(500));
        }
        self.run(cells)
    }

    /// Measures the cells within their own bounds.
    pub fn run(&self, cells: &[Cell<'_>]) -> Outcome {
        let effort = Effort {
            min_rounds: MIN_ROUNDS,
            max_rounds: ROUNDS,
            time: self.time,
            precision: 0.0,
            seed: self.seed,
        };
        campaign::run(cells, effort, &mut |p| self.world.at(p.share, p.remaining, p.cell))
    }

    /// The report with its cells and no row yet.
    pub fn report(&self, targets: &[&Target], plan: &[Cell<'_>], outcome: &Outcome) -> Report {
        let environment = targets.first().map(|t| environment::environment(t)).unwrap_or_default();
        let memory_bytes = environment.memory_limit_bytes.unwrap_or(environment.memory_bytes);
        let mut warnings = Vec::new();
        for warning in targets.iter().flat_map(|t| facts::facts_warnings(&t.facts, memory_bytes)) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let mut cells: Vec<MeasuredCell> = plan
            .iter()
            .zip(&outcome.cells)
            .flat_map(|(cell, runs)| cell.arms.iter().zip(runs))
            .map(|((_, target), run)| MeasuredCell::new(run, target, environment.read_ahead_bytes, self.seed))
            .collect();
        // Two scratch files of one directory have one name; their keys must differ.
        for index in 1..cells.len() {
            if cells[..index].iter().any(|cell| cell.run.key == cells[index].run.key) {
                cells[index].run.key.push_str("-2");
            }
        }
        Report {
            environment,
            targets: targets.iter().map(|t| t.facts.clone()).collect(),
            warnings,
            rounds: outcome.rounds,
            interrupted: outcome.interrupted,
            cells,
            ..Report::default()
        }
    }
}

/// A cell of reads. A cold block may be asked for once a round; a mapped page faults once.
pub fn cell<'a>(key: String, workload: Workload, target: &'a Target) -> Cell<'a> {
    cell_of(key, vec![(workload, target)])
}

/// The same with several arms.
pub fn cell_of<'a>(key: String, arms: Vec<(Workload, &'a Target)>) -> Cell<'a> {
    let once = arms.iter().any(|(w, _)| w.state == CacheState::Cold || w.method.mapped());
    let blocks = arms.iter().map(|(w, _)| w.blocks() / w.threads.max(1) as u64).min().unwrap_or(1);
    Cell {
        key,
        arms,
        bounds: Bounds {
            wall: Duration::from_millis(10),
            requests_per_thread: if once { blocks.max(1) } else { u64::MAX },
        },
        listed: None,
        group: None,
        request_bytes: None,
    }
}

/// A workload of whole blocks in the first `bytes` of a target.
pub fn reads(method: Method, state: CacheState, block: u64, bytes: u64) -> Workload {
    Workload::reads(method, state, block, bytes / block * block)
}
