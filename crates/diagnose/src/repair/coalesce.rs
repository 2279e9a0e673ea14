//! Calls that follow each other become fewer, larger ones: the same bytes in the same order.

use std::collections::BTreeMap;

use iowhy_core::replay::{Action, Op};

use super::{each, moves};

/// One call of the repaired program.
pub(crate) const BYTES: u64 = 65_536;

/// Calls that follow each other on their file, merged up to so many bytes. Their own time goes along.
pub(crate) fn merge(actions: &[Action], most: u64) -> Vec<Action> {
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
