//! What the rules about two kernel locks share: the cost of waiting for a lock, and the bound of what removing it
//! saves. What may not enter: which lock it is.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::report::Draft;
use super::{Facts, say};
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
    // Who no longer waits is not queued up and woken either, and what is done less often needs the lock less often.
    let around = |e: &Entry| e.busy && !spinning(e) && lock.spins_in.contains(&e.class.operation);
    let least_ns = (work_ns - facts.account.sum(around).time_ns) / cpus;
    let removable = facts.removable(|e| f64::from(cost(e) || around(e)));
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
        removable: Some(removable.at_most(facts.account.wall_ns - least_ns)),
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
