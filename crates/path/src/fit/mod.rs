//! The fit: all rungs and block sizes give one `StackModel` with intervals, and predict the block sizes that were held
//! out of it.
//!
//! Goal: costs per call, page and byte that are identified by the experiment, and a plain note for each one that is
//! not. Non-goal: queueing, cache-size steps (the residual says how much the linear form misses).
//! Invariants: rows count by relative error (weight `1 / value`); busy time is CPU time and never thread time; a
//! cost the rungs cannot tell apart from another is fixed at zero and named in `notes`, not guessed.

mod identify;
#[cfg(test)]
mod measured;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, StackModel};
use iowhy_core::rng::Rng;

use self::identify::identified;
use self::solve::Data;
use crate::ladder::{Rung, RungRun};
use crate::per_request::{estimate, rounds, undisturbed_ns};
use crate::rows::{Home, Side, Table, Term, equation, with_interval};

/// What the fit is told and cannot see in the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Block sizes that are predicted instead of fitted.
    pub held_out: Vec<u64>,
    /// Page size of the machine.
    pub page_bytes: u64,
    /// Name of the model.
    pub name: String,
    /// Our own cost per request (measured on the `null` method), taken off every cell before fitting; 0 to leave it
    /// in.
    pub harness_ns: f64,
    /// Requests the device serves at once, for the model; 1 when not known.
    pub device_parallelism: f64,
    /// Bytes of one read-ahead request, for the model.
    pub read_ahead_bytes: u64,
    /// The bytes live in memory: direct rungs are not a device and are left out.
    pub memory_backed: bool,
    /// Bootstrap replicates.
    pub replicates: usize,
    /// Rounds of cells beside the ladder that are explained with the model: they are drawn along with the ladder's.
    pub other_rounds: Vec<u32>,
}

impl FitOptions {
    /// Nothing held out, no harness cost, 128 KiB of read-ahead (the kernel's default), 400 replicates.
    pub fn new(name: impl Into<String>, page_bytes: u64, seed: u64) -> Self {
        FitOptions {
            seed,
            held_out: Vec::new(),
            page_bytes,
            name: name.into(),
            harness_ns: 0.0,
            device_parallelism: 1.0,
            read_ahead_bytes: 131_072,
            memory_backed: false,
            replicates: 400,
            other_rounds: Vec::new(),
        }
    }
}

/// A block size that the fit did not see.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// On which rung.
    pub rung: Rung,
    /// Size of one request.
    pub block_bytes: u64,
    /// Busy and waiting time of one request by the model.
    pub predicted_ns: f64,
    /// Thread time of one request less the time without a CPU and less our own cost.
    pub measured: Estimate,
    /// Predicted over measured, less one, in per cent.
    pub error_percent: f64,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The costs.
    pub model: StackModel,
    /// Predictions of what was held out, in the order of rungs and sizes; only cells with the three rounds that an
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

/// Fits the model to the rungs. Works with any subset of them; what a missing rung costs in knowledge is noted.
///
/// The bootstrap draws whole rounds, the same for all cells, with replacement: what disturbed one round (clock
/// frequency, a neighbour) disturbed its cells together, and stays together. A cell without any drawn round keeps
/// its own median. Sizes below the page separate costs per page from costs per byte: they touch one page all the
/// same. Without such sizes the two are one, and the note says where it was booked.
pub fn fit(runs: &[RungRun<'_>], options: &FitOptions) -> Fit {
    let mut notes = Vec::new();
    let usable = usable(runs, options, &mut notes);
    let (held_out, fitted): (Vec<&RungRun<'_>>, Vec<&RungRun<'_>>) = usable
        .iter()
        .partition(|r| options.held_out.contains(&r.run.workload.block_bytes) && r.rung.spans_sizes());
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
            "a cached page through a ring costs {ns:.0} ns less than its file system, cache and copy by read (a \
             registered buffer copies cheaper): `call` in a ring is taken as 0"
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
    held_out.sort_by_key(|h| (h.rung, h.block_bytes));
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

/// The rungs whose cells may be believed, with a note for each one left out. Where no file was read, the memory file
/// whose end was read is the cached file.
fn usable<'a>(runs: &[RungRun<'a>], options: &FitOptions, notes: &mut Vec<String>) -> Vec<RungRun<'a>> {
    let has = |rung| runs.iter().any(|r| r.rung == rung);
    let direct_file = has(Rung::DirectFile);
    let memory_is_the_file = has(Rung::EndOfFile) && !has(Rung::CachedFile);
    runs.iter()
        .filter(|r| {
            let (rung, size) = (r.rung.id(), r.run.workload.block_bytes);
            let mut refuse = |why: &str| {
                let note = format!("{rung} at {size} bytes is not in the fit: {why}");
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
            match r.rung {
                Rung::DirectFile | Rung::RawDevice | Rung::DirectDeep if options.memory_backed => {
                    refuse("the bytes live in memory, there is no device to measure")
                }
                Rung::DirectFile | Rung::RawDevice | Rung::DirectDeep
                    if rounds(r.run).all(|s| s.device_bytes == Some(0)) =>
                {
                    refuse("the device moved nothing")
                }
                // Both paths to the same device differ in code; the file's is the one that is explained.
                Rung::RawDevice => !direct_file,
                _ => true,
            }
        })
        .map(|&r| match r.rung {
            Rung::Memory if memory_is_the_file => RungRun { rung: Rung::CachedFile, ..r },
            _ => r,
        })
        .collect()
}

/// The prediction for a size that was held out; `None` where no term of the rung was fitted.
fn predict(
    run: &RungRun<'_>,
    table: Table,
    solved: &BTreeMap<Term, f64>,
    options: &FitOptions,
) -> Option<HeldOut> {
    let (block_bytes, depth) = (run.run.workload.block_bytes, run.run.workload.depth);
    let known: Vec<f64> = [Side::Busy, Side::Wait]
        .into_iter()
        .flat_map(|side| equation(table, run.rung, side, block_bytes, depth))
        .filter_map(|(term, count)| solved.get(&term).map(|ns| ns * count))
        .collect();
    if known.is_empty() {
        return None;
    }
    let predicted_ns: f64 = known.iter().sum();
    let measured = estimate(run.run, Unit::Nanoseconds, |s| undisturbed_ns(s) - options.harness_ns)?;
    Some(HeldOut {
        rung: run.rung,
        block_bytes,
        predicted_ns,
        measured,
        error_percent: (predicted_ns / measured.value - 1.0) * 100.0,
    })
}
