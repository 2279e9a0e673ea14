//! The rule `copy-up`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::facts::Side;
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::CopyUp,
    claim: "files are copied into the writable layer of an overlay before they change",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("what a call makes the overlay copy is not replayed"),
};

/// Kinds of wait that are told, those with most time first.
const MAX_WAITS: usize = 3;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let copies = |e: &Entry| f64::from(e.class.operation == Operation::CopyUp);
    let cost_ns = facts.wall_ns_of(copies);
    if cost_ns <= 0.0 {
        return None;
    }
    let share = say::percent(facts.wall_share(cost_ns));
    let mut evidence = vec![parts(facts)];
    evidence.extend(bytes(facts));
    Draft {
        id: FindingId::CopyUp,
        cost_ns,
        removable: Some(facts.removable(copies)),
        sentence: format!(
            "Copying files up into the writable layer of an overlay takes {share} of wall time: what changes is copied there first"
        ),
        evidence,
        advice: "Change files in the step that makes them (in a Dockerfile `COPY --chown --chmod`, or chmod and chown in the RUN that \
                 installs them), and keep files that are written on a volume or bind mount, which the overlay does not hold. Where only \
                 owner, mode or times change, mount the overlay with metacopy=on (Linux 4.19; all layers must be trusted); where its \
                 contents may be lost in a crash, with `volatile` (Linux 5.10), which leaves the syncs out."
            .to_owned(),
    }
    .finding(facts)
}

/// What the copies wait for, and their CPU time.
fn parts(facts: &Facts<'_>) -> String {
    let sum = |pick: &dyn Fn(&Entry) -> bool| {
        facts.account.sum(|e: &Entry| e.class.operation == Operation::CopyUp && pick(e)).wall_ns
    };
    let mut waits: Vec<(Wait, f64)> =
        Wait::ALL.iter().map(|w| (*w, sum(&|e| e.class.wait == Some(*w)))).collect();
    waits.retain(|(_, ns)| *ns > 0.0);
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let percent = |ns: f64| say::percent(facts.wall_share(ns));
    let mut parts = vec![format!("CPU time {}", percent(sum(&|e| e.busy)))];
    parts.extend(waits.iter().take(MAX_WAITS).map(|(wait, ns)| format!("{} {}", wait.words(), percent(*ns))));
    format!("of the wall time: {}", parts.join(", "))
}

/// What the program's requests moved, beside what its calls wrote to whatever. `None`: they wrote more, or it was not seen.
fn bytes(facts: &Facts<'_>) -> Option<String> {
    let block = facts.own_reads()?;
    let written = facts.bytes(Side::Write).filter(|bytes| *bytes < block.own_written_bytes as f64)?;
    Some(format!(
        "requests of the program read {} and wrote {}; its own calls wrote only {}",
        say::bytes(block.own_read_bytes as f64),
        say::bytes(block.own_written_bytes as f64),
        say::bytes(written)
    ))
}
