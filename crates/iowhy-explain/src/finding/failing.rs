//! Calls that fail: how many of a kind succeed, and what is said of those that do not.
//!
//! A call that fails did nothing of what it is for, so that no rule may count it as work of its kind; it costs its time all
//! the same. What may not enter: causes.

use iowhy_core::profile::{CallCount, CallSample};

use super::facts::{ENOUGH_LOOKS, NAME_CALLS, OPEN_CALLS, SYNC_CALLS, Side};
use super::{Facts, WORTH_SAVING, say};
use crate::account::Entry;
use crate::classify::Operation;

/// Kinds of calls, as they are named.
const KINDS: [(&str, &[&str], &[Operation]); 5] = [
    ("opens", &OPEN_CALLS, &[Operation::Open]),
    ("calls that look up or change names", &NAME_CALLS, &[Operation::Stat, Operation::Names]),
    ("reads", Side::Read.call_names(), &[Operation::Read]),
    ("writes", Side::Write.call_names(), &[Operation::Write]),
    ("syncs", &SYNC_CALLS, &[Operation::Sync]),
];
/// From this part on, failing is what calls of a kind do.
const MOSTLY: f64 = 0.5;
/// With these the kernel refuses a read or write before it counts it in `/proc/PID/io` (vfs_read, Linux 6.12).
const NOT_COUNTED: [&str; 3] = ["EBADF", "EFAULT", "EINVAL"];

fn of<'a>(sample: &'a CallSample, names: &'a [&str]) -> impl Iterator<Item = &'a CallCount> {
    sample.calls.iter().filter(move |c| names.contains(&c.name.as_str()))
}

impl Facts<'_> {
    /// The part of these calls that failed, by what bursts saw; `None` where they saw too few.
    pub(super) fn failed_part(&self, names: &[&str]) -> Option<f64> {
        let sample = self.profile.calls.as_ref()?;
        let (failed, all) = of(sample, names).fold((0, 0), |(f, a), c| (f + c.failed, a + c.calls));
        (all >= ENOUGH_LOOKS).then(|| failed as f64 / all as f64)
    }

    /// Of the calls that the kernel counts in `/proc/PID/io`, the part that moved something or found nothing more.
    pub(super) fn counted_that_succeed(&self, side: Side) -> f64 {
        let Some(sample) = self.profile.calls.as_ref() else { return 1.0 };
        let (done, counted) = of(sample, side.call_names()).fold((0, 0), |(done, counted), c| {
            let refused: u64 = NOT_COUNTED.iter().filter_map(|error| c.errors.get(*error)).sum();
            (done + c.succeeded(), counted + c.calls.saturating_sub(refused))
        });
        if counted >= ENOUGH_LOOKS { (done as f64 / counted as f64).min(1.0) } else { 1.0 }
    }

    /// What is said of calls most of which fail, where they take time that is worth a word: `98 % of 40,000 opens fail:
    /// ENOENT`.
    pub(super) fn failing(&self) -> Vec<String> {
        let Some(sample) = self.profile.calls.as_ref() else { return Vec::new() };
        let said = |(noun, names, operations): &(&str, &[&str], &[Operation])| {
            let part = self.failed_part(names).filter(|part| *part >= MOSTLY)?;
            let taken = self.account.sum(|e: &Entry| operations.contains(&e.class.operation));
            if self.wall_share(taken.wall_ns) < WORTH_SAVING {
                return None;
            }
            let attempts = self.attempted_calls(names)?;
            let mut errors = std::collections::BTreeMap::<&str, u64>::new();
            for (error, calls) in of(sample, names).flat_map(|c| &c.errors) {
                *errors.entry(error).or_default() += calls;
            }
            let most = errors.into_iter().max_by_key(|(_, calls)| *calls);
            let error = most.map_or_else(String::new, |(error, _)| format!(": {error}"));
            Some(format!("{} of {} {noun} fail{error}", say::percent(part), say::count(attempts.likely)))
        };
        KINDS.iter().filter_map(said).collect()
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::finding::FindingId;
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::classify::Wait;
    use crate::finding::range::Range;
    use crate::finding::synthetic::Run;

    fn failing(run: Run, name: &str, failed: u64, error: &str) -> Run {
        run.with(|p| {
            let calls = &mut p.calls.as_mut().unwrap().calls;
            let count = calls.iter_mut().find(|c| c.name == name).unwrap();
            (count.failed, count.errors) = (failed, [(error.to_owned(), failed)].into());
        })
    }

    #[test]
    fn what_fails_is_said_and_is_no_work_of_its_kind() {
        let run = Run::new(1.0)
            .busy(Operation::Open, Layer::Filesystem, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .calls(&[("openat", 40_000)]);
        let run = failing(run, "openat", 39_200, "ENOENT");
        assert_eq!(run.facts(|f| f.failing()), ["98 % of 40,000 opens fail: ENOENT"]);
        assert_eq!(run.facts(|f| f.scaled_calls(&OPEN_CALLS)), Some(Range::exact(800.0)));
        assert_eq!(run.facts(|f| f.attempted_calls(&OPEN_CALLS)), Some(Range::exact(40_000.0)));
        let found = run.findings();
        assert!(found[0].evidence.iter().any(|e| e.contains("39,200") || e.contains("98 % of")), "{found:?}");
        assert!(found.iter().all(|f| f.id != FindingId::ManySmallFiles), "{found:?}");
    }

    #[test]
    fn what_takes_no_time_or_seldom_fails_is_not_said() {
        let run = |opening: f64, failed| {
            let run = Run::new(1.0).busy(Operation::Open, Layer::Filesystem, opening).busy(
                Operation::User,
                Layer::Program,
                1.0 - opening,
            );
            failing(run.calls(&[("openat", 40_000)]), "openat", failed, "ENOENT").facts(|f| f.failing())
        };
        assert!(run(0.01, 40_000).is_empty() && run(0.8, 10_000).is_empty() && !run(0.8, 40_000).is_empty());
    }

    #[test]
    fn reads_that_find_nothing_ready_do_not_make_the_others_small() {
        // 1,000 reads of 1 MiB from a socket or file, and 99,000 that find nothing.
        let run = Run::new(1.0)
            .busy(Operation::Read, Layer::Call, 0.6)
            .busy(Operation::User, Layer::Program, 0.4)
            .io((100_000, 1000 << 20), (0, 0))
            .calls(&[("read", 100_000)]);
        let small = run.facts(|f| f.mean_bytes(Side::Read));
        assert!(small.is_some_and(|bytes| bytes < 16_384.0));
        let run = failing(run, "read", 99_000, "EAGAIN");
        assert_eq!(run.facts(|f| f.mean_bytes(Side::Read)), Some(1_048_576.0));
        assert!(!run.ids().contains(&FindingId::SmallRequests));
        // What the kernel refuses before it counts it is in neither number.
        let run = failing(run.io((1000, 1000 << 20), (0, 0)), "read", 99_000, "EBADF");
        assert_eq!(run.facts(|f| f.mean_bytes(Side::Read)), Some(1_048_576.0));
    }

    #[test]
    fn syncs_that_fail_make_nothing_durable() {
        let run = Run::new(1.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.001)
            .busy(Operation::Sync, Layer::Call, 0.5)
            .busy(Operation::Write, Layer::Copy, 0.4)
            .io((0, 0), (10_000, 40_960_000))
            .calls(&[("write", 10_000), ("fsync", 10_000)]);
        assert_eq!(run.facts(|f| f.scaled_calls(&SYNC_CALLS)), Some(Range::exact(10_000.0)));
        let run = failing(run, "fsync", 10_000, "EBADF");
        assert_eq!(run.facts(|f| f.scaled_calls(&SYNC_CALLS)), Some(Range::exact(0.0)));
        assert!(!run.ids().contains(&FindingId::SyncPerWrite));
        assert!(run.facts(|f| f.failing()).iter().any(|s| s == "100 % of 10,000 syncs fail: EBADF"));
    }
}
