//! Tests of the rule `unaligned-write`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, looked, slow_and_repaired};

fn writer(wait: f64, unaligned: u64) -> Run {
    Run::new(10.0)
        .wait(Operation::Write, Wait::DeviceRead, wait)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .io((0, 0), (10_000, 10_000_000))
        .file(8 << 30, |f| {
            f.writes = access(1000, 1_000_000, 0);
            f.writes.unaligned = looked(unaligned, 1000);
        })
}

#[test]
fn writes_that_read_first_are_named_and_whole_blocks_not() {
    let found = slow_and_repaired(FindingId::UnalignedWrite, &writer(0.7, 1000), &writer(0.0, 0));
    bound_leaves(&found, 0.3);
}

#[test]
fn aligned_writes_that_wait_for_a_read_are_another_matter() {
    assert!(!writer(0.7, 0).ids().contains(&FindingId::UnalignedWrite));
}
