//! What the layers of a cell are split with: the fitted model and the cost of iowhy itself, and both in every draw of
//! rounds, so that each layer comes with an interval. Has no rule of its own.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::cell::CellRun;
use iowhy_core::environment::TargetFacts;
use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{LayerEstimate, Ledger};
use iowhy_core::model::{MODEL_SCHEMA, StackModel};
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use iowhy_core::summary;

use crate::fit::Fit;
use crate::ledger::{self, Draw, LedgerContext};
use crate::per_request;

/// Draws of rounds where no model is fitted. As many as a fit makes.
const DRAWS: usize = 400;

/// What a split rests on.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The fitted model. Without one the layers are the cost of iowhy, the wait for a CPU, and the device as far as its
    /// counters cover it; the rest is unexplained.
    pub model: Option<StackModel>,
    /// Cost of iowhy itself per request; absent in virtual time.
    pub harness: Option<Estimate>,
    /// Both in every draw of rounds.
    draws: Vec<Draw>,
    page_bytes: u64,
}

/// A ledger and its notes.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The split; absent where no request was completed.
    pub ledger: Option<Ledger>,
    /// Its intervals.
    pub estimates: Vec<LayerEstimate>,
    /// What could not be checked.
    pub notes: Vec<String>,
    /// The split in each draw of rounds: the interval of a sum of layers comes from their sums in the draws.
    pub draws: Vec<Ledger>,
    /// Whether it rests on calibration cells of the request itself (and not on a fit over all cells).
    pub own_cells: bool,
}

impl Costs {
    /// From a fit and the cell that measured the cost of iowhy; `runs` are the cells that will be split.
    pub fn new<'a>(
        fit: Option<&Fit>,
        harness: Option<&CellRun>,
        runs: impl Iterator<Item = &'a CellRun>,
        (page_bytes, seed): (u64, u64),
    ) -> Costs {
        let nothing = || no_costs(page_bytes);
        let own = harness.and_then(|run| summary::summarize(run, seed).time_per_request);
        let own_ns = own.map_or(0.0, |e| e.value);
        // The median of the drawn rounds; of all rounds where none of the drawn ones has it.
        let own_in = |drawn: &[u32]| {
            let values: Vec<f64> = drawn
                .iter()
                .filter_map(|round| per_request::rounds(harness?).find(|sample| sample.round == *round))
                .map(iowhy_core::cell::Sample::ns_per_request)
                .collect();
            stats::median(&values).unwrap_or(own_ns)
        };
        let draws = match fit {
            Some(fit) => fit
                .replicates
                .iter()
                .map(|r| Draw {
                    rounds: r.rounds.clone(),
                    model: r.model.clone(),
                    harness_ns: own_in(&r.rounds),
                })
                .collect(),
            None => {
                let rounds: Vec<u32> = all_rounds(runs);
                let mut rng = Rng::new(seed);
                let mut draw = || -> Vec<u32> {
                    rounds.iter().map(|_| rounds[rng.below(rounds.len() as u64) as usize]).collect()
                };
                let one = |rounds: Vec<u32>| Draw { harness_ns: own_in(&rounds), model: nothing(), rounds };
                (0..DRAWS).map(|_| one(draw())).collect()
            }
        };
        Costs { model: fit.map(|fit| fit.model.clone()), harness: own, draws, page_bytes }
    }

    /// Without the model, for a target that was not calibrated.
    pub fn without_model(&self) -> Costs {
        let nothing = no_costs(self.page_bytes);
        let draws = self.draws.iter().map(|draw| Draw { model: nothing.clone(), ..draw.clone() }).collect();
        Costs { model: None, harness: self.harness, draws, page_bytes: self.page_bytes }
    }

    /// Splits a cell.
    pub fn layers(&self, run: &CellRun, facts: &TargetFacts) -> Layers {
        let nothing = no_costs(self.page_bytes);
        let context = LedgerContext {
            model: self.model.as_ref().unwrap_or(&nothing),
            facts: Some(facts),
            harness_ns: self.harness.map_or(0.0, |e| e.value),
        };
        let Some(split) = ledger::ledger(run, &context) else { return Layers::default() };
        // Without a model its notes would speak of fitted costs, and there are none.
        let notes = if self.model.is_some() { split.notes } else { Vec::new() };
        let (estimates, draws) = ledger::estimates(run, &context, &self.draws);
        Layers { ledger: Some(split.layers), estimates, notes, draws, own_cells: false }
    }
}

/// The rounds that any of the cells completed something in, in order.
pub fn all_rounds<'a>(runs: impl Iterator<Item = &'a CellRun>) -> Vec<u32> {
    let rounds: BTreeSet<u32> = runs.flat_map(per_request::rounds).map(|sample| sample.round).collect();
    rounds.into_iter().collect()
}

/// A model that knows no cost.
pub(crate) fn no_costs(page_bytes: u64) -> StackModel {
    StackModel {
        schema: MODEL_SCHEMA,
        name: String::new(),
        page_bytes,
        device_parallelism: 1.0,
        read_ahead_bytes: 0,
        layers: BTreeMap::new(),
        parts: BTreeMap::new(),
    }
}
