//! When two rules claim the same cost, the one with the more direct evidence has it.

use iowhy_core::finding::{Finding, FindingId};

use FindingId as F;

/// Each first one explains the cost of the second: with the first repaired, the second has nothing left to repair.
const EXPLAINS: &[(FindingId, FindingId)] = &[
    // The pause, and the wait for the device, are those of the write-back that each call orders.
    (F::SyncPerWrite, F::DirtyThrottle),
    (F::SyncPerWrite, F::DeviceSaturated),
    (F::SyncPerWrite, F::ManySmallFiles),
    // A small file is read by small requests, one file after the other.
    (F::ManySmallFiles, F::SmallRequests),
    (F::ManySmallFiles, F::QueueDepthOne),
    (F::ManySmallFiles, F::FreshBuffers),
    // Each seek empties the buffer: hence the many and repeated reads.
    (F::StdioSeek, F::SmallRequests),
    (F::StdioSeek, F::CopyBound),
    (F::StdioSeek, F::CacheThrash),
    (F::StdioSeek, F::ReadaheadWaste),
    // Sequential reads wait one by one because nothing is read ahead.
    (F::NoReadahead, F::QueueDepthOne),
    (F::NoReadahead, F::SmallRequests),
    (F::NoReadahead, F::MmapFaults),
    (F::MmapFaults, F::QueueDepthOne),
    (F::MmapFaults, F::FreshBuffers),
    // A faster way to the device is no repair where the bytes need not come from it at all.
    (F::CacheThrash, F::DeviceSaturated),
    (F::ReadaheadWaste, F::DeviceSaturated),
    (F::ReadaheadWaste, F::MmapFaults),
    // A limit, or others, and not the device itself.
    (F::Throttled, F::DeviceSaturated),
    (F::Throttled, F::DirtyThrottle),
    (F::Throttled, F::NoisyNeighbour),
    (F::Throttled, F::QueueDepthOne),
    (F::NoisyNeighbour, F::DeviceSaturated),
    (F::UnalignedWrite, F::SmallRequests),
    // The writer pauses because the device is full: that it pauses says more to its author.
    (F::DirtyThrottle, F::DeviceSaturated),
    // A mapping that is made anew each time is mapped, faulted and unmapped under the lock.
    (F::FreshBuffers, F::MmapLock),
    (F::SmallRequests, F::CopyBound),
];

/// What the first saves must be at least this part of what the second saves (or costs, where no gain is known).
const AT_LEAST: f64 = 0.5;

/// The findings without those that another one explains.
pub(super) fn resolved(findings: Vec<Finding>) -> Vec<Finding> {
    let explained = |b: &Finding| {
        findings.iter().any(|a| EXPLAINS.contains(&(a.id, b.id)) && weight(a) >= AT_LEAST * weight(b))
    };
    let keep: Vec<bool> = findings.iter().map(|f| !explained(f)).collect();
    findings.into_iter().zip(keep).filter_map(|(f, keep)| keep.then_some(f)).collect()
}

/// Part of the wall time that a finding is about.
fn weight(f: &Finding) -> f64 {
    f.gain.map_or(f.share, |g| 1.0 - 1.0 / g.predicted.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rules_explain_each_other() {
        // Also over detours: then two findings could both vanish.
        fn reaches(from: FindingId, to: FindingId, depth: usize) -> bool {
            depth > 0 && EXPLAINS.iter().any(|(a, b)| *a == from && (*b == to || reaches(*b, to, depth - 1)))
        }
        for (a, _) in EXPLAINS {
            assert!(!reaches(*a, *a, EXPLAINS.len().min(8)), "{a:?} explains itself");
        }
        assert!(EXPLAINS.iter().all(|(a, b)| a.is_repairable() && b.is_repairable()));
    }

    #[test]
    fn a_small_cause_does_not_hide_a_large_one() {
        let finding = |id, share| Finding {
            id,
            share,
            sentence: String::new(),
            evidence: vec![],
            advice: String::new(),
            gain: None,
            undecided: false,
        };
        let both = vec![finding(F::SyncPerWrite, 0.06), finding(F::DirtyThrottle, 0.8)];
        assert_eq!(resolved(both).len(), 2);
        let hidden = vec![finding(F::SyncPerWrite, 0.6), finding(F::DirtyThrottle, 0.8)];
        assert_eq!(resolved(hidden)[0].id, F::SyncPerWrite);
    }
}
