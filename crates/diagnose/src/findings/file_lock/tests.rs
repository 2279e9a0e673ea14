//! Tests of the rule `file-lock`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, slow_and_repaired};

/// Readers that each hold the lock while they wait for the device.
fn readers(lock: f64) -> Run {
    let thread = |run: Run| {
        run.wait(Operation::Descriptor, Wait::FileLock, lock)
            .wait(Operation::Read, Wait::DeviceRead, 0.9 - lock)
            .busy(Operation::User, Layer::Program, 0.1)
    };
    let run = Run::new(4.0).with(|p| p.pressure.cpus = 8).io((10_000, 10_000 << 12), (0, 0));
    (1..8).fold(thread(run), |run, _| run.second_thread(thread))
}

#[test]
fn readers_that_exclude_each_other_are_named_and_those_with_a_shared_lock_are_not() {
    let found = slow_and_repaired(FindingId::FileLock, &readers(0.77), &readers(0.01));
    assert!(found.gain.is_none(), "nothing can be repeated");
    assert!(found.advice.contains("shared"), "{found:?}");
}

#[test]
fn one_process_that_waits_for_other_programs_is_not_told_to_change_its_own_lock() {
    let alone = Run::new(4.0).wait(Operation::Descriptor, Wait::FileLock, 0.8).busy(
        Operation::User,
        Layer::Program,
        0.2,
    );
    assert!(!alone.ids().contains(&FindingId::FileLock));
}
