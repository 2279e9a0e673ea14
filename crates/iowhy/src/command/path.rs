//! `iowhy [PATH]`: the main job. Canonical requests, the ladder under them, the limit, the ways of reading.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::cell::CellRun;
use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::campaign::{self, Effort, Outcome};
use iowhy_probe::interrupt;
use iowhy_probe::target::{self, Needs, Target};

use crate::cli::{OutputArgs, PathArgs};
use crate::command::analysis::{self, Analysis};
use crate::command::cross_check::Appointment;
use crate::command::{Ending, shared};
use crate::output::{self, Outputs, Pending};
use crate::plan::path::{PathPlan, Role, plan};
use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::{HeldOutRecord, Record, RequestRecord, model_tables};
use crate::render;

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
    let rungs = shared::rung_targets(&target)?;
    let targets = [&target];
    outputs.spare(&targets)?;
    if let Some(save) = &save {
        save.spare(&targets)?;
    }
    let ruler = shared::measure_ruler(&targets, seed)?;
    let mut plan = plan(&target, &rungs, size, seed);
    if canonical(&plan).is_empty() {
        return Err(Problem::refused(format!(
            "`{}` is too small to measure: {} are used of it, and no request fits",
            target.facts.name,
            Bytes(target.facts.size_bytes.min(size))
        ))
        .hint("name a file of at least 4 KiB, better 16 MiB, or a directory"));
    }
    let left = time.saturating_sub(begun.elapsed()).saturating_sub(MARGIN);
    let is_canonical = |i: usize| plan.roles[i].iter().any(|role| matches!(role, Role::Canonical(_)));
    let appointment = Appointment::make(&plan.cells, is_canonical, left);
    let after = appointment.takes();
    let left = left.saturating_sub(after);
    fit_slices(&mut plan, left);
    // A time that was given is used up.
    let effort = Effort {
        least_rounds: MIN_ROUNDS,
        most_rounds: if args.time.is_some() { MAX_ROUNDS } else { ROUNDS },
        budget: left,
        precision: 0.0,
        seed,
    };
    let measuring = left.as_secs_f64() / (left + after).as_secs_f64().max(f64::MIN_POSITIVE);
    let outcome = campaign::run(&plan.cells, effort, &mut |p| {
        progress.at(p.share * measuring, p.remaining + after, p.cell);
    });
    let watched = appointment.keep(&plan.cells, seed, &progress);
    drop(progress);

    let analysis = analysis::analyse(&plan, &outcome, &target, &ruler, seed);
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
    watched.tell(&mut record, model.as_ref(), harness, &measured);
    record.warnings.extend(shared::busy_machine(&record.cells));
    outputs.warn(&record.warnings);
    let ending = shared::ending(&record);
    let screen =
        render::path::screen(&record, &canonical(&plan), args.verbose, output::width(), output::marks());
    outputs.finish(&screen, &record)?;
    Ok(ending)
}

/// Measures the path under the present directory for this long, and fits its model: what `sim --machine host` runs on.
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
    let rungs = shared::rung_targets(&target)?;
    let ruler = shared::measure_ruler(&[&target], seed)?;
    let mut plan = plan(&target, &rungs, sweep::DEFAULT_REGION_BYTES, seed);
    fit_slices(&mut plan, budget);
    let effort = Effort { least_rounds: MIN_ROUNDS, most_rounds: ROUNDS, budget, precision: 0.0, seed };
    let outcome = campaign::run(&plan.cells, effort, &mut |p| progress.at(p.share, p.remaining, p.cell));
    analysis::analyse(&plan, &outcome, &target, &ruler, seed).model.ok_or_else(|| {
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
    let factor = (wanted / round.as_secs_f64().max(1e-3)).clamp(0.1, MOST_STRETCH);
    for cell in &mut plan.cells {
        cell.bounds.wall = cell.bounds.wall.mul_f64(factor).max(Duration::from_micros(500));
    }
}

/// Longer slices than this many times the planned ones make the run longer and the intervals hardly narrower.
const MOST_STRETCH: f64 = 2.2;

/// Keys and labels of the canonical requests, in the order of the plan.
fn canonical(plan: &PathPlan<'_>) -> Vec<(String, &'static str)> {
    plan.cells
        .iter()
        .zip(&plan.roles)
        .flat_map(|(cell, roles)| {
            roles.iter().filter_map(|role| match role {
                Role::Canonical(label) => Some((cell.key.clone(), *label)),
                _ => None,
            })
        })
        .collect()
}

/// Puts cells and analysis into the record.
fn fill(record: &mut Record, plan: &PathPlan<'_>, outcome: &Outcome, analysis: Analysis) {
    record.ruler.harness_per_request = analysis.harness;
    let named = canonical(plan).into_iter();
    record.requests = named.map(|(key, label)| RequestRecord { key, label: label.to_owned() }).collect();
    let read_ahead_bytes = record.environment.read_ahead_bytes;
    for ((cell, runs), layers) in plan.cells.iter().zip(&outcome.cells).zip(analysis.layers) {
        let (Some((_, cell_target)), Some(run)) = (cell.arms.first(), runs.first()) else { continue };
        record.cells.push(shared::cell_record(run, cell_target, read_ahead_bytes, record.seed, layers));
    }
    record.limit = analysis.limit;
    record.limits = analysis.limits;
    record.ways = analysis.ways;
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
            rung: held.rung.id().to_owned(),
            block_bytes: held.block_bytes,
            predicted_ns: held.predicted_ns,
            measured_ns: held.measured.value,
            measured: held.measured,
            error_percent: held.error_percent,
        })
        .collect();
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
