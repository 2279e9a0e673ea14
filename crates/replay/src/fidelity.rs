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
    if baseline.program_io_ns <= 0.0 {
        return None;
    }
    let median = |ratios: Vec<f64>| stats::bootstrap_median(&ratios, seed, Unit::Ratio);
    if let Some(recorded) = &baseline.recorded {
        return median(times.parts.iter().map(|parts| parts.sum_ns() / recorded.sum_ns()).collect());
    }
    let over = |base: &dyn Fn(f64) -> f64| {
        median(times.io_ns.iter().map(|ns| ns * baseline.scale / base(*ns)).collect())
    };
    // How much of the program's own code the replay contains is not known.
    let [least, most] = baseline.io_bounds_ns();
    let (likely, low, high) = (over(&|ns| baseline.io_ns(ns))?, over(&|_| most)?.low, over(&|_| least)?.high);
    Some(Estimate { low, high, ..likely })
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
pub(crate) fn median(rounds: &[Parts]) -> Option<Parts> {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.sum_ns().total_cmp(&b.sum_ns()));
    sorted.get(sorted.len() / 2).copied()
}
