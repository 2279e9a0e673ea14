//! What every experiment does alike: targets, cells in interleaved rounds, the record, and looking figures up in it.

use std::path::Path;
use std::time::Duration;

use iowhy_classic::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_path::costs::Layers;
use iowhy_path::facts;
use iowhy_probe::campaign::{self, Cell, Effort, Outcome};
use iowhy_probe::environment;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Needs, Target};

use crate::command::shared;
use crate::output::Outputs;
use crate::progress::Progress;
use crate::record::classic::{ClassicRecord, Grid, RowRecord, Section};
use crate::record::{CellRecord, Kind, SCHEMA};
use crate::shell;

/// Rounds: the fewest that give an interval by resampling, and those that the time is divided by.
const LEAST_ROUNDS: u32 = 5;
const ROUNDS: u32 = 7;
/// Share of the time that slices take; the rest goes into caches emptied and filled, threads and mappings.
const MEASURING: f64 = 0.45;

/// What an experiment is run with.
pub(super) struct Lab<'a> {
    /// The target as the user named it.
    pub(super) spec: &'a str,
    /// Time for one experiment.
    pub(super) budget: Duration,
    /// Bytes of the scratch file, or of the part of the file that is used.
    pub(super) size: Option<u64>,
    /// Bytes a second of the question about direct I/O.
    pub(super) rate: f64,
    /// Whether the read-ahead of the disk's queue may be changed for a while.
    pub(super) queue_read_ahead: bool,
    /// Files of the news tree.
    pub(super) files: Option<u64>,
    /// A null block device.
    pub(super) null_block: Option<&'a Path>,
    /// Whether file systems may be made and mounted, out of sight.
    pub(super) block_size_test: bool,
    /// Members of the real stripes, with commas between.
    pub(super) members: Option<&'a str>,
    /// A directory where the news tree stays.
    pub(super) keep: Option<&'a Path>,
    /// Seed of orders and intervals.
    pub(super) seed: u64,
    /// Where we stand.
    pub(super) progress: &'a Progress,
    /// Where results go.
    pub(super) outputs: &'a Outputs,
}

/// The command as it was typed.
pub(super) fn command() -> String {
    shell::line(std::env::args_os())
}

impl Lab<'_> {
    /// Finds or makes the target, with at least `bytes` in it where it is made.
    ///
    /// # Errors
    /// What resolving says; a refusal when an output is the target itself.
    pub(super) fn target(&self, bytes: u64) -> Result<Target, Problem> {
        let needs = Needs { scratch_bytes: self.size.unwrap_or(bytes), write: false, destroy_data: None };
        let target = shared::resolve(self.spec, &needs, self.progress)?;
        self.outputs.spare(&[&target])?;
        Ok(target)
    }

    /// Measures the cells: the time is shared evenly, each slice ends with its share or with its region.
    pub(super) fn measure(&self, cells: &mut [Cell<'_>]) -> Outcome {
        let wall = self.budget.mul_f64(MEASURING) / (ROUNDS * cells.len().max(1) as u32);
        for cell in cells.iter_mut() {
            cell.bounds.wall = wall.clamp(Duration::from_micros(500), Duration::from_millis(500));
        }
        self.run(cells)
    }

    /// Measures the cells within their own bounds.
    pub(super) fn run(&self, cells: &[Cell<'_>]) -> Outcome {
        let effort = Effort {
            min_rounds: LEAST_ROUNDS,
            max_rounds: ROUNDS,
            time: self.budget,
            precision: 0.0,
            seed: self.seed,
        };
        campaign::run(cells, effort, &mut |p| self.progress.at(p.share, p.remaining, p.cell))
    }

    /// The record, with the cells in it and no row yet.
    pub(super) fn record(
        &self,
        experiment: &Experiment,
        targets: &[&Target],
        plan: &[Cell<'_>],
        outcome: &Outcome,
    ) -> ClassicRecord {
        let environment = targets.first().map(|t| environment::environment(t)).unwrap_or_default();
        let memory_bytes = environment.memory_limit_bytes.unwrap_or(environment.memory_bytes);
        let mut warnings = Vec::new();
        for warning in targets.iter().flat_map(|t| facts::facts_warnings(&t.facts, memory_bytes)) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let mut cells: Vec<CellRecord> = plan
            .iter()
            .zip(&outcome.cells)
            .flat_map(|(cell, runs)| cell.arms.iter().zip(runs))
            .map(|((_, target), run)| {
                shared::cell_record(run, target, environment.read_ahead_bytes, self.seed, Layers::default())
            })
            .collect();
        // Two scratch files of one directory have one name; their keys must differ.
        for index in 1..cells.len() {
            if cells[..index].iter().any(|cell| cell.key == cells[index].key) {
                cells[index].key.push_str("-2");
            }
        }
        warnings.extend(shared::busy_machine(&cells));
        ClassicRecord {
            schema: SCHEMA,
            kind: Kind::Classic,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: command(),
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            date: experiment.date.clone(),
            machine: experiment.machine.clone(),
            environment,
            targets: targets.iter().map(|t| t.facts.clone()).collect(),
            warnings,
            rounds: outcome.rounds,
            interrupted: outcome.interrupted,
            seed: self.seed,
            rows: Vec::new(),
            verdicts: Vec::new(),
            not_done: Vec::new(),
            cells,
            sections: Vec::new(),
        }
    }
}

/// A cell of reads. A cold block may be asked for once a round; a mapped page faults once.
pub(super) fn cell<'a>(key: String, workload: Workload, target: &'a Target) -> Cell<'a> {
    cell_of(key, vec![(workload, target)])
}

/// The same with several arms.
pub(super) fn cell_of<'a>(key: String, arms: Vec<(Workload, &'a Target)>) -> Cell<'a> {
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
    }
}

/// A workload of whole blocks in the first `bytes` of a target.
pub(super) fn reads(method: Method, state: CacheState, block: u64, bytes: u64) -> Workload {
    Workload::reads(method, state, block, bytes / block * block)
}

impl ClassicRecord {
    /// Begins a group of rows.
    pub(super) fn section(&mut self, id: &str, title: impl Into<String>, label: &str) {
        self.sections.push(Section {
            id: id.to_owned(),
            title: title.into(),
            label: label.to_owned(),
            said: Vec::new(),
            grid: None,
        });
    }

    /// Says something below the last group.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        if let Some(section) = self.sections.last_mut() {
            section.said.push(text.into());
        }
    }

    /// Shows the last group as figures by two keys.
    pub(super) fn grid(&mut self, grid: Grid) {
        if let Some(section) = self.sections.last_mut() {
            section.grid = Some(grid);
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, row: RowRecord) {
        self.rows.push(row);
    }

    /// A cell by its key.
    pub(super) fn cell(&self, key: &str) -> Option<&CellRecord> {
        self.cells.iter().find(|cell| cell.key == key)
    }

    /// A figure of a cell, or why there is none. A cell that was not what it claims has none.
    pub(super) fn figure(
        &self,
        key: &str,
        of: impl Fn(&CellRecord) -> Option<Estimate>,
    ) -> Result<Estimate, String> {
        let cell = self.cell(key).ok_or_else(|| "not measured here".to_owned())?;
        if let Some(failure) = &cell.failure {
            return Err(format!("failed: {failure}"));
        }
        if cell.verdict == "mislabelled" {
            return Err(format!("not {}: {}", cell.state, cell.bytes_verdict));
        }
        of(cell).ok_or_else(|| "too few rounds".to_owned())
    }

    /// Time of a cell's requests that move `bytes` together.
    pub(super) fn time_for(&self, key: &str, bytes: u64) -> Result<Estimate, String> {
        self.figure(key, |cell| {
            let requests = bytes as f64 / cell.block_bytes.max(1) as f64;
            cell.time_per_request.map(|e| scaled(&e, requests))
        })
    }

    /// CPU time over elapsed time of a cell's threads, medians over each other.
    pub(super) fn cpu_share(&self, key: &str) -> Option<f64> {
        let cell = self.cell(key)?;
        Some(cell.cpu_per_request?.value / cell.time_per_request?.value)
    }
}

/// Multiplies an estimate.
pub(super) fn scaled(e: &Estimate, by: f64) -> Estimate {
    Estimate { value: e.value * by, low: e.low * by, high: e.high * by, ..*e }
}

/// Bytes a second from a time for `bytes`.
pub(super) fn rate(time: &Estimate, bytes: f64) -> Estimate {
    time.reciprocal(bytes * 1e9, Unit::BytesPerSecond)
}

/// Puts a figure into a row, or the reason why there is none into its remark.
pub(super) fn with_now(row: RowRecord, now: Result<Estimate, String>) -> RowRecord {
    match now {
        Ok(estimate) => row.now(Some(estimate)).changed(),
        Err(why) => row.remark(why),
    }
}
