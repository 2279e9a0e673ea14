//! `iowhy [PATH]`: the path report. Canonical requests, calibration cells, the limit, methods of reading.

use std::time::{Duration, Instant};

use iowhy_core::cell::CellRun;
use iowhy_core::limit::Limit;
use iowhy_core::problem::Problem;
use iowhy_core::saved_model::SavedModel;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method};
use iowhy_path::analysis::Analysis;
use iowhy_path::cross_check::{self, Observed};
use iowhy_path::limit::Question;
use iowhy_path::methods::MethodTable;
use iowhy_path::plan::{PathPlan, plan};
use iowhy_path::saved::saved_model;
use iowhy_path::targets;
use iowhy_probe::campaign::{self, Effort, Outcome};
use iowhy_probe::interrupt;
use iowhy_probe::target::Target;

use crate::calibration::{FurtherRounds, MIN_ROUNDS, ROUNDS, analyse, fit_slices, readable_target};
use crate::cli::{OutputArgs, PathArgs};
use crate::cross_check::CrossCheckPlan;
use crate::ending::Ending;
use crate::measurement;
use crate::output::{self, Outputs};
use crate::pending::Pending;
use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::{
    FasterRecord, HeldOutRecord, MethodRecord, QuestionLimit, Record, RequestRecord, model_tables,
};
use crate::ruler;
use crate::screen;
use iowhy_view::document::Detail;

/// Time to spend when nobody says how much.
const DEFAULT_TIME: Duration = Duration::from_secs(30);
/// Time kept back for looking at the target, fitting and printing.
const MARGIN: Duration = Duration::from_millis(1500);
/// Part of the time that is kept for rounds of borderline limits and wide intervals, at least.
const FURTHER_SHARE: f64 = 0.35;
/// More rounds make no interval visibly narrower.
const MAX_ROUNDS: u32 = 200;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; a cell that fails is in the record instead.
pub fn run(args: &PathArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let begun = Instant::now();
    let time = args.time.unwrap_or(DEFAULT_TIME);
    let size = args.size.unwrap_or(sweep::DEFAULT_REGION_BYTES);
    let seed = args.seed.unwrap_or(1);
    different(args, options)?;
    let outputs = Outputs::open(options)?;
    let save = args.save_model.as_deref().map(|path| Pending::open("--save-model", path)).transpose()?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());

    let mut warnings = Vec::new();
    let target = readable_target(args.target.as_deref().unwrap_or("."), size, &progress, &mut warnings)?;
    let below = targets::calibration_targets(&target)?;
    let targets = [&target];
    outputs.spare(&targets)?;
    if let Some(save) = &save {
        save.spare(&targets)?;
    }
    let ruler = ruler::measure(&targets, seed)?;
    let mut plan = plan(&target, &below, size, seed);
    large_enough(&plan, &target, size)?;
    // Virtual time takes none: the same script must give the same slices.
    let looked = if target.script().is_some() { Duration::ZERO } else { begun.elapsed() };
    let left = time.saturating_sub(looked).saturating_sub(MARGIN);
    let is_canonical = |i: usize| plan.roles(&plan.cells[i].key).iter().any(|role| role.label().is_some());
    let profiling = CrossCheckPlan::make(&plan.cells, is_canonical, left);
    let after = profiling.takes();
    let left = left.saturating_sub(after);
    let rest = left.mul_f64(FURTHER_SHARE);
    fit_slices(&mut plan, left - rest);
    let effort = Effort {
        min_rounds: MIN_ROUNDS,
        max_rounds: if args.time.is_some() { MAX_ROUNDS } else { ROUNDS },
        time: left - rest,
        precision: 0.0,
        seed,
    };
    let measuring = (left - rest).as_secs_f64() / (left + after).as_secs_f64().max(f64::MIN_POSITIVE);
    let started = Instant::now();
    let mut outcome = campaign::run(&plan.cells, effort, &mut |p| {
        progress.at(p.share * measuring, p.remaining + after, p.cell);
    });
    let mut analysis = analyse(&plan, &outcome, &target, &ruler, seed);
    let further = FurtherRounds {
        plan: &plan,
        target: &target,
        ruler: &ruler,
        seed,
        between: (started, started + left),
        progress: &progress,
    };
    if further.measure(&mut outcome, &analysis) {
        analysis = analyse(&plan, &outcome, &target, &ruler, seed);
    }
    let spare =
        if target.script().is_some() { Duration::ZERO } else { left.saturating_sub(started.elapsed()) };
    let watched =
        profiling.run(&plan.cells, (seed, measuring, spare), &progress, undecided(&outcome, &analysis));
    drop(progress);

    let mut record = measurement::record(&targets, ruler, &outcome, seed);
    record.warnings.extend(warnings);
    let model = analysis.model.clone().map(|model| saved_model(&plan, &outcome, model));
    let saved = save.map_or(Ok(()), |save| save_model(save, model.as_ref()));
    let accounts = analysis.layers.clone();
    fill(&mut record, &plan, &outcome, analysis);
    let measured = outcome.cells.iter().filter_map(|runs| runs.first());
    watched.fill(&mut record, measured, |run| accounts.get(&run.key).cloned());
    record.warnings.extend(measurement::busy_machine(&record.cells));
    outputs.warn(&record.warnings);
    let ending = Ending::for_cells(&record);
    let detail = if args.verbose { Detail::Verbose } else { Detail::Screen };
    let screen = screen::text(&screen::measured::path::chapter(&record, detail), output::width());
    outputs.finish(&screen, &record)?;
    // The report stands also where the model could not be saved.
    saved?;
    Ok(ending)
}

/// Refuses a target that no request fits into.
fn large_enough(plan: &PathPlan<'_>, target: &Target, size: u64) -> Result<(), Problem> {
    if !plan.canonical().is_empty() {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "`{}` is too small to measure: {} are used of it, and no request fits",
        target.facts.name,
        Bytes(target.facts.size_bytes.min(size))
    ))
    .hint("name a file of at least 4 KiB, better 16 MiB, or a directory"))
}

/// Whether more samples may decide the cross-check of a cell.
fn undecided<'a>(outcome: &'a Outcome, analysis: &'a Analysis) -> impl Fn(&CellRun, &Observed) -> bool + 'a {
    |run: &CellRun, seen: &Observed| {
        let measured =
            outcome.cells.iter().filter_map(|runs| runs.first()).find(|known| known.key == run.key);
        let check = measured
            .zip(analysis.layers.get(&run.key))
            .and_then(|(measured, layers)| cross_check::compare(seen, run, measured, layers));
        check.is_some_and(|check| check.is_undecided())
    }
}

/// Two outputs must be two files.
fn different(args: &PathArgs, options: &OutputArgs) -> Result<(), Problem> {
    output::all_different(&[
        ("--save-model", args.save_model.as_deref()),
        ("--json", options.json.as_deref()),
    ])
}

/// Puts cells and analysis into the record.
fn fill(record: &mut Record, plan: &PathPlan<'_>, outcome: &Outcome, mut analysis: Analysis) {
    record.ruler.harness_per_request = analysis.harness;
    let named = plan.canonical().into_iter();
    record.requests = named.map(|(key, label)| RequestRecord { key, label: label.to_owned() }).collect();
    let read_ahead_bytes = record.environment.read_ahead_bytes;
    for (cell, runs) in plan.cells.iter().zip(&outcome.cells) {
        let (Some((_, cell_target)), Some(run)) = (cell.arms.first(), runs.first()) else { continue };
        let layers = analysis.layers.remove(&cell.key).unwrap_or_default();
        record.cells.push(measurement::cell_record(run, cell_target, read_ahead_bytes, record.seed, layers));
    }
    if let Some(limits) = analysis.limits {
        record.limit = Some(limits.headline);
        let questions = [
            (Question::Cached, limits.cached),
            (Question::Sequential, limits.sequential),
            (Question::Random, limits.random),
        ];
        let question = |(of, limit): (Question, Limit)| QuestionLimit { question: of.id().to_owned(), limit };
        record.limits = questions.into_iter().map(question).collect();
    }
    record.faster = analysis.faster.into_iter().map(FasterRecord::from).collect();
    record.methods = analysis.methods.into_iter().flat_map(methods).collect();
    record.model_residual_percent = analysis.residual_percent;
    record.model_notes = analysis.notes;
    if let Some(model) = &analysis.model {
        let (layers, parts) = model_tables(model);
        record.model = Some(layers);
        record.model_parts = Some(parts);
    }
    record.held_out = analysis
        .held_out
        .into_iter()
        .map(|held| HeldOutRecord {
            calibration_cell: held.cell.id().to_owned(),
            block_bytes: held.block_bytes,
            predicted_ns: held.predicted_ns,
            measured_ns: held.measured.value,
            measured: held.measured,
            error_percent: held.error_percent,
        })
        .collect();
}

/// The rows of a table of methods.
fn methods(table: MethodTable) -> impl Iterator<Item = MethodRecord> {
    let state = if table.common.state == CacheState::Warm { "warm" } else { "cold" };
    table.rows.into_iter().map(move |row| MethodRecord {
        state: state.to_owned(),
        method: row.method.id().to_owned(),
        key: row.key,
        delivers: !matches!(row.method, Method::Splice | Method::Sendfile),
        time_per_request: row.time_per_request,
        time_over_pread: row.ratio,
        cpu_over_pread: row.cpu_ratio,
    })
}

/// Writes the fitted model.
fn save_model(save: Pending, model: Option<&SavedModel>) -> Result<(), Problem> {
    let model = model.ok_or_else(|| {
        Problem::failed("there is no model to save: too little was measured").hint("raise `--time`")
    })?;
    let text = toml::to_string(model)
        .map_err(|error| Problem::failed(format!("the model cannot be written as TOML: {error}")))?;
    save.write(text.as_bytes())
}
