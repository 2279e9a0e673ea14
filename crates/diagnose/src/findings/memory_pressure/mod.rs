//! The rule `memory-pressure`. Its page of the manual:
#![doc = include_str!("page.md")]

mod own_curve;
mod refaults;
mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{FileUse, Limited, MemoryUse};

use self::own_curve::OwnCurve;
use self::refaults::Refaults;
use super::facts::{PAGE_BYTES, Side};
use super::report::Draft;
use super::short_memory::ShortMemory;
use super::{Facts, Repairs, Rule, say};

pub(super) const RULE: Rule = Rule {
    id: FindingId::MemoryPressure,
    claim: "memory is short: pages are freed, swapped in, or read again while the program waits",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// Samples and sleeps, fewer of which show no cause.
const ENOUGH_SEEN: u64 = 10;
/// Bytes that come back after their eviction, as a part of those that the program moves: from here on, what is evicted
/// is needed again.
const NEEDED_AGAIN: f64 = 0.1;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let cost = Cost::new(facts);
    if cost.events() < ENOUGH_SEEN {
        return None;
    }
    let memory = facts.profile.pressure.memory.clone().unwrap_or_default();
    let curve = OwnCurve::new(facts);
    let limit = memory.limit_bytes.map_or_else(String::new, |l| format!(" (limit {})", say::bytes(l as f64)));
    Draft {
        id: FindingId::MemoryPressure,
        cost_ns: cost.wall_ns(),
        removable: None,
        sentence: format!(
            "Memory is short{limit}: freeing pages and fetching evicted ones takes {} of wall time",
            say::percent(facts.wall_share(cost.wall_ns()))
        ),
        evidence: evidence(facts, &cost, &memory)
            .into_iter()
            .chain(curve.as_ref().and_then(OwnCurve::evidence))
            .collect(),
        advice: advice(facts, &cost, &memory, curve.as_ref()),
    }
    .finding(facts)
}

/// What it costs: time of the program's own threads. Its parts do not overlap.
struct Cost {
    short: ShortMemory,
    refaults: Option<Refaults>,
}

impl Cost {
    fn new(facts: &Facts<'_>) -> Cost {
        let short = facts.short_memory();
        Cost { refaults: Refaults::new(facts, &short), short }
    }

    fn frees_ns(&self) -> f64 {
        self.short.frees_busy.wall_ns + self.short.frees_waiting.wall_ns
    }

    fn swap_ns(&self) -> f64 {
        self.short.swap_busy.wall_ns + self.short.swap_waiting.wall_ns
    }

    fn refaults_ns(&self) -> f64 {
        self.refaults.as_ref().map_or(0.0, |r| r.wall_ns)
    }

    fn wall_ns(&self) -> f64 {
        self.frees_ns() + self.short.held_back.wall_ns + self.swap_ns() + self.refaults_ns()
    }

    fn events(&self) -> u64 {
        let ShortMemory { frees_busy, frees_waiting, held_back, swap_busy, swap_waiting, .. } = &self.short;
        let seen = [frees_busy, frees_waiting, held_back, swap_busy, swap_waiting].map(|sum| sum.events);
        let seen = seen.into_iter().fold(0, u64::saturating_add);
        seen.saturating_add(self.refaults.as_ref().map_or(0, |r| r.waits))
    }
}

fn evidence(facts: &Facts<'_>, cost: &Cost, memory: &MemoryUse) -> Vec<String> {
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    let short = &cost.short;
    let mut evidence = Vec::new();
    if cost.frees_ns() > 0.0 {
        evidence.push(format!(
            "freeing pages before the program gets any: {} of wall time, {} CPU time and {} waiting",
            share(cost.frees_ns()),
            share(short.frees_busy.wall_ns),
            share(short.frees_waiting.wall_ns)
        ));
    }
    if short.held_back.wall_ns > 0.0 {
        evidence
            .push(format!("held back above memory.high: {} of wall time", share(short.held_back.wall_ns)));
    }
    if cost.swap_ns() > 0.0 {
        evidence.push(format!(
            "getting pages back from swap: {} of wall time, {} of it waiting",
            share(cost.swap_ns()),
            share(short.swap_waiting.wall_ns)
        ));
    }
    evidence.extend(cost.refaults.as_ref().map(|r| r.evidence(facts)));
    evidence.extend(limit(facts, memory));
    evidence.extend(
        memory
            .killed
            .filter(|n| *n > 0)
            .map(|n| format!("{} processes were killed for want of memory", say::count(n as f64))),
    );
    let peak = facts.profile.io.peak_memory_bytes;
    evidence.extend(peak.map(|b| format!("the largest process held {} at its peak", say::bytes(b as f64))));
    evidence
}

/// Which limit it is, and how often it was met, where its counters could be read.
fn limit(facts: &Facts<'_>, memory: &MemoryUse) -> Option<String> {
    let (Some(group), Some(bytes)) = (memory.group.as_ref(), memory.limit_bytes) else {
        let limits = facts.profile.groups.iter().flat_map(|group| &group.limits);
        let limit = limits.into_iter().find(|limit| limit.of == Limited::Memory)?;
        return Some(format!("control group {}: {}", limit.set_by, limit.words));
    };
    let met = memory.at_limit.map_or_else(String::new, |n| match n {
        1 => "; it was reached once".to_owned(),
        n => format!("; it was reached {} times", say::count(n as f64)),
    });
    Some(format!("memory limit of the control group {group}: {}{met}", say::bytes(bytes as f64)))
}

fn advice(facts: &Facts<'_>, cost: &Cost, memory: &MemoryUse, curve: Option<&OwnCurve>) -> String {
    let what = if cost.short.held_back.wall_ns >= MOSTLY * cost.wall_ns() {
        "Raise memory.high of the control group".to_owned()
    } else if memory.group.is_some() || cost.short.for_a_group.wall_ns >= MOSTLY * cost.wall_ns() {
        "Raise the memory limit of the control group (memory.max; version 1: memory.limit_in_bytes)"
            .to_owned()
    } else {
        "Give the machine more memory, or stop what else uses it".to_owned()
    };
    let needed = curve.and_then(OwnCurve::working_set).zip(facts.profile.io.peak_memory_bytes);
    let enough = match needed {
        Some((bytes, peak)) => Some((bytes + peak as f64, "what it reads and writes again")),
        None => enough(facts).map(|bytes| (bytes, "all that it read and wrote")),
    };
    let enough = enough.map_or_else(String::new, |(bytes, what)| {
        format!(": {} would hold the largest process and {what}", say::bytes(bytes))
    });
    if is_needed_again(facts, cost, memory) {
        let more = match curve {
            Some(_) => "",
            None => {
                " `strace -f -ttt -T -o FILE CMD` and `iowhy mrc FILE` tell what its reads would miss at each size of memory."
            }
        };
        format!(
            "{what}{enough}. Or make the working set smaller: finish one part of the data before the next, run fewer workers \
             at once, keep less in the heap.{more}"
        )
    } else {
        format!(
            "What is evicted is not needed again: release it before the kernel has to (posix_fadvise(POSIX_FADV_DONTNEED) \
             after write-back, RWF_DONTCACHE, or O_DIRECT with large requests). {what}{enough}; a smaller increase only \
             delays it."
        )
    }
}

/// Whether what is evicted comes back.
fn is_needed_again(facts: &Facts<'_>, cost: &Cost, memory: &MemoryUse) -> bool {
    let pages = [memory.refaulted_file_pages, memory.refaulted_anon_pages];
    if pages.iter().all(Option::is_none) {
        return cost.swap_ns() + cost.refaults_ns() >= MOSTLY * cost.wall_ns();
    }
    let back = pages.into_iter().flatten().fold(0, u64::saturating_add) as f64 * PAGE_BYTES;
    let moved: f64 = Side::BOTH.iter().filter_map(|side| facts.bytes(*side)).sum();
    back >= NEEDED_AGAIN * moved
}

/// Memory in which nothing of the program would have to be evicted, at most; `None` where it is not known.
fn enough(facts: &Facts<'_>) -> Option<f64> {
    let peak = facts.profile.io.peak_memory_bytes? as f64;
    let counted = Side::BOTH.iter().all(|side| facts.calls_are_counted_by_file(*side));
    let touched = |f: &FileUse| {
        let used = f.reads.calls > 0 || f.writes.calls > 0 || f.mapped;
        let distinct = f.reads.distinct_bytes.saturating_add(f.writes.distinct_bytes);
        match f.size_bytes {
            Some(size) if f.mapped || !counted => {
                if used {
                    size
                } else {
                    0
                }
            }
            Some(size) => distinct.min(size),
            None => distinct,
        }
    };
    let files: u64 = facts.storage_files().map(touched).fold(0, u64::saturating_add);
    (counted || facts.files_are_complete()).then_some(peak + files as f64)
}
