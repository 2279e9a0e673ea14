//! `iowhy [PATH]`: the path report. Canonical requests, calibration cells, the limit, methods of reading.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Unit;
use iowhy_core::limit::Limit;
use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Method};
use iowhy_path::analysis::{self, Analysis};
use iowhy_path::methods::MethodTable;
use iowhy_path::plan::{PathPlan, plan};
use iowhy_path::targets;
use iowhy_probe::campaign::{self, Effort, Outcome};
use iowhy_probe::target::{self, Needs, Target};
use iowhy_probe::{environment, interrupt};

use crate::cli::{OutputArgs, PathArgs};
use crate::command::cross_check::CrossCheckPlan;
use crate::command::{Ending, shared};
use crate::output::{self, Outputs};
use crate::pending::Pending;
use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::{
    HeldOutRecord, MethodRecord, QuestionLimit, Record, RequestRecord, RulerRecord, model_tables,
};
use crate::screen;
use iowhy_view::document::Detail;

/// Time to spend when nobody says how much.
const DEFAULT_TIME: Duration = Duration::from_secs(30);
/// Time kept back for looking at the target, fitting and printing.
const MARGIN: Duration = Duration::from_millis(1500);
/// Rounds that the time is divided by; fewer give wide intervals, more give short slices.
const ROUNDS: u32 = 11;
/// More rounds make no interval visibly narrower.
const MAX_ROUNDS: u32 = 200;
/// Rounds that run even where a slow path exceeds the time.
const MIN_ROUNDS: u32 = 5;
/// A smaller file says nothing about a device.
const MIN_FILE_BYTES: u64 = 16 << 20;

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
    let target = resolve(args.target.as_deref().unwrap_or("."), size, &progress, &mut warnings)?;
    let below = targets::calibration_targets(&target)?;
    let targets = [&target];
    outputs.spare(&targets)?;
    if let Some(save) = &save {
        save.spare(&targets)?;
    }
    let ruler = shared::measure_ruler(&targets, seed)?;
    let mut plan = plan(&target, &below, size, seed);
    if plan.canonical().is_empty() {
        return Err(Problem::refused(format!(
            "`{}` is too small to measure: {} are used of it, and no request fits",
            target.facts.name,
            Bytes(target.facts.size_bytes.min(size))
        ))
        .hint("name a file of at least 4 KiB, better 16 MiB, or a directory"));
    }
    let left = time.saturating_sub(begun.elapsed()).saturating_sub(MARGIN);
    let is_canonical = |i: usize| plan.roles(&plan.cells[i].key).iter().any(|role| role.label().is_some());
    let profiling = CrossCheckPlan::make(&plan.cells, is_canonical, left);
    let after = profiling.takes();
    let left = left.saturating_sub(after);
    fit_slices(&mut plan, left);
    // A time that the user chose is used up.
    let effort = Effort {
        min_rounds: MIN_ROUNDS,
        max_rounds: if args.time.is_some() { MAX_ROUNDS } else { ROUNDS },
        time: left,
        precision: 0.0,
        seed,
    };
    let measuring = left.as_secs_f64() / (left + after).as_secs_f64().max(f64::MIN_POSITIVE);
    let outcome = campaign::run(&plan.cells, effort, &mut |p| {
        progress.at(p.share * measuring, p.remaining + after, p.cell);
    });
    let watched = profiling.run(&plan.cells, seed, &progress);
    drop(progress);

    let analysis = analyse(&plan, &outcome, &target, &ruler, seed);
    let mut record = shared::record(&targets, ruler, &outcome, seed);
    record.warnings.extend(warnings);
    if let Some(save) = save {
        save_model(save, analysis.model.as_ref())?;
    }
    let (model, harness) = (analysis.model.clone(), analysis.harness);
    fill(&mut record, &plan, &outcome, analysis);
    let cells = plan.cells.iter().zip(&outcome.cells);
    let measured: Vec<(&CellRun, &Target)> =
        cells.filter_map(|(cell, runs)| Some((runs.first()?, cell.arms.first()?.1))).collect();
    watched.fill(&mut record, model.as_ref(), harness, &measured);
    record.warnings.extend(shared::busy_machine(&record.cells));
    outputs.warn(&record.warnings);
    let ending = shared::ending(&record);
    let detail = if args.verbose { Detail::Verbose } else { Detail::Screen };
    let screen = screen::text(&screen::measured::path::chapter(&record, detail), output::width());
    outputs.finish(&screen, &record)?;
    Ok(ending)
}

/// Measures the path under the current directory for this long, and fits its model: what `sim --machine host` runs on.
///
/// # Errors
/// What keeps it from being measured; too little measured for a model.
pub(super) fn model_here(
    budget: Duration,
    seed: u64,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<StackModel, Problem> {
    interrupt::install();
    let target = resolve(".", sweep::DEFAULT_REGION_BYTES, progress, warnings)?;
    let below = targets::calibration_targets(&target)?;
    let ruler = shared::measure_ruler(&[&target], seed)?;
    let mut plan = plan(&target, &below, sweep::DEFAULT_REGION_BYTES, seed);
    fit_slices(&mut plan, budget);
    let effort = Effort { min_rounds: MIN_ROUNDS, max_rounds: ROUNDS, time: budget, precision: 0.0, seed };
    let outcome = campaign::run(&plan.cells, effort, &mut |p| progress.at(p.share, p.remaining, p.cell));
    analyse(&plan, &outcome, &target, &ruler, seed).model.ok_or_else(|| {
        Problem::failed("this machine has no model: too little was measured")
            .hint("`iowhy --save-model FILE` with a longer `--time`, then `--machine FILE`")
    })
}

/// Two outputs must be two files.
fn different(args: &PathArgs, options: &OutputArgs) -> Result<(), Problem> {
    output::all_different(&[
        ("--save-model", args.save_model.as_deref()),
        ("--json", options.json.as_deref()),
    ])
}

/// Finds or makes the target. A directory that we may not write to is measured through a readable file in it.
fn resolve(
    spec: &str,
    size: u64,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<Target, Problem> {
    let needs = Needs { scratch_bytes: size, write: false, destroy_data: None };
    let refused = match shared::resolve(spec, &needs, progress) {
        Ok(target) => return Ok(target),
        Err(problem) => problem,
    };
    let folder = Path::new(spec);
    if !folder.is_dir() || interrupt::requested() {
        return Err(refused);
    }
    let Some(file) = target::find_readable_file(folder, MIN_FILE_BYTES) else { return Err(refused) };
    let name = file.to_string_lossy().into_owned();
    let target = shared::resolve(&name, &needs, progress)?;
    warnings.push(
        Warning::new(
            "no-scratch-file",
            format!("{refused}: measuring reads of `{name}` instead, and no writes"),
        )
        .next(refused.hint.unwrap_or_else(|| "name a directory that you may write to".to_owned())),
    );
    Ok(target)
}

/// Stretches or shrinks every slice so that [`ROUNDS`] rounds fit in the time that is left. Preparing a slice
/// (threads, mappings, cache state) costs time that no slice shows; it is reckoned as a quarter.
fn fit_slices(plan: &mut PathPlan<'_>, left: Duration) {
    let round: Duration = plan.cells.iter().map(|cell| cell.bounds.wall).sum();
    let wanted = left.as_secs_f64() * 0.75 / f64::from(ROUNDS);
    let factor = (wanted / round.as_secs_f64().max(1e-3)).clamp(0.1, MAX_STRETCH);
    for cell in &mut plan.cells {
        cell.bounds.wall = cell.bounds.wall.mul_f64(factor).max(Duration::from_micros(500));
    }
}

/// Longer slices than this many times the planned ones make the run longer and the intervals hardly narrower.
const MAX_STRETCH: f64 = 2.2;

fn analyse(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    target: &Target,
    ruler: &RulerRecord,
    seed: u64,
) -> Analysis {
    let context = analysis::Context {
        target,
        environment: &environment::environment(target),
        memcpy: ruler.copy_per_byte.map(|e| e.reciprocal(1e9, Unit::BytesPerSecond)),
        page_bytes: rustix::param::page_size() as u64,
        seed,
    };
    analysis::analyse(plan, outcome, &context)
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
        record.cells.push(shared::cell_record(run, cell_target, read_ahead_bytes, record.seed, layers));
    }
    if let Some(limits) = analysis.limits {
        record.limit = Some(limits.headline);
        let questions =
            [("cached", limits.cached), ("sequential", limits.sequential), ("random", limits.random)];
        let question = |(name, limit): (&str, Limit)| QuestionLimit { question: name.to_owned(), limit };
        record.limits = questions.into_iter().map(question).collect();
    }
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
fn save_model(save: Pending, model: Option<&StackModel>) -> Result<(), Problem> {
    let model = model.ok_or_else(|| {
        Problem::failed("there is no model to save: too little was measured").hint("raise `--time`")
    })?;
    let text = toml::to_string(model)
        .map_err(|error| Problem::failed(format!("the model cannot be written as TOML: {error}")))?;
    save.write(text.as_bytes())
}
