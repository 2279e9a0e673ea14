//! `throttled`: the same calls outside of the control group that limits the disk. A limit of CPU time is not tried: it holds
//! back all of the program, and a replay has only its calls.

use iowhy_core::profile::Limited;
use iowhy_core::replay::Plan;

use crate::repair::placed;
use crate::repair::{Repaired, RunFacts, done};

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    if let Some((repaired, how)) = placed::without(plan, Limited::Disk) {
        return done(repaired, how);
    }
    let cpu =
        plan.placed.iter().flat_map(|p| &p.inside).flat_map(|g| &g.limits).any(|l| l.of == Limited::Cpu);
    Err(if cpu {
        "a CPU limit holds back the whole program, not only its calls".to_owned()
    } else {
        "no control group with a limit on a disk was seen, and iowhy cannot lift other limits".to_owned()
    })
}
