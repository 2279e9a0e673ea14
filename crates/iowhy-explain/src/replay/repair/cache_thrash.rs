//! `cache-thrash`: what was read once stays in the cache. The first time each byte still comes from the device: that part of
//! the run stays as it was.

use iowhy_core::replay::{Do, Plan, Role, State};

use super::{Beside, Repaired, with_threads};

pub(super) fn repaired(plan: &Plan, beside: &Beside) -> Result<Repaired, String> {
    let cold = |f: &&iowhy_core::replay::PlanFile| f.role == Role::Own && f.state == State::Cold && !f.direct;
    if plan.files.iter().filter(cold).count() == 0 {
        return Err("no file that comes from the device through the page cache was seen".to_owned());
    }
    if beside.fetched_bytes <= 0.0 || beside.distinct_bytes <= 0.0 {
        return Err("how often each byte was read is not known".to_owned());
    }
    let mut repaired =
        with_threads(plan, |actions| actions.iter().copied().filter(|a| a.what != Do::Forget).collect());
    repaired.files.iter_mut().filter(|f| f.role == Role::Own).for_each(|f| f.state = State::Warm);
    let kept = (beside.distinct_bytes / beside.fetched_bytes).clamp(0.0, 1.0);
    Ok(Repaired { plan: repaired, how: "what was read once stays in the cache".to_owned(), kept })
}
