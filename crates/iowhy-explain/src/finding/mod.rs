//! Findings: one rule a file, each with its claim, evidence, advice and limits, which are also the manual.
//!
//! A rule fires on *cost times achievable gain*, never on counts alone. A rule is a pure function of [`Facts`]. The
//! order of the report is the order of predicted gain; a cost that two rules claim belongs to the one with the more
//! direct evidence.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::model::StackModel;
use iowhy_core::profile::Profile;

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
