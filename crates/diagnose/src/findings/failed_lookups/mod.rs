//! The rule `failed-lookups`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::failing::Failing;
use super::needless::Needless;
use super::report::Draft;
use super::{Facts, Repairs, Rule, facts, lookups, loops, say};
use crate::account::Entry;

pub(super) const RULE: Rule = Rule {
    id: FindingId::FailedLookups,
    claim: "most look-ups are of names that do not exist",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("names that a program looks up are not recorded"),
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let failing: Vec<Failing> = facts.failing().into_iter().filter(Failing::is_of_names).collect();
    let most = failing.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    // Of the calls of a kind, each takes about the same time: a failing one walks the same path and ends without a file.
    let part = |e: &Entry| failing.iter().find(|f| e.wall_ns > 0.0 && f.is_about(e)).map_or(0.0, |f| f.part);
    // Entering the kernel and the library's function of a call are shared by calls of all kinds, by their number.
    let of_all = facts.part_of_all_calls(&failing);
    let within_calls = loops::within_calls(facts);
    let shared = |e: &Entry| of_all * within_calls(e).max(f64::from(facts::entering(e)));
    let removable = facts.removable(|e| part(e).max(shared(e)));
    let cost_ns: f64 = facts.wall_ns_of(|e| part(e).max(shared(e)));
    let sentence = most.evidence();
    let mut evidence: Vec<String> = failing.iter().filter(|f| *f != most).map(Failing::evidence).collect();
    evidence.push(format!(
        "the part of those that fail, by their number, with what making the calls takes: {} of wall time",
        say::percent(facts.wall_share(cost_ns))
    ));
    evidence.extend(lookups::evidence(facts));
    let needless = Needless {
        how: "none of these failing calls",
        notes: vec!["what asks once in their place is not in it".to_owned()],
        of_all_calls: of_all,
        of_own_code: of_all,
    };
    let prediction = needless.prediction(facts, part, part);
    Draft {
        id: FindingId::FailedLookups,
        cost_ns,
        removable: Some(removable),
        sentence: sentence[..1].to_uppercase() + &sentence[1..],
        evidence,
        advice: "Find out which names are searched (strace -f -e trace=%file -Z), and ask once: list each directory of the search path into \
                 a table, keep what was found, shorten the path (PATH, LD_LIBRARY_PATH, PYTHONPATH, include and class paths), put the \
                 directory that has most of the files first."
            .to_owned(),
    }
    .finding_by_account(facts, prediction)
}
