//! Tests of the rule `mmap-faults`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, slow_and_repaired};

fn mapped(wait: f64, busy: f64, size: u64, adjacent: u64) -> Run {
    Run::new(10.0)
        .wait(Operation::Fault, Wait::DeviceRead, wait)
        .busy(Operation::Fault, Layer::Memory, busy)
        .busy(Operation::User, Layer::Program, 1.0 - wait - busy)
        .device_read(1 << 30)
        .with(|p| (p.io.major_faults, p.io.minor_faults) = (Some(65_536), Some(262_144)))
        .file(size, |f| f.mapped = true)
        .block(65_536, 1 << 30, adjacent, 0)
}

#[test]
fn faults_are_named_and_a_populated_mapping_not() {
    let slow = mapped(0.6, 0.2, 1 << 30, 100);
    let found = slow_and_repaired(FindingId::MmapFaults, &slow, &mapped(0.02, 0.04, 1 << 30, 60_000));
    assert!(found.advice.contains("MADV_POPULATE_READ") && found.advice.contains("Do not use MADV_RANDOM"));
    assert!((found.share - 0.8).abs() < 1e-9);
}

#[test]
fn the_advice_follows_order_and_size() {
    let advice = |size, adjacent| mapped(0.6, 0.2, size, adjacent).findings()[0].advice.clone();
    assert!(advice(1 << 30, 60_000).contains("MADV_SEQUENTIAL"));
    assert!(advice(64 << 30, 100).contains("several threads"));
}

#[test]
fn faults_without_a_mapped_file_are_not_its_own() {
    let mut run = mapped(0.0, 0.5, 1 << 30, 0);
    run.profile.files.clear();
    assert!(!run.ids().contains(&FindingId::MmapFaults));
}
