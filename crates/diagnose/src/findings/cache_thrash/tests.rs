//! Tests of the rule `cache-thrash`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

/// Five passes over a file of 6 GiB; so much comes from the device.
fn passes(fetched: u64, wait: f64) -> Run {
    Run::new(100.0)
        .wait(Operation::Read, Wait::DeviceRead, wait)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .io(((30 << 30) >> 17, 30 << 30), (0, 0))
        .device_read(fetched)
        .file(6 << 30, |f| f.reads = access(1000, 1000 << 17, 1000))
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
    let run = passes(30 << 30, 0.8).calls(&[("openat", 100_000)]);
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
