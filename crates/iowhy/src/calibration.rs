//! The fitted model of a path: its target, the length of the slices, the analysis, and a model measured on request.

use std::path::Path;
use std::time::Duration;

use iowhy_core::estimate::Unit;
use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_path::analysis::{self, Analysis};
use iowhy_path::plan::{PathPlan, plan};
use iowhy_path::targets::calibration_targets;
use iowhy_probe::campaign::{self, Effort, Outcome};
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

/// Stretches or shrinks every slice so that [`ROUNDS`] rounds fit in the time that is left. Preparing a slice
/// (threads, mappings, cache state) costs time that no slice shows; it is reckoned as a quarter.
pub(crate) fn fit_slices(plan: &mut PathPlan<'_>, left: Duration) {
    let round: Duration = plan.cells.iter().map(|cell| cell.bounds.wall).sum();
    let wanted = left.as_secs_f64() * 0.75 / f64::from(ROUNDS);
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
    let context = analysis::Context {
        target,
        environment: &environment::environment(target),
        memcpy: ruler.copy_per_byte.map(|e| e.reciprocal(1e9, Unit::BytesPerSecond)),
        page_bytes: rustix::param::page_size() as u64,
        seed,
    };
    analysis::analyse(plan, outcome, &context)
}
