//! The unchanged run as a plan.

use iowhy_core::replay::Plan;

/// At most this share of a run is taken for profiling overhead: the cost of a record is an estimate.
pub(super) const MAX_OVERHEAD: f64 = 0.15;

/// The unchanged run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Baseline {
    pub(crate) plan: Plan,
    /// Calls of the program over calls of the plan with its passes.
    pub(crate) scale: f64,
    /// Wall time of the whole run in the calls that are replayed.
    pub(crate) program_io_ns: f64,
    /// Profiling overhead as a share of the run, 0 to 1, by the profiler's own estimate.
    pub(crate) overhead: f64,
    /// Assumptions, and what the plan leaves out.
    pub(crate) notes: Vec<String>,
}

impl Baseline {
    /// I/O time without the profiling overhead, which a replay does not have either.
    pub(crate) fn io_ns_without_overhead(&self) -> f64 {
        self.program_io_ns * (1.0 - self.overhead.clamp(0.0, MAX_OVERHEAD))
    }
}
