//! Tests of the rule `small-requests`.

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

/// Cached reads of so many bytes: 240 ns a call, 20 ns a page, 0.05 ns a byte, and 1 GB in all; the rest is waiting
/// for a pipe.
fn cached(request: f64) -> Run {
    let calls = (1e9 / request) as u64;
    let busy = |ns: f64| ns * calls as f64 / 4e9;
    let pages = (request / 4096.0).max(1.0);
    let (call, filesystem, cache, copy) =
        (busy(100.0), busy(80.0), busy(60.0 + 20.0 * pages), busy(0.05 * request));
    Run::new(4.0)
        .busy(Operation::Read, Layer::Call, call)
        .busy(Operation::Read, Layer::Filesystem, filesystem)
        .busy(Operation::Read, Layer::Cache, cache)
        .busy(Operation::Read, Layer::Copy, copy)
        .wait(Operation::Read, Wait::Pipe, 1.0 - call - filesystem - cache - copy)
        .io((calls, 1_000_000_000), (0, 0))
        .file(1 << 30, |f| f.reads = access(1000, 1000 * request as u64, 980))
}

#[test]
fn reads_of_128_bytes_are_named_and_of_64_kib_not() {
    let found = slow_and_repaired(FindingId::SmallRequests, &cached(128.0), &cached(65_536.0));
    // By hand: 260 ns a call of 7.8 million calls is 2.03 s of 4 s; 98 % of them merge. Copying takes another 0.05 s.
    assert!((found.share - 0.98 * 0.508).abs() < 0.01, "{}", found.share);
    bound_leaves(&found, 1.0 - 0.98 * 0.51);
}

/// dd with blocks of 512 bytes, from a file to /dev/null: 150 ns of its own, 250 ns in each call.
fn dd(own_ns: f64) -> Run {
    let calls = 1_000_000;
    let wall = (2.0 * 250.0 + 2.0 * own_ns) * 1e-9 * calls as f64;
    let part = |ns: f64| ns * 1e-9 * calls as f64 / wall;
    Run::new(wall)
        .busy(Operation::Read, Layer::Call, part(250.0))
        .busy(Operation::Write, Layer::Call, part(250.0))
        .busy(Operation::User, Layer::Program, part(2.0 * own_ns))
        .io((calls, calls * 512), (calls, calls * 512))
        .file(1 << 30, |f| f.reads = access(1000, 512_000, 999))
        .with(|p| {
            p.files.push(iowhy_core::profile::FileUse {
                path: "/dev/null".into(),
                kind: "character-device".into(),
                writes: access(1000, 512_000, 0),
                ..Default::default()
            });
        })
}

#[test]
fn both_sides_go_together() {
    let found = &dd(150.0).findings()[0];
    assert_eq!(found.id, FindingId::SmallRequests);
    // By hand: both calls, 500 of 800 ns.
    bound_leaves(found, 3.0 / 8.0 - 0.02);
    assert!(found.evidence.iter().any(|e| e.contains("/dev/null")), "{found:?}");
    // A program that works 10 us on each piece does not loop around calls.
    assert!(dd(10_000.0).findings()[0].id == FindingId::CpuBound);
}

#[test]
fn small_but_random_requests_cannot_be_merged() {
    let mut run = cached(128.0);
    run.profile.files[0].reads.sequential = looked(10, 1000);
    assert!(!run.ids().contains(&FindingId::SmallRequests));
}

#[test]
fn of_an_unseen_order_all_calls_may_be_merged() {
    let mut run = cached(128.0);
    run.profile.files.clear();
    let found = &run.findings()[0];
    bound_leaves(found, 1.0 - 0.51);
    assert!(found.evidence[1].contains("is unknown"), "{found:?}");
}

#[test]
fn counts_alone_are_no_reason() {
    // A million small reads that cost 1 % of the time.
    let run = Run::new(100.0)
        .busy(Operation::Read, Layer::Call, 0.01)
        .busy(Operation::User, Layer::Program, 0.99)
        .io((1_000_000, 128_000_000), (0, 0));
    assert_eq!(run.ids(), [FindingId::CpuBound]);
}

#[test]
fn small_direct_reads_in_order_save_the_device_too() {
    let run = Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, 0.8)
        .busy(Operation::Read, Layer::Block, 0.2)
        .io((100_000, 409_600_000), (0, 0))
        .file(1 << 30, |f| {
            f.reads = access(1000, 4_096_000, 1000);
            f.reads.direct = looked(1000, 1000);
        })
        .device(0.9, 1.0, |d| (d.reads, d.read_bytes) = (100_000, 409_600_000));
    assert_eq!(run.ids(), [FindingId::SmallRequests]);
    assert!(run.findings()[0].share > 0.99);
    let advice = &run.findings()[0].advice;
    assert!(advice.contains("io_uring") && !advice.contains("BufReader") && !advice.contains("setvbuf"));
}

/// A matrix that is transposed element by element: writes of 4 bytes, none behind the one before, over 5.5 MiB or over 64 GiB.
fn strided(file_bytes: u64) -> Run {
    const CALLS: u64 = 1_440_000;
    Run::new(2.0)
        .busy(Operation::Write, Layer::Filesystem, 0.4)
        .busy(Operation::Write, Layer::Cache, 0.3)
        .busy(Operation::User, Layer::Program, 0.3)
        .io((0, 0), (CALLS, 4 * CALLS))
        .file(file_bytes, |f| f.writes = access(CALLS, 4 * CALLS, 0))
}

#[test]
fn pages_that_are_written_again_and_again_are_the_cost_of_small_requests_in_any_order() {
    let found = &strided(5_760_000).findings()[0];
    assert_eq!(found.id, FindingId::SmallRequests);
    assert!(found.evidence.iter().any(|e| e.contains("1.44 million writes go to 1,407 pages")), "{found:?}");
    assert!(found.advice.contains("Gather the output"), "{found:?}");
    // Each to a page of its own: there is nothing to gather.
    assert!(!strided(64 << 30).ids().contains(&FindingId::SmallRequests));
}
