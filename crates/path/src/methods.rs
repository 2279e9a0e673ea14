//! Methods of moving the same bytes, side by side.
//!
//! Goal: ratios within rounds with intervals, for cells that differ in nothing but the method. Non-goal: deciding
//! which to use. Invariant: cells that differ in size, state, pattern, direction, threads, depth or touch are never
//! in one table. The caller passes cells of one target.

use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::workload::{CacheState, Method, Workload};

use crate::per_request::{busy_ns, estimate, paired_estimate};

/// One method in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodCost {
    /// Which method.
    pub method: Method,
    /// Key of its cell.
    pub key: String,
    /// Thread time of one request.
    pub time_per_request: Estimate,
    /// Thread time of one request over that of the reference, paired within rounds; `None` when they share no
    /// round. Exactly 1 for the reference itself.
    pub ratio: Option<Estimate>,
    /// CPU time of the measuring threads for one request, over that of the reference, likewise.
    pub cpu_ratio: Option<Estimate>,
}

/// Methods that were asked for exactly the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodTable {
    /// The common request; its `method` is the reference.
    pub common: Workload,
    /// What ratios are taken against: `pread` where it was measured, else the cheapest method.
    pub reference: Method,
    /// The methods, cheapest first.
    pub rows: Vec<MethodCost>,
}

/// Builds one table for each group of at least two comparable cells, in the order of their first cell. Cells
/// without a completed round, and cells whose state was found to be something else, are left out.
pub fn tables(cells: &[CellRun]) -> Vec<MethodTable> {
    let mut groups: Vec<Vec<&CellRun>> = Vec::new();
    for cell in cells.iter().filter(|c| !matches!(c.state_check, StateCheck::Violated { .. })) {
        match groups.iter_mut().find(|g| same_question(&g[0].workload, &cell.workload)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.iter().filter_map(|group| table(group)).collect()
}

/// Whether two cells ask for the same but for the method (and the seed of the pattern). Cold and direct are one: both
/// are answered by the device.
fn same_question(a: &Workload, b: &Workload) -> bool {
    let neutral = |w: &Workload| {
        let state = if w.state == CacheState::Direct { CacheState::Cold } else { w.state };
        Workload { method: Method::Null, seed: 0, state, ..w.clone() }
    };
    neutral(a) == neutral(b)
}

fn table(group: &[&CellRun]) -> Option<MethodTable> {
    let mut timed: Vec<(&CellRun, Estimate)> = group
        .iter()
        .filter_map(|cell| Some((*cell, estimate(cell, Unit::Nanoseconds, Sample::ns_per_request)?)))
        .collect();
    if timed.len() < 2 {
        return None;
    }
    timed.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let reference = timed.iter().find(|t| t.0.workload.method == Method::Pread).or(timed.first())?.0;
    let rows = timed
        .iter()
        .map(|&(cell, time_per_request)| MethodCost {
            method: cell.workload.method,
            key: cell.key.clone(),
            time_per_request,
            ratio: paired_estimate(reference, cell, Unit::Ratio, |r, c| {
                c.ns_per_request() / r.ns_per_request()
            }),
            cpu_ratio: paired_estimate(reference, cell, Unit::Ratio, |r, c| busy_ns(c) / busy_ns(r)),
        })
        .collect();
    Some(MethodTable { common: reference.workload.clone(), reference: reference.workload.method, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Rounds;

    fn cell(method: Method, block_bytes: u64, ns: f64) -> CellRun {
        Rounds::new(Workload::reads(method, CacheState::Warm, block_bytes, 1 << 30)).busy(ns).build()
    }

    #[test]
    fn drift_that_all_methods_share_cancels_in_the_ratio() {
        let mut cells = [cell(Method::Mmap, 4096, 400.0), cell(Method::Pread, 4096, 800.0)];
        for run in &mut cells {
            for (i, s) in run.samples.iter_mut().enumerate() {
                s.thread_ns *= 1 + i as u64;
            }
        }
        let tables = tables(&cells);
        assert_eq!((tables.len(), tables[0].reference), (1, Method::Pread));
        let mapped = &tables[0].rows[0];
        let ratio = mapped.ratio.unwrap();
        assert_eq!(mapped.method, Method::Mmap);
        assert!((ratio.value - 0.5).abs() < 1e-9 && (ratio.high - ratio.low) < 1e-9, "{ratio:?}");
        assert!(
            mapped.time_per_request.high > 2.0 * mapped.time_per_request.low,
            "the times themselves drift"
        );
        assert_eq!(tables[0].rows[1].ratio.unwrap().value, 1.0);
    }

    #[test]
    fn without_pread_the_cheapest_is_the_reference() {
        let tables = tables(&[cell(Method::Readv, 4096, 900.0), cell(Method::Mmap, 4096, 300.0)]);
        assert_eq!(tables[0].reference, Method::Mmap);
        assert!((tables[0].rows[1].ratio.unwrap().value - 3.0).abs() < 1e-9);
    }

    #[test]
    fn unequal_questions_and_violated_cells_are_not_compared() {
        let mut violated = cell(Method::Mmap, 4096, 1.0);
        violated.state_check = StateCheck::Violated { reason: "half of it was cached".into() };
        let cells = [cell(Method::Pread, 4096, 800.0), cell(Method::Mmap, 65_536, 4000.0), violated];
        assert!(tables(&cells).is_empty());
        let mut deep = cell(Method::Uring, 4096, 700.0);
        deep.workload.depth = 32;
        assert!(tables(&[cell(Method::Pread, 4096, 800.0), deep]).is_empty());
    }
}
