//! The record of measured cells: from targets, ruler and runs to the entries of the record.

use iowhy_core::cell::CellRun;
use iowhy_core::summary;
use iowhy_core::warning::Warning;
use iowhy_path::costs::Layers;
use iowhy_path::facts;
use iowhy_path::reconcile::{self, ReconcileContext};
use iowhy_probe::campaign::Outcome;
use iowhy_probe::target::Target;
use iowhy_probe::{counters, environment, interrupt};

use crate::record::{CellRecord, Kind, Record, RulerRecord, SCHEMA, Seen};
use crate::shell;

/// The record before anything is in it.
pub(crate) fn record(targets: &[&Target], ruler: RulerRecord, outcome: &Outcome, seed: u64) -> Record {
    let environment = targets.first().map(|t| environment::environment(t)).unwrap_or_default();
    let mut warnings: Vec<Warning> = Vec::new();
    for target in targets {
        let memory_bytes = environment.memory_limit_bytes.unwrap_or(environment.memory_bytes);
        for warning in facts::facts_warnings(&target.facts, memory_bytes) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    Record {
        schema: SCHEMA,
        kind: Kind::Measurement,
        iowhy: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell::line(std::env::args_os()),
        environment,
        environments: match targets {
            [_] => Vec::new(),
            several => several.iter().map(|t| environment::environment(t)).collect(),
        },
        targets: targets.iter().map(|t| t.facts.clone()).collect(),
        ruler: RulerRecord { peak_memory_bytes: counters::peak_memory_bytes(), ..ruler },
        warnings,
        rounds: outcome.rounds,
        interrupted: outcome.interrupted,
        seed,
        cells: Vec::new(),
        requests: Vec::new(),
        limit: None,
        limits: Vec::new(),
        model: None,
        model_parts: None,
        model_residual_percent: None,
        model_notes: Vec::new(),
        held_out: Vec::new(),
        methods: Vec::new(),
        faster: Vec::new(),
        cross_check_limitation: None,
    }
}

/// One cell's entry: summary, bytes compared with the device's, verdict.
pub(crate) fn cell_record(
    run: &CellRun,
    target: &Target,
    read_ahead_bytes: Option<u64>,
    seed: u64,
    layers: Layers,
) -> CellRecord {
    let context = ReconcileContext { facts: Some(&target.facts), read_ahead_bytes };
    let summary = summary::summarize(run, seed);
    let seen = Seen {
        bytes_verdict: reconcile::reconcile(run, &context).sentence(),
        verdict: match was_not_run(run, interrupt::requested()) {
            true => NOT_RUN.to_owned(),
            false => reconcile::verdict(run, &context).id().to_owned(),
        },
        // A split of a time that has no interval would look surer than the time.
        layers: layers.ledger.filter(|_| summary.time_per_request.is_some()),
        layer_estimates: layers.estimates,
        layer_notes: layers.notes,
        members: target.member_names(),
    };
    CellRecord::new(run, &target.facts.name, summary, seen)
}

/// The verdict of a cell that an interrupted run did not reach.
pub(crate) const NOT_RUN: &str = "not-run";

fn was_not_run(run: &CellRun, interrupted: bool) -> bool {
    interrupted && run.samples.is_empty() && run.failure.is_none()
}

/// Says when the machine was not idle: then every number here is of a busy machine.
pub(crate) fn busy_machine(cells: &[CellRecord]) -> Option<Warning> {
    let share = |cell: &CellRecord| {
        let (waited, whole) = cell
            .samples
            .iter()
            .fold((0, 0), |(waited, whole), s| (waited + s.run_delay_ns, whole + s.thread_ns));
        waited as f64 / whole.max(1) as f64
    };
    // Two threads on one CPU wait for each other: only single ones tell of others.
    let single: Vec<f64> = cells.iter().filter(|cell| cell.threads == 1).map(share).collect();
    let busy = single.iter().filter(|share| **share > BUSY_SHARE).count();
    (busy * 4 > single.len()).then(|| {
        Warning::new(
            "busy-machine",
            format!(
                "in {busy} of {} cells the measuring thread waited for a CPU for more than {:.0} % of the time: \
                 other programs use the CPUs, and the figures are those of a busy machine",
                single.len(),
                BUSY_SHARE * 100.0
            ),
        )
        .next("repeat it when the machine is idle")
    })
}

/// Share of its time that a thread waits for a CPU on a machine that is not idle.
const BUSY_SHARE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use iowhy_core::cell::StateCheck;
    use iowhy_core::workload::{CacheState, Method, Workload};

    use super::*;

    #[test]
    fn only_an_interrupt_without_samples_and_failure_makes_a_cell_not_run() {
        let workload = Workload::reads(Method::Null, CacheState::None, 4096, 1 << 20);
        let mut run = CellRun {
            workload,
            key: "cell".to_owned(),
            samples: Vec::new(),
            latency: Default::default(),
            state_check: StateCheck::NotApplicable,
            dropped: Vec::new(),
            failure: None,
        };
        assert!(was_not_run(&run, true));
        assert!(!was_not_run(&run, false), "a run that ended by itself");
        run.failure = Some("input/output error".to_owned());
        assert!(!was_not_run(&run, true));
    }
}
