//! From measured cells and their roles to model, ledgers, limit and comparisons: hands each part of `iowhy-explain`
//! what it needs. No rule of its own.

use iowhy_core::cell::CellRun;
use iowhy_core::environment::{Environment, TargetKind};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::limit::Limit;
use iowhy_core::model::StackModel;
use iowhy_core::workload::{CacheState, Method};
use iowhy_explain::compare;
use iowhy_explain::fit::{self, Fit, FitOptions, HeldOut};
use iowhy_explain::ladder::RungRun;
use iowhy_explain::limit::{self, Evidence};
use iowhy_explain::per_request;
use iowhy_explain::reconcile::{self, ReconcileContext};
use iowhy_explain::summary;
use iowhy_probe::campaign::Outcome;
use iowhy_probe::environment;
use iowhy_probe::target::Target;

use crate::command::costs::{Costs, Layers, all_rounds};
use crate::plan::path::{HELD_OUT_BLOCK_BYTES, LimitCell, PathPlan, Role};
use crate::record::{MethodRecord, QuestionLimit, RulerRecord};

/// What was made of the main job's cells.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    /// Our own cost per request.
    pub(super) harness: Option<Estimate>,
    /// The fitted model; absent when too little was measured.
    pub(super) model: Option<StackModel>,
    /// Root mean square of the fit's relative residuals.
    pub(super) residual_percent: Option<f64>,
    /// What the fit could not separate.
    pub(super) notes: Vec<String>,
    /// Block sizes that the model had not seen.
    pub(super) held_out: Vec<HeldOut>,
    /// One per cell of the plan.
    pub(super) layers: Vec<Layers>,
    /// The headline.
    pub(super) limit: Option<Limit>,
    /// The limit of each question.
    pub(super) limits: Vec<QuestionLimit>,
    /// Ways of reading.
    pub(super) ways: Vec<MethodRecord>,
}

/// Explains the cells of a plan.
pub(super) fn analyse(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    target: &Target,
    ruler: &RulerRecord,
    seed: u64,
) -> Analysis {
    let cells = Cells { plan, outcome };
    let environment = environment::environment(target);
    let harness = cells.harness(seed);
    let harness_ns = harness.map_or(0.0, |e| e.value);
    let mut analysis = Analysis { harness, ..Analysis::default() };

    let fitted = cells.fit(target, &environment, harness_ns, &[], seed);
    analysis.layers = cells.layers(fitted.as_ref(), seed);
    if let Some(fitted) = fitted {
        analysis.residual_percent = Some(fitted.residual_percent);
        analysis.notes = fitted.notes;
        analysis.held_out = fitted.held_out;
        analysis.model = Some(fitted.model);
    }
    if !matches!(target.facts.kind, TargetKind::CharDevice | TargetKind::Null) {
        let limits = limit::limits(&cells.evidence(target, &environment, ruler, analysis.model.as_ref()));
        let question = |name: &str, limit: Limit| QuestionLimit { question: name.to_owned(), limit };
        analysis.limit = Some(limits.headline);
        analysis.limits = vec![
            question("cached", limits.cached),
            question("sequential", limits.sequential),
            question("random", limits.random),
        ];
    }
    analysis.ways = cells.ways(target, environment.read_ahead_bytes);
    analysis
}

/// What a ladder gives for splitting cells of another plan; `own` is the cell that measured our own cost.
pub(super) fn costs_of(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    target: &Target,
    (swept, own): (&[Vec<CellRun>], Option<&CellRun>),
    seed: u64,
) -> Costs {
    let cells = Cells { plan, outcome };
    let harness_ns = cells.harness(seed).map_or(0.0, |e| e.value);
    let fit = cells.fit(target, &environment::environment(target), harness_ns, swept, seed);
    Costs::new(fit.as_ref(), own, swept.iter().flatten(), seed)
}

fn fit_options(
    target: &Target,
    environment: &Environment,
    harness_ns: f64,
    parallelism: Option<f64>,
    seed: u64,
) -> FitOptions {
    let mut options = FitOptions::new(target.facts.name.clone(), rustix::param::page_size() as u64, seed);
    options.held_out = HELD_OUT_BLOCK_BYTES.to_vec();
    options.harness_ns = harness_ns;
    options.device_parallelism = parallelism.unwrap_or(1.0);
    options.memory_backed = target.facts.memory_backed;
    let read_ahead = match target.script() {
        Some(script) => Some(script.model.read_ahead_bytes),
        None => environment.read_ahead_bytes,
    };
    if let Some(bytes) = read_ahead {
        options.read_ahead_bytes = bytes;
    }
    options
}

/// Cells found by their roles.
struct Cells<'a> {
    plan: &'a PathPlan<'a>,
    outcome: &'a Outcome,
}

impl<'a> Cells<'a> {
    /// Runs whose cell has a role that is wanted.
    fn with(&self, wanted: impl Fn(&Role) -> bool) -> impl Iterator<Item = &'a CellRun> {
        self.plan
            .roles
            .iter()
            .zip(&self.outcome.cells)
            .filter(move |(roles, _)| roles.iter().any(&wanted))
            .filter_map(|(_, runs)| runs.first())
    }

    /// Our own cost per request; absent in virtual time.
    fn harness(&self, seed: u64) -> Option<Estimate> {
        let run = self.with(|role| *role == Role::Harness).next()?;
        summary::summarize(run, seed).time_per_request
    }

    /// The fit over the rungs; `None` without any. `others` are cells of another plan that it will explain.
    fn fit(
        &self,
        target: &Target,
        environment: &Environment,
        harness_ns: f64,
        others: &[Vec<CellRun>],
        seed: u64,
    ) -> Option<Fit> {
        let rungs = self.rungs();
        let mut options = fit_options(target, environment, harness_ns, self.parallelism(), seed);
        options.other_rounds = all_rounds(self.outcome.cells.iter().chain(others).flatten());
        (!rungs.is_empty()).then(|| fit::fit(&rungs, &options))
    }

    /// Requests that the device serves at once, by Little's law: what it completes per second at the greatest depth
    /// times how long it takes for one that is alone. At least 1.
    fn parallelism(&self) -> Option<f64> {
        let cell = |wanted: LimitCell| self.with(|role| *role == Role::Limit(wanted)).next();
        let alone_ns = per_request::median(cell(LimitCell::RandomOne)?, |s| {
            per_request::device_request_ns(s).unwrap_or_else(|| per_request::wait_ns(s))
        })?;
        let per_second = per_request::median(cell(LimitCell::RandomFull)?, per_request::requests_per_second)?;
        Some((per_second * alone_ns / 1e9).max(1.0))
    }

    fn rungs(&self) -> Vec<RungRun<'a>> {
        self.plan
            .roles
            .iter()
            .zip(&self.outcome.cells)
            .filter_map(|(roles, runs)| {
                let rung = roles.iter().find_map(|role| match role {
                    Role::Ladder(rung) => Some(*rung),
                    _ => None,
                })?;
                Some(RungRun { rung, run: runs.first()? })
            })
            .collect()
    }

    /// One split per cell, in the order of the plan; none without a model.
    fn layers(&self, fit: Option<&Fit>, seed: u64) -> Vec<Layers> {
        let harness = self.with(|role| *role == Role::Harness).next();
        let costs = Costs::new(fit, harness, self.outcome.cells.iter().flatten(), seed);
        let split = |run: &CellRun, target: &Target| costs.layers(run, target);
        let cells = self.plan.cells.iter().zip(&self.outcome.cells);
        cells
            .map(|(cell, runs)| match (fit, runs.first(), cell.arms.first()) {
                (Some(_), Some(run), Some((_, target))) => split(run, target),
                _ => Layers::default(),
            })
            .collect()
    }

    fn evidence<'b>(
        &self,
        target: &'b Target,
        environment: &'b Environment,
        ruler: &RulerRecord,
        model: Option<&'b StackModel>,
    ) -> Evidence<'b>
    where
        'a: 'b,
    {
        let context =
            ReconcileContext { facts: Some(&target.facts), read_ahead_bytes: environment.read_ahead_bytes };
        // What never reached the device is no evidence about it.
        let holds = |run: &&CellRun| reconcile::verdict(run, &context) != reconcile::Verdict::NotWhatItClaims;
        let cell = |wanted: LimitCell| self.with(|role| *role == Role::Limit(wanted)).next().filter(holds);
        Evidence {
            cpus: environment.cpus,
            throttle: environment.throttle.as_deref(),
            bytes: context,
            memcpy: ruler.copy_per_byte.map(|e| e.reciprocal(1e9, Unit::BytesPerSecond)),
            model,
            cached_small: cell(LimitCell::CachedSmall),
            cached_small_threads: cell(LimitCell::CachedSmallThreads),
            cached_large: cell(LimitCell::CachedLarge),
            cold_sequential: cell(LimitCell::ColdSequential),
            cold_sequential_threads: cell(LimitCell::ColdSequentialThreads),
            direct_sequential: cell(LimitCell::DirectSequential),
            direct_sequential_deep: cell(LimitCell::DirectSequentialDeep),
            random_one: cell(LimitCell::RandomOne),
            random_half: cell(LimitCell::RandomHalf),
            random_deep: cell(LimitCell::RandomDeep),
            random_full: cell(LimitCell::RandomFull),
            random_threads: cell(LimitCell::RandomThreads),
        }
    }

    /// Ways of reading, one table per state. A cell that was not what it claims (zeros from an unwritten extent) has no
    /// place among them.
    fn ways(&self, target: &Target, read_ahead_bytes: Option<u64>) -> Vec<MethodRecord> {
        let context = ReconcileContext { facts: Some(&target.facts), read_ahead_bytes };
        let ways: Vec<CellRun> = self
            .with(|role| *role == Role::Way)
            .filter(|run| reconcile::verdict(run, &context) == reconcile::Verdict::Ok)
            .cloned()
            .collect();
        compare::methods(&ways)
            .into_iter()
            // The screen sets them against `pread`; after an early interrupt there may be none.
            .filter(|table| table.reference == Method::Pread)
            .flat_map(|table| {
                let state = if table.common.state == CacheState::Warm { "warm" } else { "cold" };
                table.rows.into_iter().map(move |row| MethodRecord {
                    state: state.to_owned(),
                    method: row.method.id().to_owned(),
                    key: row.key,
                    delivers: !matches!(row.method, Method::Splice | Method::Sendfile),
                    time_per_request: row.time_per_request,
                    time_ratio: row.ratio,
                    cpu_ratio: row.cpu_ratio,
                })
            })
            .collect()
    }
}
