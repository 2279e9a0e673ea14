//! How sure the split of a cell is: an interval for each layer.
//!
//! Bootstrap over rounds (Efron 1979), paired: a draw of rounds is one of the whole measurement. The model is fitted anew to
//! the drawn rounds of the calibration cells (see [`fit`](crate::fit::fit)), the cost of iowhy itself is the median of its drawn rounds, and the
//! cell's median round is sought among the same drawn rounds, so that what disturbed a round disturbs all of it together.
//! The interval holds the middle 95 % of the draws; of 3 or 4 rounds all of them, as for every median.
//!
//! Not in the interval: what the fit misses by its form. That stands under `unexplained`, which has an interval too.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::Unit;
use iowhy_core::layer::{Layer, LayerEstimate, LayerTime};
use iowhy_core::model::StackModel;
use iowhy_core::stats;

use super::booking::{LedgerContext, RequestLedger, ledger, of_middle};
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

/// The layers of a cell with their intervals, in the order of the ledger. Empty below the three rounds that an interval
/// needs, and without draws. A layer that only some draws have counts as 0 in the others.
pub fn estimates(run: &CellRun, context: &LedgerContext<'_>, draws: &[Draw]) -> Vec<LayerEstimate> {
    let own: Vec<&Sample> = rounds(run).collect();
    let n = own.len();
    let Some(point) = ledger(run, context).filter(|_| n >= stats::MIN_SAMPLES) else { return Vec::new() };
    let splits: Vec<RequestLedger> = draws
        .iter()
        .filter_map(|draw| {
            let one = |round: &u32| own.iter().find(|sample| sample.round == *round).copied();
            let drawn: Vec<&Sample> = draw.rounds.iter().filter_map(one).collect();
            let drawn = if drawn.is_empty() { own.clone() } else { drawn };
            let context = LedgerContext { model: &draw.model, harness_ns: draw.harness_ns, ..*context };
            of_middle(run, &median_of_rounds(drawn), &context)
        })
        .collect();
    let one = |id: Layer| {
        let at = point.layers.get(id);
        let of = |part: fn(&LayerTime) -> f64| {
            let resampled = splits.iter().map(|split| part(&split.layers.get(id))).collect();
            stats::interval(part(&at), resampled, n, Unit::Nanoseconds)
        };
        Some(LayerEstimate {
            id,
            busy: of(|l| l.busy_ns)?,
            wait: of(|l| l.wait_ns)?,
            time: of(LayerTime::total_ns)?,
        })
    };
    point.layers.entries().iter().filter_map(|entry| one(entry.id)).collect()
}
