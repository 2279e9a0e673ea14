//! The fitted model of a path: its target, the length of the slices, the analysis, and a model measured on request.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::environment::Environment;
use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_core::saved_model::SavedModel;
use iowhy_core::warning::Warning;
use iowhy_path::analysis::{self, Analysis};
use iowhy_path::plan::{PathPlan, plan};
use iowhy_path::saved::saved_model;
use iowhy_path::targets::calibration_targets;
use iowhy_probe::campaign::{self, Cell, Effort, Outcome};
use iowhy_probe::target::{self, Needs, Target};
use iowhy_probe::{environment, interrupt};

use crate::plan::sweep;
use crate::progress::Progress;
use crate::record::RulerRecord;
use crate::{ruler, targets};

/// Rounds that the time is divided by; fewer give wide intervals, more give short slices.
pub(crate) const ROUNDS: u32 = 9;
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
) -> Result<SavedModel, Problem> {
    interrupt::install();
    let target = readable_target(".", sweep::DEFAULT_REGION_BYTES, progress, warnings)?;
    let below = calibration_targets(&target)?;
    let ruler = ruler::measure(&[&target], seed)?;
    let mut plan = plan(&target, &below, sweep::DEFAULT_REGION_BYTES, seed);
    fit_slices(&mut plan, budget);
    let effort = Effort { min_rounds: MIN_ROUNDS, max_rounds: ROUNDS, time: budget, precision: 0.0, seed };
    let outcome = campaign::run(&plan.cells, effort, &mut |p| progress.at(p.share, p.remaining, p.cell));
    let model = analyse(&plan, &outcome, &target, &ruler, seed).model;
    model.map(|model| saved_model(&plan, &outcome, model)).ok_or_else(|| {
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

/// Longer slices than the planned ones make the intervals hardly narrower; more rounds of the widest ones do.
const MAX_STRETCH: f64 = 1.0;

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

/// Rounds that follow those of the whole plan: of the cells whose limits are borderline, then of those whose accounts have
/// wide intervals.
pub(crate) struct FurtherRounds<'a> {
    pub(crate) plan: &'a PathPlan<'a>,
    pub(crate) target: &'a Target,
    pub(crate) ruler: &'a RulerRecord,
    pub(crate) seed: u64,
    /// When the first round of the outcome began, and when the last one must have ended.
    pub(crate) between: (Instant, Instant),
    pub(crate) progress: &'a Progress,
}

impl FurtherRounds<'_> {
    /// Measures until limits are decided and intervals narrow, more rounds cannot help, or the time is over. Says whether
    /// anything was added to the outcome.
    pub(crate) fn measure(&self, outcome: &mut Outcome, analysis: &Analysis) -> bool {
        let environment = environment::environment(self.target);
        let context = context(self.target, &environment, self.ruler, self.seed);
        let before = outcome.samples();
        self.while_open(outcome, |outcome| {
            let limits = analysis::limits(self.plan, outcome, &context, analysis.model.as_ref());
            self.plan.deciding(&limits.map_or_else(Vec::new, |limits| limits.open))
        });
        // Virtual time takes none: nothing would end it.
        if self.target.script().is_none() {
            self.while_open(outcome, |outcome| {
                self.plan.explaining(&analysis::imprecise(self.plan, outcome, &context))
            });
        }
        outcome.samples() > before
    }

    /// Rounds of the cells that `open` names, asked anew after each.
    fn while_open(&self, outcome: &mut Outcome, open: impl Fn(&Outcome) -> Vec<usize>) {
        let (begun, until) = self.between;
        for round in 0..MAX_FURTHER_ROUNDS {
            let indexes = open(outcome);
            let cells: Vec<Cell<'_>> = indexes.iter().map(|index| self.plan.cells[*index].clone()).collect();
            let left = until.saturating_duration_since(Instant::now());
            // Virtual time takes none.
            let in_time = self.target.script().is_some() || left >= round_time(&cells);
            if cells.is_empty() || !in_time || interrupt::requested() {
                return;
            }
            let seed = self.seed + u64::from(round);
            let effort = Effort { min_rounds: 1, max_rounds: 1, time: left, precision: 0.0, seed };
            let after = begun.elapsed();
            let more = campaign::run(&cells, effort, &mut |p| {
                self.progress.at(1.0, until.saturating_duration_since(Instant::now()), p.cell);
            });
            outcome.append(&indexes, more, after);
        }
    }
}

/// What a round of these cells takes, preparation included.
fn round_time(cells: &[Cell<'_>]) -> Duration {
    cells.iter().map(|cell| cell.bounds.wall).sum::<Duration>().div_f64(MEASURING_SHARE)
}

/// Rounds that borderline limits, and then wide intervals, get at most.
const MAX_FURTHER_ROUNDS: u32 = 100;
/// Part of a round that is measured; the rest prepares slices (threads, mappings, cache state).
const MEASURING_SHARE: f64 = 0.6;
