//! `stdio-seek`: the buffer is not thrown away. Reads that begin within what the buffer holds are not made; of reads at random
//! places only 512 bytes are read, by pread, because the seek shows that the rest was not wanted.

use iowhy_core::replay::{Action, Do, Plan};

use super::{Repaired, done, each, with_threads};

/// Read at a random place: what the program wants of a buffer it throws away is not seen, and is most often less.
const WANTED: u64 = 512;

pub(super) fn repaired(plan: &Plan) -> Result<Repaired, String> {
    if !plan.any(|a| a.what == Do::Seek) {
        return Err("no seek was seen".to_owned());
    }
    let repaired = with_threads(plan, |actions| {
        let mut left: Vec<Action> = Vec::new();
        let mut owed_ns = 0.0;
        // The last read that was made, and whether a seek came since.
        let mut held: Option<(u32, u64, u64)> = None;
        let mut sought = false;
        for action in each(actions) {
            owed_ns += action.think_ns;
            match action.what {
                Do::Seek => sought = true,
                Do::Read { .. } if std::mem::take(&mut sought) => {
                    let inside = held.is_some_and(|(file, from, to)| {
                        file == action.file && (from..to).contains(&action.place)
                    });
                    let near = inside && action.bytes > WANTED;
                    if near && held.is_some_and(|(_, _, to)| action.place + WANTED <= to) {
                        continue;
                    }
                    let bytes = if near { action.bytes } else { action.bytes.min(WANTED) };
                    left.push(Action { bytes, think_ns: std::mem::take(&mut owed_ns), ..action });
                    held = Some((action.file, action.place, action.place + action.bytes));
                }
                _ => left.push(Action { think_ns: std::mem::take(&mut owed_ns), ..action }),
            }
        }
        if let Some(last) = left.last_mut() {
            last.think_ns += owed_ns;
        }
        left
    });
    done(repaired, "the buffer is kept, or pread without one")
}
