//! Tests of the rule `rewritten-files`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Wait;
use crate::findings::synthetic::{Run, access, bound_leaves, slow_and_repaired};

const MIB: u64 = 1 << 20;
const VERSIONS: u64 = 180;
const WRITTEN: u64 = 407 * MIB;

/// A status file that is written for each change: so many bytes in so many calls.
fn upgrades(bytes: u64, calls: u64, share: f64, change: impl FnOnce(&mut FileUse)) -> Run {
    Run::new(4.0)
        .busy(Operation::Write, Layer::Copy, share)
        .wait(Operation::Sync, Wait::DataWriteback, 0.3)
        .busy(Operation::User, Layer::Program, 0.7 - share)
        .io((0, 0), (calls, bytes))
        .calls(&[("write", calls), ("openat", calls), ("fsync", calls), ("rename", calls)])
        .file(WRITTEN / VERSIONS, |f| {
            f.writes = access(calls, bytes, calls);
            (f.opens, f.syncs) = (calls, calls);
            change(f);
        })
}

/// Each version is a new file, which is renamed over the one before.
fn renamed(change: impl FnOnce(&mut FileUse)) -> Run {
    upgrades(WRITTEN, VERSIONS, 0.4, |f| {
        (f.replaced, f.replaced_bytes, f.size_bytes) =
            (VERSIONS - 1, WRITTEN / VERSIONS * (VERSIONS - 1), None);
        change(f);
    })
}

/// Each version is written into the same file, which is made empty before.
fn in_place(change: impl FnOnce(&mut FileUse)) -> Run {
    upgrades(WRITTEN, VERSIONS, 0.4, |f| {
        f.writes.distinct_bytes = WRITTEN / VERSIONS;
        change(f);
    })
}

fn found(run: &Run) -> bool {
    run.ids().contains(&FindingId::RewrittenFiles)
}

#[test]
fn a_file_written_whole_for_each_change_is_named_and_a_journal_is_not() {
    // Repaired: as many syncs, of 1 KiB each.
    let journal = upgrades(VERSIONS << 10, VERSIONS, 0.1, |f| f.size_bytes = Some(VERSIONS << 10));
    let finding = slow_and_repaired(FindingId::RewrittenFiles, &renamed(|_| ()), &journal);
    let gone = 179.0 / 180.0;
    bound_leaves(&finding, 1.0 - 0.7 * gone);
    let left = finding.prediction.as_ref().map(|p| p.remaining).unwrap();
    // Of 4 s, 1.6 are writes; syncs may stay, and all that is made may go.
    let least = 4e9 * (1.0 - 0.4 * gone);
    assert!((least..least + 0.2e9).contains(&left.high), "{left:?}");
    assert!(left.low < 0.04e9, "{left:?}");
    let words = "written whole 180 times at least, 2.26 MiB each on average, as new files";
    assert!(finding.evidence.iter().any(|e| e.contains(words)), "{finding:?}");
}

#[test]
fn a_file_overwritten_in_place_counts_where_each_open_wrote_all_of_it() {
    let all = in_place(|_| ()).findings();
    assert_eq!(all[0].id, FindingId::RewrittenFiles, "{all:?}");
    assert!(all[0].evidence.iter().any(|e| e.contains("in place")), "{all:?}");
    // One open, many passes or pages at random; many opens that change pages of it.
    assert!(!found(&in_place(|f| f.opens = 1)));
    assert!(!found(&in_place(|f| f.opens = 10 * VERSIONS)));
    // A part of the file only.
    assert!(!found(&in_place(|f| f.size_bytes = Some(10 * WRITTEN / VERSIONS))));
    assert!(!found(&in_place(|f| f.size_bytes = None)));
    assert!(!found(&in_place(|f| f.size_bytes = Some(0))));
    // A scratch file, which is read each time.
    assert!(!found(&in_place(|f| f.reads.bytes = WRITTEN)));
}

#[test]
fn many_small_writes_of_others_keep_their_time() {
    let log = |calls: u64| {
        renamed(|_| ()).io((0, 0), (VERSIONS + calls, WRITTEN + calls * 100)).file(calls * 100, |f| {
            f.writes = access(calls, calls * 100, calls);
        })
    };
    let least = |run: &Run| {
        let found = run.findings().into_iter().find(|f| f.id == FindingId::RewrittenFiles);
        found.and_then(|f| f.prediction).map(|p| p.remaining.high)
    };
    let (few, many) = (least(&log(100)).unwrap(), least(&log(1_000_000)));
    assert!(few < 2.7e9 && many.is_none_or(|left| left > 3.5e9), "{few} {many:?}");
}

#[test]
fn what_is_read_of_the_versions_to_make_the_next_goes_at_most() {
    let left = |read: u64| {
        let calls = [("write", VERSIONS), ("read", VERSIONS), ("openat", VERSIONS), ("rename", VERSIONS)];
        let run = Run::new(4.0)
            .busy(Operation::Write, Layer::Copy, 0.4)
            .busy(Operation::Read, Layer::Copy, 0.4)
            .busy(Operation::User, Layer::Program, 0.2)
            .io((VERSIONS, WRITTEN), (VERSIONS, WRITTEN))
            .calls(&calls)
            .file(WRITTEN, |f| f.reads = access(VERSIONS, WRITTEN - read, VERSIONS))
            .file(WRITTEN / VERSIONS, |f| {
                (f.writes, f.reads) = (access(VERSIONS, WRITTEN, VERSIONS), access(VERSIONS, read, VERSIONS));
                (f.opens, f.replaced, f.replaced_bytes) =
                    (2 * VERSIONS, VERSIONS - 1, WRITTEN / VERSIONS * (VERSIONS - 1));
            });
        let found = run.findings().into_iter().find(|f| f.id == FindingId::RewrittenFiles).unwrap();
        found.prediction.map(|p| p.remaining).unwrap()
    };
    let (all, none) = (left(WRITTEN - 1), left(1));
    assert!(all.value < 0.9 * none.value && all.high == none.high, "{all:?} {none:?}");
}

#[test]
fn what_is_no_version_of_a_file_is_not_counted() {
    // Files of one name that all stay under other names (a log that is rotated).
    assert!(!found(&renamed(|f| f.replaced = 0)));
    // Of a temporary name of many files, some of which were replaced later.
    assert!(!found(&renamed(|f| f.replaced_bytes = WRITTEN / 10)));
    // Scratch files that are removed.
    let removed = renamed(|_| ()).with(|p| {
        let calls = &mut p.calls.as_mut().unwrap().calls;
        calls.iter_mut().filter(|c| c.name == "rename").for_each(|c| c.name = "unlink".into());
    });
    assert!(!found(&removed));
    // Moved to another name, and removed from there.
    assert!(!found(&renamed(|_| ()).calls(&[("unlink", VERSIONS)])));
    // A version is one block.
    assert!(!found(&upgrades(VERSIONS << 12, VERSIONS, 0.4, |f| (f.replaced, f.replaced_bytes) =
        (VERSIONS - 1, (VERSIONS - 1) << 12))));
    assert!(found(&upgrades(VERSIONS << 13, VERSIONS, 0.4, |f| (f.replaced, f.replaced_bytes) =
        (VERSIONS - 1, (VERSIONS - 1) << 13))));
    // Most bytes are others.
    let beside = renamed(|_| ()).io((0, 0), (1000, 3 * WRITTEN)).file(2 * WRITTEN, |f| {
        f.writes = access(820, 2 * WRITTEN, 820);
    });
    assert!(!found(&beside));
}
