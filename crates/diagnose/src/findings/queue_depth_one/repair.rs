//! `queue-depth-one`: the same reads with several in flight. What the program does with the bytes of one read must not
//! decide where the next one lies; that cannot be seen, and is said in the manual.

use iowhy_core::replay::{Action, Op, Plan, Role, State};

use crate::repair::{Repaired, RunFacts, Sizes, done, each, order, read_ahead, with_threads};

/// Direct reads in flight on a ring where nobody says otherwise.
pub(super) const DEPTH: u32 = 32;
/// Threads that share reads through the page cache.
const LANES: usize = 16;
/// Reads that are announced at once where nobody says otherwise,
const AHEAD: u32 = 64;
/// and at most.
const MAX_AHEAD: u32 = 1024;
/// Reads that take so much of what lies between the first and the last of them lose little by reading all of it.
const DENSE: f64 = 0.5;
/// More threads are not started.
const MAX_LANES: usize = 64;

pub(super) const CHOICES: &[(&str, Sizes)] = &[
    ("4 in flight", Sizes { depth: Some(4), ..Sizes::USUAL }),
    ("16", Sizes { depth: Some(16), ..Sizes::USUAL }),
    ("32", Sizes { depth: Some(32), ..Sizes::USUAL }),
];

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let sizes = &run_facts.sizes;
    let reads = |a: &Action| matches!(a.op, Op::Read { .. } | Op::TouchPages);
    if !plan.any(reads) {
        return Err("only reads are replayed with several requests in flight".to_owned());
    }
    // Other threads would change the order of reads and writes.
    let kept = |a: &Action| plan.files.get(a.file as usize).is_some_and(|f| f.role != Role::Sink);
    if plan.any(|a| (a.op == Op::Write && kept(a)) || syncs(a.op)) {
        return announced(plan, sizes).ok_or_else(|| {
            "reads between writes can only be announced through the page cache, and none goes through it"
                .to_owned()
        });
    }
    let direct = |a: &Action| plan.files.get(a.file as usize).is_some_and(|f| f.direct);
    if plan.actions().filter(|a| reads(a)).all(direct) {
        let depth = sizes.depth.unwrap_or(DEPTH).max(1);
        let repaired = Plan { depth, ..plan.clone() };
        return done(repaired, format!("{depth} reads in flight on a ring"));
    }
    let wanted = sizes.depth.map_or(LANES, |depth| depth as usize).clamp(1, MAX_LANES);
    let mut lanes: Vec<Vec<Action>> = vec![Vec::new(); wanted];
    let all = plan.threads.iter().flat_map(|actions| each(actions)).filter(|a| a.op != Op::Seek);
    for (i, action) in all.enumerate() {
        lanes[i % wanted].push(action);
    }
    lanes.retain(|lane| !lane.is_empty());
    done(Plan { threads: lanes, ..plan.clone() }, format!("{wanted} threads share the reads"))
}

/// The kernel is told of the next reads before the first of them is made: 64, where nobody says otherwise. `None`: none goes
/// through the page cache.
fn announced(plan: &Plan, sizes: &Sizes) -> Option<Repaired> {
    let ahead = sizes.depth.unwrap_or(AHEAD).clamp(1, MAX_AHEAD) as usize;
    let cold = |a: &Action| is_cold_read(plan, a);
    if !plan.any(cold) {
        return None;
    }
    let repaired = with_threads(plan, |actions| {
        let all: Vec<Action> = each(actions).collect();
        let reads: Vec<Action> = all.iter().copied().filter(cold).collect();
        let mut coming = reads.chunks(ahead);
        let (mut told, mut made) = (Vec::with_capacity(all.len() + reads.len()), 0usize);
        for action in all {
            if cold(&action) {
                if made.is_multiple_of(ahead) {
                    let next = coming.next().unwrap_or_default();
                    told.extend(next.iter().map(|a| Action { op: Op::FadviseWillNeed, think_ns: 0.0, ..*a }));
                }
                made += 1;
            }
            told.push(action);
        }
        told
    });
    done(repaired, format!("the next {ahead} reads announced by POSIX_FADV_WILLNEED")).ok()
}

fn syncs(what: Op) -> bool {
    what.is_sync()
}

pub(super) fn others(plan: &Plan, run_facts: &RunFacts) -> Vec<Repaired> {
    let mut others = Vec::new();
    if run_facts.sizes != Sizes::default() {
        return others;
    }
    if !plan.any(|a| a.op == Op::Write) {
        others.extend(announced(plan, &run_facts.sizes));
    }
    others.extend(in_order(plan));
    others.extend(read_ahead::instead(plan, run_facts));
    others
}

/// Cold reads in the order of their places, which lets the kernel read ahead. `None`: they leave most of what lies between them out, so
/// that reading ahead would read that as well, or they cannot change places.
fn in_order(plan: &Plan) -> Option<Repaired> {
    let kept = |a: &Action| plan.files.get(a.file as usize).is_some_and(|f| f.role != Role::Sink);
    if plan.any(|a| (a.op == Op::Write && kept(a)) || syncs(a.op)) {
        return None;
    }
    let cold = |a: &Action| is_cold_read(plan, a);
    let dense = (0..plan.files.len() as u32).any(|file| {
        let of: Vec<&Action> = plan.actions().filter(|a| a.file == file && cold(a)).collect();
        let Some((low, high)) = order::extent(&of) else { return false };
        let read: u64 = of.iter().map(|a| a.bytes.saturating_mul(u64::from(a.count))).sum();
        read as f64 >= DENSE * (high - low) as f64
    });
    let repaired = with_threads(plan, |actions| {
        let mut all: Vec<Action> = each(actions).collect();
        let mut places: Vec<(u32, u64, u64)> =
            all.iter().filter(|a| cold(a)).map(|a| (a.file, a.offset, a.bytes)).collect();
        places.sort_unstable();
        // The program's time before a call stays where it is.
        for (action, place) in all.iter_mut().filter(|a| cold(a)).zip(places) {
            (action.file, action.offset, action.bytes) = place;
        }
        all
    });
    let how = "the reads in the order of their places, where those are known beforehand";
    (dense && repaired.threads != with_threads(plan, |actions| each(actions).collect()).threads)
        .then(|| done(repaired, how).ok())?
}

/// A read of the user's file that goes through the page cache and finds nothing there.
fn is_cold_read(plan: &Plan, action: &Action) -> bool {
    let file = plan.files.get(action.file as usize);
    matches!(action.op, Op::Read { .. })
        && file.is_some_and(|f| f.role == Role::User && f.state == State::Cold && !f.direct)
}
