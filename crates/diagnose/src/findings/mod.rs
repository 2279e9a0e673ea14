//! Findings: one folder each, with its rule (detect, cost, words), manual page, repair and tests.
//!
//! A rule is a pure function of [`Facts`] and calls no other rule. It fires on cost times achievable gain, never on counts
//! alone. Which finding explains whose cost, and the order of the report, is in `precedence`.

mod cache_thrash;
mod cold;
mod copy_bound;
mod copy_up;
mod cpu_bound;
mod device_saturated;
mod dirty_throttle;
mod facts;
mod failed_lookups;
mod failing;
mod file_lock;
mod fresh_buffers;
mod healthy;
mod inode_lock;
mod lock;
mod lookups;
mod loops;
mod many_small_files;
mod mapped_over_network;
mod mapping;
mod memory_pressure;
mod mmap_faults;
mod mmap_lock;
pub mod names;
mod needless;
mod no_readahead;
mod noisy_neighbour;
mod own_requests;
mod precedence;
mod process_starts;
mod queue_depth_one;
mod queueing;
mod readahead_waste;
mod reads_of_holes;
mod remote_metadata;
mod removable;
#[cfg(test)]
mod repair_tests;
mod repairs;
mod repeated_reads;
mod replaced_files;
mod replies;
mod report;
mod rewritten_files;
mod say;
mod served;
mod server_bound;
mod short_memory;
mod sleepers;
mod small_requests;
mod stdio_seek;
mod sync_per_write;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
#[cfg(test)]
mod tests;
mod throttled;
mod unaligned_write;
mod waiting_elsewhere;

use iowhy_core::finding::{Finding, FindingId, Prediction};
use iowhy_core::model::StackModel;
use iowhy_core::profile::Profile;

pub use self::cold::{Cold, cold};
pub use self::facts::{DESCRIPTOR_CALLS, Side, counted_with_their_file};
pub use self::loops::{OwnCode, own_ns};
pub use self::repairs::{
    Changed, Repairs, changed, choices, first_time, never_repaired, others, repaired, together,
};
use crate::account::Account;
use crate::advice;

/// The input of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What was observed.
    pub profile: &'a Profile,
    /// Where the time went.
    pub account: &'a Account,
    /// The costs of the machine, where they were measured.
    pub model: Option<&'a StackModel>,
    /// What was calibrated on this machine.
    pub predictions: &'a [(FindingId, Prediction)],
    /// Calls that a finding explains already.
    claimed: Option<facts::Side>,
}

impl<'a> Facts<'a> {
    /// The facts of one run.
    pub fn new(profile: &'a Profile, account: &'a Account, model: Option<&'a StackModel>) -> Facts<'a> {
        Facts { profile, account, model, predictions: &[], claimed: None }
    }

    /// The same with what was calibrated for findings.
    pub fn with(self, predictions: &'a [(FindingId, Prediction)]) -> Facts<'a> {
        Facts { predictions, ..self }
    }

    /// Whether another finding explains the calls of this side ([`precedence`]).
    fn is_claimed(&self, side: facts::Side) -> bool {
        self.claimed == Some(side)
    }
}

/// One rule with all that belongs to its finding.
pub struct Rule {
    /// The finding.
    pub id: FindingId,
    /// The cause in one line.
    pub claim: &'static str,
    /// Page of the manual, in Markdown: claim, evidence, advice, limits, example.
    pub manual: &'static str,
    /// Detects the cause; `None`: not found, or not worth naming.
    pub judge: fn(&Facts<'_>) -> Option<Finding>,
    /// The advice applied to the plan of a run.
    pub repairs: Repairs,
}

/// Saving less than this part of the wall time is not worth reporting.
pub const WORTH_SAVING: f64 = 0.05;

macro_rules! rules {
    ($($(#[$doc:meta])+ $variant:ident, $folder:ident, $id:literal, $repairable:literal;)+) => {
        /// All rules, in the order of [`FindingId::ALL`].
        const RULES: &[Rule] = &[$($folder::RULE),+];
    };
}

iowhy_core::with_findings!(rules);

/// A run shorter than this, with less evidence than [`ENOUGH_EVIDENCE`], shows no cause: 20 ms hold about 20 samples.
const SHORT_NS: f64 = 2e7;
/// Samples and sleeps.
const ENOUGH_EVIDENCE: u64 = 20;

/// The findings of a run in the order of the report. Never empty: where no cause of the program's own is found, exactly one
/// of `cpu-bound`, `waiting-elsewhere` and `healthy` describes the run. A run that is too short has one finding, which says
/// so.
pub fn judge(facts: &Facts<'_>) -> Vec<Finding> {
    let wall_ns = facts.account.wall_ns;
    if wall_ns < SHORT_NS && facts.evidence() < ENOUGH_EVIDENCE {
        return vec![healthy::too_short(facts)];
    }
    let facts = &precedence::with_claims(facts, |id, facts| (rule(id).judge)(facts).is_some());
    let found = |repairable: bool| {
        RULES.iter().filter(move |r| r.id.is_repairable() == repairable).filter_map(|r| (r.judge)(facts))
    };
    let mut findings = precedence::unexplained(found(true).collect());
    precedence::rank(&mut findings, facts.wall_share(facts.delay_at_device_ns()));
    precedence::describe(&mut findings, found(false).next());
    failing::report(facts, &mut findings);
    advice::add(facts.profile, facts.account, &mut findings);
    findings
}

/// The rule of a finding.
pub(crate) fn rule(id: FindingId) -> &'static Rule {
    &RULES[id as usize]
}

/// The cause that a finding names, in one line.
pub fn claim(id: FindingId) -> &'static str {
    rule(id).claim
}

/// The manual page of a finding, in Markdown.
pub fn manual(id: FindingId) -> &'static str {
    rule(id).manual
}
