//! What the rules about two kernel locks share: the cost of waiting for a lock, and the bound of what removing it
//! saves. What may not enter: which lock it is.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::range::Range;
use super::report::Draft;
use super::{Facts, SavedTime, loops, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

/// One kind of lock.
pub(super) struct Lock {
    pub(super) id: FindingId,
    pub(super) wait: Wait,
    /// Operations in which spinning for a lock is spinning for this one.
    pub(super) spins_in: &'static [Operation],
    /// As in "threads wait for the lock of one inode".
    pub(super) name: &'static str,
    pub(super) advice: &'static str,
    /// The part of the other kernel time in those operations that goes as well: queueing up and being woken costs CPU
    /// time, and what is done less often needs the lock less often.
    pub(super) along: Range,
}

/// Fewer waits than this, together shorter than [`START_UP_NS`], are those of threads that start or end together.
const ENOUGH_WAITS: u64 = 20;
/// See [`ENOUGH_WAITS`].
const START_UP_NS: f64 = 200e6;

/// Judges it. Threads that no longer wait for each other share the CPUs: the run cannot become shorter than its CPU
/// time over the number of CPUs.
pub(super) fn judge(facts: &Facts<'_>, lock: &Lock) -> Option<Finding> {
    let waiting = |e: &Entry| e.class.wait == Some(lock.wait);
    let spinning =
        |e: &Entry| e.busy && e.class.layer == Layer::Lock && lock.spins_in.contains(&e.class.operation);
    let cost = |e: &Entry| waiting(e) || spinning(e);
    let (waits, spins) = (facts.account.sum(waiting), facts.account.sum(spinning));
    let threads = facts.thread_count();
    if threads < 2 || waits.wall_ns + spins.wall_ns <= 0.0 {
        return None;
    }
    if waits.events + spins.events < ENOUGH_WAITS && waits.time_ns + spins.time_ns < START_UP_NS {
        return None;
    }
    let cpus = facts.profile.pressure.cpus.max(1) as f64;
    let work_ns = facts.account.sum(|e| e.busy && !spinning(e)).time_ns;
    let cost_ns = waits.wall_ns + spins.wall_ns;
    let run_facts = |e: &Entry| e.busy && !spinning(e) && lock.spins_in.contains(&e.class.operation);
    let beside_ns = facts.account.sum(run_facts).time_ns;
    let removed = facts
        .saved_without(|e| f64::from(cost(e)))
        .part(Range::new(0.3, 0.85, 1.0))
        .and(facts.saved_without(|e| f64::from(run_facts(e))).part(lock.along))
        .and(loops::around(facts, facts.all_calls().unwrap_or(0.0), cost_ns + beside_ns, lock.along))
        .0;
    let most = |along: f64| (facts.account.wall_ns - (work_ns - along * beside_ns) / cpus).max(0.0);
    let saved_time = SavedTime(Range::new(
        removed.low.min(most(lock.along.low)),
        removed.likely.min(most(lock.along.likely)),
        removed.high.min(most(lock.along.high)),
    ));
    let mut evidence = vec![format!(
        "{}; {:.1} threads running or waiting meanwhile, of {threads}",
        facts.waits_in_words(waits, "wait for it", "waits for it"),
        facts.concurrency(waiting)
    )];
    if spins.time_ns > 0.0 {
        evidence.push(format!("{} of CPU time spent spinning on it", say::time(spins.time_ns)));
    }
    evidence.push(format!(
        "the other CPU time alone needs {} on {cpus:.0} CPUs, which bounds the gain",
        say::time(work_ns / cpus)
    ));
    Draft {
        id: lock.id,
        cost_ns,
        saved_time: Some(saved_time),
        sentence: format!(
            "Threads wait for {} {} of wall time",
            lock.name,
            say::percent(facts.wall_share(cost_ns))
        ),
        evidence,
        advice: lock.advice.to_owned(),
    }
    .finding(facts)
}
