//! The rule `mmap-faults`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::MmapFaults,
    claim: "time in page faults on mapped files",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::one(repair::repaired) },
};

/// A share that counts as most.
const MOSTLY: f64 = 0.5;
/// This number of calls of mmap for each program that is started, over those of a start, are a habit.
const MANY_MAPS: f64 = 60.0;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    // Files that were mapped for a moment only are not seen as such; their faults are.
    let of_files = facts.faults_are_of_files();
    let mapped = facts.mapped_bytes();
    if mapped.is_none() && of_files != Some(true) {
        return None;
    }
    let waiting = |e: &Entry| e.class.operation == Operation::Fault && e.class.wait == Some(Wait::DeviceRead);
    let at_work = facts.processes_that_fault();
    let faulting = |e: &Entry| e.busy && e.class.operation == Operation::Fault && at_work(e);
    let waits = facts.account.sum(waiting);
    // Faults on fresh anonymous memory go with mmap, munmap and brk; those are not the mapping's.
    let churn = match of_files {
        Some(of_files) => !of_files,
        None => facts.busy(Operation::Map).wall_ns > 0.5 * facts.busy(Operation::Fault).wall_ns,
    };
    let busy = if churn { Default::default() } else { facts.account.sum(faulting) };
    // Mapped over and over: with each unmapping the work of all faults is thrown away, and that takes time as well.
    let starts = 1.0 + facts.counted_calls(&["execve", "execveat"]).unwrap_or(0.0);
    let many = |maps: &f64| !churn && of_files == Some(true) && *maps >= MANY_MAPS * starts;
    let maps = facts.counted_calls(&["mmap"]).filter(many);
    let mapping = |e: &Entry| e.busy && maps.is_some() && e.class.operation == Operation::Map;
    let remaps = facts.account.sum(mapping);
    let cost_ns = waits.wall_ns + busy.wall_ns + remaps.wall_ns;

    let memory = facts.profile.pressure.memory_bytes.map(|b| b as f64);
    let fits = memory.zip(mapped).is_none_or(|(memory, mapped)| mapped <= 0.8 * memory);
    let in_order = facts.adjacent_reads().is_some_and(|s| s.value >= MOSTLY);
    // A mapping that is kept spares the calls, and what is touched stays in the tables of the CPU.
    let within_calls = loops::within_calls(facts);
    let removable = facts.removable(|e| {
        let goes = waiting(e) || (!churn && faulting(e)) || mapping(e);
        if maps.is_some() { within_calls(e).max(f64::from(goes)) } else { f64::from(goes) }
    });

    let evidence = evidence(facts, waits.wall_ns, busy.wall_ns, remaps.wall_ns, maps);
    let remapped = maps.is_some() && remaps.wall_ns + busy.wall_ns > waits.wall_ns;
    Draft {
        id: FindingId::MmapFaults,
        cost_ns,
        removable: Some(removable),
        sentence: format!(
            "Page faults on mapped files take {} of wall time",
            say::percent(facts.wall_share(cost_ns))
        ),
        evidence,
        advice: advice(remapped, in_order, fits),
    }
    .finding(facts)
}

fn advice(remapped: bool, in_order: bool, fits: bool) -> String {
    let advice = if remapped {
        "Map each file once and keep the mapping: munmap discards the work of all its faults. For a look at a \
         small part of a file, pread into a buffer that is kept costs less than a mapping."
    } else if in_order {
        "Tell the kernel that access is sequential: madvise(MADV_SEQUENTIAL), or madvise(MADV_POPULATE_READ) on some \
         MiB ahead; or read() into a buffer of 128 KiB or more."
    } else if fits {
        "Populate the whole file before random access: madvise(MADV_POPULATE_READ) (or MAP_POPULATE, or \
         MADV_WILLNEED). Do not use MADV_RANDOM here: the file fits in memory, and what a fault fetches around its page \
         is used later."
    } else {
        "Touch the file from several threads, or read it with io_uring or pread in several threads: a fault waits for \
         one page at a time. MADV_RANDOM keeps faults from fetching pages that are evicted unused."
    };
    advice.to_owned()
}

fn evidence(
    facts: &Facts<'_>,
    waits_ns: f64,
    busy_ns: f64,
    remaps_ns: f64,
    maps: Option<f64>,
) -> Vec<String> {
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    let io = &facts.profile.io;
    let mut evidence = vec![format!(
        "page faults take {} of wall time: {} waiting for the device, {} CPU time",
        share(waits_ns + busy_ns + remaps_ns),
        share(waits_ns),
        share(busy_ns)
    )];
    if let (Some(major), Some(minor)) = (io.major_faults, io.minor_faults) {
        evidence.push(format!(
            "{} faults waited for the device, {} found the page in memory",
            say::count(major as f64),
            say::count(minor as f64)
        ));
    }
    let memory = facts.profile.pressure.memory_bytes.map(|b| b as f64);
    evidence.push(match (facts.mapped_bytes(), memory) {
        (Some(mapped), Some(m)) => {
            format!("{} of files are mapped; memory size: {}", say::bytes(mapped), say::bytes(m))
        }
        (Some(mapped), None) => format!("{} of files are mapped", say::bytes(mapped)),
        (None, _) => "the kernel functions in the samples are those of file faults".to_owned(),
    });
    evidence.extend(maps.map(|maps| {
        format!(
            "{} mmap calls; mapping and unmapping take another {} of wall time",
            say::count(maps),
            share(remaps_ns)
        )
    }));
    let mean = facts.device_read_bytes_mean().filter(|_| waits_ns > 0.0);
    evidence.extend(mean.map(|mean| format!("mean read request at the device: {}", say::bytes(mean))));
    evidence
}
