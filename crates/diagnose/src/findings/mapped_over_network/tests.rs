//! Tests of the rule `mapped-over-network`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{Step, Stretch};

use super::*;
use crate::classify::{Operation, Wait};
use crate::findings::synthetic::{Run, access, slow_and_repaired};

/// A search in an index that is mapped from another machine.
fn search(share: f64) -> Run {
    without_faults(share).wait(Operation::Fault, Wait::Server, share)
}

fn without_faults(left: f64) -> Run {
    Run::new(10.0)
        .busy(Operation::Fault, Layer::Memory, 0.02)
        .busy(Operation::User, Layer::Program, 0.98 - left)
        .file(64 << 20, |f| {
            (f.path, f.mapped, f.mount_point) = ("/mnt/data/index".into(), true, Some("/mnt/data".into()))
        })
        .with(|p| {
            p.served = vec![ServedMount {
                point: "/mnt/data".into(),
                file_system: "cifs".into(),
                ..ServedMount::default()
            }];
        })
}

#[test]
fn each_fault_over_the_network_is_a_round_trip() {
    let found = slow_and_repaired(FindingId::MappedOverNetwork, &search(0.8), &search(0.01));
    assert_eq!(found.gain, None);
    assert!(found.evidence.contains(&"mapped: /mnt/data/index, 64 MiB".to_owned()), "{found:?}");
    assert!(!found.advice.contains("MADV_RANDOM"), "{found:?}");
    assert_eq!(search(0.8).ids(), [FindingId::MappedOverNetwork]);
}

#[test]
fn a_program_that_turns_read_ahead_off_is_told() {
    let random = search(0.8).with(|p| {
        let advise = Step { kind: StepKind::AdviseMap, argument: MADV_RANDOM, count: 1, ..Step::default() };
        p.pattern.stretches = vec![Stretch { length_ns: 1, steps: vec![advise] }];
    });
    assert!(random.findings()[0].advice.starts_with("Leave MADV_RANDOM out"), "{:?}", random.findings());
}

#[test]
fn innocent_programs_map_nothing_over_the_network() {
    let not_named =
        |run: &Run| assert!(!run.ids().contains(&FindingId::MappedOverNetwork), "{:?}", run.ids());
    // The mapping of a file on a disk, beside a served mount.
    not_named(&without_faults(0.8).wait(Operation::Fault, Wait::DeviceRead, 0.8));
    // Pages that are in memory.
    not_named(&without_faults(0.8).busy(Operation::Fault, Layer::Memory, 0.8));
    // A program whose own code comes from the server: a few faults at its start.
    not_named(&without_faults(0.8).sleeps(Operation::Fault, Wait::Server, 0.3, 12));
    // It reads.
    not_named(&without_faults(0.8).wait(Operation::Read, Wait::Server, 0.8).file(1 << 20, |f| {
        (f.reads, f.mount_point) = (access(100, 1 << 20, 100), Some("/mnt/data".into()));
    }));
}
