//! Tests of the rule `remote-metadata`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::RpcUse;

use super::*;
use crate::classify::Wait;
use crate::findings::synthetic::{Run, access, slow_and_repaired};

/// `ls -lR` of a source tree on NFS; this share of the run waits for the server.
fn listing(share: f64) -> Run {
    known(share)
        .wait(Operation::Stat, Wait::Server, 0.75 * share)
        .wait(Operation::Open, Wait::Server, 0.125 * share)
        .wait(Operation::Names, Wait::Server, 0.125 * share)
}

/// The same of names that the client knows, with this share of the run left.
fn known(left: f64) -> Run {
    Run::new(10.0)
        .busy(Operation::User, Layer::Program, 1.0 - left)
        .calls(&[("newfstatat", 9000), ("openat", 800), ("getdents64", 1600), ("write", 100)])
        .file(4096, |f| {
            (f.kind, f.opens, f.mount_point) = ("directory".into(), 1, Some("/mnt/src".into()));
        })
        .with(|p| {
            let mount = |point: &str, file_system: &str| ServedMount {
                point: point.into(),
                file_system: file_system.into(),
                ..ServedMount::default()
            };
            p.served = vec![mount("/mnt/other", "fuse.other"), mount("/mnt/src", "nfs4")];
        })
}

#[test]
fn a_listing_over_the_network_waits_for_each_name() {
    let found = slow_and_repaired(FindingId::RemoteMetadata, &listing(0.8), &listing(0.01));
    assert_eq!(found.gain, None);
    let says = |words: &str| found.evidence.iter().any(|e| e.contains(words));
    assert!(
        says("11,400 calls about names, on any file system: newfstatat 9,000, getdents64 1,600"),
        "{found:?}"
    );
    assert!(says("stat 60 %") && says("1.0 on average"), "{found:?}");
    assert!(found.advice.contains("actimeo") && found.advice.contains("several at a time"), "{found:?}");
    assert_eq!(listing(0.8).ids(), [FindingId::RemoteMetadata], "the number of files is not a second cause");
}

#[test]
fn threads_that_look_up_at_the_same_time_are_not_told_to() {
    let one = |run: Run| run.wait(Operation::Stat, Wait::Server, 0.9);
    let four = (0..3).fold(one(known(0.9)), |run, _| run.second_thread(one));
    let found = &four.findings()[0];
    assert_eq!(found.id, FindingId::RemoteMetadata);
    assert!(!found.advice.contains("several at a time"), "{found:?}");
}

#[test]
fn data_and_names_are_both_told_by_their_share() {
    let both = listing(0.5).wait(Operation::Read, Wait::Server, 0.3);
    assert_eq!(both.ids(), [FindingId::RemoteMetadata, FindingId::ServerBound]);
    let rpc = RpcUse { requests: 10, rtt_ns: 10_000_000, execute_ns: 10_000_000, ..RpcUse::default() };
    let nfs = listing(0.5).with(|p| p.served[1].rpc = Some(rpc)).findings();
    assert!(nfs[0].evidence.iter().any(|e| e.contains("1.00 ms on the wire")), "{nfs:?}");
}

#[test]
fn innocent_programs_do_not_look_up_names_at_a_server() {
    let not_named = |run: &Run| assert!(!run.ids().contains(&FindingId::RemoteMetadata), "{:?}", run.ids());
    // It reads one large file of the mount: data.
    not_named(
        &known(0.9)
            .wait(Operation::Read, Wait::Server, 0.9)
            .sleeps(Operation::Open, Wait::Server, 0.01, 1)
            .file(1 << 30, |f| {
                (f.reads, f.mount_point) = (access(1000, 1 << 30, 1000), Some("/mnt/src".into()));
            }),
    );
    // One look-up of a server that did not answer for a while.
    not_named(&known(0.9).sleeps(Operation::Stat, Wait::Server, 0.9, 1));
    // A local tree: directories come from the disk, while a served mount exists.
    not_named(&known(0.9).wait(Operation::Stat, Wait::DeviceRead, 0.8));
    // Names that the client knows already cost CPU time.
    not_named(&known(0.9).busy(Operation::Stat, Layer::Filesystem, 0.8));
    // A writer whose close sends the data.
    not_named(&known(0.9).wait(Operation::Close, Wait::Server, 0.8).file(1 << 20, |f| {
        (f.writes, f.mount_point) = (access(100, 1 << 20, 100), Some("/mnt/src".into()));
    }));
}
