//! Which finding explains whose cost, and in which order findings are reported. The rules know nothing of each other.

use iowhy_core::finding::{Finding, FindingId};

use FindingId as F;

use super::Facts;
use super::facts::Side;
use crate::classify::Operation;

/// These findings explain all calls of a side: rules for that side do not see them.
pub(super) const CLAIMS: &[(FindingId, Side)] = &[(F::SyncPerWrite, Side::Write)];

/// Findings that failing calls of an operation are reported under.
pub(super) const FAILING: &[(FindingId, &[Operation])] = &[
    (F::RemoteMetadata, &[Operation::Open, Operation::Stat, Operation::Names]),
    (F::FailedLookups, &[Operation::Open, Operation::Stat, Operation::Names]),
    (F::ManySmallFiles, &[Operation::Open, Operation::Stat, Operation::Names]),
    (F::SmallRequests, &[Operation::Read, Operation::Write]),
    (F::StdioSeek, &[Operation::Read, Operation::Write]),
    (F::SyncPerWrite, &[Operation::Sync]),
];

/// The first explains the cost of the second: with the first repaired, the second has nothing left to repair.
const EXPLAINS: &[(FindingId, FindingId)] = &[
    // Each sync orders the write-back that the writer pauses for and the device works on.
    (F::SyncPerWrite, F::DirtyThrottle),
    (F::SyncPerWrite, F::DeviceSaturated),
    (F::SyncPerWrite, F::ManySmallFiles),
    // What is copied up is read, written and synced by the overlay, name by name.
    (F::CopyUp, F::ManySmallFiles),
    (F::CopyUp, F::ReplacedFiles),
    (F::CopyUp, F::DeviceSaturated),
    (F::CopyUp, F::DirtyThrottle),
    (F::CopyUp, F::InodeLock),
    // A small file is read by small requests, one at a time.
    (F::ManySmallFiles, F::SmallRequests),
    (F::ManySmallFiles, F::QueueDepthOne),
    (F::ManySmallFiles, F::FreshBuffers),
    // Each seek discards the buffer, which causes many and repeated reads.
    (F::StdioSeek, F::SmallRequests),
    (F::StdioSeek, F::CopyBound),
    (F::StdioSeek, F::CacheThrash),
    (F::StdioSeek, F::ReadaheadWaste),
    // What is read again comes from the device again: keeping it cures both.
    (F::CacheThrash, F::RepeatedReads),
    // Without read-ahead, sequential reads wait one at a time.
    (F::NoReadahead, F::QueueDepthOne),
    (F::NoReadahead, F::SmallRequests),
    (F::NoReadahead, F::MmapFaults),
    (F::MmapFaults, F::QueueDepthOne),
    (F::MmapFaults, F::FreshBuffers),
    // Bytes that need not come from the device do not need a faster one.
    (F::CacheThrash, F::DeviceSaturated),
    (F::ReadaheadWaste, F::DeviceSaturated),
    (F::MemoryPressure, F::DeviceSaturated),
    // Zeros that are not written need no write-back.
    (F::ReadsOfHoles, F::DeviceSaturated),
    (F::ReadsOfHoles, F::DirtyThrottle),
    // Neither do versions that are not written.
    (F::RewrittenFiles, F::DeviceSaturated),
    (F::RewrittenFiles, F::DirtyThrottle),
    // Reading the same bytes again is what fills memory and brings evicted pages back.
    (F::CacheThrash, F::MemoryPressure),
    // A page that stays in memory is not waited for, one at a time or otherwise.
    (F::MemoryPressure, F::MmapFaults),
    (F::MemoryPressure, F::QueueDepthOne),
    // Freeing pages is CPU time of the memory layer, as zeroing fresh ones is.
    (F::MemoryPressure, F::FreshBuffers),
    // The server's answers are what names and faults cost; what is left is CPU time.
    (F::RemoteMetadata, F::ManySmallFiles),
    (F::RemoteMetadata, F::FailedLookups),
    (F::MappedOverNetwork, F::MmapFaults),
    (F::ReadaheadWaste, F::MmapFaults),
    // A limit or other processes, not the device itself.
    (F::Throttled, F::DeviceSaturated),
    (F::Throttled, F::DirtyThrottle),
    (F::Throttled, F::NoisyNeighbour),
    (F::Throttled, F::QueueDepthOne),
    // The waits of small direct requests are the limit's.
    (F::Throttled, F::SmallRequests),
    (F::NoisyNeighbour, F::DeviceSaturated),
    (F::UnalignedWrite, F::SmallRequests),
    // The writer pauses because the device is busy; the pause is the more direct evidence.
    (F::DirtyThrottle, F::DeviceSaturated),
    // While the writer is paused, bytes leave at the device's rate: time that copying does not take becomes a pause.
    (F::DirtyThrottle, F::CopyBound),
    // Each new mapping is mapped, faulted and unmapped under the lock.
    (F::FreshBuffers, F::MmapLock),
    (F::SmallRequests, F::CopyBound),
    // Each start looks for libraries where they are not, opens them, reads their heads, maps them and takes their faults.
    (F::ProcessStarts, F::FailedLookups),
    (F::ProcessStarts, F::ManySmallFiles),
    (F::ProcessStarts, F::SmallRequests),
    (F::ProcessStarts, F::MmapFaults),
    (F::ProcessStarts, F::FreshBuffers),
    // Who waits for the lock cannot read meanwhile.
    (F::FileLock, F::QueueDepthOne),
];

/// The first makes the second needless, which may be the easier repair: both stand, in this order.
const BEFORE: &[(FindingId, FindingId)] = &[
    // Bytes that need not be read need not be copied, mapped or not.
    (F::RepeatedReads, F::CopyBound),
    (F::ReadsOfHoles, F::CopyBound),
    // Versions that are not written have no names, replace nothing, and need no memory to be made in.
    (F::RewrittenFiles, F::ManySmallFiles),
    (F::RewrittenFiles, F::ReplacedFiles),
    (F::RewrittenFiles, F::FreshBuffers),
    // The buffer that each seek discards is read again; whether the program needs the same bytes again, too, is not seen.
    (F::StdioSeek, F::RepeatedReads),
    // With one sync for many records there is one journal, or one new file, to remove or to replace.
    (F::SyncPerWrite, F::ReplacedFiles),
];

/// What the first saves, or costs where no gain is known, must be at least this part of what the second does.
const MIN_PART: f64 = 0.5;
/// Where the first cause takes less than a fifth of the wall time, what the program mostly does is reported first.
const WEAK: f64 = 0.2;

/// What a description of the program's own code ends with, unless a finding says otherwise.
pub(super) const LITTLE: &str = "; I/O changes would gain little";

/// Of what goes with these causes, the program's own code has its part, which is not seen: what is read again is worked on again. That the
/// code dominates is no reason to look elsewhere. (Versions of files are none of them: a computation that saves its state now and then computes.)
const WORKED_ON: [FindingId; 2] = [F::RepeatedReads, F::ReadsOfHoles];

/// Facts with all claims of [`CLAIMS`] whose rule finds its cause.
pub(super) fn with_claims<'a>(facts: &Facts<'a>, finds: impl Fn(FindingId, &Facts<'a>) -> bool) -> Facts<'a> {
    let claimed = CLAIMS.iter().filter(|(id, _)| finds(*id, facts)).map(|(_, side)| *side);
    Facts { claimed: claimed.last(), ..*facts }
}

/// The findings without those that another one explains.
pub(super) fn unexplained(findings: Vec<Finding>) -> Vec<Finding> {
    let explained = |b: &Finding| {
        findings.iter().any(|a| EXPLAINS.contains(&(a.id, b.id)) && weight(a) >= MIN_PART * weight(b))
    };
    let keep: Vec<bool> = findings.iter().map(|f| !explained(f)).collect();
    findings.into_iter().zip(keep).filter_map(|(f, keep)| keep.then_some(f)).collect()
}

/// The greatest part of the wall time first: what a calibrated change saves, else what the cause takes. What other processes cost was
/// measured in this run, whereas a gain may rest on repeats after it: they come first where more of the wall time is theirs than is left
/// of the first cause without their delay at the device. `at_device`: share of the wall time that this delay takes, which is in the waits
/// of that cause.
pub(super) fn rank(findings: &mut Vec<Finding>, at_device: f64) {
    let others = findings.iter().position(|f| f.id == FindingId::NoisyNeighbour);
    let others = others.map(|at| findings.remove(at));
    findings.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| b.share.total_cmp(&a.share)));
    let at = |findings: &[Finding], id| findings.iter().position(|f| f.id == id);
    for (first, second) in BEFORE {
        if let (Some(from), Some(to)) = (at(findings, *first), at(findings, *second))
            && from > to
            && weight(&findings[from]) >= MIN_PART * weight(&findings[to])
        {
            findings[to..=from].rotate_right(1);
        }
    }
    if let Some(others) = others {
        let mostly_theirs = findings.first().is_none_or(|f| others.share > f.share - at_device);
        let at = findings.iter().position(|f| f.share < others.share).unwrap_or(findings.len());
        findings.insert(if mostly_theirs { 0 } else { at.max(1) }, others);
    }
}

/// Adds the description of a run: alone where the program has no cause of its own, first where its causes are weak.
pub(super) fn describe(findings: &mut Vec<Finding>, description: Option<Finding>) {
    let Some(mut description) = description else { return };
    let most = findings.iter().max_by(|a, b| own_code_of(a).total_cmp(&own_code_of(b)));
    if let Some(named) = most.filter(|f| own_code_of(f) > WEAK)
        && let Some(sentence) = description.sentence.strip_suffix(LITTLE)
    {
        description.sentence = format!("{sentence}; part of it may go with the calls of {}", named.id.id());
    }
    let own = findings.iter().any(|f| f.id != FindingId::NoisyNeighbour);
    if !own {
        findings.push(description);
    } else if let Some(best) = findings.first()
        && weight(best) < WEAK
        && !WORKED_ON.contains(&best.id)
        && description.id != FindingId::Healthy
        && description.share > best.share
    {
        findings.insert(0, description);
    }
}

/// The part of the wall time by which the ends of a prediction by the account differ: mostly the program's own code, which goes or stays.
fn own_code_of(f: &Finding) -> f64 {
    let by_account = f.prediction.as_ref().filter(|p| p.repeated.is_none() && p.wall_ns > 0.0);
    by_account.map_or(0.0, |p| (p.remaining.high - p.remaining.low) / p.wall_ns)
}

/// Part of the wall time that a finding is about: what was repeated tells more than the account.
pub(super) fn weight(f: &Finding) -> f64 {
    let repeated = f.prediction.as_ref().is_none_or(|p| p.repeated.is_some());
    f.gain.filter(|_| repeated).map_or(f.share, |g| 1.0 - 1.0 / g.predicted.max(1.0))
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_core::finding::{Gain, Prediction, RepeatedCalls};

    use super::*;

    fn gain(predicted: f64) -> Gain {
        Gain { predicted, low: predicted, high: predicted, open_above: false }
    }

    fn finding(id: FindingId, share: f64) -> Finding {
        Finding {
            id,
            share,
            sentence: String::new(),
            evidence: vec![],
            advice: String::new(),
            gain: None,
            gain_rest_unchanged: None,
            in_program: None,
            prediction: None,
            not_calibrated: None,
            replies: None,
            undecided: false,
        }
    }

    #[test]
    fn no_two_findings_explain_each_other() {
        // Indirectly neither: both would vanish.
        fn reaches(from: FindingId, to: FindingId, depth: usize) -> bool {
            depth > 0 && EXPLAINS.iter().any(|(a, b)| *a == from && (*b == to || reaches(*b, to, depth - 1)))
        }
        for (a, _) in EXPLAINS {
            assert!(!reaches(*a, *a, EXPLAINS.len().min(8)), "{a:?} explains itself");
        }
        assert!(EXPLAINS.iter().all(|(a, b)| a.is_repairable() && b.is_repairable()));
    }

    #[test]
    fn others_come_after_a_greater_cause_whose_gain_is_not_known() {
        let first = |share, theirs, at_device, gain: Option<f64>| {
            let mut both = vec![
                Finding { gain: Some(self::gain(1.1)), ..finding(F::NoisyNeighbour, theirs) },
                Finding { gain: gain.map(self::gain), ..finding(F::SyncPerWrite, share) },
            ];
            rank(&mut both, at_device);
            both[0].id
        };
        assert_eq!(first(0.98, 0.09, 0.0, None), F::SyncPerWrite);
        assert_eq!(first(0.05, 0.09, 0.0, None), F::NoisyNeighbour);
        // Nearly all of these waits are behind requests of others, whatever a repeat gains.
        assert_eq!(first(0.98, 0.95, 0.95, Some(33.0)), F::NoisyNeighbour);
        assert_eq!(first(0.98, 0.3, 0.3, Some(2.0)), F::SyncPerWrite);
    }

    #[test]
    fn bytes_that_need_not_be_read_come_before_their_copies() {
        let order = |again: f64| {
            let copied = Finding { gain: Some(gain(44.0)), ..finding(F::CopyBound, 0.9) };
            let mut all = vec![finding(F::RepeatedReads, again), copied, finding(F::FreshBuffers, 0.95)];
            rank(&mut all, 0.0);
            all.iter().map(|f| f.id).collect::<Vec<_>>()
        };
        assert_eq!(order(0.88), [F::RepeatedReads, F::CopyBound, F::FreshBuffers]);
        assert_eq!(order(0.3), [F::CopyBound, F::FreshBuffers, F::RepeatedReads]);
    }

    #[test]
    fn fewer_syncs_leave_fewer_journals_to_remove() {
        let order = |synced: f64| {
            let mut both = vec![finding(F::ReplacedFiles, 0.6), finding(F::SyncPerWrite, synced)];
            rank(&mut both, 0.0);
            both[0].id
        };
        assert_eq!((order(0.35), order(0.25)), (F::SyncPerWrite, F::ReplacedFiles));
    }

    #[test]
    fn own_code_that_may_go_with_calls_is_not_said_to_stay() {
        let computes = Finding { sentence: format!("computes{LITTLE}"), ..finding(F::CpuBound, 0.8) };
        let first = |left_ns: f64, repeated: Option<RepeatedCalls>| {
            let ns = |value| Estimate { value, low: left_ns, high: value, unit: Unit::Nanoseconds, n: 1 };
            let (remaining, wall_ns) = (ns(90.0), 100.0);
            let prediction = Prediction {
                how: String::new(),
                remaining,
                repeated,
                wall_ns,
                choices: vec![],
                notes: vec![],
            };
            let mut all = vec![Finding { prediction: Some(prediction), ..finding(F::ManySmallFiles, 0.1) }];
            describe(&mut all, Some(computes.clone()));
            all.swap_remove(0).sentence
        };
        assert_eq!(first(10.0, None), "computes; part of it may go with the calls of many-small-files");
        assert_eq!(first(85.0, None), computes.sentence);
        let fidelity = Estimate { value: 1.0, low: 1.0, high: 1.0, unit: Unit::Ratio, n: 5 };
        assert_eq!(first(10.0, Some(RepeatedCalls { calls: 9, fidelity })), computes.sentence);
    }

    #[test]
    fn code_that_works_on_the_same_bytes_again_is_no_other_cause() {
        let first = |id| {
            let mut all = vec![finding(id, 0.1)];
            describe(&mut all, Some(finding(F::CpuBound, 0.8)));
            (all.len(), all[0].id)
        };
        assert_eq!(first(F::RepeatedReads), (1, F::RepeatedReads));
        assert_eq!(first(F::SmallRequests), (2, F::CpuBound));
    }

    #[test]
    fn a_small_cause_does_not_hide_a_large_one() {
        let both = vec![finding(F::SyncPerWrite, 0.06), finding(F::DirtyThrottle, 0.8)];
        assert_eq!(unexplained(both).len(), 2);
        let hidden = vec![finding(F::SyncPerWrite, 0.6), finding(F::DirtyThrottle, 0.8)];
        assert_eq!(unexplained(hidden)[0].id, F::SyncPerWrite);
    }
}
