//! Whole path reports of a false machine whose costs are known and not linear: how often the 95 % intervals hold the truth.
//! In virtual time, with fixed seeds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iowhy_core::environment::Environment;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::Cost;
use iowhy_core::summary;
use iowhy_core::workload::CacheState;
use iowhy_probe::access::Request;
use iowhy_probe::campaign::{self, Effort};
use iowhy_probe::script::Script;
use iowhy_probe::script::quirks::Quirks;
use iowhy_probe::target::Target;

use crate::analysis::{Context, analyse};
use crate::plan::plan;
use crate::targets::calibration_targets;

const RUNS: u64 = 200;
const ROUNDS: u32 = 11;
/// Rows and cells beside them that are measured, by the beginning of their keys.
const MEASURED: [&str; 6] = ["call", "end-of-file", "cached-4k", "cached-1m", "cold-seq-128k", "direct-4k"];
/// Two threads of a script share no time, and deep queues are fitted on other depths.
const NOT_MEASURED: [&str; 5] =
    ["cached-4k-2t", "cold-seq-128k-2t", "direct-4k-d16", "direct-4k-d64", "direct-4k-d32"];

/// A machine ten times as slow as the example, so that a run takes few requests.
fn machine(seed: u64) -> Script {
    let mut script = Script::example().unwrap();
    let slower = |c: &mut Cost| {
        *c = Cost {
            per_call_ns: c.per_call_ns * 10.0,
            per_page_ns: c.per_page_ns * 10.0,
            per_byte_ns: c.per_byte_ns * 10.0,
        }
    };
    script
        .model
        .layers
        .values_mut()
        .chain(script.model.parts.values_mut())
        .for_each(|cost| slower(&mut cost.cost));
    (script.noise, script.seed, script.size_bytes) = (0.2, seed, 256 << 20);
    script.quirks = Arc::new(Quirks {
        drift_share: 0.1,
        // Neither a multiple nor a part of a round.
        drift_ns: 23_456_789,
        large_bytes: 512 << 10,
        large_factor: 1.5,
        folio_bytes: 32 << 10,
        folio_ns: 400.0,
        lazy_bytes: (64u64 << 20).into(),
        lazy_ns_per_byte: 2.0,
        ..Quirks::default()
    });
    script
}

/// What a request of a row truly costs, by the definitions of the account.
fn truth(script: &Script, workload: &iowhy_core::workload::Workload) -> Ledger {
    let of = |bytes: usize, state| {
        let request = Request { offset: 0, bytes, write: false };
        let mut ledger = script.charge(workload.method, state, request).unwrap().ledger;
        let warm = iowhy_core::workload::Workload { state, ..workload.clone() };
        let copy = script.model.cost(Layer::Copy).per_byte_ns;
        let lasting = Quirks {
            lazy_bytes: 0.into(),
            large_bytes: 512 << 10,
            large_factor: 1.5,
            folio_bytes: 32 << 10,
            folio_ns: 400.0,
            ..Quirks::default()
        };
        lasting.charge(&warm, bytes as u64, copy, &mut ledger);
        ledger
    };
    let busy = |ledger: &Ledger| ledger.entries().iter().map(|e| e.busy_ns).sum::<f64>();
    let whole = of(workload.block_bytes as usize, workload.state);
    let mut ledger = Ledger::default();
    let below: f64 = [Layer::Call, Layer::Filesystem].map(|l| whole.get(l).busy_ns).iter().sum();
    for layer in [Layer::Call, Layer::Filesystem] {
        ledger.add(layer, whole.get(layer).busy_ns, 0.0);
    }
    if workload.state == CacheState::Direct {
        ledger.add(Layer::Block, busy(&whole) - below, 0.0);
    } else {
        let look_up = busy(&of(1, CacheState::Warm));
        let above = busy(&of(workload.block_bytes as usize, CacheState::Warm));
        ledger.add(Layer::Cache, look_up - below, 0.0);
        ledger.add(Layer::Copy, above - look_up, 0.0);
        ledger.add(Layer::Block, busy(&whole) - above, 0.0);
    }
    ledger.add(Layer::Device, 0.0, whole.get(Layer::Device).wait_ns);
    ledger
}

#[test]
fn intervals_of_time_and_layers_hold_the_truth_as_often_as_they_say() {
    let mut held: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for seed in 0..RUNS {
        let target = Target::scripted(machine(seed));
        let below = calibration_targets(&target).unwrap();
        let mut plan = plan(&target, &below, 256 << 20, seed);
        plan.cells.retain(|cell| {
            MEASURED.iter().any(|key| cell.key.starts_with(key))
                && !NOT_MEASURED.iter().any(|key| cell.key.starts_with(key))
        });
        for cell in &mut plan.cells {
            let cold = cell.arms[0].0.state == CacheState::Cold || cell.key.contains("again");
            cell.bounds.wall = Duration::from_millis(if cold { 10 } else { 4 });
        }
        let effort =
            Effort { min_rounds: ROUNDS, max_rounds: ROUNDS, time: Duration::MAX, precision: 0.0, seed };
        let outcome = campaign::run(&plan.cells, effort, &mut |_| {});
        let environment = Environment::default();
        let context =
            Context { target: &target, environment: &environment, memcpy: None, page_bytes: 4096, seed };
        let analysis = analyse(&plan, &outcome, &context);
        for (key, _) in plan.canonical() {
            let run = outcome.cells.iter().flatten().find(|run| run.key == key).unwrap();
            assert!(run.failure.is_none(), "{key}: {:?}", run.failure);
            let truth = truth(target.script().unwrap(), &run.workload);
            let mut count = |what: &str, within: bool| {
                let (hits, all) = held.entry(format!("{key} {what}")).or_default();
                *hits += u32::from(within);
                *all += 1;
            };
            let time = summary::summarize(run, seed).time_per_request.unwrap();
            count("time", (time.low..=time.high).contains(&truth.total_ns()));
            for layer in &analysis.layers[&key].estimates {
                let (low, high) = (layer.time.low, layer.time.high);
                if high > low {
                    count(layer.id.id(), (low..=high).contains(&truth.get(layer.id).total_ns()));
                }
            }
        }
    }
    let shares: Vec<String> =
        held.iter().map(|(what, (hits, all))| format!("{what}: {hits} of {all}")).collect();
    eprintln!("{}", shares.join("\n"));
    let (hits, all) = held.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let share = |hits: u32, all: u32| f64::from(hits) / f64::from(all);
    assert!((0.90..=0.98).contains(&share(hits, all)), "{:.3}", share(hits, all));
}
