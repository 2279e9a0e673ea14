//! The rule `mmap-lock`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};

use super::lock::{self, Lock};
use super::range::Range;
use super::{Facts, Rule};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::MmapLock, manual: include_str!("page.md"), judge };

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let mmap = Lock {
        id: FindingId::MmapLock,
        wait: Wait::MmapLock,
        spins_in: &[Operation::Map, Operation::Fault],
        name: "the lock of the address space",
        advice: "Map, unmap and mprotect less often: map a file once and keep it, reuse buffers, keep malloc from \
                 giving memory back (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), populate with MADV_POPULATE_READ before the \
                 threads start; or use processes instead of threads, or read() instead of mappings.",
        // Memory that is kept is neither mapped nor faulted in again.
        along: Range::new(0.0, 0.7, 0.99),
    };
    lock::judge(facts, &mmap)
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::findings::synthetic::{Run, slow_and_repaired};

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
        // By hand: 70 % of 6 s; four threads of 4 s work fit on eight CPUs.
        assert!((found.gain.unwrap().predicted - 10.0 / 4.9).abs() < 1e-6, "{:?}", found.gain);
    }

    #[test]
    fn too_few_cpus_bound_the_gain() {
        let mut run = threads(0.6);
        run.profile.pressure.cpus = 2;
        // 16 s of work on two CPUs take 8 s.
        let gain = run.findings()[0].gain.unwrap();
        assert!(gain.high <= 10.0 / 8.0 + 1e-9, "{gain:?}");
    }
}
