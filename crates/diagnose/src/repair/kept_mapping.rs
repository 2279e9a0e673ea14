//! `mmap-faults`, `mmap-lock`: one mapping of the file that stays, instead of windows that come and go; of one mapping that
//! is gone through in order, the kernel is told so. Memory that is taken and given back is kept. The same pages are touched in the same order.

use iowhy_core::replay::{Advice, Op, Plan};

use super::{Repaired, RunFacts, buffers, done};

pub(crate) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let mut repaired = plan.clone();
    if plan.any(|a| matches!(a.op, Op::MmapAnon { .. })) {
        // Each thread takes it once.
        for actions in &mut repaired.threads {
            actions.truncate(1);
            actions.iter_mut().for_each(|a| a.count = 1);
        }
        repaired.passes = 1;
        return done(repaired, "memory allocated once per thread");
    }
    if plan.any(|a| matches!(a.op, Op::MapReadUnmap { .. })) {
        for action in repaired.threads.iter_mut().flatten() {
            if matches!(action.op, Op::MapReadUnmap { .. }) {
                action.op = Op::TouchPages;
            }
        }
        return done(repaired, "one persistent mapping");
    }
    let in_order = plan.actions().any(|a| a.op == Op::TouchPages && a.count > 2);
    if !in_order {
        return Err("no mapping is created and removed repeatedly".to_owned());
    }
    repaired.files.iter_mut().for_each(|f| f.advice = Advice::Sequential);
    done(repaired, "MADV_SEQUENTIAL")
}

pub(crate) fn others(plan: &Plan, _: &RunFacts) -> Vec<Repaired> {
    read_instead(plan).into_iter().collect()
}

/// Reads into one buffer instead of windows that come and go: a copy in place of faults.
fn read_instead(plan: &Plan) -> Option<Repaired> {
    let window = |what: Op| matches!(what, Op::MapReadUnmap { .. });
    if !plan.any(|a| window(a.op)) {
        return None;
    }
    let mut repaired = plan.clone();
    for action in repaired.threads.iter_mut().flatten().filter(|a| window(a.op)) {
        action.op = Op::Read { fresh: false };
        // A window has no buffer yet.
        repaired.files[action.file as usize].buffer_offset = buffers::usual(action.bytes);
    }
    Some(Repaired::new(repaired, "read into one buffer instead of mapped windows"))
}
