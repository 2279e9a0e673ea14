//! The rule `file-lock`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::lock::{self, Lock};
use super::{Facts, Repairs, Rule};
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule {
    id: FindingId::FileLock,
    claim: "processes or threads wait for a lock on a file",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("which calls need the lock is not recorded"),
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let file = Lock {
        id: FindingId::FileLock,
        wait: Wait::FileLock,
        // Nobody spins for it.
        spins_in: &[],
        name: "a lock on a file",
        advice: "Hold the lock for as little as it protects: take it shared where the file is only read (LOCK_SH, F_RDLCK), lock the part that \
                 is used (fcntl ranges) or a file for each record, and read and compute before it is taken. `lslocks` shows holder and file.",
    };
    lock::judge(facts, &file)
}
