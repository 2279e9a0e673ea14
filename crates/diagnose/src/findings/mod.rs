//! Findings: one rule a file, each with its claim, evidence, advice and limits, which are also the manual.
//!
//! A rule fires on *cost times achievable gain*, never on counts alone. A rule is a pure function of [`Facts`]. The
//! order of the report is the order of predicted gain; a cost that two rules claim belongs to the one with the more
//! direct evidence ([`judge`]).

mod cache_thrash;
mod conflict;
mod copy_bound;
mod cpu_bound;
mod device_saturated;
mod dirty_throttle;
mod facts;
mod failing;
mod fresh_buffers;
mod gain;
mod healthy;
mod inode_lock;
mod lock;
mod loops;
mod many_small_files;
mod mapping;
mod mmap_faults;
mod mmap_lock;
pub mod names;
mod no_readahead;
mod noisy_neighbour;
mod queue_depth_one;
mod queueing;
mod range;
mod readahead_waste;
mod repairs;
mod report;
mod say;
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

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::model::StackModel;
use iowhy_core::profile::Profile;

pub use self::gain::Savings;
pub use self::loops::{around, interpreted, own_ns, start_ns};
pub use self::range::Range;
pub use self::repairs::{first_time, others, repaired, together};
use crate::account::Account;

/// What a rule may look at.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What was seen.
    pub profile: &'a Profile,
    /// Where the time went.
    pub account: &'a Account,
    /// What the machine costs, where it was measured.
    pub model: Option<&'a StackModel>,
}

/// One rule.
pub struct Rule {
    /// What it finds.
    pub id: FindingId,
    /// Its page of the manual, in Markdown: claim, evidence, advice, limits.
    pub manual: &'static str,
    /// Looks at the facts.
    pub judge: fn(&Facts<'_>) -> Option<Finding>,
}

/// Saving less than this part of the wall time is not worth anybody's attention.
pub const WORTH_SAVING: f64 = 0.05;

/// All rules, in the order of [`FindingId::ALL`]: what can be repaired first, then the three that describe a program
/// without such a cause.
pub const RULES: &[Rule] = &[
    small_requests::RULE,
    sync_per_write::RULE,
    queue_depth_one::RULE,
    no_readahead::RULE,
    readahead_waste::RULE,
    mmap_faults::RULE,
    fresh_buffers::RULE,
    mmap_lock::RULE,
    inode_lock::RULE,
    many_small_files::RULE,
    dirty_throttle::RULE,
    copy_bound::RULE,
    cache_thrash::RULE,
    unaligned_write::RULE,
    device_saturated::RULE,
    noisy_neighbour::RULE,
    throttled::RULE,
    stdio_seek::RULE,
    cpu_bound::RULE,
    waiting_elsewhere::RULE,
    healthy::RULE,
];

/// What others cost stands above the program's own causes only where it is clearly more: a neighbour may be gone in the
/// next run, and the predictions of the own causes hold with and without it.
const NEIGHBOUR_FIRST: f64 = 1.5;

/// A run shorter than this, with less evidence than [`ENOUGH_EVIDENCE`], says nothing about its causes: 20 ms hold about
/// 20 samples.
const SHORT_NS: f64 = 2e7;
/// Samples and sleeps.
const ENOUGH_EVIDENCE: u64 = 20;
/// Where the best repair gains less than this, what the program mostly does is said first.
const WEAK_GAIN: f64 = 1.2;

/// The causes, the one with the greatest predicted gain first; causes whose gain cannot be predicted follow, by their
/// share of the wall time. What others cost (`noisy-neighbour`) comes first only where it gains `NEIGHBOUR_FIRST`
/// times what the best of the program's own causes gains, else after the best of them. Never empty: where nothing of
/// the program's own can be repaired, exactly one of `cpu-bound`, `waiting-elsewhere` and `healthy` says what the
/// program does instead, also beside a neighbour. Where the best repair
/// gains less than `WEAK_GAIN` and the program mostly computes or waits elsewhere, that is said first. A run too short
/// to tell has exactly one finding, which says so.
pub fn judge(facts: &Facts<'_>) -> Vec<Finding> {
    let wall_ns = facts.account.wall_ns;
    if wall_ns > 0.0 && wall_ns < SHORT_NS && facts.evidence() < ENOUGH_EVIDENCE {
        return vec![healthy::too_short(facts)];
    }
    let found = |repairable: bool| {
        RULES.iter().filter(move |r| r.id.is_repairable() == repairable).filter_map(|r| (r.judge)(facts))
    };
    let mut findings = conflict::resolved(found(true).collect());
    let neighbour = findings.iter().position(|f| f.id == FindingId::NoisyNeighbour);
    let neighbour = neighbour.map(|at| findings.remove(at));
    let gain = |f: &Finding| f.gain.map_or(0.0, |g| g.predicted);
    findings.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then_with(|| b.share.total_cmp(&a.share)));
    let own = !findings.is_empty();
    if let Some(neighbour) = neighbour {
        let clearly_more = findings.first().is_none_or(|f| gain(&neighbour) > NEIGHBOUR_FIRST * gain(f));
        let at = findings.iter().position(|f| gain(f) < gain(&neighbour)).unwrap_or(findings.len());
        findings.insert(if clearly_more { 0 } else { at.max(1) }, neighbour);
    }
    let described = found(false).next();
    if !own {
        findings.extend(described);
    } else if let (Some(described), Some(best)) = (described, findings.first()) {
        let weak = best.gain.is_some_and(|g| g.predicted < WEAK_GAIN);
        if weak && described.id != FindingId::Healthy && described.share > best.share {
            findings.insert(0, described);
        }
    }
    failing::tell(facts, &mut findings);
    findings
}

/// The manual page of a finding, in Markdown.
pub fn manual(id: FindingId) -> &'static str {
    RULES.iter().find(|r| r.id == id).map_or("", |r| r.manual)
}
