//! `copy-bound`: the file is mapped, once, instead of read. What the program looks at cannot be seen; that its own code takes
//! less time for a page than loading all of it takes shows that it looks at little.

use iowhy_core::replay::{Op, Plan, Role, State};

use crate::repair::{Repaired, RunFacts, done, with_aligned_buffers};

const PAGE: f64 = 4096.0;

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let reads = |what: Op| matches!(what, Op::Read { .. });
    let mappable = |index: u32| {
        plan.files
            .get(index as usize)
            .is_some_and(|f| f.role == Role::User && f.state == State::Warm && !f.direct)
    };
    let bytes = plan.bytes(reads) as f64;
    let sinks = |a: &iowhy_core::replay::Action| {
        plan.files.get(a.file as usize).is_some_and(|f| f.role == Role::Sink)
    };
    if bytes <= 0.0
        || plan.any(|a| reads(a.op) && !mappable(a.file))
        || plan.any(|a| a.op == Op::Write && !sinks(a))
    {
        return Err("only files that are read from the page cache can be mapped instead".to_owned());
    }
    let own_ns = plan.think_ns() / (bytes / PAGE);
    let little = own_ns < run_facts.page_load_ns;
    let touching = |op: Op| {
        let mut repaired = plan.clone();
        for action in repaired.threads.iter_mut().flatten().filter(|a| reads(a.op)) {
            action.op = op;
        }
        repaired
    };
    if little {
        let how = format!(
            "used mmap and touched one byte per page: the program's own code takes {own_ns:.1} ns per page, and to load a byte of \
             each cache line takes {:.1} ns",
            run_facts.page_load_ns
        );
        return done(touching(Op::TouchPages), how);
    }
    let whole = Repaired::new(
        touching(Op::TouchLines),
        "used mmap and read every cache line; at best, one byte per page",
    );
    Ok(Repaired { at_best: Some(touching(Op::TouchPages)), ..whole })
}

pub(super) fn others(plan: &Plan, _: &RunFacts) -> Vec<Repaired> {
    with_aligned_buffers(plan).into_iter().collect()
}
