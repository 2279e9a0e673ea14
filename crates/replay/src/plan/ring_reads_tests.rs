//! Known answers for plans that are made of the shape of requests at the device.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{
    BlockSample, FileIdentity, FileUse, GroupLimit, Limited, LimitedGroup, PatternFile, RingUse,
};
use iowhy_core::replay::Role;

use super::super::baseline::Baseline;
use super::super::recorded::baseline;
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::findings::synthetic::Run;

const MIB: u64 = 1 << 20;

/// A program whose ring had 16 direct reads of 128 KiB in flight, 8000 in all, so many of them one behind the other.
fn ring(adjacent: u64) -> Run {
    let file = FileUse {
        path: "/data".into(),
        kind: "regular".into(),
        size_bytes: Some(256 * MIB),
        cached_before: Some(0.0),
        cached_after: Some(0.0),
        ..FileUse::default()
    };
    let identity = FileIdentity { size_bytes: 256 * MIB, inode: 7, ..FileIdentity::default() };
    let known =
        PatternFile { path: "/data".into(), kind: "regular".into(), flags: None, identity: Some(identity) };
    let block = BlockSample {
        own_requests: 8000,
        own_reads: 8000,
        own_read_bytes: 8000 << 17,
        own_reads_adjacent: adjacent,
        in_flight: Some(15.7),
        completions_seen: true,
        ..BlockSample::default()
    };
    Run::new(8.0)
        .wait(Operation::Ring, Wait::Completion, 0.9)
        .busy(Operation::User, Layer::Program, 0.1)
        .with(|p| {
            p.files = vec![file];
            p.pattern.files = vec![known];
            p.block = Some(block);
        })
}

fn plan(run: Run) -> Result<Baseline, String> {
    run.facts(baseline)
}

#[test]
fn size_depth_and_order_are_those_at_the_device() {
    let random = plan(ring(50)).unwrap();
    let file = &random.plan.files[0];
    assert_eq!((file.role, file.direct, random.plan.depth), (Role::User, true, 16));
    let calls = random.plan.calls();
    // 1.2 s of 8 s.
    assert_eq!((calls, random.plan.bytes(|_| true)), (1200, 1200 << 17));
    assert!((random.scale * calls as f64 - 8000.0).abs() < 1e-6);
    assert!((random.program_io_ns - 7.2e9).abs() < 1.0, "{}", random.program_io_ns);
    assert!(random.plan.actions().all(|a| a.offset % 4096 == 0 && a.offset + a.bytes <= 256 * MIB));
    let first: Vec<u64> = random.plan.actions().take(3).map(|a| a.offset).collect();
    assert!(first[0] + (1 << 17) != first[1] || first[1] + (1 << 17) != first[2], "{first:?}");
    assert!(random.notes[0].contains("131072 bytes, 16 in flight, at places drawn at random"));
    let sequential = plan(ring(7500)).unwrap();
    assert_eq!((sequential.plan.threads[0].len(), sequential.plan.calls()), (1, 1200));
    assert_eq!(sequential.plan.threads[0][0].stride, 1 << 17);
}

#[test]
fn what_was_in_the_cache_before_and_a_stray_write_do_not_matter() {
    let run = ring(50).with(|p| {
        (p.files[0].cached_before, p.files[0].cached_after) = (Some(0.4), Some(0.4));
        if let Some(block) = &mut p.block {
            block.own_written_bytes = 4096;
            // The program itself, as it was started.
            block.own_read_ahead_bytes = 4 << 20;
        }
    });
    assert_eq!(plan(run).map(|found| found.plan.depth), Ok(16));
}

#[test]
fn requests_that_a_limit_holds_back_are_in_flight_on_the_ring() {
    let run = |looks, limited| {
        ring(50).with(|p| {
            let limit = GroupLimit { of: limited, set_by: "/cg/a".into(), words: "some".into() };
            p.groups = vec![LimitedGroup { directory: "/cg/a".into(), limits: vec![limit] }];
            p.rings = Some(RingUse { looks, in_flight: 32.0, ..RingUse::default() });
            if let Some(block) = &mut p.block {
                block.in_flight = Some(1.2);
            }
        })
    };
    let depth = |looks, limited| plan(run(looks, limited)).map(|found| found.plan.depth);
    assert_eq!(depth(20, Limited::Disk), Ok(32));
    assert_eq!(depth(2, Limited::Disk), Ok(1), "two looks tell little");
    assert_eq!(depth(20, Limited::Cpu), Ok(1), "the device saw all of them");
}

#[test]
fn what_has_no_such_shape_says_why() {
    let block = |change: fn(&mut BlockSample)| {
        ring(50).with(|p| {
            if let Some(block) = &mut p.block {
                change(block);
            }
        })
    };
    for (run, word) in [
        (ring(50).with(|p| p.block = None), "not recorded"),
        (block(|b| b.own_written_bytes = b.own_read_bytes / 10), "only reads"),
        (block(|b| b.own_reads = 3), "only reads"),
        (block(|b| b.own_read_ahead_bytes = b.own_read_bytes / 10), "page cache"),
        (ring(50).with(|p| p.files[0].cached_after = Some(0.5)), "page cache"),
        (ring(50).with(|p| p.files.clear()), "which file"),
        (ring(50).with(|p| p.pattern.files.clear()), "which file"),
    ] {
        let why = plan(run).unwrap_err();
        assert!(why.contains("ring") || why.contains("io_uring"), "{why}");
        assert!(why.contains(word), "{why}");
    }
    let two = ring(50).with(|p| {
        let other = FileUse { path: "/other".into(), ..p.files[0].clone() };
        p.files.push(other);
    });
    assert!(plan(two).unwrap_err().contains("which file"), "two files of one size are not told apart");
}
