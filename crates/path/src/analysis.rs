//! From the measured cells of a plan to model, ledgers, limits and method comparison: hands each part of this crate
//! what it needs, and has no rule of its own.

use std::collections::BTreeMap;

use iowhy_core::cell::CellRun;
use iowhy_core::environment::{Environment, TargetFacts, TargetKind};
use iowhy_core::estimate::Estimate;
use iowhy_core::layer::Ledger;
use iowhy_core::model::StackModel;
use iowhy_core::summary;
use iowhy_core::workload::Method;
use iowhy_probe::campaign::Outcome;
use iowhy_probe::target::Target;

use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::costs::{Costs, Layers, all_rounds, no_costs};
use crate::cross_check;
use crate::faster::{self, Faster};
use crate::fit::{self, Fit, FitOptions, HeldOut};
use crate::ledger::LedgerContext;
use crate::limit::{self, Evidence, Limits};
use crate::local::{self, LocalCell, LocalCells};
use crate::methods::{self, MethodTable};
use crate::per_request;
use crate::plan::{HELD_OUT_BLOCK_BYTES, LimitCell, PathPlan, Role, WRITE_CACHED, WRITE_DIRECT};
use crate::reconcile::{self, ReconcileContext};

/// What is known beside the cells.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The target of the plan.
    pub target: &'a Target,
    /// The machine and the devices under the target.
    pub environment: &'a Environment,
    /// What one thread copies in user memory, in bytes per second.
    pub memcpy: Option<Estimate>,
    /// Page size of the machine.
    pub page_bytes: u64,
    /// Seed of every resampling.
    pub seed: u64,
}

/// What the cells of a path report mean.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Cost of iowhy itself per request.
    pub harness: Option<Estimate>,
    /// The fitted model; absent when too little was measured.
    pub model: Option<StackModel>,
    /// Root mean square of the fit's relative residuals.
    pub residual_percent: Option<f64>,
    /// What the fit could not separate.
    pub notes: Vec<String>,
    /// Block sizes that were predicted and not fitted.
    pub held_out: Vec<HeldOut>,
    /// The split of each cell, by its key; a cell without requests has none.
    pub layers: BTreeMap<String, Layers>,
    /// What limits each kind of read; absent for targets without bytes.
    pub limits: Option<Limits>,
    /// The methods of reading, one table per cache state, each with `pread` as its reference.
    pub methods: Vec<MethodTable>,
    /// What is faster beyond noise.
    pub faster: Vec<Faster>,
}

/// Explains the cells of a plan.
pub fn analyse(plan: &PathPlan<'_>, outcome: &Outcome, context: &Context<'_>) -> Analysis {
    let cells = Cells { plan, outcome, context };
    let harness = cells.harness();
    let mut analysis = Analysis { harness, ..Analysis::default() };
    if let Some(fitted) = cells.fit(harness, &[]) {
        analysis.layers = cells.layers(&fitted);
        analysis.residual_percent = Some(fitted.residual_percent);
        analysis.notes = fitted.notes;
        analysis.held_out = fitted.held_out;
        analysis.model = Some(fitted.model);
    }
    analysis.limits = limits(plan, outcome, context, analysis.model.as_ref());
    analysis.methods = cells.methods();
    analysis.faster = cells.faster(&analysis.methods);
    analysis
}

/// What limits each kind of read, by the costs of a fitted model; `None` for targets without bytes.
pub fn limits(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    context: &Context<'_>,
    model: Option<&StackModel>,
) -> Option<Limits> {
    let bytes = !matches!(context.target.facts.kind, TargetKind::CharDevice | TargetKind::Null);
    bytes.then(|| limit::limits(&Cells { plan, outcome, context }.evidence(model)))
}

/// Labels of the canonical requests of which a layer has an interval wider than 10 % of the request's time: more rounds of
/// their cells would make it narrower.
pub fn imprecise(plan: &PathPlan<'_>, outcome: &Outcome, context: &Context<'_>) -> Vec<&'static str> {
    let cells = Cells { plan, outcome, context };
    let facts = &context.target.facts;
    let wide = |(key, label): &(String, &'static str)| {
        let run = cells.runs().find(|(run, _)| run.key == *key).map(|(run, _)| run);
        let layers = run.and_then(|run| cells.local(label, run, facts));
        layers.is_some_and(|layers| {
            let whole = layers.ledger.as_ref().map_or(0.0, Ledger::total_ns);
            layers.estimates.iter().any(|layer| layer.time.high - layer.time.low > PRECISE * whole)
        })
    };
    plan.canonical().into_iter().filter(wide).map(|(_, label)| label).collect()
}

/// Width of an interval, as a share of the request's time, below which further rounds go to other requests: 5 % to either side,
/// as in the cross-check.
const PRECISE: f64 = 2.0 * cross_check::MARGIN;

/// What the calibration cells of `plan` give for splitting the cells `swept` of another plan; `harness` is the cell that
/// measured the cost of iowhy itself.
pub fn costs_for(
    plan: &PathPlan<'_>,
    outcome: &Outcome,
    context: &Context<'_>,
    (swept, harness): (&[Vec<CellRun>], Option<&CellRun>),
) -> Costs {
    let cells = Cells { plan, outcome, context };
    let fit = cells.fit(cells.harness(), swept);
    Costs::new(fit.as_ref(), harness, swept.iter().flatten(), (context.page_bytes, context.seed))
}

/// Cells found by their roles.
struct Cells<'a> {
    plan: &'a PathPlan<'a>,
    outcome: &'a Outcome,
    context: &'a Context<'a>,
}

impl<'a> Cells<'a> {
    /// Runs in the order of the plan, each with its roles.
    fn runs(&self) -> impl Iterator<Item = (&'a CellRun, &'a [Role])> {
        let plan = self.plan;
        self.outcome.cells.iter().filter_map(move |runs| {
            let run = runs.first()?;
            Some((run, plan.roles(&run.key)))
        })
    }

    fn with_role(&self, wanted: impl Fn(&Role) -> bool) -> impl Iterator<Item = &'a CellRun> {
        self.runs().filter(move |(_, roles)| roles.iter().any(&wanted)).map(|(run, _)| run)
    }

    /// Cost of iowhy itself per request; absent in virtual time.
    fn harness(&self) -> Option<Estimate> {
        let run = self.with_role(|role| *role == Role::Harness).next()?;
        summary::summarize(run, self.context.seed).time_per_request
    }

    /// The fit over the calibration cells; `None` without any. `others` are cells of another plan that it will explain.
    fn fit(&self, harness: Option<Estimate>, others: &[Vec<CellRun>]) -> Option<Fit> {
        let calibration: Vec<CalibrationRun<'a>> = self
            .runs()
            .flat_map(|(run, roles)| {
                roles.iter().filter_map(move |role| match role {
                    Role::Calibration(cell) => Some(CalibrationRun { cell: *cell, run }),
                    _ => None,
                })
            })
            .collect();
        let mut options = self.fit_options(harness.map_or(0.0, |e| e.value));
        options.other_rounds = all_rounds(self.outcome.cells.iter().chain(others).flatten());
        (!calibration.is_empty()).then(|| fit::fit(&calibration, &options))
    }

    fn fit_options(&self, harness_ns: f64) -> FitOptions {
        let Context { target, environment, page_bytes, seed, .. } = *self.context;
        let mut options = FitOptions::new(target.facts.name.clone(), page_bytes, seed);
        options.held_out = HELD_OUT_BLOCK_BYTES.to_vec();
        options.harness_ns = harness_ns;
        options.device_parallelism = self.parallelism().unwrap_or(1.0);
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

    /// Requests that the device serves at once, by Little's law: the rate at the greatest queue depth times the service
    /// time of a request that is alone. At least 1.
    fn parallelism(&self) -> Option<f64> {
        let cell = |wanted: LimitCell| self.with_role(move |role| *role == Role::Limit(wanted)).next();
        let alone_ns = per_request::median(cell(LimitCell::RandomOne)?, |s| {
            per_request::device_request_ns(s).unwrap_or_else(|| per_request::wait_ns(s))
        })?;
        let per_second = per_request::median(cell(LimitCell::RandomFull)?, per_request::requests_per_second)?;
        Some((per_second * alone_ns / 1e9).max(1.0))
    }

    /// One split per cell.
    fn layers(&self, fit: &Fit) -> BTreeMap<String, Layers> {
        let harness = self.with_role(|role| *role == Role::Harness).next();
        let runs = self.outcome.cells.iter().flatten();
        let costs = Costs::new(Some(fit), harness, runs, (self.context.page_bytes, self.context.seed));
        // Requests with gaps between them touch other pages than the costs were fitted on.
        let whole = self.plan.cells.iter().filter(|cell| cell.request_bytes.is_none());
        let targets = whole.filter_map(|cell| Some((&cell.key, cell.arms.first()?.1)));
        targets
            .filter_map(|(key, target)| {
                let (run, roles) = self.runs().find(|(run, _)| run.key == *key)?;
                let local = roles
                    .iter()
                    .find_map(Role::label)
                    .and_then(|label| self.local(label, run, &target.facts));
                Some((key.clone(), local.unwrap_or_else(|| costs.layers(run, &target.facts))))
            })
            .collect()
    }

    /// The split of a canonical request by calibration cells of its own, where it has them.
    fn local(&self, label: &str, run: &CellRun, facts: &TargetFacts) -> Option<Layers> {
        let role = |wanted: Role| self.with_role(move |role| *role == wanted).next();
        let own = |wanted: LocalCell| {
            self.with_role(
                move |role| matches!(role, Role::Local(of, cell) if *of == label && *cell == wanted),
            )
        };
        let look_up = self.with_role(|role| matches!(role, Role::Local(_, LocalCell::LookUp))).next();
        let cells = LocalCells {
            harness: role(Role::Harness),
            call: role(Role::Calibration(CalibrationCell::Syscall)),
            end_of_file: role(Role::Calibration(CalibrationCell::EndOfFile)),
            look_up,
            above: own(LocalCell::Above).next(),
            above_twice: own(LocalCell::AboveTwice).next(),
            sizes: own(LocalCell::Size).collect(),
        };
        // Waiting is booked by counters alone.
        let nothing = no_costs(self.context.page_bytes);
        let context = LedgerContext { model: &nothing, facts: Some(facts), harness_ns: 0.0 };
        local::layers(run, &cells, &context, self.context.seed)
    }

    fn evidence<'b>(&self, model: Option<&'b StackModel>) -> Evidence<'b>
    where
        'a: 'b,
    {
        let context = self.reconcile_context();
        // What never reached the device is no evidence about it.
        let counts = |run: &&CellRun| reconcile::verdict(run, &context) != reconcile::Verdict::Mislabelled;
        let cell = |wanted: LimitCell| {
            self.with_role(move |role| *role == Role::Limit(wanted)).next().filter(counts)
        };
        Evidence {
            cpus: self.context.environment.cpus,
            throttle: self.context.environment.throttle.as_deref(),
            bytes: context,
            memcpy: self.context.memcpy,
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

    fn reconcile_context(&self) -> ReconcileContext<'a> {
        ReconcileContext {
            facts: Some(&self.context.target.facts),
            read_ahead_bytes: self.context.environment.read_ahead_bytes,
        }
    }

    /// What is faster beyond noise, of cells that are what they claim.
    fn faster(&self, methods: &[MethodTable]) -> Vec<Faster> {
        let context = self.reconcile_context();
        let ok = |run: &&CellRun| reconcile::verdict(run, &context) == reconcile::Verdict::Ok;
        let limit =
            |wanted: LimitCell| self.with_role(move |role| *role == Role::Limit(wanted)).next().filter(ok);
        let labelled = |wanted: &str| self.with_role(|role| role.label() == Some(wanted)).next().filter(ok);
        faster::faster(&limit, [labelled(WRITE_CACHED), labelled(WRITE_DIRECT)], methods)
    }

    /// Methods of reading. A mislabelled cell (zeros from an unwritten extent) is left out, and so is a table without
    /// `pread`, which an early interrupt leaves.
    fn methods(&self) -> Vec<MethodTable> {
        let context = self.reconcile_context();
        let cells: Vec<CellRun> = self
            .with_role(|role| *role == Role::Method)
            .filter(|run| reconcile::verdict(run, &context) == reconcile::Verdict::Ok)
            .cloned()
            .collect();
        let tables = methods::tables(&cells).into_iter();
        tables.filter(|table| table.reference == Method::Pread).collect()
    }
}
