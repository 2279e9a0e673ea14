//! Tests of the rule `fresh-buffers`.

use super::*;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

/// Reads of 1 MiB, 4 GiB in all, into memory that is fresh for so many of its pages.
fn reads(memory: f64, map: f64, faults: u64) -> Run {
    Run::new(10.0)
        .busy(Operation::Read, Layer::Copy, 0.4)
        .busy(Operation::Read, Layer::Memory, memory)
        .busy(Operation::Map, Layer::Memory, map)
        .busy(Operation::User, Layer::Program, 0.6 - memory - map)
        .io((4096, 4 << 30), (0, 0))
        .with(|p| p.io.minor_faults = Some(faults))
        .calls(&[("mmap", 10 + faults / 256), ("munmap", 10 + faults / 256)])
}

#[test]
fn a_buffer_for_each_read_is_named_and_one_for_all_not() {
    let found =
        slow_and_repaired(FindingId::FreshBuffers, &reads(0.3, 0.1, 1 << 20), &reads(0.0, 0.001, 900));
    bound_leaves(&found, 0.6);
}

#[test]
fn memory_churn_without_reading_is_the_programs_own() {
    let run = Run::new(10.0)
        .busy(Operation::Fault, Layer::Memory, 0.4)
        .busy(Operation::User, Layer::Program, 0.6)
        .io((10, 4096), (10, 4096))
        .with(|p| p.io.minor_faults = Some(1 << 20));
    assert_eq!(run.ids(), [FindingId::CpuBound]);
}
