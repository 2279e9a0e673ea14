//! Tests of the rule `stdio-seek`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

fn records(read: f64, seek: f64, seeks: u64, distinct: u64) -> Run {
    Run::new(10.0)
        .busy(Operation::Read, Layer::Call, read / 2.0)
        .busy(Operation::Read, Layer::Copy, read / 2.0)
        .busy(Operation::Descriptor, Layer::Call, seek)
        .busy(Operation::User, Layer::Program, 1.0 - read - seek)
        .io((8_000_000, 8_000_000 * 4096), (0, 0))
        .file(1 << 36, |f| {
            f.reads = access(1000, 1000 * 4096, 50);
            f.reads.after_seek = looked(seeks, 1000);
            f.reads.repeated = looked(if distinct < 4_096_000 { 900 } else { 0 }, 1000);
            f.reads.distinct_bytes = distinct;
        })
}

#[test]
fn a_buffer_thrown_away_is_named_and_reads_of_records_not() {
    let slow = records(0.6, 0.15, 990, 409_600);
    let found = slow_and_repaired(FindingId::StdioSeek, &slow, &records(0.03, 0.0, 0, 4_096_000));
    bound_leaves(&found, 1.0 - 0.6 - 0.15);
}

/// 1,000 of 5,000 reads after seeks through a buffer of 64 KiB; then small files.
#[test]
fn one_part_of_a_run_is_named_by_its_own_reads_and_weighed_by_the_exact_counters() {
    let (large, small) = (65_536, 150);
    let run = Run::new(10.0)
        .busy(Operation::Read, Layer::Copy, 0.6)
        .busy(Operation::Descriptor, Layer::Call, 0.05)
        .busy(Operation::User, Layer::Program, 0.35)
        .io((5000, 1000 * large + 4000 * small), (0, 0))
        .file(1 << 20, |f| {
            f.reads = access(100, 100 * large, 5);
            f.reads.after_seek = looked(100, 100);
            f.reads.repeated = looked(90, 100);
            f.reads.distinct_bytes = 10 * large;
        })
        .file(1 << 30, |f| {
            f.reads = access(900, 900 * small, 50);
            f.reads.after_seek = looked(0, 900);
            f.reads.repeated = looked(0, 900);
        });
    let (tally, part) = run.facts(sought);
    assert_eq!((tally.calls, tally.bytes), (100, 100 * large));
    // By hand: 1,000 calls of 64 KiB and 4 KiB for the call each, against 4,000 of 150 bytes.
    let (mine, rest) = (1000.0 * (65_536.0 + 4096.0), 4000.0 * (150.0 + 4096.0));
    assert!((part - mine / (mine + rest)).abs() < 1e-9, "{part}");
    assert!(run.ids().contains(&FindingId::StdioSeek), "{:?}", run.ids());
}

#[test]
fn seeks_to_new_places_are_random_access_and_no_waste() {
    assert!(!records(0.6, 0.15, 990, 4_096_000).ids().contains(&FindingId::StdioSeek));
}

#[test]
fn a_library_asks_for_its_buffer_also_where_the_file_ends_before() {
    let near_the_end = |asked: usize| {
        Run::new(10.0)
            .busy(Operation::Read, Layer::Copy, 0.5)
            .busy(Operation::Descriptor, Layer::Call, 0.2)
            .busy(Operation::User, Layer::Program, 0.3)
            .io((400_000, 400_000 * 3100), (0, 0))
            .file(180_000, |f| {
                f.reads = access(400_000, 400_000 * 3100, 50);
                f.reads.after_seek = looked(399_000, 400_000);
                f.reads.repeated = looked(390_000, 400_000);
                f.reads.distinct_bytes = 8192;
                f.reads.sizes = vec![0; 32];
                f.reads.sizes[asked] = 400_000;
            })
    };
    assert_eq!(near_the_end(13).ids()[0], FindingId::StdioSeek);
    // Records of 3 KB that the program asks for by their size are no buffer of a library, nor is what asks for megabytes.
    assert!(!near_the_end(9).ids().contains(&FindingId::StdioSeek));
    assert!(!near_the_end(20).ids().contains(&FindingId::StdioSeek));
}

/// A value at a time through a buffer: a seek before each.
#[test]
fn seeks_without_a_read_of_their_own_are_the_cost() {
    let values = |seeks: u64, seeking: f64| {
        Run::new(10.0)
            .busy(Operation::Descriptor, Layer::Call, seeking)
            .busy(Operation::Read, Layer::Copy, 0.05)
            .busy(Operation::User, Layer::Program, 0.95 - seeking)
            .io((10_000, 10_000 * 4096), (0, 0))
            .calls(&[("lseek", seeks), ("read", 10_000)])
    };
    let found = slow_and_repaired(FindingId::StdioSeek, &values(4_000_000, 0.5), &values(0, 0.0));
    assert!(found.sentence.starts_with("4.00 million seeks for 10,000 reads"), "{}", found.sentence);
    bound_leaves(&found, 1.0 - 0.5 * 3_980_000.0 / 4_000_000.0);
    assert!(!values(30_000, 0.5).ids().contains(&FindingId::StdioSeek), "two for each read, and some");
    let copied = values(4_000_000, 0.5).with(|p| {
        let calls = &mut p.calls.as_mut().unwrap().calls;
        calls.iter_mut().filter(|c| c.name == "read").for_each(|c| {
            (c.name, c.calls) = ("copy_file_range".into(), 2_000_000);
        });
    });
    assert!(!copied.ids().contains(&FindingId::StdioSeek), "where data begins and ends in a sparse file");
}
