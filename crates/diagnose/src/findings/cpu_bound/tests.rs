//! Tests of the rule `cpu-bound`.

use super::*;
use crate::classify::{Operation, Wait};
use crate::findings::synthetic::{Run, slow_and_repaired};

fn run(computing: f64) -> Run {
    Run::new(10.0)
        .busy(Operation::User, Layer::Program, computing)
        .busy(Operation::Read, Layer::Copy, 0.05)
        .wait(Operation::Futex, Wait::Futex, 0.95 - computing)
}

#[test]
fn computing_is_named_and_sleeping_not() {
    let found = slow_and_repaired(FindingId::CpuBound, &run(0.9), &run(0.1));
    assert_eq!(found.gain, None);
}

#[test]
fn without_stacks_the_kernels_split_tells() {
    let unseen = Run::new(10.0).busy_sampled(Operation::Unknown, Layer::Unexplained, 1.0, 0);
    let with = |user, system| {
        unseen.clone().with(|p| (p.io.user_ns, p.io.system_ns) = (Some(user), Some(system))).ids()
    };
    assert_eq!(with(9_000_000_000, 1_000_000_000), [FindingId::CpuBound]);
    assert_eq!(with(1_000_000_000, 9_000_000_000), [FindingId::Healthy]);
    // Each of many short processes is in user mode for the kernel that no tick hit elsewhere.
    let short = unseen.clone().with(|p| {
        (p.io.user_ns, p.io.system_ns) = (Some(9_000_000_000), Some(1_000_000_000));
        p.processes = vec![iowhy_core::profile::Process { count: 1000, ..Default::default() }];
    });
    assert_eq!(short.ids(), [FindingId::Healthy]);
}
