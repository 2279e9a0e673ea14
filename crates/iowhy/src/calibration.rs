//! The fitted model of a path: its target, the length of the slices, the analysis, and a model measured on request.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::environment::Environment;
use iowhy_core::estimate::Unit;
use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_path::analysis::{self, Analysis};
use iowhy_path::plan::{PathPlan, plan};
use iowhy_path::targets::calibration_targets;
use iowhy_probe::campaign::{self, Cell, Effort, Outcome};
use iowhy_probe::target::{self, Needs, Target};
use iowhy_probe::{environment, interrupt};

use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::RulerRecord;
use crate::{ruler, targets};

/// Rounds that the time is divided by; fewer give wide intervals, more give short slices.
pub(crate) const ROUNDS: u32 = 11;
/// Rounds that run even where a slow path exceeds the time.
pub(crate) const MIN_ROUNDS: u32 = 5;
/// A smaller file says nothing about a device.
const MIN_FILE_BYTES: u64 = 16 << 20;

/// Measures the path under the current directory for this long, and fits its model: what `sim --machine host` runs on.
///
/// # Errors
/// What keeps it from being measured; too little measured for a model.
pub(crate) fn measure_host(
    budget: Duration,
    seed: u64,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<StackModel, Problem> {
    interrupt::install();
    let target = readable_target(".", sweep::DEFAULT_REGION_BYTES, progress, warnings)?;
    let below = calibration_targets(&target)?;
    let ruler = ruler::measure(&[&target], seed)?;
    let mut plan = plan(&target, &below, sweep::DEFAULT_REGION_BYTES, seed);
    fit_slices(&mut plan, budget);
    let effort = Effort { min_rounds: MIN_ROUNDS, max_rounds: ROUNDS, time: budget, precision: 0.0, seed };
    let outcome = campaign::run(&plan.cells, effort, &mut |p| progress.at(p.share, p.remaining, p.cell));
    analyse(&plan, &outcome, &target, &ruler, seed).model.ok_or_else(|| {
        Problem::failed("this machine has no model: too little was measured")
            .hint("`iowhy --save-model FILE` with a longer `--time`, then `--machine FILE`")
    })
}

/// Finds or makes the target. A directory that we may not write to is measured through a readable file in it.
pub(crate) fn readable_target(
    spec: &str,
    size: u64,
    progress: &Progress,
    warnings: &mut Vec<Warning>,
) -> Result<Target, Problem> {
    let needs = Needs { scratch_bytes: size, write: false, destroy_data: None };
    let refused = match targets::resolve(spec, &needs, progress) {
        Ok(target) => return Ok(target),
        Err(problem) => problem,
    };
    let folder = Path::new(spec);
    if !folder.is_dir() || interrupt::requested() {
        return Err(refused);
    }
    let Some(file) = target::find_readable_file(folder, MIN_FILE_BYTES) else { return Err(refused) };
    let name = file.to_string_lossy().into_owned();
    let target = targets::resolve(&name, &needs, progress)?;
    warnings.push(
        Warning::new(
            "no-scratch-file",
            format!("{refused}: measuring reads of `{name}` instead, and no writes"),
        )
        .next(refused.hint.unwrap_or_else(|| "name a directory that you may write to".to_owned())),
    );
    Ok(target)
}

/// Stretches or shrinks every slice so that [`ROUNDS`] rounds fit in the time that is left.
pub(crate) fn fit_slices(plan: &mut PathPlan<'_>, left: Duration) {
    let round: Duration = plan.cells.iter().map(|cell| cell.bounds.wall).sum();
    let wanted = left.as_secs_f64() * MEASURING_SHARE / f64::from(ROUNDS);
    let factor = (wanted / round.as_secs_f64().max(1e-3)).clamp(0.1, MAX_STRETCH);
    for cell in &mut plan.cells {
        cell.bounds.wall = cell.bounds.wall.mul_f64(factor).max(Duration::from_micros(500));
    }
}

/// Longer slices than this many times the planned ones make the run longer and the intervals hardly narrower.
const MAX_STRETCH: f64 = 2.2;

/// The fit, the limits and the methods of measured cells.
pub(crate) fn analyse(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    target: &Target,
    ruler: &RulerRecord,
    seed: u64,
) -> Analysis {
    analysis::analyse(plan, outcome, &context(target, &environment::environment(target), ruler, seed))
}

fn context<'a>(
    target: &'a Target,
    environment: &'a Environment,
    ruler: &RulerRecord,
    seed: u64,
) -> analysis::Context<'a> {
    analysis::Context {
        target,
        environment,
        memcpy: ruler.copy_per_byte.map(|e| e.reciprocal(1e9, Unit::BytesPerSecond)),
        page_bytes: rustix::param::page_size() as u64,
        seed,
    }
}

/// Measures the cells of borderline limits further, until these are decided, cannot be decided by more rounds, or the time
/// is over. Says whether anything was added to the outcome, which began at `begun`.
pub(crate) fn decide_limits(
    plan: &PathPlan<'_>,
    outcome: &mut Outcome,
    analysis: &Analysis,
    (target, ruler, seed): (&Target, &RulerRecord, u64),
    (begun, until): (Instant, Instant),
    progress: &Progress,
) -> bool {
    let environment = environment::environment(target);
    let context = context(target, &environment, ruler, seed);
    let mut open = analysis.limits.as_ref().map_or_else(Vec::new, |limits| limits.open.clone());
    let mut rounds = 0;
    while !open.is_empty() && rounds < MAX_FURTHER_ROUNDS && !interrupt::requested() {
        let indexes = plan.deciding(&open);
        let cells: Vec<Cell<'_>> = indexes.iter().map(|index| plan.cells[*index].clone()).collect();
        let left = until.saturating_duration_since(Instant::now());
        // Virtual time takes none.
        if target.script().is_none() && left < round_time(&cells) {
            break;
        }
        let effort = Effort {
            min_rounds: 1,
            max_rounds: 1,
            time: left,
            precision: 0.0,
            seed: seed + u64::from(rounds),
        };
        let after = begun.elapsed();
        let more = campaign::run(&cells, effort, &mut |p| {
            progress.at(1.0, until.saturating_duration_since(Instant::now()), p.cell);
        });
        outcome.append(&indexes, more, after);
        rounds += 1;
        let limits = analysis::limits(plan, outcome, &context, analysis.model.as_ref());
        open = limits.map_or_else(Vec::new, |limits| limits.open);
    }
    rounds > 0
}

/// What a round of these cells takes, preparation included.
fn round_time(cells: &[Cell<'_>]) -> Duration {
    cells.iter().map(|cell| cell.bounds.wall).sum::<Duration>().div_f64(MEASURING_SHARE)
}

/// Rounds that a borderline limit gets at most.
const MAX_FURTHER_ROUNDS: u32 = 100;
/// Part of a round that is measured; the rest prepares slices (threads, mappings, cache state).
const MEASURING_SHARE: f64 = 0.6;
