//! The repair of each finding: what an advice makes of the plan of a run.
//!
//! A repair says why the program gets the same bytes, in the same order where it can see the order. What may not enter:
//! whether it is faster.

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Op, Plan, Role};

use super::{
    cache_thrash, copy_bound, device_saturated, dirty_throttle, fresh_buffers, inode_lock, many_small_files,
    mmap_faults, mmap_lock, no_readahead, queue_depth_one, readahead_waste, small_requests, stdio_seek,
    sync_per_write, throttled, unaligned_write,
};
use crate::repair::{Beside, FirstTime, LONG_BYTES, Repaired, Sizes, with_aligned_buffers};

/// The plan with the cause repaired.
///
/// # Errors
/// Why there is no mechanical repair, in words that end a sentence.
pub fn repaired(id: FindingId, plan: &Plan, beside: &Beside) -> Result<Repaired, String> {
    let none = |why: &str| Err(why.to_owned());
    if plan.tree.is_some() && id != FindingId::ManySmallFiles && id.is_repairable() {
        return none("a tree of ours stands for the files of the program, and it shows this cause to nobody");
    }
    match id {
        FindingId::SmallRequests => small_requests::repair::repaired(plan, beside),
        FindingId::SyncPerWrite => sync_per_write::repair::repaired(plan, beside),
        FindingId::QueueDepthOne => queue_depth_one::repair::repaired(plan, beside),
        FindingId::NoReadahead => no_readahead::repair::repaired(plan, beside),
        FindingId::ReadaheadWaste => readahead_waste::repair::repaired(plan, beside),
        FindingId::MmapFaults => mmap_faults::repair::repaired(plan, beside),
        FindingId::MmapLock => mmap_lock::repair::repaired(plan, beside),
        FindingId::FreshBuffers => fresh_buffers::repair::repaired(plan, beside),
        FindingId::InodeLock => inode_lock::repair::repaired(plan, beside),
        FindingId::CacheThrash => cache_thrash::repair::repaired(plan, beside),
        FindingId::UnalignedWrite => unaligned_write::repair::repaired(plan, beside),
        FindingId::StdioSeek => stdio_seek::repair::repaired(plan, beside),
        FindingId::ManySmallFiles => many_small_files::repair::repaired(plan, beside),
        FindingId::CopyBound => copy_bound::repair::repaired(plan, beside),
        FindingId::DirtyThrottle => dirty_throttle::repair::repaired(plan, beside),
        FindingId::DeviceSaturated => device_saturated::repair::repaired(plan, beside),
        FindingId::NoisyNeighbour => none("the neighbour is not ours to stop"),
        FindingId::Throttled => throttled::repair::repaired(plan, beside),
        FindingId::CpuBound | FindingId::WaitingElsewhere | FindingId::Healthy => {
            none("it names no fault in the I/O path")
        }
    }
}

/// Other repairs of the same cause, to be tried beside the first.
pub fn others(id: FindingId, plan: &Plan, beside: &Beside) -> Vec<Repaired> {
    let mut others = Vec::new();
    if id == FindingId::CopyBound {
        others.extend(with_aligned_buffers(plan));
    }
    if matches!(id, FindingId::MmapFaults | FindingId::MmapLock) {
        others.extend(mmap_faults::repair::read_instead(plan));
    }
    if id == FindingId::DirtyThrottle && beside.can_stay_dirty {
        others.extend(dirty_throttle::repair::unlimited(plan));
    }
    let asked = beside.sizes != Sizes::default();
    if asked || !matches!(id, FindingId::SmallRequests | FindingId::QueueDepthOne) {
        return others;
    }
    let direct = plan.files.iter().any(|f| f.direct && f.role == Role::User);
    if direct && id == FindingId::SmallRequests {
        let sizes = Sizes { request_bytes: LONG_BYTES, ..beside.sizes };
        others.extend(small_requests::repair::merged(plan, &sizes));
    }
    let writes = plan.any(|a| a.op == Op::Write);
    if id == FindingId::QueueDepthOne && !writes {
        others.extend(queue_depth_one::repair::announced(plan, &beside.sizes));
    }
    // Reads in order past the cache, and reads from the end to the front, want read-ahead as much as anything else.
    if no_readahead::repair::in_order(plan) {
        others.extend(no_readahead::repair::repaired(plan, beside));
    }
    others
}

/// All of these repairs, one after the other, in one plan; `None` where fewer than two go together. To ask for less is not
/// among them: with all the others the program gets the same bytes.
pub fn together(ids: &[FindingId], plan: &Plan, beside: &Beside) -> Option<(Vec<FindingId>, Repaired)> {
    let mut all = Repaired { plan: plan.clone(), how: String::new(), kept: 0.0 };
    let (mut done, mut hows) = (Vec::new(), Vec::new());
    for id in ids.iter().filter(|id| **id != FindingId::DeviceSaturated) {
        let Ok(next) = repaired(*id, &all.plan, beside) else { continue };
        all.plan = next.plan;
        all.kept = all.kept.max(next.kept);
        done.push(*id);
        hows.push(next.how);
    }
    all.how = hows.join("; ");
    (done.len() > 1).then_some((done, all))
}

/// The part of the repaired run that comes for the first time and cannot be spared (`kept`), where it too is another than in
/// the run as it was. It is measured beside the repaired plan, and takes its part of the time.
pub fn first_time(id: FindingId, plan: &Plan) -> Option<FirstTime> {
    match id {
        FindingId::CacheThrash => cache_thrash::repair::first_time(plan),
        _ => None,
    }
}
