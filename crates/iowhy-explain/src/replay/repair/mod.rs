//! Repairs: what an advice makes of the plan of a run, one finding a file.
//!
//! A repair says why the program gets the same bytes, in the same order where it can see the order. What may not enter:
//! whether it is faster.

mod cache_thrash;
mod coalesce;
mod fresh_buffers;
mod inode_lock;
mod kept_mapping;
mod no_readahead;
mod packed;
mod queue_depth_one;
mod readahead_waste;
mod stdio_seek;
mod sync_per_write;
mod unaligned_write;

use iowhy_core::finding::FindingId;
use iowhy_core::replay::{Action, Do, Plan};

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
        FindingId::SmallRequests => coalesce::repaired(plan),
        FindingId::SyncPerWrite => sync_per_write::repaired(plan),
        FindingId::QueueDepthOne => queue_depth_one::repaired(plan),
        FindingId::NoReadahead => no_readahead::repaired(plan),
        FindingId::ReadaheadWaste => readahead_waste::repaired(plan),
        FindingId::MmapFaults | FindingId::MmapLock => kept_mapping::repaired(plan),
        FindingId::FreshBuffers => fresh_buffers::repaired(plan),
        FindingId::InodeLock => inode_lock::repaired(plan),
        FindingId::CacheThrash => cache_thrash::repaired(plan, beside),
        FindingId::UnalignedWrite => unaligned_write::repaired(plan),
        FindingId::StdioSeek => stdio_seek::repaired(plan),
        FindingId::ManySmallFiles => packed::repaired(plan),
        FindingId::CopyBound => none("whether the program needs its own copy of each byte is not seen"),
        FindingId::DirtyThrottle => none("the limit is the machine's, and is not changed for a proof"),
        FindingId::DeviceSaturated => {
            none("only asking for less helps, and what can be left out is not seen")
        }
        FindingId::NoisyNeighbour => none("the neighbour is not ours to stop"),
        FindingId::Throttled => none("the limit is not ours to lift"),
        FindingId::CpuBound | FindingId::WaitingElsewhere | FindingId::Healthy => {
            none("it names no fault in the I/O path")
        }
    }
}

/// Each call of a plan's thread by itself.
fn each(actions: &[Action]) -> impl Iterator<Item = Action> {
    actions.iter().flat_map(|a| (0..a.count).map(|i| Action { place: a.at(i), count: 1, stride: 0, ..*a }))
}

/// The same plan with other actions on each thread.
fn with_threads(plan: &Plan, change: impl Fn(&[Action]) -> Vec<Action>) -> Plan {
    let threads = plan.threads.iter().map(|actions| change(actions)).collect();
    Plan { threads, ..plan.clone() }
}

/// Whether it moves bytes by a call.
fn moves(what: Do) -> bool {
    matches!(what, Do::Read { .. } | Do::Write)
}

fn done(plan: Plan, how: impl Into<String>) -> Result<Repaired, String> {
    Ok(Repaired { plan, how: how.into(), kept: 0.0 })
}
