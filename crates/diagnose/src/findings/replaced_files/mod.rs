//! The rule `replaced-files`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::{Facts, Repairs, Rule, facts, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule {
    id: FindingId::ReplacedFiles,
    claim: "removing, truncating or replacing files waits for the device",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("files of the program are not replaced or removed to find out"),
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waits = facts.account.sum(facts::frees_blocks);
    if waits.wall_ns <= 0.0 {
        return None;
    }
    let of = |wait: Wait| facts.account.sum(|e: &Entry| facts::frees_blocks(e) && e.class.wait == Some(wait));
    let (discards, written) = (of(Wait::DeviceWrite), of(Wait::DataWriteback));
    let mut evidence = vec![facts.waits_in_words(waits, "wait for it", "waits for it")];
    let parts = [
        (
            discards,
            "for the device, which discards the freed blocks (on a file system mounted with `discard`) or writes",
        ),
        (
            written,
            "for the write-back of what the file held, which had begun and must end before its blocks are freed",
        ),
    ];
    evidence.extend(
        parts.iter().filter(|(sum, _)| sum.wall_ns > 0.0).map(|(sum, what)| {
            format!("{} of wall time {what}", say::percent(facts.wall_share(sum.wall_ns)))
        }),
    );
    let mut advice = Vec::new();
    if discards.wall_ns > 0.0 {
        advice.push(
            "If `findmnt -o TARGET,OPTIONS` shows `discard`, mount without it and let fstrim.timer discard freed blocks once a week.",
        );
    }
    advice.push(
        "Keep a file that is rewritten open and overwrite it in place (pwrite, then ftruncate if it became shorter) instead of opening it with \
         O_TRUNC or renaming a new one over it; collect changes and replace the file once. Where a new file must replace an old one after a \
         crash, that stays one wait for each.",
    );
    Draft {
        id: FindingId::ReplacedFiles,
        cost_ns: waits.wall_ns,
        removable: Some(facts.removable(|e| f64::from(facts::frees_blocks(e)))),
        sentence: format!(
            "Replacing or removing files waits for the device {} of wall time",
            say::percent(facts.wall_share(waits.wall_ns))
        ),
        evidence,
        advice: advice.join(" "),
    }
    .finding(facts)
}
