//! The rule `inode-lock`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};

use super::lock::{self, Lock};
use super::range::Range;
use super::{Facts, Rule};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule { id: FindingId::InodeLock, manual: include_str!("page.md"), judge };

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let inode = Lock {
        id: FindingId::InodeLock,
        wait: Wait::InodeLock,
        spins_in: &[Operation::Read, Operation::Write, Operation::Names, Operation::Open],
        name: "the lock of one inode",
        advice: "Let no two threads write one file, or change one directory, at once: a file for each thread, joined at \
                 the end; fewer and larger writes; one writer thread with a queue; O_DIRECT into space that is already \
                 written (XFS and ext4 then share the lock); files spread over several directories.",
        along: Range::new(0.0, 0.3, 0.65),
    };
    lock::judge(facts, &inode)
}

#[cfg(test)]
mod tests {
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
}
