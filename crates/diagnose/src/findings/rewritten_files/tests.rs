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
        (f.replaced, f.size_bytes) = (VERSIONS - 1, None);
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
    let gone = 178.0 / 180.0;
    bound_leaves(&finding, 1.0 - 0.7 * gone);
    let left = finding.prediction.as_ref().map(|p| p.remaining).unwrap();
    // Of 4 s, 1.6 are writes; syncs may stay, and all that is made may go.
    let least = 4e9 * (1.0 - 0.4 * gone);
    assert!((least..least + 0.2e9).contains(&left.high), "{left:?}");
    assert!(left.low < 4e9 * (1.0 - gone) + 1.0, "{left:?}");
    let words = "written whole 180 times at least, 2.26 MiB each on average, as a new file";
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
}

#[test]
fn what_is_read_of_the_versions_to_make_the_next_goes_at_most() {
    let left = |read: u64| {
        let run = renamed(|f| f.reads = access(VERSIONS, read, VERSIONS))
            .io((VERSIONS, WRITTEN), (VERSIONS, WRITTEN))
            .busy(Operation::Read, Layer::Copy, 0.2);
        let found = run.findings().into_iter().find(|f| f.id == FindingId::RewrittenFiles).unwrap();
        found.prediction.map(|p| p.remaining).unwrap()
    };
    let (all, none) = (left(WRITTEN), left(0));
    assert!(all.value < 0.9 * none.value && all.high == none.high, "{all:?} {none:?}");
}

#[test]
fn what_is_no_version_of_a_file_is_not_counted() {
    // Files of one name that all stay under other names (a log that is rotated).
    assert!(!found(&renamed(|f| f.replaced = 0)));
    assert!(!found(&renamed(|f| f.replaced = 2)));
    // Scratch files that are removed.
    let removed = renamed(|_| ()).with(|p| {
        let calls = &mut p.calls.as_mut().unwrap().calls;
        calls.iter_mut().filter(|c| c.name == "rename").for_each(|c| c.name = "unlink".into());
    });
    assert!(!found(&removed));
    // A version is one block.
    assert!(!found(&upgrades(VERSIONS << 12, VERSIONS, 0.4, |f| f.replaced = VERSIONS - 1)));
    assert!(found(&upgrades(VERSIONS << 13, VERSIONS, 0.4, |f| f.replaced = VERSIONS - 1)));
    // Most bytes are others.
    let beside = renamed(|_| ()).io((0, 0), (1000, 3 * WRITTEN)).file(2 * WRITTEN, |f| {
        f.writes = access(820, 2 * WRITTEN, 820);
    });
    assert!(!found(&beside));
}
