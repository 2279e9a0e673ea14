//! `small-requests`: calls that follow each other become calls of 64 KiB. The program gets the same bytes in the same
//! order, from a buffer of its I/O library. A sync ends what is collected.

use std::collections::BTreeMap;

use iowhy_core::replay::{Action, Op, Plan};
use iowhy_core::units::Bytes;

use super::super::buffers;
use super::{Repaired, Sizes, done, each, moves, with_threads};

const PAGE: u64 = 4096;
/// A pass of so many buffers may leave a part of one out.
const MANY: u64 = 4;
/// One call of the repaired program.
pub(super) const BYTES: u64 = 65_536;

pub(super) fn repaired(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    let most = sizes.request_bytes.max(1);
    let mut merged = with_threads(plan, |actions| merge(actions, most));
    buffers::taken_anew(&mut merged);
    // Each pass begins where the first does in a buffer, or at least in a page.
    for file in merged.files.iter_mut().filter(|f| f.shift_bytes > 0) {
        let whole = if file.shift_bytes >= MANY * most { most } else { PAGE };
        file.shift_bytes = file.shift_bytes.next_multiple_of(whole);
    }
    let (before, after) = (plan.calls(), merged.calls());
    if after as f64 > 0.9 * before as f64 {
        return Err("the calls do not follow each other: there is nothing to merge".to_owned());
    }
    done(merged, format!("calls that follow each other merged to {}", Bytes(most)))
}

/// Calls that follow each other on their file, merged up to so many bytes. Their own time goes along.
pub(super) fn merge(actions: &[Action], most: u64) -> Vec<Action> {
    let mut merged = Vec::new();
    // What is collected for each file and direction.
    let mut open: BTreeMap<(u32, bool), Action> = BTreeMap::new();
    let mut owed_ns = 0.0;
    for action in each(actions) {
        owed_ns += action.think_ns;
        if !moves(action.op) {
            for write in [false, true] {
                merged.extend(open.remove(&(action.file, write)));
            }
            // The kernel's position moves with what is read: a seek before a merged call is none.
            if action.op != Op::Seek {
                merged.push(Action { think_ns: std::mem::take(&mut owed_ns), ..action });
            }
            continue;
        }
        let key = (action.file, action.op == Op::Write);
        match open.get_mut(&key) {
            Some(run) if run.offset + run.bytes == action.offset && run.op == action.op => {
                run.bytes += action.bytes;
                run.think_ns += std::mem::take(&mut owed_ns);
            }
            _ => {
                merged.extend(open.remove(&key));
                open.insert(key, Action { think_ns: std::mem::take(&mut owed_ns), ..action });
            }
        }
        // A run may be longer than one call holds.
        if let Some(run) = open.get_mut(&key) {
            // A buffer that was filled from the beginning of the file on is filled at multiples of its size.
            loop {
                let bytes = most - run.offset % most;
                if run.bytes < bytes || run.bytes <= action.bytes {
                    break;
                }
                let think_ns = run.think_ns * (bytes as f64 / run.bytes as f64);
                merged.push(Action { bytes, think_ns, ..*run });
                run.offset += bytes;
                run.bytes -= bytes;
                run.think_ns -= think_ns;
            }
        }
        if open.get(&key).is_some_and(|run| run.bytes == 0) {
            open.remove(&key);
        }
    }
    merged.extend(open.into_values());
    // Own time of what was left out still passes.
    if let Some(last) = merged.last_mut() {
        last.think_ns += owed_ns;
    }
    merged
}
