//! Tests of the rule `mmap-faults`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{Process, State, Thread};

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
    let found = slow_and_repaired(FindingId::MmapFaults, &slow, &mapped(0.01, 0.03, 1 << 30, 60_000));
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

/// A thousand short programs have a thousand starts, each of which maps the libraries anew.
#[test]
fn the_faults_of_many_short_programs_are_those_of_their_starts() {
    let starts = |programs: u64| {
        let process = move |count| Process { pid: 7, count, ..Process::default() };
        Run::new(10.0)
            .busy_sampled(Operation::Fault, Layer::Memory, 0.3, 1000)
            .busy(Operation::Map, Layer::Memory, 0.1)
            .busy(Operation::User, Layer::Program, 0.6)
            .stack(&["filemap_map_pages"], State::Running, 0.3, 1000)
            .with(move |p| {
                p.processes = vec![process(programs)];
                p.threads = vec![Thread { pid: 7, count: programs, ..Thread::default() }];
            })
            .calls(&[("execve", programs), ("mmap", 13 * programs)])
            .file(400 << 10, |f| f.mapped = true)
    };
    let found = |programs| starts(programs).ids().contains(&FindingId::MmapFaults);
    assert!(!found(1000) && found(10));
}
