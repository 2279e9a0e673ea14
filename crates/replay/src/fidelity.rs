//! Fidelity: I/O time of the baseline replay over that of the program; 1 is the same.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;

use crate::plan::Baseline;

/// Largest deviation at which a repair gets a verdict. The interval does not count: a run that was not reproduced stays so.
const MAX_DEVIATION: f64 = 0.35;

/// The fidelity by the times of the rounds.
pub(crate) fn fidelity(baseline: &Baseline, io_ns: &[f64], seed: u64) -> Option<Estimate> {
    let program_ns = baseline.io_ns_without_overhead();
    if program_ns <= 0.0 {
        return None;
    }
    let scaled: Vec<f64> = io_ns.iter().map(|ns| ns * baseline.scale / program_ns).collect();
    stats::bootstrap_median(&scaled, seed, Unit::Ratio)
}

/// Whether a replay with this fidelity reproduces the run.
pub(crate) fn reproduces(fidelity: &Estimate) -> bool {
    (1.0 / (1.0 + MAX_DEVIATION)..=1.0 + MAX_DEVIATION).contains(&fidelity.value)
}
