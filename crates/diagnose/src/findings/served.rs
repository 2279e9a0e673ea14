//! Waits for the servers of file systems: what was asked for, on which mount, and their words. May not enter: causes.
//!
//! Invariant: each wait for a server belongs to one kind of request. A kind with too few waits, or too little time in them,
//! to be a cause of its own is among the data.

use std::path::Path;

use iowhy_core::profile::{FileUse, RpcUse, ServedMount};

use super::facts::{Side, counted_with_their_file};
use super::{Facts, WORTH_SAVING, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

/// Fewer waits than this are no habit of the program: a server that did not answer for a while, or the start of a program.
const HABIT: u64 = 20;

/// What a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Bytes by read and write, making them durable, and whatever is none of the others.
    Data,
    /// Names, their attributes, and what a name stands for.
    Names,
    /// Pages of a mapping.
    Mapping,
}

/// The waits for servers of a run.
pub(super) struct ServerWaits<'a> {
    facts: &'a Facts<'a>,
    /// Closing a file sends what was written to it.
    closes_send: bool,
    names_apart: bool,
    mapping_apart: bool,
}

impl<'a> ServerWaits<'a> {
    /// The waits, with their kinds.
    pub(super) fn new(facts: &'a Facts<'a>) -> ServerWaits<'a> {
        let written = |f: &FileUse| f.writes.calls > 0 && mount_of(facts, f).is_some();
        let closes_send =
            !counted_with_their_file(facts.profile, Side::Write) || facts.profile.files.iter().any(written);
        let all = ServerWaits { facts, closes_send, names_apart: true, mapping_apart: true };
        let apart = |asked| {
            let sum = all.sum(asked);
            sum.events >= HABIT && facts.wall_share(sum.wall_ns) >= WORTH_SAVING
        };
        ServerWaits { names_apart: apart(Asked::Names), mapping_apart: apart(Asked::Mapping), ..all }
    }

    /// What an entry waits for; `None`: for no server.
    pub(super) fn asked(&self, e: &Entry) -> Option<Asked> {
        if e.class.wait != Some(Wait::Server) {
            return None;
        }
        let names = match e.class.operation {
            Operation::Open | Operation::Stat | Operation::Names => true,
            Operation::Close => !self.closes_send,
            _ => false,
        };
        Some(match (names, e.class.operation) {
            (true, _) if self.names_apart => Asked::Names,
            (_, Operation::Fault) if self.mapping_apart => Asked::Mapping,
            _ => Asked::Data,
        })
    }

    /// All waits of a kind.
    pub(super) fn sum(&self, asked: Asked) -> Sum {
        self.facts.account.sum(|e| self.asked(e) == Some(asked))
    }

    /// Whether they are a habit of the program.
    pub(super) fn are_many(&self, asked: Asked) -> bool {
        self.sum(asked).events >= HABIT
    }

    /// Threads that wait so, or are active meanwhile, on average.
    pub(super) fn at_once(&self, asked: Asked) -> f64 {
        self.facts.concurrency(|e| self.asked(e) == Some(asked))
    }

    /// The served mount that the program used most in this manner: by its files, else by its directory; the only one, where
    /// neither tells.
    pub(super) fn mount(&self, asked: Asked) -> Option<&'a ServedMount> {
        let profile = self.facts.profile;
        let weight = |file: &FileUse| match asked {
            Asked::Data => file.reads.bytes.saturating_add(file.writes.bytes),
            Asked::Names => file.opens.max(file.appearances).max(1),
            Asked::Mapping => u64::from(file.mapped).saturating_mul(file.size_bytes.unwrap_or(1).max(1)),
        };
        let used = |mount: &ServedMount| {
            let files = profile.files.iter().filter(|f| f.mount_point.as_deref() == Some(&mount.point));
            files.map(weight).fold(0, u64::saturating_add)
        };
        let most = profile.served.iter().max_by_key(|mount| used(mount)).filter(|mount| used(mount) > 0);
        let directory = profile.directory.as_deref().map(Path::new);
        let above = |mount: &&ServedMount| directory.is_some_and(|dir| dir.starts_with(&mount.point));
        let around = || profile.served.iter().filter(above).max_by_key(|mount| mount.point.len());
        let only = || profile.served.first().filter(|_| profile.served.len() == 1);
        most.or_else(around).or_else(only)
    }

    /// Files on this mount.
    pub(super) fn files_on(&self, mount: &ServedMount) -> impl Iterator<Item = &'a FileUse> {
        let point = mount.point.clone();
        self.facts.profile.files.iter().filter(move |f| f.mount_point.as_ref() == Some(&point))
    }
}

fn mount_of<'a>(facts: &'a Facts<'_>, file: &FileUse) -> Option<&'a ServedMount> {
    let point = file.mount_point.as_deref()?;
    facts.profile.served.iter().find(|mount| mount.point == point)
}

/// The mount and its type.
pub(super) fn place(mount: Option<&ServedMount>) -> String {
    mount.map_or_else(|| "a served file system".to_owned(), |m| format!("{} ({})", m.point, m.file_system))
}

/// Who answers, and how to look at it.
pub(super) fn server(mount: Option<&ServedMount>) -> String {
    match mount.map(|m| (m, &m.server)) {
        Some((_, Some(server))) => {
            format!("its server, {} (process {}, `iowhy attach {}`)", server.name, server.pid, server.pid)
        }
        Some((mount, None)) => format!("its server ({})", mount.source),
        None => "its server".to_owned(),
    }
}

/// Who answers, of a mount whose server is a process of this machine.
pub(super) fn server_evidence(mount: Option<&ServedMount>) -> Option<String> {
    let server = mount?.server.as_ref()?;
    Some(format!("served by {} (process {}): `iowhy attach {}`", server.name, server.pid, server.pid))
}

/// What is known of the mount beside the waits.
pub(super) fn mount_evidence(mount: Option<&ServedMount>) -> Option<String> {
    match mount {
        Some(mount) => mount.rpc.map(rpc),
        None => Some("which mount it waits for was not seen".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::synthetic::{Run, access};

    fn run() -> Run {
        Run::new(10.0).with(|p| {
            let mount = |point: &str| ServedMount { point: point.into(), ..ServedMount::default() };
            p.served = vec![mount("/"), mount("/mnt/a"), mount("/mnt/b")];
        })
    }

    fn shares(run: &Run) -> [f64; 3] {
        run.facts(|f| {
            let waits = ServerWaits::new(f);
            [Asked::Data, Asked::Names, Asked::Mapping].map(|asked| f.wall_share(waits.sum(asked).wall_ns))
        })
    }

    #[test]
    fn each_wait_belongs_to_one_kind() {
        let run = run()
            .wait(Operation::Read, Wait::Server, 0.1)
            .wait(Operation::Stat, Wait::Server, 0.2)
            .wait(Operation::Fault, Wait::Server, 0.3)
            .wait(Operation::Fault, Wait::DeviceRead, 0.3);
        assert_eq!(shares(&run), [0.1, 0.2, 0.3]);
    }

    #[test]
    fn a_few_waits_or_a_little_time_is_no_cause_of_its_own() {
        let few = run().sleeps(Operation::Stat, Wait::Server, 0.5, 3);
        assert_eq!(shares(&few), [0.5, 0.0, 0.0]);
        let short = run().wait(Operation::Read, Wait::Server, 0.03).wait(Operation::Open, Wait::Server, 0.04);
        assert!((shares(&short)[0] - 0.07).abs() < 1e-9, "{:?}", shares(&short));
    }

    #[test]
    fn closing_asks_for_names_only_where_nothing_was_written() {
        let closing = |written: u64| {
            run().wait(Operation::Close, Wait::Server, 0.5).calls(&[("close", 100)]).file(1000, |f| {
                (f.writes, f.mount_point) = (access(written, 100 * written, 0), Some("/mnt/a".into()));
            })
        };
        assert_eq!(shares(&closing(0)), [0.0, 0.5, 0.0]);
        assert_eq!(shares(&closing(5)), [0.5, 0.0, 0.0]);
        assert_eq!(shares(&closing(0).with(|p| p.calls = None)), [0.5, 0.0, 0.0], "nobody counted writes");
    }

    #[test]
    fn the_mount_is_told_by_files_then_by_the_directory() {
        let mount = |run: &Run, asked| {
            run.facts(|f| ServerWaits::new(f).mount(asked).map(|mount| mount.point.clone()))
        };
        let run = run();
        assert_eq!(mount(&run, Asked::Names), None);
        let inside = run.with(|p| p.directory = Some("/mnt/a/deep".into()));
        assert_eq!(mount(&inside, Asked::Names).as_deref(), Some("/mnt/a"));
        let opened = inside.file(0, |f| (f.opens, f.mount_point) = (3, Some("/mnt/b".into())));
        assert_eq!(mount(&opened, Asked::Names).as_deref(), Some("/mnt/b"));
        assert_eq!(mount(&opened, Asked::Mapping).as_deref(), Some("/mnt/a"), "it was not mapped");
    }
}
