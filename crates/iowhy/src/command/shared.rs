//! The steps of every command that measures cells: targets, ruler, record, ending.

use iowhy_core::cell::CellRun;
use iowhy_core::environment::TargetKind;
use iowhy_core::problem::Problem;
use iowhy_core::summary;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_path::costs::Layers;
use iowhy_path::facts;
use iowhy_path::reconcile::Verdict as CellVerdict;
use iowhy_path::reconcile::{self, ReconcileContext};
use iowhy_probe::campaign::Outcome;
use iowhy_probe::target::{self, Needs, Target};
use iowhy_probe::{counters, environment, interrupt, ruler};

use crate::command::ending::{self, Ending};
use crate::output;
use crate::progress::Progress;
use crate::record::{CellRecord, Kind, Record, RulerRecord, SCHEMA, Seen};
use crate::shell;

/// Finds or makes a target, with progress while a scratch file is filled.
pub(super) fn resolve(spec: &str, needs: &Needs, progress: &Progress) -> Result<Target, Problem> {
    let begun = std::time::Instant::now();
    target::resolve(spec, needs, &mut |done, total| {
        let share = done as f64 / total.max(1) as f64;
        let spent = begun.elapsed().as_secs_f64();
        let remaining = if share > 0.0 { spent / share - spent } else { 0.0 };
        progress.at(
            share,
            std::time::Duration::from_secs_f64(remaining.max(0.0)),
            "writing the scratch file",
        );
    })
}

/// Says on stderr what this run is about to destroy, also with `--quiet`: name, kind, size, model, what is on it. Called before
/// anything is written.
pub(super) fn announce_destruction(targets: &[&Target], progress: &Progress) {
    for target in targets.iter().flat_map(|target| target.data_targets()) {
        let facts = &target.facts;
        let Some(content) = &facts.overwritten else { continue };
        let (kind, model, unused) = match facts.kind {
            TargetKind::BlockDevice => {
                let model = environment::environment(target).device_model;
                let model = model.map(|model| format!(", {model}")).unwrap_or_default();
                ("block device", model, "not mounted, not in use, ")
            }
            _ => ("file", String::new(), ""),
        };
        let text = format!(
            "this run writes over `{}` ({kind}, {}{model}), and its data is lost; on it: {unused}{content}",
            facts.name,
            Bytes(facts.size_bytes),
        );
        progress.aside(|| output::announce(&text));
    }
}

/// Measures the ruler; in virtual time there is nothing to measure.
pub(super) fn measure_ruler(targets: &[&Target], seed: u64) -> Result<RulerRecord, Problem> {
    if targets.iter().any(|t| t.script().is_some()) {
        return Ok(RulerRecord {
            clock_source: "virtual".to_owned(),
            clock_step_ns: 1,
            clock_read: None,
            harness_per_request: None,
            copy_per_byte: None,
            peak_memory_bytes: None,
        });
    }
    let ruler = ruler::measure(seed)?;
    Ok(RulerRecord {
        clock_source: ruler.clock_source.to_owned(),
        clock_step_ns: ruler.clock_step_ns,
        clock_read: Some(ruler.clock_read),
        harness_per_request: None,
        copy_per_byte: ruler.copy,
        peak_memory_bytes: None,
    })
}

/// The record before anything is in it.
pub(super) fn record(targets: &[&Target], ruler: RulerRecord, outcome: &Outcome, seed: u64) -> Record {
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
        cross_check_limitation: None,
    }
}

/// One cell's entry: summary, bytes compared with the device's, verdict.
pub(super) fn cell_record(
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
const NOT_RUN: &str = "not-run";

fn was_not_run(run: &CellRun, interrupted: bool) -> bool {
    interrupted && run.samples.is_empty() && run.failure.is_none()
}

/// Says when the machine was not idle: then every number here is of a busy machine.
pub(super) fn busy_machine(cells: &[CellRecord]) -> Option<Warning> {
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

/// How a command with this record ends: anything that failed, or was not what it claims, is a reason for exit code 1.
pub(super) fn ending(record: &Record) -> Ending {
    let interrupted = record.interrupted.then(|| interrupted_after(&record.cells));
    let bad = failed_cells(&record.cells).into_iter().chain(mislabelled_cells(&record.cells));
    Ending::from_reasons(interrupted.into_iter().chain(bad))
}

/// The reason of an interrupted run, with the number of cells that it reached.
fn interrupted_after(cells: &[CellRecord]) -> Problem {
    let measured = cells.iter().filter(|cell| !cell.samples.is_empty()).count();
    let mut problem = ending::interrupted();
    problem.message =
        format!("interrupted: {measured} of {} cells were measured, the others were not run", cells.len());
    if measured == cells.len() {
        problem.message =
            format!("interrupted: all {measured} cells were measured, in fewer rounds than planned");
    }
    problem
}

/// The reason where cells failed: how many, which is the first, and why.
pub(super) fn failed_cells(cells: &[CellRecord]) -> Option<Problem> {
    let mut failed = cells.iter().filter(|cell| cell.verdict == "failed");
    let first = failed.next()?;
    let n = 1 + failed.count();
    let why = first.failure.as_deref().unwrap_or("no request was completed");
    let message = format!("{n} of {} cells failed: {} on `{}`: {why}", cells.len(), first.key, first.target);
    Some(Problem::failed(message).hint("`iowhy bench` with the options of that cell measures it alone"))
}

/// The reason where cells were not what they claim, e.g. read from the cache where it says cold.
fn mislabelled_cells(cells: &[CellRecord]) -> Option<Problem> {
    let mut mislabelled = cells.iter().filter(|cell| cell.verdict == CellVerdict::Mislabelled.id());
    let first = mislabelled.next()?;
    let n = 1 + mislabelled.count();
    let message = format!(
        "{n} of {} cells {}: {} on `{}`: {}",
        cells.len(),
        if n == 1 { "was not what it claims" } else { "were not what they claim" },
        first.key,
        first.target,
        first.bytes_verdict
    );
    Some(Problem::failed(message).hint(
        "the other cells stand; other processes on the device or little free memory can cause it: run it again when \
         they are idle",
    ))
}

#[cfg(test)]
mod tests {
    use iowhy_core::cell::StateCheck;
    use iowhy_core::workload::{CacheState, Method, Workload};

    use super::*;

    fn measured() -> Record {
        serde_json::from_str(include_str!("../../tests/command/records/1/measured.json")).unwrap()
    }

    /// The reason as it is printed; `None` for exit code 0.
    fn reason(record: &Record) -> Option<String> {
        let ending = ending(record);
        (ending.code() != 0).then(|| format!("{ending:?}"))
    }

    #[test]
    fn what_makes_the_exit_code_1_is_named() {
        let mut record = measured();
        record.interrupted = false;
        record.cells.iter_mut().for_each(|cell| cell.verdict = "ok".to_owned());
        assert_eq!(reason(&record), None);
        let name = record.cells[0].key.clone();
        record.cells[0].verdict = "mislabelled".to_owned();
        record.cells[0].bytes_verdict = "half of it came from the cache".to_owned();
        let one = reason(&record).unwrap();
        for word in [name.as_str(), "1 of ", "was not what it claims", "half of it came from the cache"] {
            assert!(one.contains(word), "{one}");
        }
        record.cells[0].verdict = "failed".to_owned();
        record.cells[0].failure = Some("input/output error".to_owned());
        record.interrupted = true;
        let two = reason(&record).unwrap();
        for word in [name.as_str(), "failed", "input/output error", "interrupted"] {
            assert!(two.contains(word), "{two}");
        }
    }

    #[test]
    fn a_cell_that_an_interrupted_run_did_not_reach_has_not_failed() {
        let mut record = measured();
        record.interrupted = true;
        record.cells.iter_mut().for_each(|cell| cell.verdict = "ok".to_owned());
        let all = record.cells.len();
        let last = record.cells.last_mut().unwrap();
        (last.verdict, last.failure) = (NOT_RUN.to_owned(), None);
        last.samples.clear();
        let interrupted = reason(&record).unwrap();
        assert!(interrupted.contains(&format!("{} of {all} cells were measured", all - 1)), "{interrupted}");
        assert!(!interrupted.contains("failed:") && !interrupted.contains("no reason"), "{interrupted}");
        assert!(
            crate::screen::measured::cell::interrupted(&record)
                .unwrap()
                .contains("first round is incomplete")
        );
    }

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
