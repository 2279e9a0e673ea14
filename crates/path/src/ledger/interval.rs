//! How sure the split of a cell is: an interval for each layer.
//!
//! Bootstrap over rounds (Efron 1979), paired: a draw of rounds is one of the whole measurement. The model is fitted anew to
//! the drawn rounds of the ladder (see [`fit`](crate::fit::fit)), our own cost is the median of its drawn rounds, and the
//! cell's median round is sought among the same drawn rounds, so that what disturbed a round disturbs all of it together.
//! The interval holds the middle 95 % of the draws; of 3 or 4 rounds all of them, as for every median.
//!
//! Not in the interval: what the fit misses by its form. That stands under `unexplained`, which has an interval too.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::Unit;
use iowhy_core::layer::{Layer, LayerEstimate, LayerTime};
use iowhy_core::model::StackModel;
use iowhy_core::stats;

use super::{LedgerContext, RequestLedger, ledger, of_middle};
use crate::per_request::{median_of_rounds, rounds};

/// One draw of rounds, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// The rounds that were drawn, some more than once.
    pub rounds: Vec<u32>,
    /// The costs fitted to them.
    pub model: StackModel,
    /// Our own cost per request in them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{FitOptions, fit};
    use crate::ladder::{Rung, RungRun};
    use crate::synthetic::Truth;

    const SIZES: [u64; 4] = [512, 4096, 65_536, 1 << 20];
    const RUNGS: [Rung; 5] =
        [Rung::Syscall, Rung::NullDevice, Rung::Memory, Rung::CachedFile, Rung::DirectFile];

    /// The layers of a direct read of 4 KiB, split by the ladder that it is part of.
    fn direct(noise: f64, seed: u64) -> (CellRun, Vec<LayerEstimate>) {
        let t = Truth::EXAMPLE;
        let cells: Vec<(Rung, CellRun)> =
            RUNGS.iter().flat_map(|&r| SIZES.map(|s| (r, t.cell(r, s, noise, seed)))).collect();
        let runs: Vec<RungRun<'_>> = cells.iter().map(|(rung, run)| RungRun { rung: *rung, run }).collect();
        let fitted = fit(&runs, &FitOptions { replicates: 100, ..FitOptions::new("test", 4096, seed) });
        let draws: Vec<Draw> = fitted
            .replicates
            .iter()
            .map(|r| Draw { rounds: r.rounds.clone(), model: r.model.clone(), harness_ns: 0.0 })
            .collect();
        let context = LedgerContext { model: &fitted.model, facts: None, harness_ns: 0.0 };
        let run = t.cell(Rung::DirectFile, 4096, noise, seed);
        let layers = estimates(&run, &context, &draws);
        assert_eq!(
            layers.iter().map(|l| (l.id, l.time.value)).collect::<Vec<_>>(),
            ledger(&run, &context)
                .unwrap()
                .layers
                .entries()
                .iter()
                .map(|e| (e.id, e.total_ns()))
                .collect::<Vec<_>>(),
            "the values are those of the ledger"
        );
        (run, layers)
    }

    fn true_ns(layer: Layer) -> f64 {
        let t = Truth::EXAMPLE;
        let m = t.model();
        match layer {
            Layer::Unexplained => 0.0,
            _ => m.cost(layer).of(1.0, 4096.0),
        }
    }

    #[test]
    fn without_noise_an_interval_has_no_width() {
        let (_, layers) = direct(0.0, 1);
        assert!(layers.len() >= 4, "{layers:?}");
        for layer in layers {
            let e = layer.time;
            assert!((e.value - true_ns(layer.id)).abs() < 1e-3 && e.high - e.low < 1e-3, "{layer:?}");
            assert_eq!(e.n, 15);
        }
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        const RUNS: u64 = 60;
        let mut held = std::collections::BTreeMap::<Layer, u64>::new();
        for seed in 0..RUNS {
            for layer in direct(0.05, seed).1 {
                let within = (layer.time.low..=layer.time.high).contains(&true_ns(layer.id));
                *held.entry(layer.id).or_default() += u64::from(within);
            }
        }
        for id in [Layer::Call, Layer::Filesystem, Layer::Block, Layer::Device] {
            let share = held[&id] as f64 / RUNS as f64;
            assert!(share >= 0.85, "{id:?}: {share}");
        }
    }

    #[test]
    fn the_parts_of_one_draw_move_together() {
        // A round disturbed in all its cells is one event: half the rounds of everything are 30 % slower.
        let t = Truth::EXAMPLE;
        let model = t.model();
        let mut run = t.cell(Rung::DirectFile, 4096, 0.0, 1);
        for sample in run.samples.iter_mut().filter(|s| s.round % 2 == 0) {
            sample.thread_ns += sample.requests * 20_000;
        }
        let draw = |rounds: Vec<u32>| Draw { rounds, model: model.clone(), harness_ns: 0.0 };
        let context = LedgerContext { model: &model, facts: None, harness_ns: 0.0 };
        let odd: Vec<u32> = (1..15).step_by(2).collect();
        let layers = estimates(&run, &context, &[draw(odd), draw((0..15).step_by(2).collect())]);
        let device = layers.iter().find(|l| l.id == Layer::Device).unwrap();
        let unexplained = layers.iter().find(|l| l.id == Layer::Unexplained).unwrap();
        let spread = |l: &LayerEstimate| l.time.high - l.time.low;
        assert!(spread(device) < 1.0, "the counters cover it in every draw: {device:?}");
        assert!(spread(unexplained) > 18_000.0, "what they do not cover is seen: {unexplained:?}");
        assert!(estimates(&run, &context, &[]).is_empty());
        run.samples.truncate(2);
        assert!(estimates(&run, &context, &[draw(vec![0, 1])]).is_empty());
    }
}
