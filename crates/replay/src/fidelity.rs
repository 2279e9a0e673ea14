//! Fidelity: time in the calls of the baseline replay over the recorded time of the same calls; 1 is the same. Without a record
//! of every call: I/O time over that of the program.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;

use crate::parts::{Parts, Rounds};
use crate::plan::Baseline;

/// Largest deviation at which a repair gets a verdict. The interval does not count: a run that was not reproduced stays so.
const MAX_DEVIATION: f64 = 0.35;

/// A larger deviation is explained.
const NEAR: f64 = 0.1;

/// The fidelity by the times of the rounds.
pub(crate) fn fidelity(baseline: &Baseline, times: &Rounds<'_>, seed: u64) -> Option<Estimate> {
    let program_ns = baseline.io_ns_without_overhead();
    if program_ns <= 0.0 {
        return None;
    }
    let scaled: Vec<f64> = match &baseline.recorded {
        Some(recorded) => times.parts.iter().map(|parts| parts.sum_ns() / recorded.sum_ns()).collect(),
        None => times.io_ns.iter().map(|ns| ns * baseline.scale / program_ns).collect(),
    };
    stats::bootstrap_median(&scaled, seed, Unit::Ratio)
}

/// Whether a replay with this fidelity reproduces the run.
pub(crate) fn reproduces(fidelity: &Estimate) -> bool {
    (1.0 / (1.0 + MAX_DEVIATION)..=1.0 + MAX_DEVIATION).contains(&fidelity.value)
}

/// Which part of the replay differs most from the record; `None` where all of it is near enough.
pub(crate) fn difference(baseline: &Baseline, times: &Rounds<'_>, fidelity: &Estimate) -> Option<String> {
    let recorded = baseline.recorded.as_ref()?;
    if (1.0 - NEAR..=1.0 + NEAR).contains(&fidelity.value) {
        return None;
    }
    recorded.most_different(&median(times.parts)?)
}

/// The parts of the round with the median time.
fn median(rounds: &[Parts]) -> Option<Parts> {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.sum_ns().total_cmp(&b.sum_ns()));
    sorted.get(sorted.len() / 2).copied()
}
