//! `stdio-seek`: the buffer is not thrown away. Reads that begin within what the buffer holds are not made; of reads at random
//! places, of which the next finds nothing in the buffer either, only 512 bytes are read, by pread, because the seek shows
//! that the rest was not wanted. Seeks are no calls any more.

use iowhy_core::replay::{Action, Op, Plan};

use crate::repair::{Repaired, RunFacts, done, each, with_threads};

/// Read at a random place: what the program wants of a buffer it throws away is not seen, and is most often less.
const WANTED: u64 = 512;

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    if !plan.any(|a| a.op == Op::Seek) {
        return Err("no seek was seen".to_owned());
    }
    let repaired = with_threads(plan, |actions| {
        let mut left: Vec<Action> = Vec::new();
        let mut owed_ns = 0.0;
        // The last read that was made, and whether a seek came since.
        let mut held: Option<(u32, u64, u64)> = None;
        let mut sought = false;
        let all: Vec<Action> = each(actions).collect();
        for (at, action) in all.iter().copied().enumerate() {
            owed_ns += action.think_ns;
            match action.op {
                Op::Seek => sought = true,
                Op::Read { .. } if std::mem::take(&mut sought) => {
                    let inside = held.is_some_and(|(file, from, to)| {
                        file == action.file && (from..to).contains(&action.offset)
                    });
                    // What the next read finds in this buffer is wanted too.
                    let next = all[at + 1..].iter().find(|a| matches!(a.op, Op::Read { .. }));
                    let goes_on = next.is_some_and(|next| {
                        let into = next.offset.checked_sub(action.offset);
                        // Who reads on where the buffer ends wanted all of it.
                        let wanted = |into: u64| into + WANTED <= action.bytes || into == action.bytes;
                        next.file == action.file && into.is_some_and(wanted)
                    });
                    let near = (inside || goes_on) && action.bytes > WANTED;
                    if inside && near && held.is_some_and(|(_, _, to)| action.offset + WANTED <= to) {
                        continue;
                    }
                    let bytes = if near { action.bytes } else { action.bytes.min(WANTED) };
                    left.push(Action { bytes, think_ns: std::mem::take(&mut owed_ns), ..action });
                    held = Some((action.file, action.offset, action.offset + action.bytes));
                }
                _ => left.push(Action { think_ns: std::mem::take(&mut owed_ns), ..action }),
            }
        }
        if let Some(last) = left.last_mut() {
            last.think_ns += owed_ns;
        }
        left
    });
    done(repaired, "the buffer survives seeks, or pread without a buffer")
}
