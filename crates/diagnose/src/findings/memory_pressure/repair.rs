//! `memory-pressure`: pages that come back have room outside of the control group that limits the memory. Pages that do not come back
//! would fill any limit: who mostly writes goes past the cache. Memory that the program itself takes is not part of a plan: where that
//! fills the group, the baseline does not reproduce the run, and says so.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Action, Op, Plan, Role};

use crate::repair::placed;
use crate::repair::{Repaired, RunFacts, done};

/// Offsets and sizes of direct requests are multiples of this on nearly every device.
const ALIGNMENT: u64 = 4096;

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let of =
        |a: &Action, role: fn(Role) -> bool| plan.files.get(a.file as usize).is_some_and(|f| role(f.role));
    let writes = |a: &&Action| a.op == Op::Write && of(a, |role| role != Role::Sink);
    let reads =
        |a: &&Action| matches!(a.op, Op::Read { .. } | Op::TouchPages) && of(a, |role| role == Role::User);
    let bytes = |a: &Action| a.bytes.saturating_mul(u64::from(a.count));
    let read: u64 = plan.actions().filter(reads).map(bytes).fold(0, u64::saturating_add);
    let written: u64 = plan.actions().filter(writes).map(bytes).fold(0, u64::saturating_add);
    if written > read {
        return past_the_cache(plan, writes);
    }
    match placed::without(plan, Limited::Memory) {
        Some((repaired, how)) => done(repaired, how),
        None => Err("no control group limits the memory, and a replay cannot add any".to_owned()),
    }
}

fn past_the_cache(plan: &Plan, writes: impl Fn(&&Action) -> bool) -> Result<Repaired, String> {
    let whole =
        |a: &Action| [a.offset, a.bytes, a.stride.unsigned_abs()].iter().all(|n| n.is_multiple_of(ALIGNMENT));
    if !plan.actions().filter(&writes).all(whole) {
        return Err(format!(
            "more memory would fill up with what is written, and writes past the cache need multiples of {ALIGNMENT} bytes"
        ));
    }
    let mut changed = plan.clone();
    for action in plan.actions().filter(&writes) {
        let file = &mut changed.files[action.file as usize];
        (file.direct, file.buffer_offset) = (true, 0);
        file.shift_bytes = file.shift_bytes.next_multiple_of(ALIGNMENT);
    }
    done(changed, "the same writes with O_DIRECT: more memory would only fill up, too".to_owned())
}
