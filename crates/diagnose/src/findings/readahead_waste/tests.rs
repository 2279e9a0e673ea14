//! Tests of the rule `readahead-waste`.

use iowhy_core::finding::FindingId;

use super::*;
use crate::findings::synthetic::{Run, access, slow_and_repaired};

/// 10,000 random reads of 4 KiB that fetch so much each.
fn random(fetched: u64, cache: f64, in_flight: f64) -> Run {
    let bytes = 10_000 * fetched;
    Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, 0.5)
        .busy(Operation::Read, Layer::Cache, cache)
        .busy(Operation::User, Layer::Program, 0.5 - cache)
        .io((10_000, 40_960_000), (0, 0))
        .device_read(bytes)
        .file(64 << 30, |f| f.reads = access(1000, 4_096_000, 5))
        .block(10_000, bytes, 0, bytes - 40_960_000)
        .device(0.9, in_flight, |d| (d.reads, d.read_bytes) = (10_000, bytes))
}

#[test]
fn a_window_for_each_random_page_is_named_and_a_page_for_a_page_not() {
    slow_and_repaired(FindingId::ReadaheadWaste, &random(131_072, 0.4, 3.0), &random(4096, 0.05, 3.0));
}

#[test]
fn a_mapping_whose_faults_cannot_have_used_what_was_fetched_is_named_though_it_fits() {
    let run = |faults: u64, adjacent: u64| {
        Run::new(10.0)
            .wait(Operation::Fault, Wait::DeviceRead, 0.9)
            .busy(Operation::User, Layer::Program, 0.1)
            .device_read(1 << 30)
            .with(|p| (p.io.major_faults, p.io.minor_faults) = (Some(200), Some(faults)))
            .file(1 << 30, |f| f.mapped = true)
            .block(500, 1 << 30, adjacent, 1 << 30)
            .ids()
            .contains(&FindingId::ReadaheadWaste)
    };
    assert!(run(1300, 250));
    assert!(!run(20_000, 250), "so many faults may have used all of it");
    assert!(!run(1300, 495), "a pass in order");
}

#[test]
fn records_read_in_parts_are_read_ahead_in_vain_too() {
    let run = |fetched: u64, sequential: u64| {
        let mut run = random(fetched, 0.3, 3.0);
        run.profile.files[0].reads = access(1000, 4_096_000, sequential);
        run.ids().contains(&FindingId::ReadaheadWaste)
    };
    assert!(run(131_072, 875), "the order within records");
    assert!(!run(131_072, 1000), "a pass in order");
    assert!(!run(20_480, 875), "little more than was asked for");
}

#[test]
fn a_mapping_that_fits_in_memory_is_left_alone() {
    let run = |size: u64| {
        Run::new(10.0)
            .wait(Operation::Fault, Wait::DeviceRead, 0.9)
            .busy(Operation::User, Layer::Program, 0.1)
            .device_read(1 << 30)
            .with(|p| (p.io.major_faults, p.io.minor_faults) = (Some(8000), Some(50_000)))
            .file(size, |f| f.mapped = true)
            .block(8000, 1 << 30, 10, 1 << 29)
    };
    assert!(run(64 << 30).ids().contains(&FindingId::ReadaheadWaste), "{:?}", run(64 << 30).findings());
    let fits = run(2 << 30).findings();
    assert!(fits.iter().all(|f| f.id != FindingId::ReadaheadWaste));
    assert!(fits.iter().all(|f| !f.advice.contains("MADV_RANDOM)")), "{fits:?}");
}
