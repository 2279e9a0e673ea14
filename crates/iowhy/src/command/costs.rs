//! What the layers of a cell are split with: the fitted model, our own cost, and both in every draw of rounds, so that each
//! layer comes with an interval. No rule of its own.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::layer::{LayerEstimate, Ledger};
use iowhy_core::model::{MODEL_SCHEMA, StackModel};
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use iowhy_path::fit::Fit;
use iowhy_path::ledger::{self, Draw, LedgerContext};
use iowhy_path::per_request;
use iowhy_probe::target::Target;

use crate::command::harness;

/// Draws of rounds where no model is fitted. As many as a fit makes.
const DRAWS: usize = 400;

/// What a split rests on.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// The fitted model; `None` without one: then the layers are our own cost, the wait for a CPU, and the device as far as
    /// its counters cover it, and the rest is unexplained.
    pub(super) model: Option<StackModel>,
    /// Our own cost per request; absent in virtual time.
    pub(super) harness: Option<Estimate>,
    /// The same in every draw of rounds.
    draws: Vec<Draw>,
}

/// A ledger and what is to be said about it.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// The split, where the model has an opinion.
    pub(super) ledger: Option<Ledger>,
    /// The same with intervals.
    pub(super) estimates: Vec<LayerEstimate>,
    /// What could not be checked.
    pub(super) notes: Vec<String>,
}

impl Costs {
    /// From a fit and the cell that measured our own cost; `runs` are the cells that will be split.
    pub(super) fn new<'a>(
        fit: Option<&Fit>,
        harness: Option<&CellRun>,
        runs: impl Iterator<Item = &'a CellRun>,
        seed: u64,
    ) -> Costs {
        let own = harness.and_then(|run| harness::per_request(std::slice::from_ref(run), seed));
        let own_ns = own.map_or(0.0, |e| e.value);
        // The median of the drawn rounds, and of all where our own cost was not measured in any of them.
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
        Costs { model: fit.map(|fit| fit.model.clone()), harness: own, draws }
    }

    /// The same without the model, for a target that its ladder does not stand on.
    pub(super) fn without_model(&self) -> Costs {
        let draws = self.draws.iter().map(|draw| Draw { model: nothing(), ..draw.clone() }).collect();
        Costs { model: None, harness: self.harness, draws }
    }

    /// Splits a cell.
    pub(super) fn layers(&self, run: &CellRun, target: &Target) -> Layers {
        let nothing = nothing();
        let context = LedgerContext {
            model: self.model.as_ref().unwrap_or(&nothing),
            facts: Some(&target.facts),
            harness_ns: self.harness.map_or(0.0, |e| e.value),
        };
        let Some(split) = ledger::ledger(run, &context) else { return Layers::default() };
        // Without a model its notes would speak of fitted costs, and there are none.
        let notes = if self.model.is_some() { split.notes } else { Vec::new() };
        let estimates = ledger::estimates(run, &context, &self.draws);
        Layers { ledger: Some(split.layers), estimates, notes }
    }
}

/// The rounds that any of the cells completed something in, in order.
pub(super) fn all_rounds<'a>(runs: impl Iterator<Item = &'a CellRun>) -> Vec<u32> {
    let rounds: BTreeSet<u32> = runs.flat_map(per_request::rounds).map(|sample| sample.round).collect();
    rounds.into_iter().collect()
}

/// A model that knows no cost.
fn nothing() -> StackModel {
    StackModel {
        schema: MODEL_SCHEMA,
        name: String::new(),
        page_bytes: rustix::param::page_size() as u64,
        device_parallelism: 1.0,
        read_ahead_bytes: 0,
        layers: BTreeMap::new(),
        parts: BTreeMap::new(),
    }
}
