//! Tests of the rule `inode-lock`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, slow_and_repaired};

fn writers(lock: f64) -> Run {
    let thread = |r: Run| {
        r.wait(Operation::Write, Wait::InodeLock, lock).busy(Operation::Write, Layer::Copy, 0.2).busy(
            Operation::User,
            Layer::Program,
            0.8 - lock,
        )
    };
    let run = Run::new(10.0).with(|p| p.pressure.cpus = 8).io((0, 0), (10_000, 10_000 << 16));
    (1..4).fold(thread(run), |run, _| run.second_thread(thread))
}

#[test]
fn writers_of_one_file_are_named_and_of_their_own_not() {
    slow_and_repaired(FindingId::InodeLock, &writers(0.75), &writers(0.01));
}

#[test]
fn one_thread_waits_for_nobody_of_its_own() {
    let run = Run::new(10.0).wait(Operation::Write, Wait::InodeLock, 0.5).busy(
        Operation::User,
        Layer::Program,
        0.5,
    );
    assert!(!run.ids().contains(&FindingId::InodeLock));
}
