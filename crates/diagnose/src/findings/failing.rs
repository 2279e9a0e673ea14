//! Calls that fail: how many of a kind succeed, and what is said of those that do not.
//!
//! A call that fails did nothing of what it is for, so that no rule may count it as work of its kind; it costs its time all
//! the same. What may not enter: causes.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{CallCount, CallCounts};

use super::facts::{ENOUGH_LOOKS, NAME_CALLS, OPEN_CALLS, SYNC_CALLS, Side};
use super::precedence::FAILING;
use super::{Facts, WORTH_SAVING, say};
use crate::account::Entry;
use crate::classify::Operation;

/// Kinds of calls, as they are named.
const KINDS: [(&str, &[&str], &[Operation]); 5] = [
    ("opens", &OPEN_CALLS, &[Operation::Open]),
    ("calls that look up or change file names", &NAME_CALLS, &[Operation::Stat, Operation::Names]),
    ("reads", Side::Read.call_names(), &[Operation::Read]),
    ("writes", Side::Write.call_names(), &[Operation::Write]),
    ("syncs", &SYNC_CALLS, &[Operation::Sync]),
];
/// From this part on, failing is what calls of a kind do.
const MOSTLY: f64 = 0.5;
/// With these the kernel refuses a read or write before it counts it in `/proc/PID/io` (vfs_read, Linux 6.12).
const NOT_COUNTED: [&str; 3] = ["EBADF", "EFAULT", "EINVAL"];

fn of<'a>(sample: &'a CallCounts, names: &'a [&str]) -> impl Iterator<Item = &'a CallCount> {
    sample.calls.iter().filter(move |c| names.contains(&c.name.as_str()))
}

impl Facts<'_> {
    /// The part of these calls that failed; `None` where there are too few.
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

    /// The part of all calls of the program that are failing calls of these kinds.
    pub(super) fn part_of_all_calls(&self, failing: &[Failing]) -> f64 {
        let Some(sample) = self.profile.calls.as_ref() else { return 0.0 };
        let all: u64 = sample.calls.iter().map(|call| call.calls).sum();
        failing.iter().map(|kind| kind.failed).sum::<u64>() as f64 / all.max(1) as f64
    }

    /// Calls of a kind most of which fail, where they take time that is worth a word.
    pub(super) fn failing(&self) -> Vec<Failing> {
        let Some(sample) = self.profile.calls.as_ref() else { return Vec::new() };
        let said = |(noun, names, operations): &(&'static str, &[&str], &'static [Operation])| {
            let part = self.failed_part(names).filter(|part| *part >= MOSTLY)?;
            let taken = self.account.sum(|e: &Entry| operations.contains(&e.class.operation));
            let share = self.wall_share(taken.wall_ns);
            if share < WORTH_SAVING {
                return None;
            }
            let (failed, all) = of(sample, names).fold((0, 0), |(f, a), c| (f + c.failed, a + c.calls));
            let mut errors = std::collections::BTreeMap::<&str, u64>::new();
            for (error, calls) in of(sample, names).flat_map(|c| &c.errors) {
                *errors.entry(error).or_default() += calls;
            }
            let most = errors.into_iter().max_by_key(|(_, calls)| *calls);
            let error = most.map_or_else(String::new, |(error, _)| format!(": {error}"));
            let percent = say::percent(part);
            let which = match (failed == all, percent.as_str()) {
                (true, _) => "all".to_owned(),
                (false, "100 %") => "nearly all of the".to_owned(),
                _ => format!("{percent} of the"),
            };
            let sentence = format!("{which} {} {noun} fail{error}", say::count(all as f64));
            Some(Failing { noun, sentence, share, part, failed, operations })
        };
        KINDS.iter().filter_map(said).collect()
    }
}

/// Calls of one kind, most of which fail.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failing {
    noun: &'static str,
    /// As in `98 % of the 2,092 opens fail: ENOENT`.
    pub(super) sentence: String,
    /// Part of the wall time that calls of the kind take.
    pub(super) share: f64,
    /// Part of the calls that fail.
    pub(super) part: f64,
    /// How many fail.
    failed: u64,
    operations: &'static [Operation],
}

impl Failing {
    /// The sentence and the time, as evidence.
    pub(super) fn evidence(&self) -> String {
        format!("{}; {} take {} of wall time", self.sentence, self.noun, say::percent(self.share))
    }

    /// Whether these calls look names up.
    pub(super) fn is_of_names(&self) -> bool {
        self.operations.iter().any(|o| matches!(o, Operation::Open | Operation::Stat | Operation::Names))
    }

    /// Whether an entry is time in such calls.
    pub(super) fn is_about(&self, entry: &Entry) -> bool {
        self.operations.contains(&entry.class.operation)
    }

    /// Whether a finding is about calls of this kind.
    fn concerns(&self, id: FindingId) -> bool {
        FAILING
            .iter()
            .any(|(finding, about)| *finding == id && self.operations.iter().any(|o| about.contains(o)))
    }
}

/// Says what fails where it belongs: under a finding about these calls, else under what describes the run, else under the
/// first cause that is the program's own. What others do never causes it.
pub(super) fn report(facts: &Facts<'_>, findings: &mut [Finding]) {
    for failing in facts.failing() {
        let described = |f: &Finding| !f.id.is_repairable();
        let of_others = |f: &Finding| matches!(f.id, FindingId::NoisyNeighbour | FindingId::Throttled);
        let at = findings.iter().position(|f| failing.concerns(f.id));
        let at = at.or_else(|| findings.iter().position(described));
        let at = at.or_else(|| findings.iter().position(|f| !of_others(f)));
        if let Some(at) = at
            && !findings[at].sentence.eq_ignore_ascii_case(&failing.evidence())
        {
            findings[at].evidence.push(failing.evidence());
        }
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::classify::Wait;
    use crate::findings::synthetic::Run;

    fn failing(run: Run, name: &str, failed: u64, error: &str) -> Run {
        run.with(|p| {
            let calls = &mut p.calls.as_mut().unwrap().calls;
            let count = calls.iter_mut().find(|c| c.name == name).unwrap();
            (count.failed, count.errors) = (failed, [(error.to_owned(), failed)].into());
        })
    }

    fn said(run: &Run) -> Vec<String> {
        run.facts(|f| f.failing()).into_iter().map(|f| f.sentence).collect()
    }

    /// Opens take most of the time.
    fn opens(failed: u64) -> Run {
        opens_beside(failed, 0.0)
    }

    fn opens_beside(failed: u64, queued: f64) -> Run {
        let run = Run::new(1.0)
            .busy(Operation::Open, Layer::Filesystem, 0.6 * (1.0 - queued))
            .busy(Operation::User, Layer::Program, 0.4 * (1.0 - queued))
            .queued(queued)
            .calls(&[("openat", 2092)]);
        failing(run, "openat", failed, "ENOENT")
    }

    #[test]
    fn the_part_that_fails_is_said() {
        assert_eq!(said(&opens(2092)), ["all 2,092 opens fail: ENOENT"]);
        assert_eq!(said(&opens(2091)), ["nearly all of the 2,092 opens fail: ENOENT"]);
        assert_eq!(said(&opens(2050)), ["98 % of the 2,092 opens fail: ENOENT"]);
    }

    #[test]
    fn what_fails_is_no_state_of_health_and_no_evidence_against_others() {
        let run = opens(2092);
        let found = run.findings();
        assert_eq!(run.ids(), [FindingId::FailedLookups]);
        assert!(!found[0].advice.contains("Nothing in the I/O path"), "{found:?}");
        assert!(found[0].sentence.contains("ll 2,092 opens fail: ENOENT"), "{found:?}");
        assert!(found[0].sentence.contains("60 %"), "{found:?}");
        // RunFacts others on the CPUs.
        let run = opens_beside(2092, 0.5).with(|p| p.pressure.others_cpu_share = Some(0.7));
        let found = run.findings();
        let of = |id| found.iter().find(|f| f.id == id).unwrap();
        let words = |id| format!("{} {:?}", of(id).sentence, of(id).evidence);
        let fails = |id| words(id).matches("opens fail").count() == 1;
        assert!(!fails(FindingId::NoisyNeighbour) && fails(FindingId::FailedLookups), "{found:#?}");
    }

    #[test]
    fn what_fails_is_said_and_is_no_work_of_its_kind() {
        let run = Run::new(1.0)
            .busy(Operation::Open, Layer::Filesystem, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .calls(&[("openat", 40_000)]);
        let run = failing(run, "openat", 39_200, "ENOENT");
        assert_eq!(said(&run), ["98 % of the 40,000 opens fail: ENOENT"]);
        assert_eq!(run.facts(|f| f.counted_calls(&OPEN_CALLS)), Some(800.0));
        let found = run.findings();
        assert!(found[0].sentence.contains("98 % of the 40,000 opens fail"), "{found:?}");
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
        assert_eq!(run.facts(|f| f.counted_calls(&SYNC_CALLS)), Some(10_000.0));
        let run = failing(run, "fsync", 10_000, "EBADF");
        assert_eq!(run.facts(|f| f.counted_calls(&SYNC_CALLS)), Some(0.0));
        assert!(!run.ids().contains(&FindingId::SyncPerWrite));
        assert!(said(&run).iter().any(|s| s == "all 10,000 syncs fail: EBADF"));
    }
}
