//! Reads of a window that find their bytes in the page cache because of calls before the window.
//!
//! Reads at random places of a cold file find more of it in the page cache the longer the program runs: each brings whole pages, and
//! the kernel reads ahead where neighbours are cached. A window that begins with nothing in the cache has none of that. How many reads of the
//! run went to the device is counted, or at most: no more of them than there were requests, and no more than the threads slept, for one read
//! may send several requests. Which of the window found their bytes is not known, so those are spread over it evenly.

use std::collections::HashSet;

use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};
use iowhy_core::units::{count, counted};
use iowhy_diagnose::findings::{Facts, Side};

const PAGE: u64 = 4096;

/// Marks ranges as cached until the reads of a pass go to the device as often as those of the run. Returns what was assumed.
///
/// A read that needs the device makes at least one request and sleeps at least once, so that no fewer of them are left than went there.
pub(super) fn cached(facts: &Facts<'_>, plan: &mut Plan) -> Option<String> {
    let requests = facts.profile.block.as_ref().map(|block| block.own_reads).filter(|reads| *reads > 0)?;
    let calls = facts.counted_calls(Side::Read.call_names()).filter(|calls| *calls > 0.0)?;
    let waited = sleeps(facts).map_or(requests as f64, |sleeps| sleeps.min(requests as f64));
    let missing = (waited / calls).min(1.0);
    let reads = plan.actions().filter(|a| matches!(a.op, Op::Read { .. })).map(|a| u64::from(a.count.max(1)));
    let at_device = (missing * reads.sum::<u64>() as f64).ceil() as usize;
    let places = new_places(plan);
    let found = places.len().saturating_sub(at_device);
    if found == 0 {
        return None;
    }
    for (at, (file, range)) in places.iter().enumerate() {
        if (at + 1) * found / places.len() > at * found / places.len() {
            plan.files[*file].cached.push(*range);
        }
    }
    Some(format!(
        "{} of {} at new places find their bytes in the page cache, by requests and sleeps of the whole run; which of them, is not known",
        count(found as u64),
        counted(places.len() as u64, "read", "reads")
    ))
}

/// Sleeps of the run, by those in the windows in which switches were recorded. `None`: none was recorded.
fn sleeps(facts: &Facts<'_>) -> Option<f64> {
    let recorded = facts.profile.observer.switch_duty;
    let seen = facts.profile.threads.iter().map(|thread| thread.sleeps).fold(0, u64::saturating_add);
    (seen > 0 && recorded > 0.0).then(|| seen as f64 / recorded.min(1.0))
}

/// Places of cold files that the plan reads for the first time, and not behind the call before: what follows that is read ahead.
fn new_places(plan: &Plan) -> Vec<(usize, [u64; 2])> {
    let mut seen = HashSet::new();
    let mut ends = vec![None; plan.files.len()];
    let mut places = Vec::new();
    for action in plan.actions().filter(|a| matches!(a.op, Op::Read { .. })) {
        let file = action.file as usize;
        let Some(planned) = plan.files.get(file).filter(|f| is_cold(f)) else { continue };
        for offset in offsets(action) {
            let offset = offset % planned.size_bytes;
            let bytes = action.bytes.min(planned.size_bytes - offset);
            let follows = ends[file] == Some(offset);
            ends[file] = Some(offset + bytes);
            if bytes > 0 && seen.insert((file, offset / PAGE)) && !follows {
                places.push((file, [offset, bytes]));
            }
        }
    }
    places
}

fn offsets(action: &Action) -> impl Iterator<Item = u64> {
    let (first, stride) = (action.offset, action.stride);
    (0..i64::from(action.count.max(1))).map(move |i| first.saturating_add_signed(i.saturating_mul(stride)))
}

/// Whether a run begins with none of it in the page cache.
fn is_cold(file: &PlanFile) -> bool {
    let role = matches!(file.role, Role::User | Role::ScratchFull);
    role && file.state == State::Cold && !file.direct && file.size_bytes > 0
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Thread;
    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;

    fn plan(offsets: &[u64]) -> Plan {
        let file = PlanFile { size_bytes: 1 << 30, state: State::Cold, ..PlanFile::new("/d", Role::User) };
        let read = |offset: &u64| Action::one(Op::Read { fresh: false }, 0, *offset, 4096, 0.0);
        Plan { files: vec![file], threads: vec![offsets.iter().map(read).collect()], ..Plan::default() }
    }

    fn cached_of(offsets: &[u64], requests: u64) -> Vec<u64> {
        cached_after(offsets, requests, 0, 0.0)
    }

    /// `sleeps`: 0 where none was recorded; `duty`: the share of the run in which they were.
    fn cached_after(offsets: &[u64], requests: u64, sleeps: u64, duty: f64) -> Vec<u64> {
        let run = Run::new(1.0).calls(&[("pread64", 100)]).block(requests, requests * 4096, 0, 0);
        let run = run.with(|p| {
            p.threads = vec![Thread { sleeps, ..Thread::default() }];
            p.observer.switch_duty = duty;
        });
        let mut plan = plan(offsets);
        run.facts(|facts| cached(facts, &mut plan));
        plan.files[0].cached.iter().map(|[offset, _]| offset / 4096).collect()
    }

    #[test]
    fn as_many_reads_find_their_bytes_as_in_the_run() {
        let jumps: Vec<u64> = (0..10).map(|i| (i * 37 % 100) * 4096).collect();
        assert_eq!(cached_of(&jumps, 40).len(), 6, "40 of 100 go to the device");
        assert_eq!(cached_of(&jumps, 50), [37, 11, 85, 59, 33], "every other one");
        assert!(cached_of(&jumps, 100).is_empty());
        assert!(cached_of(&jumps, 250).is_empty(), "several requests for a read");
        assert!(cached_of(&jumps, 0).is_empty(), "its requests were not seen");
        assert_eq!(cached_after(&jumps, 80, 40, 1.0).len(), 6, "two requests for each wait");
        assert_eq!(cached_after(&jumps, 80, 20, 0.5).len(), 6, "half of the sleeps were recorded");
        assert_eq!(cached_after(&jumps, 40, 90, 1.0).len(), 6, "not each sleep is a read's");
    }

    #[test]
    fn what_the_window_brings_itself_is_left_to_it() {
        let in_order: Vec<u64> = (0..10).map(|i| i * 4096).collect();
        assert!(cached_of(&in_order, 1).is_empty(), "read-ahead");
        let again = [7 << 20, 9 << 20, 7 << 20, 9 << 20];
        assert!(cached_of(&again, 50).is_empty(), "two of four are there already");
    }
}
