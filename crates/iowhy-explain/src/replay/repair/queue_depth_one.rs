//! `queue-depth-one`: the same reads with several in flight. What the program does with the bytes of one read must not
//! decide where the next one lies; that cannot be seen, and is said in the manual.

use iowhy_core::replay::{Action, Do, Plan};

use super::{Repaired, done, each};

/// Direct reads in flight on a ring.
const DEPTH: u32 = 32;
/// Threads that share reads through the page cache.
const LANES: usize = 16;

pub(super) fn repaired(plan: &Plan) -> Result<Repaired, String> {
    let reads = |a: &Action| matches!(a.what, Do::Read { .. } | Do::Look);
    if !plan.any(reads) || plan.any(|a| a.what == Do::Write || matches!(a.what, Do::Sync { .. })) {
        return Err(
            "only runs that read and do not write are replayed with several requests in flight".to_owned()
        );
    }
    let direct = |a: &Action| plan.files.get(a.file as usize).is_some_and(|f| f.direct);
    if plan.actions().filter(|a| reads(a)).all(direct) {
        let repaired = Plan { depth: DEPTH, ..plan.clone() };
        return done(repaired, format!("{DEPTH} reads in flight on a ring"));
    }
    let mut lanes: Vec<Vec<Action>> = vec![Vec::new(); LANES];
    let all = plan.threads.iter().flat_map(|actions| each(actions)).filter(|a| a.what != Do::Seek);
    for (i, action) in all.enumerate() {
        lanes[i % LANES].push(action);
    }
    lanes.retain(|lane| !lane.is_empty());
    done(Plan { threads: lanes, ..plan.clone() }, format!("{LANES} threads share the reads"))
}
