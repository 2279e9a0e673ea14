//! `cache-thrash`: what was read once stays in the cache. The first time each byte still comes from the device: that part of
//! the run stays as it was. Where a limit of memory pushes it out, it is read outside of the control group that sets it, also
//! the first time.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Do, Plan, PlanFile, Role, State};

use super::{Beside, Repaired, with_threads};
use crate::replay::placed;

fn cached(file: &PlanFile) -> bool {
    file.role == Role::Own && !file.direct
}

pub(super) fn repaired(plan: &Plan, beside: &Beside) -> Result<Repaired, String> {
    let outside = placed::without(plan, Limited::Memory);
    if let Some((repaired, how)) = outside.filter(|_| plan.files.iter().any(cached)) {
        return Ok(Repaired { plan: with_state(&repaired, State::Warm), how, kept: kept(beside)? });
    }
    let cold = |f: &&iowhy_core::replay::PlanFile| f.role == Role::Own && f.state == State::Cold && !f.direct;
    if plan.files.iter().filter(cold).count() == 0 {
        return Err("no file that comes from the device through the page cache was seen".to_owned());
    }
    let kept = kept(beside)?;
    let mut repaired =
        with_threads(plan, |actions| actions.iter().copied().filter(|a| a.what != Do::Forget).collect());
    repaired.files.iter_mut().filter(|f| f.role == Role::Own).for_each(|f| f.state = State::Warm);
    Ok(Repaired { plan: repaired, how: "what was read once stays in the cache".to_owned(), kept })
}

/// The first time each byte comes, outside of the group: from the device, but nothing has to be pushed out for it.
pub(super) fn first_time(plan: &Plan) -> Option<Plan> {
    let (outside, _) = placed::without(plan, Limited::Memory)?;
    plan.files.iter().any(cached).then(|| with_state(&outside, State::Cold))
}

fn with_state(plan: &Plan, state: State) -> Plan {
    let mut plan = plan.clone();
    plan.files.iter_mut().filter(|f| cached(f)).for_each(|file| file.state = state);
    plan
}

fn kept(beside: &Beside) -> Result<f64, String> {
    if beside.fetched_bytes <= 0.0 || beside.distinct_bytes <= 0.0 {
        return Err("how often each byte was read is not known".to_owned());
    }
    Ok((beside.distinct_bytes / beside.fetched_bytes).clamp(0.0, 1.0))
}
