//! The rule `server-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{RpcUse, ServedMount};

use super::report::Draft;
use super::{Facts, Repairs, Rule, repairs, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::ServerBound,
    claim: "waiting for the server of a file system",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repairs::of_others),
};

/// From this part on, requests are mostly about names.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waiting = |e: &Entry| e.class.wait == Some(Wait::Server);
    let sum = facts.account.sum(waiting);
    let of_names = |e: &Entry| {
        let names = [Operation::Open, Operation::Close, Operation::Stat, Operation::Names];
        waiting(e) && names.contains(&e.class.operation)
    };
    let names_ns = facts.account.sum(of_names).wall_ns;
    let mount = used(facts);
    let (place, server) = mount.map_or_else(
        || ("a served file system".to_owned(), "its server".to_owned()),
        |m| (format!("{} ({})", m.point, m.file_system), server_of(m)),
    );
    let mut evidence = vec![facts.waits_in_words(sum, "wait for the server", "waits for the server")];
    if names_ns > 0.0 {
        evidence.push(format!(
            "{} of wall time of it opens, closes, examines or changes names",
            say::percent(facts.wall_share(names_ns))
        ));
    }
    evidence.extend(mount.and_then(|m| m.rpc).map(rpc));
    evidence.extend(mount.is_none().then(|| "which mount it waits for was not seen".to_owned()));
    let mostly_names = names_ns >= MOSTLY * sum.wall_ns;
    let fewer = if mostly_names {
        "ask for fewer names: pack small files, keep files open, let the client keep attributes longer (NFS: actimeo, nocto)"
    } else {
        "make fewer and larger requests, and several at a time (read-ahead of the mount, several threads)"
    };
    Draft {
        id: FindingId::ServerBound,
        cost_ns: sum.wall_ns,
        saved_time: None,
        sentence: format!(
            "Waits for the server of {place} take {} of wall time",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: format!(
            "First look at {server}: the disks of this client are not the limit. In the program, {fewer}."
        ),
    }
    .finding(facts)
}

/// The served mount that most of the program's bytes are of; the only one, where no file tells.
fn used<'a>(facts: &'a Facts<'_>) -> Option<&'a ServedMount> {
    let served = &facts.profile.served;
    let bytes = |mount: &ServedMount| -> u64 {
        let of = facts.profile.files.iter().filter(|f| f.mount_point.as_deref() == Some(&mount.point));
        of.map(|f| f.reads.bytes.saturating_add(f.writes.bytes)).fold(0, u64::saturating_add)
    };
    let most = served.iter().max_by_key(|mount| bytes(mount))?;
    (bytes(most) > 0 || served.len() == 1).then_some(most)
}

fn server_of(mount: &ServedMount) -> String {
    match &mount.server {
        Some(server) => {
            format!("its server, {} (process {}, `iowhy attach {}`)", server.name, server.pid, server.pid)
        }
        None => format!("its server ({})", mount.source),
    }
}

/// Where requests of an NFS client spent their time.
fn rpc(rpc: RpcUse) -> String {
    let each = |ns: u64| say::time(ns as f64 / (rpc.requests as f64).max(1.0));
    let own = rpc.execute_ns.saturating_sub(rpc.queue_ns.saturating_add(rpc.rtt_ns));
    let mut words = format!(
        "{} requests of this mount, whoever made them: each {} in the client's queue, {} on the wire and at the server, {} \
         at the client",
        say::count(rpc.requests as f64),
        each(rpc.queue_ns),
        each(rpc.rtt_ns),
        each(own)
    );
    if rpc.timeouts > 0 {
        words.push_str(&format!("; {} timed out", say::count(rpc.timeouts as f64)));
    }
    words
}
