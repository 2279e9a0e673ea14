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
    /// Where the I/O time is that of a record of every call: what else is known of it. `None`: the I/O time is that of the
    /// account.
    pub(crate) recording: Option<Recording>,
    /// Wall time of the program's own code that a replay may contain, too: who touches mapped pages does it in code of its own.
    pub(crate) touching_ns: f64,
    /// Wall time of calls that are not in the plan and may go with its calls, at most: calls on names, and folders of files that are packed.
    pub(crate) goes_along_ns: f64,
    /// Assumptions, and what the plan leaves out.
    pub(crate) notes: Vec<String>,
}

/// What is known of a run whose every call was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Recording {
    /// Share of the run that recording took, by the measured cost of a call, 0 to 1.
    pub(crate) share: f64,
    /// Wall time beside the calls of the plan, by samples: recording is not in it, whatever it cost.
    pub(crate) beside_ns: f64,
}

impl Recording {
    /// How much less and how much more of the wall time the calls may have than the record says. What is left of the run without them and
    /// without the cost of recording is known twice: by that cost, which is large where calls are many, and by samples.
    pub(crate) fn error_ns(&self, beside_ns: f64) -> [f64; 2] {
        let more_beside = self.beside_ns - beside_ns;
        [more_beside.max(0.0), (-more_beside).max(0.0)]
    }
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
            Some(recording) => facts.account.wall_ns * (1.0 - recording.share.clamp(0.0, MAX_RECORDING)),
            None => facts.program_wall_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_beside_the_calls_is_known_twice() {
        let recording = Recording { share: 0.4, beside_ns: 1e9 };
        assert_eq!(recording.error_ns(1e9), [0.0, 0.0]);
        assert_eq!(recording.error_ns(0.4e9), [0.6e9, 0.0], "samples saw more of the program's own");
        assert_eq!(recording.error_ns(1.5e9), [0.0, 0.5e9]);
    }
}
