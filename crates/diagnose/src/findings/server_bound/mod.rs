//! The rule `server-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::served::{Asked, ServerWaits};
use super::{Facts, Repairs, Rule, repairs, say, served};

pub(super) const RULE: Rule = Rule {
    id: FindingId::ServerBound,
    claim: "waiting for the server of a file system",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none(repairs::OF_OTHERS),
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waits = ServerWaits::new(facts);
    let sum = waits.sum(Asked::Data);
    let mount = waits.mount(Asked::Data);
    let mut evidence = vec![facts.waits_in_words(sum, "wait for the server", "waits for the server")];
    evidence.extend(served::mount_evidence(mount));
    let mut advice =
        format!("First look at {}: the disks of this client are not the limit.", served::server(mount));
    // What waits a few times for long does not wait for its own requests.
    if waits.are_many(Asked::Data) {
        advice.push_str(
            " In the program, make fewer and larger requests, and several at a time (read-ahead of the mount, several \
             threads).",
        );
    }
    Draft {
        id: FindingId::ServerBound,
        cost_ns: sum.wall_ns,
        removable: None,
        sentence: format!(
            "Waits for the server of {} take {} of wall time",
            served::place(mount),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}
