//! Facts of a run that its plan does not hold: of its profile, and of this machine, which is measured.

use iowhy_core::profile::Profile;
use iowhy_core::replay::{Op, Plan};
use iowhy_diagnose::repair::{RunFacts, Sizes};
use iowhy_probe::ruler;

/// Those of a recorded run, on this machine.
pub(crate) fn of_run(profile: &Profile, plan: &Plan, sizes: Sizes) -> RunFacts {
    RunFacts { page_load_ns: page_load_ns(plan), ..RunFacts::from_profile(profile, plan, sizes) }
}

/// Those of this machine alone.
pub(crate) fn of_machine(plan: &Plan, sizes: Sizes) -> RunFacts {
    RunFacts { page_load_ns: page_load_ns(plan), sizes, ..RunFacts::default() }
}

/// Over as much memory as the largest read of the plan fills; 0 without a read.
fn page_load_ns(plan: &Plan) -> f64 {
    let largest = plan.actions().filter(|a| matches!(a.op, Op::Read { .. })).map(|a| a.bytes).max();
    largest.and_then(|bytes| ruler::page_load_ns(bytes).ok()).unwrap_or(0.0)
}
