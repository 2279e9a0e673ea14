//! What repairs have in common: their result, what they may look at, and edits of plans by mechanism. Each is in the folder
//! of its finding.
//!
//! A repair says why the program gets the same bytes, in the same order where it can see the order. What may not enter:
//! whether it is faster.

pub mod buffers;
pub(crate) mod coalesce;
pub(crate) mod kept_mapping;
pub mod order;
pub(crate) mod placed;
pub(crate) mod read_ahead;
#[cfg(test)]
pub(crate) mod synthetic;

use iowhy_core::profile::Profile;
use iowhy_core::replay::{Action, Advice, Op, Plan, Role};

/// Default of `Sizes::batch`.
const BATCH: u64 = 100;
/// Default of `Sizes::subsample`.
const SUBSAMPLE: u32 = 2;

/// A plan in which one cause is repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The calls.
    pub plan: Plan,
    /// The change, in a few words.
    pub how: String,
    /// Part of the run that the repair leaves unchanged, 0 to 1.
    pub unaffected_share: f64,
    /// The calls where the program does the least that its calls allow, if what it does besides them is not recorded.
    pub at_best: Option<Plan>,
}

impl Repaired {
    /// A repair of the whole run.
    pub fn new(plan: Plan, how: impl Into<String>) -> Repaired {
        Repaired { plan, how: how.into(), unaffected_share: 0.0, at_best: None }
    }
}

/// Facts of the run that the plan does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Bytes that devices read for the program.
    pub fetched_bytes: f64,
    /// Bytes of the files that it read.
    pub distinct_bytes: f64,
    /// Whether memory could hold all that it wrote, were the limits on dirty data raised.
    pub can_stay_dirty: bool,
    /// The least time in which this machine loads a byte of each cache line of a page, in nanoseconds; 0 where that was not
    /// measured.
    pub page_load_ns: f64,
    /// The sizes that the user chose.
    pub sizes: Sizes,
}

impl RunFacts {
    /// From the profile of the plan's run.
    pub fn from_profile(profile: &Profile, plan: &Plan, sizes: Sizes) -> RunFacts {
        let read = |path: &str| plan.files.iter().any(|f| f.path == path);
        let bytes = profile.files.iter().filter(|f| read(&f.path)).filter_map(|f| f.size_bytes);
        RunFacts {
            fetched_bytes: profile.io.device_read_bytes.unwrap_or(0) as f64,
            distinct_bytes: bytes.sum::<u64>() as f64,
            can_stay_dirty: can_stay_dirty(profile),
            page_load_ns: 0.0,
            sizes,
        }
    }
}

/// Sizes of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Records that are made durable together; [`Sizes::ALL`]: all of the run.
    pub batch: u64,
    /// Bytes of a request that is merged from several.
    pub request_bytes: u64,
    /// Requests in flight; absent: 32 on a ring, 16 threads.
    pub depth: Option<u32>,
    /// For device-saturated: replay 1/N of the bytes.
    pub subsample: u32,
}

impl Sizes {
    /// A batch that is the whole run.
    pub const ALL: u64 = u64::MAX;
}

impl Sizes {
    /// Where nobody says otherwise.
    pub const USUAL: Sizes =
        Sizes { batch: BATCH, request_bytes: coalesce::BYTES, depth: None, subsample: SUBSAMPLE };
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::USUAL
    }
}

/// The first pass over the data of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstTime {
    /// The run with all data uncached.
    pub plan: Plan,
    /// Passes over the files in one run, at least 1; only one of them is the first.
    pub times_around: f64,
}

/// The same calls, with memory that begins where a page does: copying is faster so on some CPUs.
pub fn with_aligned_buffers(plan: &Plan) -> Option<Repaired> {
    buffers::aligned(plan).map(|plan| Repaired::new(plan, "page-aligned buffers"))
}

/// The hint that the order is random, and nothing else.
pub fn hinted_random(plan: &Plan) -> Repaired {
    let mut plan = plan.clone();
    plan.files.iter_mut().filter(|f| f.role == Role::User).for_each(|f| f.advice = Advice::Random);
    Repaired::new(plan, "hint: random access")
}

/// Each call of a plan's thread by itself.
pub(crate) fn each(actions: &[Action]) -> impl Iterator<Item = Action> {
    actions.iter().flat_map(|a| (0..a.count).map(|i| Action { offset: a.at(i), count: 1, stride: 0, ..*a }))
}

/// The same plan with other actions on each thread.
pub(crate) fn with_threads(plan: &Plan, change: impl Fn(&[Action]) -> Vec<Action>) -> Plan {
    let threads = plan.threads.iter().map(|actions| change(actions)).collect();
    Plan { threads, ..plan.clone() }
}

/// Whether it moves bytes by a call.
pub(crate) fn moves(what: Op) -> bool {
    matches!(what, Op::Read { .. } | Op::Write)
}

pub(crate) fn done(plan: Plan, how: impl Into<String>) -> Result<Repaired, String> {
    Ok(Repaired::new(plan, how))
}

/// Bytes up to this part of memory can stay dirty where the limits are raised.
const CAN_STAY: f64 = 0.4;

pub(crate) fn written_bytes(profile: &Profile) -> Option<f64> {
    let io = &profile.io;
    io.device_written_bytes.or(io.written_bytes).map(|bytes| bytes as f64)
}

pub(crate) fn memory_bytes(profile: &Profile) -> Option<f64> {
    profile.pressure.memory_bytes.map(|bytes| bytes as f64)
}

/// Whether all that was written could stay dirty in memory, were the limits raised.
pub(crate) fn can_stay_dirty(profile: &Profile) -> bool {
    written_bytes(profile).zip(memory_bytes(profile)).is_some_and(|(w, m)| w <= CAN_STAY * m)
}
