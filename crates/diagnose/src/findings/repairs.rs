//! The repairs of a finding: its advice applied to the plan of a run, so that a replay measures it.
//!
//! A repair moves the same bytes, in the same order where the order is known. Whether it is faster, it does not say.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::Plan;

use super::rule;
use crate::repair::{FirstTime, Repaired, RunFacts, Sizes};

/// The advised repair.
#[derive(Clone, Copy)]
pub enum Advised {
    /// It changes a plan, or says why it cannot, in words that end a sentence.
    Replayed(fn(&Plan, &RunFacts) -> Result<Repaired, String>),
    /// No plan can show it: why, in words that end a sentence.
    Never(&'static str),
}

/// The part of a run that a repair changes, so that a replay of that part shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Calls, however long page faults take: of files that are mapped, or of memory that is new.
    Calls,
    /// Calls or mappings: what takes more time.
    CallsOrMappings,
    /// Small files as a whole, with the calls on their names.
    SmallFiles,
}

/// The repairs that belong to a rule.
#[derive(Clone, Copy)]
pub struct Repairs {
    /// The part of a run that they change.
    pub changed: Changed,
    /// What is advised.
    pub advised: Advised,
    /// Alternatives for the same cause.
    pub others: fn(&Plan, &RunFacts) -> Vec<Repaired>,
    /// The first pass of the repaired run, where it is measured separately.
    pub first_time: fn(&Plan) -> Option<FirstTime>,
    /// Sizes of the advised repair that its user may choose, with their names.
    pub choices: &'static [(&'static str, Sizes)],
}

impl Repairs {
    /// One repair of calls, without alternatives.
    pub(super) const fn of_calls(advised: fn(&Plan, &RunFacts) -> Result<Repaired, String>) -> Repairs {
        Repairs { changed: Changed::Calls, ..Repairs::one(advised) }
    }

    /// One repair of calls or mappings, without alternatives.
    pub(super) const fn one(advised: fn(&Plan, &RunFacts) -> Result<Repaired, String>) -> Repairs {
        Repairs { advised: Advised::Replayed(advised), ..Repairs::none("") }
    }

    /// None that a replay can make: why, in words that end a sentence.
    pub(super) const fn none(why: &'static str) -> Repairs {
        Repairs {
            changed: Changed::CallsOrMappings,
            advised: Advised::Never(why),
            others: |_, _| Vec::new(),
            first_time: |_| None,
            choices: &[],
        }
    }
}

/// Of findings that name no fault.
pub(super) const NO_FAULT: &str = "it names no fault in the I/O path";
/// Of findings whose cause lies in other processes.
pub(super) const OF_OTHERS: &str = "the other process cannot be controlled by iowhy";

/// The plan with the cause repaired.
///
/// # Errors
/// Why there is no mechanical repair, in words that end a sentence.
pub fn repaired(id: FindingId, plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    match rule(id).repairs.advised {
        Advised::Never(why) => Err(why.to_owned()),
        Advised::Replayed(_) if plan.tree.is_some() && changed(id) != Changed::SmallFiles => {
            Err("the replay uses substitute files".to_owned())
        }
        Advised::Replayed(repaired) => repaired(plan, run_facts),
    }
}

/// Why no plan can show a repair of this cause, in words that end a sentence; `None`: it depends on the plan.
pub fn never_repaired(id: FindingId) -> Option<&'static str> {
    match rule(id).repairs.advised {
        Advised::Replayed(_) => None,
        Advised::Never(why) => Some(why),
    }
}

/// The part of a run that the repairs of this cause change.
pub fn changed(id: FindingId) -> Changed {
    rule(id).repairs.changed
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
