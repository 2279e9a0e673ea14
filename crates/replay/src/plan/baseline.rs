//! The unchanged run as a plan.

use iowhy_core::replay::Plan;

use crate::parts::Parts;

/// At most this share of a run is taken for profiling overhead where it is an estimate.
pub(super) const MAX_OVERHEAD: f64 = 0.15;
/// The same where every call was recorded: what that costs is measured.
const MAX_RECORDING: f64 = 0.9;

/// The unchanged run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Baseline {
    pub(crate) plan: Plan,
    /// Calls of the program over calls of the plan with its passes.
    pub(crate) scale: f64,
    /// Wall time of the whole run in the calls that are replayed.
    pub(crate) program_io_ns: f64,
    /// The recorded time in the calls of the plan, all threads together and without the profiling overhead; `None` where the plan
    /// is not made of a record of every call.
    pub(crate) recorded: Option<Parts>,
    /// Profiling overhead as a share of the run, 0 to 1, by the profiler's own estimate.
    pub(crate) overhead: f64,
    /// Assumptions, and what the plan leaves out.
    pub(crate) notes: Vec<String>,
}

impl Baseline {
    /// I/O time without the profiling overhead, which a replay does not have either.
    pub(crate) fn io_ns_without_overhead(&self) -> f64 {
        match self.recorded {
            Some(_) => self.program_io_ns,
            None => self.program_io_ns * (1.0 - self.overhead.clamp(0.0, MAX_OVERHEAD)),
        }
    }

    /// Wall time of a run of `wall_ns` without the profiling overhead.
    pub(crate) fn wall_ns_without_overhead(&self, wall_ns: f64) -> f64 {
        match self.recorded {
            Some(_) => wall_ns * (1.0 - self.overhead.clamp(0.0, MAX_RECORDING)),
            None => {
                let profiled = self.program_io_ns.min(wall_ns);
                wall_ns - (profiled - self.io_ns_without_overhead().min(profiled))
            }
        }
    }
}
