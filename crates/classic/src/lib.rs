//! The five published experiments, a folder each: what was published (`published`), what the model of the time says, and what
//! is measured here. The models are fitted on stated tables alone and predict others; the error is part of the answer.
//!
//! Options, outputs and profiles come from the caller behind [`lab::World`].
#![forbid(unsafe_code)]

pub mod freebsd;
pub mod lab;
pub mod minix;
pub mod mmap;
pub mod netbsd;
pub mod published;
pub mod report;
pub mod sg;

use iowhy_core::problem::Problem;

/// Runs one of them.
///
/// # Errors
/// Targets that cannot be had, and what the simulator refuses.
pub fn run(lab: &lab::Lab<'_>, experiment: &published::Experiment) -> Result<report::Report, Problem> {
    match experiment.name.as_str() {
        "minix-1989" => minix::run(lab, experiment),
        "linux-sg-1999" => sg::run(lab, experiment),
        "freebsd-2006" => freebsd::run(lab, experiment),
        "linux-mmap-1999" => mmap::run(lab, experiment),
        _ => netbsd::run(lab, experiment),
    }
}

/// Error of a prediction in per cent of what was published; `None` where that is zero or no number.
pub fn error_percent(predicted: f64, published: f64) -> Option<f64> {
    let error = (predicted / published - 1.0) * 100.0;
    error.is_finite().then_some(error)
}
