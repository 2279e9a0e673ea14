//! The model that is saved: the fitted costs, those of mappings by the calibration cells of their own row, and what the
//! simulator needs beside them. The canonical requests themselves are in none of it.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, LayerCost, StackModel};
use iowhy_core::saved_model::{Measured, SavedModel, SizedCost, WriteCost, cost_at};
use iowhy_core::stats;
use iowhy_core::workload::{CacheState, Method};

use crate::calibration::CalibrationCell;
use crate::local::LocalCell;
use crate::per_request::{busy_ns, bytes_per_second, median, wait_ns};
use crate::plan::{LimitCell, PathPlan, Role};
use iowhy_probe::campaign::Outcome;

/// The model with what the cells of `plan` say beside it.
pub fn saved_model(plan: &PathPlan<'_>, outcome: &Outcome, mut stack: StackModel) -> SavedModel {
    let cells = Cells { plan, outcome };
    if let Some(per_page_ns) = cells.mapped_page_ns(stack.page_bytes) {
        let cost = Cost { per_page_ns, ..Cost::default() };
        stack.layers.insert(Layer::Memory, LayerCost::exact(cost));
    }
    let (request_gap_ns, batch_ns) = cells.gap_and_batch().unwrap_or_default();
    let measured = Measured {
        request_gap_ns,
        batch_ns,
        sequential_bytes_per_second: cells.sequential_rate(stack.read_ahead_bytes).unwrap_or_default(),
        cached: cells.cached(stack.page_bytes).unwrap_or_default(),
        direct_write: cells.direct_write(),
    };
    SavedModel { stack, measured }
}

struct Cells<'a> {
    plan: &'a PathPlan<'a>,
    outcome: &'a Outcome,
}

impl<'a> Cells<'a> {
    fn with(&self, wanted: impl Fn(&Role) -> bool) -> impl Iterator<Item = &'a CellRun> {
        let plan = self.plan;
        let runs = self.outcome.cells.iter().filter_map(|runs| runs.first());
        runs.filter(move |run| plan.roles(&run.key).iter().any(&wanted))
    }

    /// Cells of other sizes that predict a canonical request of this kind.
    fn sizes(&self, like: impl Fn(&CellRun) -> bool) -> Vec<&'a CellRun> {
        self.with(|role| matches!(role, Role::Local(_, LocalCell::Size))).filter(|run| like(run)).collect()
    }

    fn busy_of(&self, wanted: Role) -> Option<f64> {
        median(self.with(move |role| *role == wanted).next()?, busy_ns)
    }

    /// CPU time of a mapped page, without iowhy's own.
    fn mapped_page_ns(&self, page_bytes: u64) -> Option<f64> {
        let run = self.sizes(|run| run.workload.method == Method::Mmap).into_iter().next()?;
        let own = self.busy_of(Role::Harness).unwrap_or(0.0);
        Some((median(run, busy_ns)? - own) / (run.workload.block_bytes / page_bytes.max(1)).max(1) as f64)
    }

    /// From the depths below and above the one on the screen: time per request is `gap + batch / depth`.
    fn gap_and_batch(&self) -> Option<(f64, f64)> {
        let at = |wanted: LimitCell| {
            let run = self.with(move |role| *role == Role::Limit(wanted)).next()?;
            Some((1.0 / run.workload.depth as f64, median(run, Sample::ns_per_request)?))
        };
        let (less, more) = (at(LimitCell::RandomHalf)?, at(LimitCell::RandomFull)?);
        let batch = ((less.1 - more.1) / (less.0 - more.0)).max(0.0);
        Some((more.1 - batch * more.0, batch))
    }

    /// Cold reads in other sizes, where read-ahead spans several of them: the device then works all the time. Where it does not,
    /// its latency limits them, which the costs say.
    fn sequential_rate(&self, read_ahead_bytes: u64) -> Option<f64> {
        let ahead = self.sizes(|run| {
            run.workload.state == CacheState::Cold && read_ahead_bytes >= 2 * run.workload.block_bytes
        });
        let rates: Vec<f64> = ahead.into_iter().filter_map(|run| median(run, bytes_per_second)).collect();
        stats::median(&rates)
    }

    /// Within a page by the cells of the small cached request, beyond by the others.
    fn cached(&self, page_bytes: u64) -> Option<Vec<SizedCost>> {
        let end = self.busy_of(Role::Calibration(CalibrationCell::EndOfFile))?;
        let point = |run: &CellRun| {
            Some(SizedCost { bytes: run.workload.block_bytes, ns: median(run, busy_ns)? - end })
        };
        let warm = |run: &CellRun| run.workload.state == CacheState::Warm && !run.workload.method.mapped();
        let look_up = self.with(|role| matches!(role, Role::Local(_, LocalCell::LookUp))).next();
        let fitted = self.with(|role| *role == Role::Calibration(CalibrationCell::CachedFile));
        let mut points: Vec<SizedCost> = look_up
            .into_iter()
            .chain(self.sizes(warm))
            .chain(fitted.filter(|run| run.workload.block_bytes > page_bytes))
            .filter_map(point)
            .collect();
        points.sort_by_key(|point| point.bytes);
        points.dedup_by_key(|point| point.bytes);
        // A whole page on the line through its parts, not on one towards larger requests with another pattern.
        let parts: Vec<SizedCost> =
            points.iter().filter(|point| (2..page_bytes).contains(&point.bytes)).copied().collect();
        if let Some(ns) = cost_at(&parts, page_bytes) {
            points.push(SizedCost { bytes: page_bytes, ns });
            points.sort_by_key(|point| point.bytes);
        }
        Some(points)
    }

    fn direct_write(&self) -> Option<WriteCost> {
        let runs =
            self.sizes(|run| run.workload.direction.writes() && run.workload.state == CacheState::Direct);
        let end = self.busy_of(Role::Calibration(CalibrationCell::EndOfFile))?;
        let line = |of: &dyn Fn(&Sample) -> f64| {
            let points: Option<Vec<SizedCost>> = runs
                .iter()
                .map(|run| Some(SizedCost { bytes: run.workload.block_bytes, ns: median(run, of)? }))
                .collect();
            line(&points?)
        };
        Some(WriteCost { block: line(&|s| busy_ns(s) - end)?, device: line(&wait_ns)? })
    }
}

/// The cost through two points; through the origin where their line has a negative one.
fn line(points: &[SizedCost]) -> Option<Cost> {
    let per_call_ns = cost_at(points, 0)?;
    let last = points.last()?;
    let per_call_ns = per_call_ns.max(0.0);
    Some(Cost { per_call_ns, per_byte_ns: (last.ns - per_call_ns) / last.bytes as f64, per_page_ns: 0.0 })
}
