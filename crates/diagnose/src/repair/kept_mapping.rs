//! `mmap-faults`, `mmap-lock`: one mapping of the file that stays, instead of windows that come and go; of one mapping that
//! is gone through in order, the kernel is told so; one that is touched at random is populated first. Memory that is taken and given back is
//! kept. The same pages are touched in the same order.

use iowhy_core::replay::{Action, Advice, Op, Plan, Role, State};

use super::order::{self, Order};
use super::{Repaired, RunFacts, buffers, done};

/// Who brings in this part of a file around its touches brings in most of it.
const MOST: f64 = 0.5;

pub(crate) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
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
    if !plan.any(|a| a.op == Op::TouchPages) {
        return Err("no mapping is created and removed repeatedly".to_owned());
    }
    let files = 0..plan.files.len() as u32;
    let in_order: Vec<u32> = files.clone().filter(|file| is_in_order(plan, *file)).collect();
    if !in_order.is_empty() {
        in_order.iter().for_each(|file| repaired.files[*file as usize].advice = Advice::Sequential);
        return done(repaired, "MADV_SEQUENTIAL");
    }
    let populated: Vec<Action> = files.filter_map(|file| populating(plan, run_facts, file)).collect();
    let Some(thread) = repaired.threads.first_mut().filter(|_| !populated.is_empty()) else {
        return Err("pages are touched in no order, and are cached, or the run fetched little of their file"
            .to_owned());
    };
    thread.splice(..0, populated);
    done(repaired, "the whole file populated first")
}

fn touches(plan: &Plan, file: u32) -> Vec<&Action> {
    plan.actions().filter(|a| a.file == file && a.op == Op::TouchPages).collect()
}

/// Whether pages of a file are touched from its start to its end.
fn is_in_order(plan: &Plan, file: u32) -> bool {
    let touches = touches(plan, file);
    let calls: u64 = touches.iter().map(|a| u64::from(a.count)).sum();
    calls > 2 && matches!(order::order(&touches), Order::Sequential | Order::Forward)
}

/// Brings all of a file into the page cache, where the run fetched most of it anyhow, by what the kernel reads around each touch.
fn populating(plan: &Plan, run_facts: &RunFacts, file: u32) -> Option<Action> {
    let planned = plan.files.get(file as usize)?;
    let cold = planned.role == Role::User && planned.state == State::Cold;
    let fetched = run_facts.fetched_bytes >= MOST * planned.size_bytes as f64;
    let all = cold && fetched && !touches(plan, file).is_empty();
    all.then(|| Action::one(Op::MapReadUnmap { populate: true }, file, 0, planned.size_bytes, 0.0))
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
