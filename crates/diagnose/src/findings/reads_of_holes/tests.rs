//! Tests of the rule `reads-of-holes`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Wait;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 1536 * MIB;
const DATA: u64 = 72 * MIB;

/// A backup of an image, of which so many bytes are read in calls of 256 KiB.
fn backup(bytes: u64, share: f64, change: impl FnOnce(&mut FileUse)) -> Run {
    reading(bytes, share, change).busy(Operation::User, Layer::Program, 1.0 - share)
}

fn reading(bytes: u64, share: f64, change: impl FnOnce(&mut FileUse)) -> Run {
    let calls = bytes >> 18;
    Run::new(4.0).busy(Operation::Read, Layer::Copy, share).io((calls, bytes), (0, 0)).file(SIZE, |f| {
        f.reads = access(calls, bytes, calls);
        f.hole_bytes = SIZE - DATA;
        change(f);
    })
}

fn found(run: &Run) -> bool {
    run.ids().contains(&FindingId::ReadsOfHoles)
}

#[test]
fn an_image_read_whole_is_named_and_one_of_which_the_data_is_read_is_not() {
    let repaired = backup(DATA, 0.1, |_| ());
    let finding = slow_and_repaired(FindingId::ReadsOfHoles, &backup(SIZE, 0.6, |_| ()), &repaired);
    let holes = 1464.0 / 1536.0;
    bound_leaves(&finding, 1.0 - 0.6 * holes);
    let left = finding.prediction.as_ref().map(|p| p.remaining).unwrap();
    // 4 s, of which 2.4 are reads; of the rest at most the part goes that works on zeros.
    let least = 4e9 * (1.0 - 0.6 * holes);
    assert!((least..least + 0.2e9).contains(&left.high), "{left:?}");
    assert!((0.0..1.05 * 4e9 * (1.0 - holes)).contains(&left.low), "{left:?}");
    let long = "1.5 GiB long, of which 1464 MiB are holes; 1.5 GiB of it were read";
    assert!(finding.evidence.iter().any(|e| e.contains(long)), "{finding:?}");
}

#[test]
fn of_what_is_read_again_nobody_knows_whether_it_was_of_holes() {
    // All of it once, then the data alone, many times.
    assert!(!found(&backup(20 * SIZE, 0.6, |f| f.reads.distinct_bytes = SIZE)));
    let finding = backup(SIZE * 3 / 2, 0.6, |f| f.reads.distinct_bytes = SIZE);
    let finding = finding.findings().into_iter().find(|f| f.id == FindingId::ReadsOfHoles).unwrap();
    assert!(finding.sentence.contains("of 2.25 GiB"), "{finding:?}");
}

#[test]
fn no_hole_was_certainly_read() {
    // All of its data may be what was read.
    assert!(!found(&backup(SIZE, 0.6, |f| f.reads.distinct_bytes = DATA)));
    assert!(!found(&backup(SIZE, 0.6, |f| f.hole_bytes = 0)));
    // Too few marks were covered: it may be one place that was read.
    assert!(!found(&backup(SIZE, 0.6, |f| f.reads.repeated = looked(0, 5))));
    // Less than half of what is read are holes.
    assert!(!found(&backup(SIZE, 0.6, |f| f.hole_bytes = SIZE * 45 / 100)));
    assert!(found(&backup(SIZE, 0.6, |f| f.hole_bytes = SIZE * 55 / 100)));
    // The program fills them itself.
    assert!(!found(&backup(SIZE, 0.6, |f| f.writes = access(1, 4096, 1))));
    // No size, or one that the holes do not fit in.
    assert!(!found(&backup(SIZE, 0.6, |f| f.size_bytes = None)));
    assert!(!found(&backup(SIZE, 0.6, |f| f.size_bytes = Some(DATA))));
    assert!(!found(&backup(SIZE, 0.04, |_| ())));
}

/// A copy of an image: its zeros are written, and waited for.
fn copy(change: impl FnOnce(&mut FileUse)) -> Run {
    let calls = SIZE >> 20;
    reading(SIZE, 0.2, |_| ())
        .busy(Operation::Write, Layer::Copy, 0.2)
        .wait(Operation::Sync, Wait::DataWriteback, 0.6)
        .io((calls, SIZE), (calls, SIZE))
        .file(SIZE, |f| {
            f.writes = access(calls, SIZE, calls);
            change(f);
        })
        .calls(&[("fsync", 1)])
}

#[test]
fn holes_that_a_copy_fills_cost_writes_and_syncs_as_well() {
    let of = |run: &Run| run.findings().into_iter().find(|f| f.id == FindingId::ReadsOfHoles).unwrap();
    let filled = of(&copy(|_| ()));
    let words = "`/data/1` is as long and was written whole: if it is a copy, 1464 MiB of it are such zeros";
    assert!(filled.evidence.iter().any(|e| e.contains(words)), "{filled:?}");
    // A copy that leaves them out is as long, too.
    let kept = of(&copy(|f| f.writes.distinct_bytes = DATA));
    assert!(!kept.evidence.iter().any(|e| e.contains("is as long")), "{kept:?}");
    assert!(filled.share > kept.share + 0.3, "{filled:?} {kept:?}");
    let left = |f: &Finding| f.prediction.as_ref().map(|p| p.remaining.low).unwrap();
    assert!(left(&filled) < left(&kept));
}
