//! Tests of the rule `sync-per-write`.

use iowhy_core::profile::Tier;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

/// 10,000 records of 4 KiB; half a millisecond each to make durable, if each is.
fn records(syncs: u64) -> Run {
    let part = syncs as f64 / 10_000.0;
    Run::new(5.0 * part + 5.0)
        .wait(Operation::Sync, Wait::DataWriteback, 0.2 * part)
        .wait(Operation::Sync, Wait::CacheFlush, 0.15 * part)
        .wait(Operation::Sync, Wait::Journal, 0.15 * part)
        .busy(Operation::User, Layer::Program, 1.0 - 0.5 * part)
        .io((0, 0), (10_000, 40_960_000))
        .calls(&[("write", 10_000), ("fsync", syncs)])
}

#[test]
fn a_sync_for_each_record_is_named_and_for_each_hundred_not() {
    let found = slow_and_repaired(FindingId::SyncPerWrite, &records(10_000), &records(100));
    bound_leaves(&found, 0.5);
    assert!(
        found.evidence[1].contains("40 % data write-back, 30 % device cache flush"),
        "{:?}",
        found.evidence
    );
    assert!(found.advice.contains("fdatasync instead of fsync"));
}

#[test]
fn synchronous_descriptors_count_too() {
    let run = Run::new(10.0)
        .wait(Operation::Write, Wait::DataWriteback, 0.4)
        .wait(Operation::Write, Wait::CacheFlush, 0.4)
        .busy(Operation::User, Layer::Program, 0.2)
        .io((0, 0), (10_000, 5_120_000))
        .file(5_120_000, |f| {
            f.writes = access(100, 51_200, 100);
            f.writes.synchronous = looked(100, 100);
        });
    assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
    assert!(run.findings()[0].advice.contains("O_DSYNC"));
}

#[test]
fn a_synchronous_write_counts_as_a_whole() {
    // Most of it was not seen as waiting for the device: CPU time, queueing and another lock.
    let run = |synchronous| {
        Run::new(10.0)
            .wait(Operation::Write, Wait::CacheFlush, 0.2)
            .wait(Operation::Write, Wait::InodeLock, 0.3)
            .busy(Operation::Write, Layer::Filesystem, 0.3)
            .queued_in(Operation::Write, 0.15)
            .busy(Operation::Write, Layer::Copy, 0.01)
            .busy(Operation::User, Layer::Program, 0.04)
            .io((0, 0), (10_000, 5_120_000))
            .file(5_120_000, |f| {
                f.writes = access(100, 51_200, 100);
                f.writes.synchronous = looked(synchronous, 100);
            })
    };
    let found = &run(100).findings()[0];
    assert_eq!(found.id, FindingId::SyncPerWrite);
    assert!((found.share - 0.95).abs() < 1e-6, "{found:?}");
    bound_leaves(found, 0.05);
    assert!(!run(0).ids().contains(&FindingId::SyncPerWrite));
}

#[test]
fn writes_that_wait_for_flushes_are_synchronous_though_no_call_was_traced() {
    let run = Run::new(10.0)
        .wait(Operation::Write, Wait::CacheFlush, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .io((0, 0), (1000, 512_000));
    assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
    assert!(run.findings()[0].evidence.iter().any(|e| e.contains("open flags are unknown")));
}

#[test]
fn a_journal_of_its_own_for_each_transaction_goes_with_it() {
    let run = |unlinks| {
        Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.6)
            .busy(Operation::Names, Layer::Filesystem, 0.2)
            .busy(Operation::Open, Layer::Filesystem, 0.15)
            .busy(Operation::User, Layer::Program, 0.05)
            .io((0, 0), (4000, 4_096_000))
            .calls(&[("pwrite64", 4000), ("fdatasync", 3000), ("openat", 1000), ("unlink", unlinks)])
            .findings()
            .into_iter()
            .find(|f| f.id == FindingId::SyncPerWrite)
            .unwrap()
    };
    bound_leaves(&run(1000), 0.05);
    bound_leaves(&run(0), 0.4);
}

#[test]
fn where_sleeps_are_dark_the_flushes_of_the_device_tell() {
    let run = |flushes| {
        Run::new(10.0)
            .wait(Operation::Unknown, Wait::Unknown, 0.9)
            .busy(Operation::User, Layer::Program, 0.1)
            .io((0, 0), (1000, 512_000))
            .device(0.8, 1.0, |d| {
                (d.flushes, d.flush_ns, d.write_ns) = (flushes, 4_000_000_000, 3_000_000_000)
            })
    };
    let found = run(1005).findings();
    assert_eq!((found[0].id, found[0].gain_rest_unchanged), (FindingId::SyncPerWrite, None));
    assert!(!run(20).ids().contains(&FindingId::SyncPerWrite));
    assert!(!run(50_000).ids().contains(&FindingId::SyncPerWrite));
}

#[test]
fn where_threads_are_only_looked_at_the_flushes_of_the_device_count_the_syncs() {
    // Eight looks found the program in a sync; that is no number of syncs.
    let run = |bytes, flushes| {
        let mut run = Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.4)
            .wait(Operation::Unknown, Wait::DataWriteback, 0.2)
            .busy(Operation::Unknown, Layer::Unexplained, 0.4)
            .io((0, 0), (1000, bytes))
            .device(0.8, 1.0, |d| d.flushes = flushes);
        run.profile.sight.tier = Tier::None;
        run
    };
    let found = run(512_000, 1005).findings();
    assert_eq!((found[0].id, found[0].gain_rest_unchanged), (FindingId::SyncPerWrite, None));
    assert!(found[0].evidence[1].starts_with("60 % of wall time waits for durability"), "{found:?}");
    for other in [run(512_000, 20), run(512_000, 0), run(1000 << 24, 1005)] {
        assert!(!other.ids().contains(&FindingId::SyncPerWrite), "{:?}", other.findings());
    }
}

#[test]
fn large_writes_with_a_sync_each_wait_for_their_bytes() {
    let run = Run::new(10.0)
        .wait(Operation::Sync, Wait::DataWriteback, 0.9)
        .busy(Operation::User, Layer::Program, 0.1)
        .io((0, 0), (100, 100 << 24))
        .calls(&[("write", 100), ("fsync", 100)]);
    assert!(!run.ids().contains(&FindingId::SyncPerWrite), "{:?}", run.findings());
}

#[test]
fn without_traced_calls_the_sleeps_are_counted() {
    let mut run = Run::new(10.0)
        .wait(Operation::Sync, Wait::CacheFlush, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .io((0, 0), (1000, 4_096_000));
    run.profile.sight.tier = Tier::Stacks;
    assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
}

#[test]
fn replies_to_clients_are_no_writes_that_wait_for_durability() {
    let server = Run::new(10.0)
        .wait(Operation::Sync, Wait::CacheFlush, 0.8)
        .busy(Operation::User, Layer::Program, 0.2)
        .io((0, 0), (12_000, 4_096_000 + 1_100_000))
        .calls(&[("write", 12_000), ("fsync", 1000)])
        .file(4_096_000, |f| f.writes = access(1000, 4_096_000, 1000))
        .file(0, |f| (f.kind, f.writes) = ("socket".into(), access(11_000, 1_100_000, 0)));
    let found = server.findings();
    assert_eq!(found[0].id, FindingId::SyncPerWrite);
    assert!(
        found[0].evidence[0].contains("1,000 writes: 1 write per sync, 4 KiB"),
        "{:?}",
        found[0].evidence
    );
}
