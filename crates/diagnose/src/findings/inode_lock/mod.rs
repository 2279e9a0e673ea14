//! The rule `inode-lock`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::lock::{self, Lock};
use super::{Facts, Repairs, Rule};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::InodeLock,
    claim: "threads wait for the lock of one file or directory",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::of_calls(repair::repaired),
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let inode = Lock {
        id: FindingId::InodeLock,
        wait: Wait::InodeLock,
        spins_in: &[Operation::Read, Operation::Write, Operation::Names, Operation::Open],
        name: "the lock of one inode",
        advice: "Avoid concurrent writes to one file or changes to one directory: one file per thread, joined at \
                 the end; fewer and larger writes; one writer thread with a queue; O_DIRECT into space that is \
                 already \
                 written (XFS and ext4 then share the lock); files spread over several directories.",
    };
    lock::judge(facts, &inode)
}
