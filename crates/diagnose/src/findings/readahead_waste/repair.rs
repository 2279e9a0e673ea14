//! `readahead-waste`: the kernel is told that the order is random, and the parts of one record are read by one call. The
//! program gets the same bytes.

use iowhy_core::replay::{Advice, Op, Plan, Role};

use crate::repair::{Repaired, RunFacts, coalesce, done, with_threads};

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let mapped = plan.any(|a| a.op == Op::TouchPages);
    let mut repaired = with_threads(plan, |actions| coalesce::merge(actions, coalesce::BYTES));
    if mapped {
        repaired.threads.clone_from(&plan.threads);
    }
    for file in repaired.files.iter_mut().filter(|f| f.role == Role::User) {
        file.advice = Advice::Random;
    }
    done(
        repaired,
        if mapped { "MADV_RANDOM" } else { "POSIX_FADV_RANDOM, the parts of a record in one read" },
    )
}
