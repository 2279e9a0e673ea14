//! Intervals of layers: as wide as they say, over fit and ledger together.

use iowhy_core::cell::CellRun;
use iowhy_core::layer::{Layer, LayerEstimate};

use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::fit::{FitOptions, fit};
use crate::ledger::{Draw, LedgerContext, estimates, ledger};
use crate::synthetic::Truth;

const SIZES: [u64; 4] = [512, 4096, 65_536, 1 << 20];
const CELLS: [CalibrationCell; 5] = [
    CalibrationCell::Syscall,
    CalibrationCell::NullDevice,
    CalibrationCell::Memory,
    CalibrationCell::CachedFile,
    CalibrationCell::DirectFile,
];

/// The layers of a direct read of 4 KiB, split by the calibration that it is part of.
fn direct(noise: f64, seed: u64) -> (CellRun, Vec<LayerEstimate>) {
    let t = Truth::EXAMPLE;
    let cells: Vec<(CalibrationCell, CellRun)> =
        CELLS.iter().flat_map(|&r| SIZES.map(|s| (r, t.cell(r, s, noise, seed)))).collect();
    let runs: Vec<CalibrationRun<'_>> =
        cells.iter().map(|(cell, run)| CalibrationRun { cell: *cell, run }).collect();
    let fitted = fit(&runs, &FitOptions { replicates: 100, ..FitOptions::new("test", 4096, seed) });
    let draws: Vec<Draw> = fitted
        .replicates
        .iter()
        .map(|r| Draw { rounds: r.rounds.clone(), model: r.model.clone(), harness_ns: 0.0 })
        .collect();
    let context = LedgerContext { model: &fitted.model, facts: None, harness_ns: 0.0 };
    let run = t.cell(CalibrationCell::DirectFile, 4096, noise, seed);
    let (layers, _) = estimates(&run, &context, &draws);
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
        _ => m.cost(layer).total_ns(1.0, 4096.0),
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
    let mut run = t.cell(CalibrationCell::DirectFile, 4096, 0.0, 1);
    for sample in run.samples.iter_mut().filter(|s| s.round % 2 == 0) {
        sample.thread_ns += sample.requests * 20_000;
    }
    let draw = |rounds: Vec<u32>| Draw { rounds, model: model.clone(), harness_ns: 0.0 };
    let context = LedgerContext { model: &model, facts: None, harness_ns: 0.0 };
    let odd: Vec<u32> = (1..15).step_by(2).collect();
    let (layers, _) = estimates(&run, &context, &[draw(odd), draw((0..15).step_by(2).collect())]);
    let device = layers.iter().find(|l| l.id == Layer::Device).unwrap();
    let unexplained = layers.iter().find(|l| l.id == Layer::Unexplained).unwrap();
    let spread = |l: &LayerEstimate| l.time.high - l.time.low;
    assert!(spread(device) < 1.0, "the counters cover it in every draw: {device:?}");
    assert!(spread(unexplained) > 18_000.0, "what they do not cover is seen: {unexplained:?}");
    assert!(estimates(&run, &context, &[]).0.is_empty());
    run.samples.truncate(2);
    assert!(estimates(&run, &context, &[draw(vec![0, 1])]).0.is_empty());
}
