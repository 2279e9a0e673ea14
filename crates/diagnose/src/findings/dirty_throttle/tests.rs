//! Tests of the rule `dirty-throttle`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

fn writer(pause: f64, bytes: u64) -> Run {
    Run::new(10.0)
        .wait(Operation::Write, Wait::DirtyThrottle, pause)
        .busy(Operation::Write, Layer::Copy, 0.2)
        .busy(Operation::User, Layer::Program, 0.8 - pause)
        .io((0, 0), (bytes >> 20, bytes))
        .device(0.99, 20.0, |d| d.written_bytes = bytes / 2)
}

#[test]
fn a_paused_writer_is_named_and_one_that_is_not_paused_not() {
    let found = slow_and_repaired(FindingId::DirtyThrottle, &writer(0.7, 1 << 30), &writer(0.0, 1 << 30));
    bound_leaves(&found, 0.3);
    assert!(found.advice.contains("vm.dirty_ratio"));
}

#[test]
fn more_than_memory_holds_is_named_without_a_promise() {
    let found = writer(0.7, 64 << 30).findings();
    assert_eq!(found[0].id, FindingId::DirtyThrottle);
    assert_eq!(found[0].gain_rest_unchanged, None);
}
