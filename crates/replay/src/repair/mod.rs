//! Repairs: what an advice makes of the plan of a run, one finding a file.
//!
//! A repair says why the program gets the same bytes, in the same order where it can see the order. What may not enter:
//! whether it is faster.

mod cache_thrash;
mod coalesce;
mod copy_bound;
mod device_saturated;
mod dirty_throttle;
mod fresh_buffers;
mod inode_lock;
mod kept_mapping;
mod no_readahead;
mod packed;
mod queue_depth_one;
mod readahead_waste;
mod stdio_seek;
mod sync_per_write;
mod throttled;
mod unaligned_write;

use iowhy_core::finding::FindingId;
use iowhy_core::profile::Profile;
use iowhy_core::replay::{Action, Advice, Op, Plan, Role};

use super::buffers;
use iowhy_diagnose::findings::can_stay;

/// A request that no device answers much faster for each byte when it is longer.
const LONG_BYTES: u64 = 1 << 20;

/// A plan in which one cause is repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The calls.
    pub plan: Plan,
    /// What was done, in a few words.
    pub how: String,
    /// Part of the run that stays as it was, 0 to 1.
    pub kept: f64,
}

/// What a repair may look at beside the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// Bytes that devices read for the program.
    pub fetched_bytes: f64,
    /// Bytes of the files that it read.
    pub distinct_bytes: f64,
    /// Whether memory could hold all that it wrote, were the limits on dirty data raised.
    pub can_stay_dirty: bool,
    /// What the user has in mind.
    pub sizes: Sizes,
}

impl Beside {
    /// What the profile tells beside a plan of its run.
    pub fn of(profile: &Profile, plan: &Plan, sizes: Sizes) -> Beside {
        let read = |path: &str| plan.files.iter().any(|f| f.path == path);
        let bytes = profile.files.iter().filter(|f| read(&f.path)).filter_map(|f| f.size_bytes);
        Beside {
            fetched_bytes: profile.io.device_read_bytes.unwrap_or(0) as f64,
            distinct_bytes: bytes.sum::<u64>() as f64,
            can_stay_dirty: can_stay(profile),
            sizes,
        }
    }
}

/// How large a repair is made, where it has a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Records that are made durable together; [`Sizes::ALL`]: all of the run.
    pub batch: u64,
    /// Bytes of a request that is merged from several.
    pub request_bytes: u64,
    /// Requests in flight; absent: 32 on a ring, 16 threads.
    pub depth: Option<u32>,
    /// Where only asking for less helps, one byte in so many stays.
    pub one_in: u32,
}

impl Sizes {
    /// A batch that is the whole run.
    pub const ALL: u64 = sync_per_write::ALL;
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            batch: sync_per_write::BATCH,
            request_bytes: coalesce::BYTES,
            depth: None,
            one_in: device_saturated::ONE_IN,
        }
    }
}

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
        FindingId::SmallRequests => coalesce::repaired(plan, &beside.sizes),
        FindingId::SyncPerWrite => sync_per_write::repaired(plan, &beside.sizes),
        FindingId::QueueDepthOne => queue_depth_one::repaired(plan, &beside.sizes),
        FindingId::NoReadahead => no_readahead::repaired(plan),
        FindingId::ReadaheadWaste => readahead_waste::repaired(plan),
        FindingId::MmapFaults | FindingId::MmapLock => kept_mapping::repaired(plan),
        FindingId::FreshBuffers => fresh_buffers::repaired(plan),
        FindingId::InodeLock => inode_lock::repaired(plan),
        FindingId::CacheThrash => cache_thrash::repaired(plan, beside),
        FindingId::UnalignedWrite => unaligned_write::repaired(plan),
        FindingId::StdioSeek => stdio_seek::repaired(plan),
        FindingId::ManySmallFiles => packed::repaired(plan),
        FindingId::CopyBound => copy_bound::repaired(plan),
        FindingId::DirtyThrottle => dirty_throttle::repaired(plan),
        FindingId::DeviceSaturated => device_saturated::repaired(plan, &beside.sizes),
        FindingId::NoisyNeighbour => none("the neighbour is not ours to stop"),
        FindingId::Throttled => throttled::repaired(plan),
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
        others.extend(kept_mapping::read_instead(plan));
    }
    if id == FindingId::DirtyThrottle && beside.can_stay_dirty {
        others.extend(dirty_throttle::unlimited(plan));
    }
    let asked = beside.sizes != Sizes::default();
    if asked || !matches!(id, FindingId::SmallRequests | FindingId::QueueDepthOne) {
        return others;
    }
    let direct = plan.files.iter().any(|f| f.direct && f.role == Role::User);
    if direct && id == FindingId::SmallRequests {
        let sizes = Sizes { request_bytes: LONG_BYTES, ..beside.sizes };
        others.extend(coalesce::repaired(plan, &sizes));
    }
    let writes = plan.any(|a| a.op == Op::Write);
    if id == FindingId::QueueDepthOne && !writes {
        others.extend(queue_depth_one::announced(plan, &beside.sizes));
    }
    // Reads in order past the cache, and reads from the end to the front, want read-ahead as much as anything else.
    if no_readahead::in_order(plan) {
        others.extend(no_readahead::repaired(plan));
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

/// What comes for the first time in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstTime {
    /// The run, all of which is new.
    pub plan: Plan,
    /// How often one run goes around its files, at least once: only once of these it is the first time.
    pub times_around: f64,
}

/// The part of the repaired run that comes for the first time and cannot be spared (`kept`), where it too is another than in
/// the run as it was. It is measured beside the repaired plan, and takes its part of the time.
pub fn first_time(id: FindingId, plan: &Plan) -> Option<FirstTime> {
    match id {
        FindingId::CacheThrash => cache_thrash::first_time(plan),
        _ => None,
    }
}

/// Requests that follow each other, merged: the repair of `small-requests`.
pub(super) fn coalesced(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    coalesce::repaired(plan, sizes)
}

/// More requests in flight: the repair of `queue-depth-one`.
pub(super) fn several_in_flight(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    queue_depth_one::repaired(plan, sizes)
}

/// A mapping instead of copies: the repair of `copy-bound`.
pub(super) fn copied_less(plan: &Plan) -> Result<Repaired, String> {
    copy_bound::repaired(plan)
}

/// The same calls, with memory that begins where a page does: copying is faster so on some CPUs ([`super::buffers`]).
pub(super) fn with_aligned_buffers(plan: &Plan) -> Option<Repaired> {
    let how = "the same calls into memory that begins where a page does".to_owned();
    buffers::aligned(plan).map(|plan| Repaired { plan, how, kept: 0.0 })
}

/// The hint that the order is random, and nothing else.
pub(super) fn hinted_random(plan: &Plan) -> Repaired {
    let mut plan = plan.clone();
    plan.files.iter_mut().filter(|f| f.role == Role::User).for_each(|f| f.advice = Advice::Random);
    Repaired { plan, how: "the hint that the order is random".to_owned(), kept: 0.0 }
}

/// Each call of a plan's thread by itself.
fn each(actions: &[Action]) -> impl Iterator<Item = Action> {
    actions.iter().flat_map(|a| (0..a.count).map(|i| Action { offset: a.at(i), count: 1, stride: 0, ..*a }))
}

/// The same plan with other actions on each thread.
fn with_threads(plan: &Plan, change: impl Fn(&[Action]) -> Vec<Action>) -> Plan {
    let threads = plan.threads.iter().map(|actions| change(actions)).collect();
    Plan { threads, ..plan.clone() }
}

/// Whether it moves bytes by a call.
fn moves(what: Op) -> bool {
    matches!(what, Op::Read { .. } | Op::Write)
}

fn done(plan: Plan, how: impl Into<String>) -> Result<Repaired, String> {
    Ok(Repaired { plan, how: how.into(), kept: 0.0 })
}
