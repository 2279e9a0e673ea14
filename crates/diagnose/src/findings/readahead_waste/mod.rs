//! The rule `readahead-waste`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{PAGE_BYTES, Side};
use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::ReadaheadWaste,
    claim: "read-ahead on random access fetches bytes that are never used",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// With more of the reads in order than this, read-ahead is what is wanted.
const IN_ORDER: f64 = 0.95;
/// The device must have read this multiple of the bytes needed.
const WASTEFUL: f64 = 2.0;
/// What one fault maps: the 64 KiB around it as far as they are in the cache, and of large folios some more. Sequential
/// passes over large folios were seen to take a fault for each 130 KiB.
const FAULT_AROUND_BYTES: f64 = 131_072.0;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

/// What was needed of the device.
struct Need {
    /// At the most.
    bytes: f64,
    /// At the least.
    least: f64,
    words: String,
    operation: Operation,
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let fetched = facts.profile.io.device_read_bytes.filter(|b| *b > 0)? as f64;
    let by_mapping = facts.waiting(Operation::Fault, Wait::DeviceRead).wall_ns
        > facts.waiting(Operation::Read, Wait::DeviceRead).wall_ns;
    // Records that are read in parts follow each other within a record. What was fetched beside what was asked for
    // tells more than the order of the calls, from half as much again.
    let wasteful = match facts.sequential_reads() {
        Some(s) if !by_mapping && s.value >= IN_ORDER => return None,
        Some(s) if !by_mapping && s.value >= MOSTLY => 1.5 * WASTEFUL,
        _ => WASTEFUL,
    };
    // The order of the faults counts for mapped files, and not that of the few calls beside them.
    let need = by_calls(facts).filter(|n| fetched >= wasteful * n.bytes);
    let need = need.or_else(|| by_faults(facts, fetched).filter(|n| fetched >= WASTEFUL * n.bytes))?;
    let factor = fetched / need.bytes.max(PAGE_BYTES);
    let wasted = 1.0 - 1.0 / factor;

    let waiting = |e: &Entry| e.class.operation == need.operation && e.class.wait == Some(Wait::DeviceRead);
    let inserting = |e: &Entry| {
        e.busy && e.class.operation == need.operation && matches!(e.class.layer, Layer::Cache | Layer::Block)
    };
    // What is needed is known at the most; it may be as little as a page for each request that was waited for. As many requests as
    // before, each smaller, take at least the time of their bytes.
    let least = need.least.min(need.bytes).max(PAGE_BYTES);
    let most_wasted = (1.0 - least / fetched).max(wasted);
    let removable = facts.removable(|e| most_wasted * f64::from(waiting(e) || inserting(e)));
    let cost = facts.account.sum(|e| waiting(e) || inserting(e));
    let mut evidence = vec![
        format!("the device read {}, {}", say::bytes(fetched), need.words),
        format!(
            "waiting for them and inserting their pages into the cache takes {} of wall time",
            say::percent(facts.wall_share(cost.wall_ns))
        ),
    ];
    let mean = facts.device_read_bytes_mean();
    evidence.extend(mean.map(|mean| format!("its read requests are {} on average", say::bytes(mean))));
    evidence.extend(
        facts
            .sequential_reads()
            .filter(|_| need.operation == Operation::Read)
            .map(|s| format!("only {} of the reads are sequential", say::share(s))),
    );
    Draft {
        id: FindingId::ReadaheadWaste,
        cost_ns: cost.wall_ns * wasted,
        removable: Some(removable),
        sentence: format!("The device reads {factor:.1} times the bytes needed: read-ahead on random access"),
        evidence,
        advice: advice(need.operation).into(),
    }
    .finding(facts)
}

/// Every page that any read call touched, whether it was in the cache or not.
fn by_calls(facts: &Facts<'_>) -> Option<Need> {
    let (calls, bytes) = (facts.calls(Side::Read)?, facts.storage_bytes(Side::Read)?);
    let calls = calls * facts.storage_part(Side::Read).map_or(1.0, |(calls, _)| calls);
    let waits = facts.waiting(Operation::Read, Wait::DeviceRead).wall_ns;
    let touched = bytes + calls * PAGE_BYTES;
    (calls >= 1.0 && waits > facts.waiting(Operation::Fault, Wait::DeviceRead).wall_ns).then(|| Need {
        bytes: touched,
        least: bytes,
        words: format!("the program read {} in {} calls", say::bytes(bytes), say::count(calls)),
        operation: Operation::Read,
    })
}

/// A page for each fault that needed one, of a mapping that is larger than memory. In a mapping that fits, what a fault
/// fetches beside its page is likely to be used later: then `MADV_RANDOM` would harm, and nothing is said.
///
/// Of a mapping that fits, it is said where the run itself shows it: a fault maps about [`FAULT_AROUND_BYTES`] at the most,
/// so all faults of the run together have not used half of what was fetched, and the device was not read in order.
fn by_faults(facts: &Facts<'_>, fetched: f64) -> Option<Need> {
    let io = &facts.profile.io;
    if let (Some(major @ 1..), Some(minor)) = (io.major_faults, io.minor_faults)
        && facts.waiting(Operation::Fault, Wait::DeviceRead).wall_ns > 0.0
    {
        let faults = major as f64 + minor as f64;
        let mapped = faults * FAULT_AROUND_BYTES;
        let in_order = facts.adjacent_reads().is_none_or(|s| s.high >= IN_ORDER);
        if !in_order && fetched >= WASTEFUL * mapped {
            return Some(Need {
                bytes: mapped,
                least: major as f64 * PAGE_BYTES,
                words: format!(
                    "{} page faults mapped at most about {} of it",
                    say::count(faults),
                    say::bytes(mapped)
                ),
                operation: Operation::Fault,
            });
        }
    }
    let memory = facts.profile.pressure.memory_bytes? as f64;
    let mapped = facts.mapped_bytes().filter(|b| *b > memory)?;
    let major = facts.profile.io.major_faults.filter(|n| *n > 0)? as f64;
    // Faults that found their page in the cache may have found what an earlier one fetched.
    let minor = facts.profile.io.minor_faults.unwrap_or(0) as f64;
    let random = facts.adjacent_reads().is_some_and(|s| s.high < MOSTLY);
    (random && fetched > 0.0).then(|| Need {
        bytes: (major + minor.min(major)) * PAGE_BYTES,
        least: major * PAGE_BYTES,
        words: format!(
            "{} faults needed one page each; {} are mapped, memory size: {}",
            say::count(major),
            say::bytes(mapped),
            say::bytes(memory)
        ),
        operation: Operation::Fault,
    })
}

fn advice(operation: Operation) -> &'static str {
    match operation {
        Operation::Fault => {
            "Call madvise(MADV_RANDOM) for the mapping: access is random, and most pages fetched around a fault \
             were never used in this run. Skip this if a longer run uses them all."
        }
        _ => {
            "Call posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) for files with random reads (Python os.posix_fadvise), \
             or reduce the read-ahead window of the device if all its users read at random."
        }
    }
}
