//! The cost model: all calibration cells and block sizes give one `StackModel` with intervals, and predict the block sizes
//! that were held out. Not modelled: queueing, steps at cache sizes (the residual shows what the linear form misses).
//!
//! Invariants: rows count by relative error (weight `1 / value`); busy time is CPU time, never thread time; a cost that the
//! cells do not identify is fixed at zero and named in `notes`.

mod equation;
mod identify;
mod options;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, StackModel};
use iowhy_core::rng::Rng;

use self::equation::{Home, Side, Table, Term, equation, with_interval};
use self::identify::identified;
pub use self::options::FitOptions;
use self::solve::Data;
use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::per_request::{estimate, rounds, undisturbed_ns};

/// A block size that the fit did not see.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// What answered.
    pub cell: CalibrationCell,
    /// Size of one request.
    pub block_bytes: u64,
    /// Busy and waiting time of one request by the model.
    pub predicted_ns: f64,
    /// Thread time of one request less the wait for a CPU and less the cost of iowhy itself.
    pub measured: Estimate,
    /// Predicted over measured, less one, in per cent.
    pub error_percent: f64,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The costs.
    pub model: StackModel,
    /// Predictions of what was held out, in the order of calibration cells and sizes; only cells with the three rounds that an
    /// interval needs.
    pub held_out: Vec<HeldOut>,
    /// Root mean square of the relative residuals of the fitted rows, in per cent.
    pub residual_percent: f64,
    /// What could not be separated, was left out, or was booked elsewhere, one sentence each.
    pub notes: Vec<String>,
    /// The model that each draw of rounds gives: what a cell is split with to know how sure its split is.
    pub replicates: Vec<Replicate>,
}

/// The model of one draw of rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicate {
    /// The rounds that were drawn, some more than once.
    pub rounds: Vec<u32>,
    /// The model; its costs have no intervals of their own.
    pub model: StackModel,
}

/// Fits the model to any subset of the calibration cells; a note says what a missing cell leaves unknown.
///
/// The bootstrap draws whole rounds, the same for all cells, with replacement: what disturbed one round (clock
/// frequency, another process) disturbed its cells together, and stays together. A cell without any drawn round keeps
/// its own median. Sizes below the page separate costs per page from costs per byte: they touch one page all the
/// same. Without such sizes the two are one, and the note says where it was booked.
pub fn fit(runs: &[CalibrationRun<'_>], options: &FitOptions) -> Fit {
    let mut notes = Vec::new();
    let usable = usable(runs, options, &mut notes);
    let (held_out, fitted): (Vec<&CalibrationRun<'_>>, Vec<&CalibrationRun<'_>>) = usable
        .iter()
        .partition(|r| options.held_out.contains(&r.run.workload.block_bytes) && r.cell.spans_sizes());
    let stages = identified(&fitted, options.page_bytes, &mut notes);
    let table = stages.table;
    let data = Data::gather(&fitted, table, options);
    let (stages, solution) = data.best_variant(stages, &mut notes);
    let mut point = data.model_costs(&solution.solved, None, options);
    let mut replicates: Vec<BTreeMap<Home, Cost>> = Vec::with_capacity(options.replicates);
    let mut drawn_rounds: Vec<Vec<u32>> = Vec::with_capacity(options.replicates);
    let mut rng = Rng::new(options.seed);
    for _ in 0..options.replicates {
        let drawn: Vec<usize> =
            data.rounds.iter().map(|_| rng.below(data.rounds.len() as u64) as usize).collect();
        let solved = data.solve(&stages, Some(&drawn)).solved;
        replicates.push(data.model_costs(&solved, Some(&drawn), options));
        drawn_rounds.push(drawn.iter().map(|&i| data.rounds[i]).collect());
    }
    if let Some(ns) = data.ring_deficit_ns(&solution.solved) {
        notes.push(format!(
            "a cached page costs {ns:.0} ns less through a ring than file system, cache and copy of a read (a registered buffer \
             copies cheaper): `call` in a ring is taken as 0"
        ));
    }
    if data.cold.iter().any(|c| c.device.is_none()) {
        notes.push(
            "cold reads: no device counters, block requests were counted from the read-ahead size".into(),
        );
    }
    let mut model = StackModel {
        schema: MODEL_SCHEMA,
        name: options.name.clone(),
        page_bytes: options.page_bytes,
        device_parallelism: options.device_parallelism,
        read_ahead_bytes: options.read_ahead_bytes,
        layers: BTreeMap::new(),
        parts: BTreeMap::new(),
    };
    while let Some((home, cost)) = point.pop_first() {
        let others: Vec<Cost> =
            replicates.iter().map(|r| r.get(&home).copied().unwrap_or_default()).collect();
        let cost: LayerCost = with_interval(cost, &others);
        match home {
            Home::Layer(layer) => model.layers.insert(layer, cost),
            Home::Part(part) => model.parts.insert(part, cost),
        };
    }
    let replicates = drawn_rounds
        .into_iter()
        .zip(replicates)
        .map(|(rounds, costs)| Replicate { rounds, model: with_exact(&model, costs) })
        .collect();
    let mut held_out: Vec<HeldOut> =
        held_out.iter().filter_map(|r| predict(r, table, &solution.solved, options)).collect();
    held_out.sort_by_key(|h| (h.cell, h.block_bytes));
    Fit { model, held_out, residual_percent: solution.residual * 100.0, notes, replicates }
}

/// The model with other costs.
fn with_exact(model: &StackModel, costs: BTreeMap<Home, Cost>) -> StackModel {
    let mut other = StackModel { layers: BTreeMap::new(), parts: BTreeMap::new(), ..model.clone() };
    for (home, cost) in costs {
        match home {
            Home::Layer(layer) => other.layers.insert(layer, LayerCost::exact(cost)),
            Home::Part(part) => other.parts.insert(part, LayerCost::exact(cost)),
        };
    }
    other
}

/// The cells that count, with a note for each one left out. Where no file was read, the memory file
/// whose end was read is the cached file.
fn usable<'a>(
    runs: &[CalibrationRun<'a>],
    options: &FitOptions,
    notes: &mut Vec<String>,
) -> Vec<CalibrationRun<'a>> {
    let has = |cell| runs.iter().any(|r| r.cell == cell);
    let direct_file = has(CalibrationCell::DirectFile);
    let memory_is_the_file = has(CalibrationCell::EndOfFile) && !has(CalibrationCell::CachedFile);
    runs.iter()
        .filter(|r| {
            let (cell, size) = (r.cell.id(), r.run.workload.block_bytes);
            let mut refuse = |why: &str| {
                let note = format!("{cell} at {size} bytes is not in the fit: {why}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
                false
            };
            if let StateCheck::Violated { reason } = &r.run.state_check {
                return refuse(reason);
            }
            if rounds(r.run).next().is_none() {
                return refuse(r.run.failure.as_deref().unwrap_or("nothing was completed"));
            }
            match r.cell {
                CalibrationCell::DirectFile | CalibrationCell::RawDevice | CalibrationCell::DirectDeep
                    if options.memory_backed =>
                {
                    refuse("the bytes live in memory, there is no device to measure")
                }
                CalibrationCell::DirectFile | CalibrationCell::RawDevice | CalibrationCell::DirectDeep
                    if rounds(r.run).all(|s| s.device_bytes == Some(0)) =>
                {
                    refuse("the device moved nothing")
                }
                // Both paths to the same device differ in code; the file's is the one that is explained.
                CalibrationCell::RawDevice => !direct_file,
                _ => true,
            }
        })
        .map(|&r| match r.cell {
            CalibrationCell::Memory if memory_is_the_file => {
                CalibrationRun { cell: CalibrationCell::CachedFile, ..r }
            }
            _ => r,
        })
        .collect()
}

/// The prediction for a size that was held out; `None` where no term of the cell was fitted.
fn predict(
    run: &CalibrationRun<'_>,
    table: Table,
    solved: &BTreeMap<Term, f64>,
    options: &FitOptions,
) -> Option<HeldOut> {
    let (block_bytes, depth) = (run.run.workload.block_bytes, run.run.workload.depth);
    let known: Vec<f64> = [Side::Busy, Side::Wait]
        .into_iter()
        .flat_map(|side| equation(table, run.cell, side, block_bytes, depth))
        .filter_map(|(term, count)| solved.get(&term).map(|ns| ns * count))
        .collect();
    if known.is_empty() {
        return None;
    }
    let predicted_ns: f64 = known.iter().sum();
    let measured = estimate(run.run, Unit::Nanoseconds, |s| undisturbed_ns(s) - options.harness_ns)?;
    Some(HeldOut {
        cell: run.cell,
        block_bytes,
        predicted_ns,
        measured,
        error_percent: (predicted_ns / measured.value - 1.0) * 100.0,
    })
}
