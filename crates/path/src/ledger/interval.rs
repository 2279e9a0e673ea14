//! An interval for each layer of a cell: paired bootstrap over rounds (Efron 1979). Each draw fits the model anew to the drawn
//! rounds of the calibration cells, and splits the median of the same rounds of the cell.
//!
//! Not in the interval: the error of the linear form, which is part of `unexplained`.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::Unit;
use iowhy_core::layer::{Layer, LayerEstimate, LayerTime, Ledger};
use iowhy_core::model::StackModel;
use iowhy_core::stats;

use super::booking::{LedgerContext, ledger, of_middle};
use crate::per_request::{median_of_rounds, rounds};

/// One draw of rounds, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// The rounds that were drawn, some more than once.
    pub rounds: Vec<u32>,
    /// The costs fitted to them.
    pub model: StackModel,
    /// Cost of iowhy itself per request in them.
    pub harness_ns: f64,
}

/// The layers of a cell with their intervals, in the order of the ledger: the middle 95 % of the draws, and all of them for 3 or
/// 4 rounds, as for every median. Empty below the three rounds that an interval
/// needs, and without draws. A layer that only some draws have counts as 0 in the others. With the split of each draw.
pub fn estimates(
    run: &CellRun,
    context: &LedgerContext<'_>,
    draws: &[Draw],
) -> (Vec<LayerEstimate>, Vec<Ledger>) {
    let own: Vec<&Sample> = rounds(run).collect();
    let n = own.len();
    let Some(point) = ledger(run, context).filter(|_| n >= stats::MIN_SAMPLES) else {
        return Default::default();
    };
    let splits: Vec<Ledger> = draws
        .iter()
        .filter_map(|draw| {
            let one = |round: &u32| own.iter().find(|sample| sample.round == *round).copied();
            let drawn: Vec<&Sample> = draw.rounds.iter().filter_map(one).collect();
            let drawn = if drawn.is_empty() { own.clone() } else { drawn };
            let context = LedgerContext { model: &draw.model, harness_ns: draw.harness_ns, ..*context };
            Some(of_middle(run, &median_of_rounds(drawn), &context)?.layers)
        })
        .collect();
    (layer_estimates(&point.layers, &splits, n), splits)
}

/// Intervals around the layers of a point, from the splits of draws over `n` rounds.
pub(crate) fn layer_estimates(point: &Ledger, splits: &[Ledger], n: usize) -> Vec<LayerEstimate> {
    let one = |id: Layer| {
        let at = point.get(id);
        let of = |part: fn(&LayerTime) -> f64| {
            let resampled = splits.iter().map(|split| part(&split.get(id))).collect();
            stats::interval(part(&at), resampled, n, Unit::Nanoseconds)
        };
        Some(LayerEstimate {
            id,
            busy: of(|l| l.busy_ns)?,
            wait: of(|l| l.wait_ns)?,
            time: of(LayerTime::total_ns)?,
        })
    };
    point.entries().iter().filter_map(|entry| one(entry.id)).collect()
}
