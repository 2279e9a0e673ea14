//! `memory-pressure`: the same calls outside of the control group that limits the memory. Memory that the program itself takes is
//! not part of a plan: where that fills the group, the baseline does not reproduce the run, and says so.

use iowhy_core::profile::Limited;
use iowhy_core::replay::Plan;

use crate::repair::placed;
use crate::repair::{Repaired, RunFacts, done};

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    match placed::without(plan, Limited::Memory) {
        Some((repaired, how)) => done(repaired, how),
        None => Err("no control group limits the memory, and a replay cannot add any".to_owned()),
    }
}
