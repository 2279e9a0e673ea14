//! `dirty-throttle`: write-back begins early (sync_file_range) while the program goes on, so that fewer pages are dirty when
//! the kernel looks. The same bytes are written in the same order. The limits themselves are the machine's, and stay; what
//! the writes would take without them is shown by throwing away what is dirty before it counts ([`unlimited`]).

use iowhy_core::replay::{Action, Op, Plan, Role};

use crate::repair::{Repaired, RunFacts, done, each, with_threads};

/// Write-back begins for so many bytes at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// So little may be dirty under any limit that is in use.
const UNCOUNTED_BYTES: u64 = 2 << 20;

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    if !plan.any(|a| a.op == Op::Write) {
        return Err("no write is in the traced part of the run".to_owned());
    }
    let repaired = with_threads(plan, |actions| {
        let mut now: Vec<Action> = Vec::new();
        // Bytes one behind the other that were written and not yet handed over.
        let mut waiting: Option<(u32, u64, u64)> = None;
        let hand_over = |now: &mut Vec<Action>, waiting: &mut Option<(u32, u64, u64)>| {
            if let Some((file, from, to)) = waiting.take() {
                now.push(Action::one(Op::SyncFileRange, file, from, to - from, 0.0));
            }
        };
        for action in each(actions) {
            now.push(action);
            if action.op != Op::Write {
                continue;
            }
            let end = action.offset.saturating_add(action.bytes);
            match &mut waiting {
                Some((file, _, to)) if *file == action.file && *to == action.offset => *to = end,
                _ => {
                    hand_over(&mut now, &mut waiting);
                    waiting = Some((action.file, action.offset, end));
                }
            }
            if waiting.is_some_and(|(_, from, to)| to - from >= PIECE_BYTES) {
                hand_over(&mut now, &mut waiting);
            }
        }
        hand_over(&mut now, &mut waiting);
        now
    });
    done(repaired, "write-back begins after each MiB (sync_file_range)")
}

/// As if the limits were out of reach: what no program can do, and a machine whose limits are raised does for it as long as
/// memory lasts. Only for writes that nobody waits for, to files that grow.
fn unlimited(plan: &Plan) -> Option<Repaired> {
    let grows = |a: &Action| {
        plan.files.get(a.file as usize).is_some_and(|f| match f.role {
            Role::ScratchEmpty => !f.direct && !f.durable,
            role => role == Role::Sink,
        })
    };
    let waits = |a: &Action| a.op.is_sync();
    let writes = |a: &Action| a.op == Op::Write;
    if !plan.any(writes) || plan.any(waits) || plan.any(|a| writes(a) && !grows(a)) {
        return None;
    }
    let unlimited = with_threads(plan, |actions| {
        let mut now: Vec<Action> = Vec::new();
        let mut dirty = 0;
        for action in each(actions) {
            now.push(action);
            if action.op == Op::Write {
                dirty += action.bytes;
            }
            if action.op == Op::Write && dirty >= UNCOUNTED_BYTES {
                dirty = 0;
                now.push(Action::one(Op::Truncate, action.file, 0, 0, 0.0));
            }
        }
        now
    });
    let how = "as if the dirty limits were raised: dirty data is discarded, untimed, before it counts";
    Some(Repaired::new(unlimited, how))
}

pub(super) fn others(plan: &Plan, run_facts: &RunFacts) -> Vec<Repaired> {
    if run_facts.can_stay_dirty { unlimited(plan).into_iter().collect() } else { Vec::new() }
}
