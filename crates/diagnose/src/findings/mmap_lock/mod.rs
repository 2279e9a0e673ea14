//! The rule `mmap-lock`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::lock::{self, Lock};
use super::{Facts, Repairs, Rule};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::MmapLock,
    claim: "threads wait for the lock of the address space",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::one(repair::repaired) },
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let mmap = Lock {
        id: FindingId::MmapLock,
        wait: Wait::MmapLock,
        spins_in: &[Operation::Map, Operation::Fault],
        name: "the lock of the address space",
        advice: "Map, unmap and mprotect less often: map a file once and keep it, reuse buffers, keep malloc from \
                 giving memory back (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), populate with MADV_POPULATE_READ before the \
                 threads start; or use processes instead of threads, or read() instead of mappings.",
    };
    lock::judge(facts, &mmap)
}
