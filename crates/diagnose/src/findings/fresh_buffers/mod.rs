//! The rule `fresh-buffers`. Its page of the manual:
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
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::FreshBuffers,
    claim: "memory is allocated, zeroed and freed for each request",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// Faults of a process that starts and ends, whatever it does.
const FAULTS_OF_A_START: f64 = 500.0;
/// Memory that is taken anew must be at least this part of the bytes that are moved.
const CHURN: f64 = 0.3;
/// New memory must be this multiple of the program's peak.
const TURNOVER: f64 = 2.0;
/// With less new memory than this part of the peak, by pages of the usual size, pages were huge.
const HUGE_PAGES: f64 = 0.3;
/// Faults inside reads and writes are the buffer's: from this part of the cost on they alone tell.
const INSIDE: f64 = 0.3;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let inside = |e: &Entry| {
        e.busy
            && e.class.layer == Layer::Memory
            && matches!(e.class.operation, Operation::Read | Operation::Write)
    };
    let mapping = facts.faults_are_of_files().unwrap_or_else(|| facts.mapped_bytes().is_some());
    let around =
        |e: &Entry| e.busy && !mapping && matches!(e.class.operation, Operation::Map | Operation::Fault);
    let cost = |e: &Entry| inside(e) || around(e);
    let sum = facts.account.sum(cost);
    let within = facts.account.sum(inside);
    if sum.wall_ns <= 0.0 {
        return None;
    }
    let moved: f64 = Side::BOTH.iter().filter_map(|s| facts.bytes(*s)).sum();
    let calls: f64 = Side::BOTH.iter().filter_map(|s| facts.calls(*s)).sum();
    let processes = facts.profile.processes.iter().map(|p| p.count.max(1)).sum::<u64>().max(1) as f64;
    let faults = facts.profile.io.minor_faults.map(|n| (n as f64 - FAULTS_OF_A_START * processes).max(0.0));
    let fresh_bytes = faults.map(|n| n * PAGE_BYTES);
    // No fault beyond those of the start: the memory that was taken is the page cache's.
    if fresh_bytes.is_some_and(|bytes| bytes <= 0.0) {
        return None;
    }
    // Memory that is taken once and kept is not taken anew: then all of it was there at the peak. Far fewer faults than
    // pages at the peak are those of huge pages, and tell nothing.
    let peak = facts.profile.io.peak_memory_bytes.map(|b| b as f64 * processes);
    if fresh_bytes
        .zip(peak)
        .is_some_and(|(fresh, peak)| (HUGE_PAGES * peak..TURNOVER * peak).contains(&fresh))
    {
        return None;
    }
    let maps = facts.counted_calls(&["mmap", "munmap", "brk", "madvise", "mremap"]);
    // Either the faults are taken inside the calls that move bytes, or memory comes and goes with the bytes.
    let by_bytes = fresh_bytes.is_some_and(|b| moved > 0.0 && b >= CHURN * moved && b <= 20.0 * moved);
    // Where calls were not seen, some faults inside reads and writes must show that the new memory is theirs.
    let by_calls = maps.map_or(within.wall_ns >= 0.1 * sum.wall_ns, |m| m >= 0.1 * calls);
    if within.wall_ns < INSIDE * sum.wall_ns && !(by_bytes && by_calls) {
        return None;
    }
    let removable = facts.removable(|e| f64::from(cost(e)));
    let mut evidence = vec![format!(
        "{} of wall time: {} faults inside reads and writes, {} mapping, unmapping and other faults",
        say::percent(facts.wall_share(sum.wall_ns)),
        say::percent(facts.wall_share(within.wall_ns)),
        say::percent(facts.wall_share(sum.wall_ns - within.wall_ns))
    )];
    if let Some(fresh) = fresh_bytes {
        evidence.push(format!(
            "{} page faults allocated {} of new memory, while {} were read and written",
            say::count(faults.unwrap_or(0.0)),
            say::bytes(fresh),
            say::bytes(moved)
        ));
    }
    evidence.extend(maps.map(|m| format!("{} calls of mmap, munmap, brk and madvise", say::count(m))));
    Draft {
        id: FindingId::FreshBuffers,
        cost_ns: sum.wall_ns,
        removable: Some(removable),
        sentence: format!(
            "Allocating, zeroing and freeing memory around the reads and writes takes {} of wall time",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: "Allocate one buffer before the loop and use it for every request (Rust read_exact into the same Vec, \
                 Python readinto(bytearray), Java one ByteBuffer); or keep malloc from giving large blocks back: \
                 MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 in the environment (mallopt: \
                 M_MMAP_THRESHOLD, M_TRIM_THRESHOLD)."
            .into(),
    }
    .finding(facts)
}
