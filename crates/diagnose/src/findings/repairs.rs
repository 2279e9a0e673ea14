//! The repairs of a finding: its advice applied to the plan of a run, so that a replay measures it.
//!
//! A repair moves the same bytes, in the same order where the order is known. Whether it is faster, it does not say.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::Plan;

use super::rule;
use crate::repair::{FirstTime, Repaired, RunFacts, Sizes};

/// The repairs that belong to a rule.
#[derive(Clone, Copy)]
pub struct Repairs {
    /// What is advised, or why it cannot be replayed, in words that end a sentence.
    pub advised: fn(&Plan, &RunFacts) -> Result<Repaired, String>,
    /// Alternatives for the same cause.
    pub others: fn(&Plan, &RunFacts) -> Vec<Repaired>,
    /// The first pass of the repaired run, where it is measured separately.
    pub first_time: fn(&Plan) -> Option<FirstTime>,
    /// Sizes of the advised repair that its user may choose, with their names.
    pub choices: &'static [(&'static str, Sizes)],
}

impl Repairs {
    /// One repair without alternatives.
    pub(super) const fn one(advised: fn(&Plan, &RunFacts) -> Result<Repaired, String>) -> Repairs {
        Repairs { advised, others: |_, _| Vec::new(), first_time: |_| None, choices: &[] }
    }
}

/// Of findings that name no fault.
pub(super) fn no_fault(_: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    Err("it names no fault in the I/O path".to_owned())
}

/// Of findings whose cause lies in other processes.
pub(super) fn of_others(_: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    Err("the other process cannot be controlled by iowhy".to_owned())
}

/// The plan with the cause repaired.
///
/// # Errors
/// Why there is no mechanical repair, in words that end a sentence.
pub fn repaired(id: FindingId, plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    if plan.tree.is_some() && id != FindingId::ManySmallFiles && id.is_repairable() {
        return Err("the replay uses substitute files".to_owned());
    }
    (rule(id).repairs.advised)(plan, run_facts)
}

/// Other repairs of the same cause, tried beside the first.
pub fn others(id: FindingId, plan: &Plan, run_facts: &RunFacts) -> Vec<Repaired> {
    (rule(id).repairs.others)(plan, run_facts)
}

/// Sizes of the advised repair that its user may choose, with their names.
pub fn choices(id: FindingId) -> &'static [(&'static str, Sizes)] {
    rule(id).repairs.choices
}

/// The first pass over the data in the repaired run, where it cannot be avoided and differs from the baseline. It is
/// measured beside the repaired plan.
pub fn first_time(id: FindingId, plan: &Plan) -> Option<FirstTime> {
    (rule(id).repairs.first_time)(plan)
}

/// All of these repairs in one plan; `None` where fewer than two go together. Reading less is not among them: with all the
/// others the program gets the same bytes.
pub fn together(ids: &[FindingId], plan: &Plan, run_facts: &RunFacts) -> Option<(Vec<FindingId>, Repaired)> {
    let mut all = Repaired::new(plan.clone(), "");
    let (mut done, mut hows) = (Vec::new(), Vec::new());
    for id in ids.iter().filter(|id| **id != FindingId::DeviceSaturated) {
        let Ok(next) = repaired(*id, &all.plan, run_facts) else { continue };
        all.plan = next.plan;
        all.unaffected_share = all.unaffected_share.max(next.unaffected_share);
        done.push(*id);
        hows.push(next.how);
    }
    all.how = hows.join("; ");
    (done.len() > 1).then_some((done, all))
}
