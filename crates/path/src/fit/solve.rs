//! From per-round observations to costs: a weighted non-negative least-squares problem for each stage and each draw
//! of rounds.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, Part};
use iowhy_core::stats;

use super::equation::{Home, Side, Table, Term, costs, equation};
use super::identify::{Stage, Stages};
use super::options::FitOptions;
use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::per_request::{block_busy_ns, busy_ns, device_bytes, device_requests, rounds, wait_ns};
use iowhy_core::stats::nnls;

/// One calibration cell and size, with the per-round values of its busy or waiting time.
struct Observed {
    cell: CalibrationCell,
    side: Side,
    equation: Vec<(Term, f64)>,
    /// By index into [`Data::rounds`].
    values: Vec<Option<f64>>,
}

/// A cold cell: fitted after the rest.
pub(super) struct Cold {
    block_bytes: u64,
    /// Block requests and bytes of the device for one request (medians).
    pub(super) device: Option<(f64, f64)>,
    busy: Vec<Option<f64>>,
}

/// All observations of the fit.
pub(super) struct Data {
    /// The rounds that any cell has, in order.
    pub(super) rounds: Vec<u32>,
    observed: Vec<Observed>,
    pub(super) cold: Vec<Cold>,
    table: Table,
}

/// Terms with their values.
pub(super) struct Solved {
    pub(super) solved: BTreeMap<Term, f64>,
    /// Root mean square of the relative residuals.
    pub(super) residual: f64,
}

impl Data {
    pub(super) fn gather(runs: &[&CalibrationRun<'_>], table: Table, options: &FitOptions) -> Data {
        let own = runs.iter().flat_map(|r| rounds(r.run)).map(|s| s.round);
        let ids: BTreeSet<u32> = own.chain(options.other_rounds.iter().copied()).collect();
        let ids: Vec<u32> = ids.into_iter().collect();
        let by_round = |run: &CellRun, quantity: &dyn Fn(&Sample) -> f64| -> Vec<Option<f64>> {
            ids.iter().map(|&id| rounds(run).find(|s| s.round == id).map(quantity)).collect()
        };
        let own = options.harness_ns;
        let mut observed = Vec::new();
        let mut cold = Vec::new();
        for r in runs {
            let (block_bytes, depth) = (r.run.workload.block_bytes, r.run.workload.depth);
            if r.cell == CalibrationCell::ColdFile {
                let device = rounds(r.run)
                    .map(|s| Some((device_requests(s)?, device_bytes(s)?)))
                    .collect::<Option<Vec<(f64, f64)>>>()
                    .and_then(|d| {
                        let of =
                            |f: fn(&(f64, f64)) -> f64| stats::median(&d.iter().map(f).collect::<Vec<f64>>());
                        Some((of(|d| d.0)?, of(|d| d.1)?))
                    });
                cold.push(Cold { block_bytes, device, busy: by_round(r.run, &|s| busy_ns(s) - own) });
                continue;
            }
            for side in [Side::Busy, Side::Wait] {
                let equation = equation(table, r.cell, side, block_bytes, depth);
                if equation.is_empty() {
                    continue;
                }
                let values = match side {
                    Side::Busy => by_round(r.run, &|s| busy_ns(s) - own),
                    Side::Wait => by_round(r.run, &wait_ns),
                };
                observed.push(Observed { cell: r.cell, side, equation, values });
            }
        }
        Data { rounds: ids, observed, cold, table }
    }

    /// A memory file that is fitted together with the cached file may cost less than it or more, in calls and in
    /// pages; costs are not negative, so the sign is found by trying. The file's side wins a tie.
    pub(super) fn best_variant(&self, stages: Stages, notes: &mut Vec<String>) -> (Vec<Stage>, Solved) {
        let stages = stages.stages;
        let swaps = [(Term::FileCall, Term::MemoryExcessCall), (Term::FilePage, Term::MemoryExcessPage)];
        let solved = self.solve(&stages, None);
        let mut best = (stages.clone(), solved);
        for choice in 1..4usize {
            let mut variant = stages.clone();
            for stage in variant.iter_mut().filter(|s| s.cells.contains(&CalibrationCell::Memory)) {
                for (bit, (file, memory)) in swaps.iter().enumerate() {
                    if choice >> bit & 1 == 1 {
                        stage.terms.iter_mut().filter(|t| *t == file).for_each(|t| *t = *memory);
                    }
                }
            }
            if variant == stages {
                continue;
            }
            let solved = self.solve(&variant, None);
            if solved.residual < best.1.residual * 0.999 - 1e-9 {
                best = (variant, solved);
            }
        }
        for (term, what) in [(Term::MemoryExcessCall, "call"), (Term::MemoryExcessPage, "page")] {
            if let Some(ns) = best.1.solved.get(&term).filter(|&&ns| ns > 0.0) {
                notes.push(format!(
                    "a memory file costs {ns:.1} ns more per {what} than this file system; left out"
                ));
            }
        }
        best
    }

    /// Solves the stages in order; the residual is that of all their rows.
    pub(super) fn solve(&self, stages: &[Stage], drawn: Option<&[usize]>) -> Solved {
        let mut solved = BTreeMap::new();
        let (mut squares, mut count) = (0.0, 0.0);
        for stage in stages {
            let rows = self.rows(stage, &solved, drawn);
            let solution = nnls::solve(stage.terms.len(), &rows);
            squares += solution.residual * solution.residual * rows.len() as f64;
            count += rows.len() as f64;
            solved.extend(stage.terms.iter().copied().zip(solution.x));
        }
        Solved { solved, residual: (squares / f64::max(count, 1.0)).sqrt() }
    }

    /// The rows of one stage: what its calibration cells cost beyond what is solved already, each weighted by its whole.
    fn rows(&self, stage: &Stage, solved: &BTreeMap<Term, f64>, drawn: Option<&[usize]>) -> Vec<nnls::Row> {
        let terms = &stage.terms;
        self.observed
            .iter()
            .filter(|o| stage.cells.contains(&o.cell))
            .filter_map(|o| {
                let value = median_of(&o.values, drawn)?;
                // Nothing waits in less than a nanosecond: such a row is the difference of two clocks.
                if value < 1.0 && o.side == Side::Wait || value <= 0.0 {
                    return None;
                }
                let mut coefficients = vec![0.0; terms.len()];
                for &(term, count) in &o.equation {
                    if let Some(i) = terms.iter().position(|&t| t == term) {
                        coefficients[i] = count;
                    }
                }
                let known = cost_of(&o.equation, solved);
                Some(nnls::Row { coefficients, value: value - known, weight: 1.0 / value })
            })
            .collect()
    }

    /// By how much a request in a ring costs less than the file's own costs without the call, when it does.
    pub(super) fn ring_deficit_ns(&self, solved: &BTreeMap<Term, f64>) -> Option<f64> {
        solved.get(&Term::Ring)?;
        let ring = self.observed.iter().find(|o| o.cell == CalibrationCell::RingMemory)?;
        let deficit = cost_of(&ring.equation, solved) - median_of(&ring.values, None)?;
        (deficit > 0.0 && solved.get(&Term::Ring) == Some(&0.0)).then_some(deficit)
    }

    /// The model's costs out of solved terms, with `Part::Insert` from the cold cells.
    pub(super) fn model_costs(
        &self,
        solved: &BTreeMap<Term, f64>,
        drawn: Option<&[usize]>,
        options: &FitOptions,
    ) -> BTreeMap<Home, Cost> {
        let mut costs = costs(solved);
        let block = costs.get(&Home::Layer(Layer::Block)).copied();
        let rows: Vec<nnls::Row> = self
            .cold
            .iter()
            .filter_map(|c| {
                let busy = median_of(&c.busy, drawn).filter(|&b| b > 0.0)?;
                let warm = cost_of(
                    &equation(self.table, CalibrationCell::CachedFile, Side::Busy, c.block_bytes, 1),
                    solved,
                );
                let (requests, bytes) = c.device.unwrap_or_else(|| {
                    let ahead = options.read_ahead_bytes.max(c.block_bytes) as f64;
                    (c.block_bytes as f64 / ahead, c.block_bytes as f64)
                });
                let block = block_busy_ns(&block?, requests, bytes, options.page_bytes);
                let inserted_pages = bytes / options.page_bytes as f64;
                Some(nnls::Row {
                    coefficients: vec![inserted_pages],
                    value: busy - warm - block,
                    weight: 1.0 / busy,
                })
            })
            .collect();
        if !rows.is_empty() {
            let per_page_ns = nnls::solve(1, &rows).x[0];
            costs.insert(Home::Part(Part::Insert), Cost { per_page_ns, ..Cost::default() });
        }
        costs
    }
}

/// What an equation comes to; terms that are not solved count as zero.
fn cost_of(equation: &[(Term, f64)], solved: &BTreeMap<Term, f64>) -> f64 {
    equation.iter().map(|(term, count)| count * solved.get(term).copied().unwrap_or(0.0)).sum()
}

/// Median over the drawn rounds; over all rounds when none is drawn, or the cell has none of those drawn.
fn median_of(values: &[Option<f64>], drawn: Option<&[usize]>) -> Option<f64> {
    let picked: Vec<f64> = match drawn {
        Some(drawn) => drawn.iter().filter_map(|&i| values.get(i).copied().flatten()).collect(),
        None => Vec::new(),
    };
    stats::median(&picked).or_else(|| stats::median(&values.iter().copied().flatten().collect::<Vec<f64>>()))
}
