//! Tests of the rule `cache-thrash`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::FileUse;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

/// Five passes over a file of 6 GiB; so much comes from the device.
fn passes(fetched: u64, wait: f64) -> Run {
    Run::new(100.0)
        .wait(Operation::Read, Wait::DeviceRead, wait)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .io(((30 << 30) >> 17, 30 << 30), (0, 0))
        .device_read(fetched)
        .block(fetched >> 17, fetched, fetched >> 17, 0)
        .calls(&[("read", 1000)])
        .file(6 << 30, |f| {
            f.reads = access(1000, 1000 << 17, 1000);
            f.most_bytes = f.size_bytes;
        })
        .device(0.95, 2.0, |d| (d.reads, d.read_bytes) = (fetched >> 17, fetched))
}

#[test]
fn five_passes_from_the_device_are_named_and_one_not() {
    let slow = passes(30 << 30, 0.8);
    let found = slow_and_repaired(FindingId::CacheThrash, &slow, &passes(6 << 30, 0.2));
    // By hand: four fifths came again, in 80 % of the time.
    assert!((found.share - 0.8 * 0.8).abs() < 1e-6);
    bound_leaves(&found, 0.2);
    assert!(found.advice.contains("smaller than memory"));
}

#[test]
fn a_tree_of_files_that_were_not_all_seen_is_not_read_again() {
    let run = passes(30 << 30, 0.8).calls(&[("openat", 100_000), ("read", 1 << 40)]);
    assert!(!run.ids().contains(&FindingId::CacheThrash));
}

#[test]
fn evicted_pages_and_repeated_reads_tell_it_too() {
    let mut run = passes(3 << 30, 0.8);
    run.profile.files[0].recently_evicted_pages = Some(500_000);
    run.profile.files[0].reads.repeated = looked(700, 1000);
    assert!(run.ids().contains(&FindingId::CacheThrash));
    run.profile.files[0].reads.repeated = looked(0, 1000);
    assert!(!run.ids().contains(&FindingId::CacheThrash));
}

/// Files of 3 GiB that are listed, and the rest of what comes from the device in others.
fn many(others: Option<u64>) -> Run {
    passes(4 << 30, 0.8).with(|p| {
        p.files[0].most_bytes = Some(3 << 30);
        p.files.push(FileUse {
            path: "others".into(),
            kind: "unknown".into(),
            most_bytes: others,
            ..FileUse::default()
        });
        p.files[1].reads = access(100, 1 << 30, 1000);
        p.files[1].opens = 100;
    })
}

#[test]
fn files_beyond_the_list_count_by_their_sizes_and_without_sizes_nothing_is_told() {
    let thrashes = |run: &Run| run.ids().contains(&FindingId::CacheThrash);
    assert!(!thrashes(&many(Some(1 << 30))), "each byte came once");
    assert!(thrashes(&many(Some(1 << 20))));
    assert!(!thrashes(&many(None)));
    // A log that the program got from its caller, and never used.
    let log = |f: &mut FileUse| f.inherited = true;
    assert!(thrashes(&many(Some(1 << 20)).file(100, log)));
    let gone = |f: &mut FileUse| (f.mapped, f.size_bytes) = (true, None);
    assert!(!thrashes(&many(Some(1 << 20)).file(100, gone)), "nobody knows how large what was mapped is");
}

#[test]
fn code_comes_from_the_device_as_well_and_inodes_are_of_no_file() {
    let with = |change: &dyn Fn(&mut iowhy_core::profile::Profile)| {
        let run = many(Some(1 << 20)).with(change);
        run.ids().contains(&FindingId::CacheThrash)
    };
    assert!(with(&|_| {}));
    assert!(!with(&|p| p.code_bytes = Some(1 << 30)));
    assert!(!with(&|p| p.code_bytes = None));
    assert!(!with(&|p| p.block.as_mut().unwrap().own_metadata_bytes = 1 << 30));
}
