//! `fresh-buffers`: the bytes go into one reused buffer. The program must be done with the bytes of one read when it
//! asks for the next, as it gave their memory back before that.

use iowhy_core::replay::{Op, Plan};

use crate::repair::{Repaired, RunFacts, buffers, done, kept_mapping};

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    if plan.any(|a| matches!(a.op, Op::MmapAnon { .. })) {
        return kept_mapping::repaired(plan, run_facts);
    }
    let mut repaired = plan.clone();
    let mut found = false;
    for action in repaired.threads.iter_mut().flatten() {
        if action.op == (Op::Read { fresh: true }) {
            action.op = Op::Read { fresh: false };
            found = true;
        }
    }
    if !found {
        return Err("no read into newly allocated memory was recorded".to_owned());
    }
    buffers::taken_anew(&mut repaired);
    done(repaired, "one reused buffer")
}
