//! The rule `remote-metadata`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::ServedMount;

use super::facts::OPEN_OR_NAME;
use super::report::Draft;
use super::served::{Asked, ServerWaits};
use super::{Facts, Repairs, Rule, say, served};
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::RemoteMetadata,
    claim: "look-ups of names that each wait for the server of a file system",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("names that a program looks up are not recorded"),
};

/// Operations that ask for names, in the words of the evidence.
const PARTS: [(Operation, &str); 4] = [
    (Operation::Open, "open"),
    (Operation::Close, "close"),
    (Operation::Stat, "stat"),
    (Operation::Names, "listing and changing names"),
];
/// Calls that are named in the evidence.
const MAX_NAMED: usize = 3;
/// Fewer threads than this on average: the waits follow each other.
const ONE_AT_A_TIME: f64 = 1.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waits = ServerWaits::new(facts);
    let sum = waits.sum(Asked::Names);
    let mount = waits.mount(Asked::Names);
    let at_once = waits.at_once(Asked::Names);
    let part = |(operation, words): (Operation, &str)| {
        let picked = |e: &_| waits.asked(e) == Some(Asked::Names) && e.class.operation == operation;
        let wall_ns = facts.account.sum(picked).wall_ns;
        (wall_ns > 0.0).then(|| format!("{words} {}", say::percent(facts.wall_share(wall_ns))))
    };
    let parts: Vec<String> = PARTS.into_iter().filter_map(part).collect();
    let mut evidence = vec![
        facts.waits_in_words(sum, "wait for the server", "waits for the server"),
        format!("waiting in {} of wall time", parts.join(", ")),
    ];
    evidence.extend(calls(facts));
    evidence.push(format!("threads that wait or work meanwhile: {at_once:.1} on average"));
    evidence.extend(served::server_evidence(mount));
    evidence.extend(served::mount_evidence(mount));
    Draft {
        id: FindingId::RemoteMetadata,
        cost_ns: sum.wall_ns,
        removable: None,
        sentence: format!(
            "Looking up names and attributes on {} takes {} of wall time: each look-up waits for the server",
            served::place(mount),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: advice(mount, at_once),
    }
    .finding(facts)
}

/// How many calls about names the program made, on any file system.
fn calls(facts: &Facts<'_>) -> Option<String> {
    let counts = facts.profile.calls.as_ref().filter(|counts| counts.complete)?;
    let about_names = |name: &str| OPEN_OR_NAME.contains(&name);
    let mut calls: Vec<_> = counts.calls.iter().filter(|c| about_names(&c.name) && c.calls > 0).collect();
    calls.sort_by_key(|c| std::cmp::Reverse(c.calls));
    let all: u64 = calls.iter().map(|c| c.calls).sum();
    let count = |n: u64| say::count(n as f64);
    let most: Vec<String> =
        calls.iter().take(MAX_NAMED).map(|c| format!("{} {}", c.name, count(c.calls))).collect();
    (all > 0).then(|| format!("{} calls about names, on any file system: {}", count(all), most.join(", ")))
}

fn advice(mount: Option<&ServedMount>, at_once: f64) -> String {
    let one_by_one = if at_once < ONE_AT_A_TIME {
        " If all of them are needed, make several at a time (threads, xargs -P 8): now each waits for the one before."
    } else {
        ""
    };
    format!(
        "Make fewer of these calls: list a directory once instead of examining each name (getdents tells the type), keep \
         files open, pack small files into one, or copy the tree to a local disk first. {}.{one_by_one}",
        keep_longer(mount.map_or("", |m| &m.file_system))
    )
}

/// How a client of this type of file system keeps what it knows about names.
fn keep_longer(file_system: &str) -> &'static str {
    match file_system {
        "nfs" | "nfs4" => {
            "If no other client changes the files, let this one keep names and attributes longer (mount options \
             actimeo=60,nocto)"
        }
        "cifs" | "smb3" => {
            "If no other client changes the files, let this one keep attributes longer (mount option actimeo=60)"
        }
        "9p" => "If the host does not change the files, let the client keep them (mount option cache=loose)",
        "virtiofs" => {
            "If the host does not change the files, let the client keep names (virtiofsd --cache always)"
        }
        fuse if fuse.starts_with("fuse") => {
            "If the files change only through this mount, let the kernel keep names and attributes longer (libfuse: -o \
             entry_timeout=60,attr_timeout=60)"
        }
        _ => "Let the client keep names and attributes longer, if it has an option for that",
    }
}
