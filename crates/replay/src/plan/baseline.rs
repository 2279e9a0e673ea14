//! The unchanged run as a plan.

use iowhy_core::replay::Plan;
use iowhy_diagnose::findings::Facts;

use crate::parts::Parts;

/// At most this share of a run is taken for recording every call. What that costs is measured.
const MAX_RECORDING: f64 = 0.9;

/// The unchanged run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Baseline {
    pub(crate) plan: Plan,
    /// Calls of the program over calls of the plan with its passes.
    pub(crate) scale: f64,
    /// Wall time of the whole run in the calls that are replayed, without the profiling.
    pub(crate) program_io_ns: f64,
    /// The recorded time in the calls of the plan, all threads together and without the profiling overhead; `None` where the plan
    /// is not made of recorded calls.
    pub(crate) recorded: Option<Parts>,
    /// Where the I/O time is that of a record of every call: the share of the run that recording took, 0 to 1. `None`: the I/O time
    /// is that of the account.
    pub(crate) recording: Option<f64>,
    /// Wall time of the program's own code that a replay may contain, too: who touches mapped pages does it in code of its own.
    pub(crate) touching_ns: f64,
    /// Wall time of calls that are not in the plan and have no use once its calls are gone: folders of files that are packed.
    pub(crate) goes_along_ns: f64,
    /// Assumptions, and what the plan leaves out.
    pub(crate) notes: Vec<String>,
}

impl Baseline {
    /// Wall time of the whole run in what this replay does, where one run of it takes `replayed_ns`.
    pub(crate) fn io_ns(&self, replayed_ns: f64) -> f64 {
        let [least, most] = self.io_bounds_ns();
        (replayed_ns * self.scale).clamp(least, most)
    }

    /// The least and the most that it can be: none of the program's own code, or all of it.
    pub(crate) fn io_bounds_ns(&self) -> [f64; 2] {
        [self.program_io_ns, self.program_io_ns + self.touching_ns.max(0.0)]
    }

    /// Wall time of the whole run in the program's own code between these calls; `None` where it was not recorded.
    pub(crate) fn between_calls_ns(&self) -> Option<f64> {
        let in_run = match &self.recorded {
            Some(parts) => self.program_io_ns / parts.sum_ns(),
            None if self.plan.tree.is_some() => self.scale,
            None => return None,
        };
        let between = self.plan.think_ns() * f64::from(self.plan.passes.max(1)) * in_run;
        between.is_finite().then_some(between)
    }

    /// Wall time of the run without the profiling, which a replay does not have either: less what recording took; else less what the
    /// account saw of it.
    pub(crate) fn program_wall_ns(&self, facts: &Facts<'_>) -> f64 {
        match self.recording {
            Some(share) => facts.account.wall_ns * (1.0 - share.clamp(0.0, MAX_RECORDING)),
            None => facts.program_wall_ns(),
        }
    }
}
