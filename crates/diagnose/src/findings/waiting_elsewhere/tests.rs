//! Tests of the rule `waiting-elsewhere`.

use super::*;
use crate::findings::synthetic::{Run, slow_and_repaired};

fn run(asleep: f64, wait: Wait) -> Run {
    Run::new(10.0).wait(Operation::Read, wait, asleep).busy(Operation::User, Layer::Program, 1.0 - asleep)
}

#[test]
fn sleeping_on_a_pipe_is_named_and_computing_not() {
    let slow = run(0.8, Wait::Pipe);
    slow_and_repaired(FindingId::WaitingElsewhere, &slow, &run(0.1, Wait::Pipe));
}

#[test]
fn what_could_not_be_told_is_not_said_to_be_elsewhere() {
    let unknown = run(0.9, Wait::Unknown).findings();
    assert!(unknown[0].sentence.contains("it may be storage"), "{unknown:?}");
    assert!(!unknown[0].sentence.contains("not for storage"));
    // Looks are not sleeps: no number of sleeps where only looks were taken.
    assert!(unknown[0].evidence[0].contains("samples"), "{unknown:?}");
}

#[test]
fn every_wait_off_the_path_has_words() {
    for (wait, words, _) in KINDS {
        assert!(!wait.on_path());
        assert!(run(0.9, wait).findings()[0].sentence.contains(words));
    }
}
