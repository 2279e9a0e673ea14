//! `cache-thrash`: data stays in the page cache after its first read. The first time each byte still comes from the device: that part of
//! the run stays as it was. Where a limit of memory pushes it out, it is read outside of the control group that sets it, also
//! the first time.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};

use crate::repair::placed;
use crate::repair::{FirstTime, Repaired, RunFacts, moves, with_threads};

fn cached(file: &PlanFile) -> bool {
    file.role == Role::User && !file.direct
}

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let outside = placed::without(plan, Limited::Memory);
    if let Some((repaired, how)) = outside.filter(|_| plan.files.iter().any(cached)) {
        let unaffected_share = unaffected_share(run_facts)?;
        let repaired = Repaired::new(with_state(&repaired, State::Warm), how);
        return Ok(Repaired { unaffected_share, ..repaired });
    }
    let cold =
        |f: &&iowhy_core::replay::PlanFile| f.role == Role::User && f.state == State::Cold && !f.direct;
    if plan.files.iter().filter(cold).count() == 0 {
        return Err("no file is read from the device through the page cache".to_owned());
    }
    let unaffected_share = unaffected_share(run_facts)?;
    let mut repaired = with_threads(plan, |actions| {
        actions.iter().copied().filter(|a| a.op != Op::FadviseDontNeed).collect()
    });
    repaired.files.iter_mut().filter(|f| f.role == Role::User).for_each(|f| f.state = State::Warm);
    let repaired = Repaired::new(repaired, "data stays in the page cache after its first read");
    Ok(Repaired { unaffected_share, ..repaired })
}

/// The first time each byte comes, outside of the group: from the device, but nothing has to be pushed out for it.
pub(super) fn first_time(plan: &Plan) -> Option<FirstTime> {
    let (outside, _) = placed::without(plan, Limited::Memory)?;
    plan.files
        .iter()
        .any(cached)
        .then(|| FirstTime { plan: with_state(&outside, State::Cold), times_around: times_around(plan) })
}

/// How often one run moves as many bytes as its cached files hold; at least once.
fn times_around(plan: &Plan) -> f64 {
    let fetches = |what: Op| moves(what) || matches!(what, Op::MapReadUnmap { .. });
    let of_cached = |a: &&Action| plan.files.get(a.file as usize).is_some_and(cached) && fetches(a.op);
    let bytes = |a: &Action| a.bytes as f64 * f64::from(a.count);
    let moved: f64 = plan.actions().filter(of_cached).map(bytes).sum();
    let hold: f64 = plan.files.iter().filter(|f| cached(f)).map(|f| f.size_bytes as f64).sum();
    if hold > 0.0 { (moved * f64::from(plan.passes.max(1)) / hold).max(1.0) } else { 1.0 }
}

fn with_state(plan: &Plan, state: State) -> Plan {
    let mut plan = plan.clone();
    plan.files.iter_mut().filter(|f| cached(f)).for_each(|file| file.state = state);
    plan
}

fn unaffected_share(run_facts: &RunFacts) -> Result<f64, String> {
    if run_facts.fetched_bytes <= 0.0 || run_facts.distinct_bytes <= 0.0 {
        return Err("the number of reads per byte is unknown".to_owned());
    }
    Ok((run_facts.distinct_bytes / run_facts.fetched_bytes).clamp(0.0, 1.0))
}
