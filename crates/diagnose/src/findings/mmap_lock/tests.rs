//! Tests of the rule `mmap-lock`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

fn threads(lock: f64) -> Run {
    let thread = |r: Run| {
        r.wait(Operation::Map, Wait::MmapLock, lock).busy(Operation::User, Layer::Program, 1.0 - lock)
    };
    let run = Run::new(10.0).with(|p| p.pressure.cpus = 8);
    (1..4).fold(thread(run), |run, _| run.second_thread(thread))
}

#[test]
fn waiting_to_map_is_named_and_little_of_it_not() {
    let found = slow_and_repaired(FindingId::MmapLock, &threads(0.6), &threads(0.02));
    // By hand: four threads of 4 s work fit on eight CPUs.
    bound_leaves(&found, 0.4);
}

#[test]
fn too_few_cpus_bound_the_gain() {
    let mut run = threads(0.6);
    run.profile.pressure.cpus = 2;
    // 16 s of work on two CPUs take 8 s.
    bound_leaves(&run.findings()[0], 0.8);
}
