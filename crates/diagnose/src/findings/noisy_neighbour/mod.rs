//! The rule `noisy-neighbour`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{BlockSample, DeviceUse, OtherUser};

use super::gain::SavedTime;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, repairs, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule {
    id: FindingId::NoisyNeighbour,
    claim: "other processes use the device or the CPU",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repairs::of_others),
};

/// Others' part of the device's work, or of the CPUs', below which they are no nuisance.
const NUISANCE: f64 = 0.2;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let at_device = device_part(facts);
    let at_cpu = cpu_part(facts);
    // Each must matter by itself; what matters most is said first.
    let enough = WORTH_SAVING * facts.account.wall_ns;
    let mut parts: Vec<&Part> =
        [&at_device, &at_cpu].into_iter().flatten().filter(|p| p.saved_time.0.likely >= enough).collect();
    parts.sort_by(|a, b| b.saved_time.0.likely.total_cmp(&a.saved_time.0.likely));
    let worst = parts.first()?;
    let parts = parts.iter().copied();
    // Both parts count the queueing for a CPU that others' requests bring. Together they save no more than all that the
    // program waits for.
    let traced = facts.profile.block.is_some();
    let queueing = facts.queueing();
    let weight = |e: &Entry| queueing.weight(e).max(f64::from(waits_for_device(e, traced)));
    let most = facts.saved_without_others(weight).0.high;
    let saved_time =
        parts.clone().map(|p| p.saved_time).fold(SavedTime::default(), SavedTime::and).0.at_most(most);
    Draft {
        id: FindingId::NoisyNeighbour,
        cost_ns: parts.clone().map(|p| p.saved_time.0.likely).sum::<f64>().min(most),
        saved_time: Some(SavedTime(saved_time)),
        sentence: worst.sentence.clone(),
        evidence: parts.clone().flat_map(|p| p.evidence.iter().cloned()).collect(),
        advice: parts.map(|p| p.advice).collect::<Vec<_>>().join(" "),
    }
    .finding(facts)
}

/// Waiting for a device. Where no requests were traced, only bytes that were read can be told apart: of write-back and
/// flushes it is not known whose they are.
fn waits_for_device(e: &Entry, traced: bool) -> bool {
    match e.class.wait {
        Some(Wait::DeviceRead) => true,
        Some(Wait::DeviceWrite | Wait::DataWriteback | Wait::CacheFlush | Wait::Completion) => traced,
        _ => false,
    }
}

/// What others do at one place.
struct Part {
    saved_time: SavedTime,
    sentence: String,
    evidence: Vec<String>,
    advice: &'static str,
}

/// Others' requests at the device: by tracing, else by the device's counter of bytes read against the program's.
fn device_part(facts: &Facts<'_>) -> Option<Part> {
    let traced = facts.profile.block.is_some();
    let waiting = |e: &Entry| waits_for_device(e, traced);
    let sum = facts.account.sum(waiting);
    let (part, sentence, shares) = match &facts.profile.block {
        Some(block) => traced_part(block)?,
        None => counted_part(facts, sum.wall_ns)?,
    };
    if part.likely < NUISANCE || sum.wall_ns <= 0.0 {
        return None;
    }
    // Who keeps the device busy keeps CPUs busy with it.
    let queueing = facts.queueing();
    let saved_time = facts
        .saved_without_others(|e| f64::from(waiting(e)))
        .part(part)
        .part(Range::new(0.4, 0.95, 1.0))
        .and(facts.saved_without_others(|e| queueing.weight(e)).part(Range::new(0.0, 0.0, 1.0)));
    let waits =
        format!("waiting for the device takes {} of wall time", say::percent(facts.wall_share(sum.wall_ns)));
    Some(Part {
        saved_time,
        sentence,
        evidence: vec![shares, waits],
        advice: "Run the other process at another time, on another device, or with less I/O: ionice -c 3 (scheduler \
                 bfq), io.max or io.weight of its control group.",
    })
}

/// The largest user among others, as a part of theirs: `most of it by fio`, `the largest part by fio (14 %)`.
fn largest_part(by: &str, name: &str, part: f64) -> String {
    if part > 0.5 {
        format!("most of it {by}{name}")
    } else {
        format!("the largest part {by}{name} ({} of it)", say::percent(part))
    }
}

/// Threads of one name as one, and of these the one with most requests.
fn largest(others: &[OtherUser]) -> Option<OtherUser> {
    let mut names: Vec<OtherUser> = Vec::new();
    for other in others {
        match names.iter_mut().find(|known| known.name == other.name) {
            Some(known) => {
                known.requests = known.requests.saturating_add(other.requests);
                known.bytes = known.bytes.saturating_add(other.bytes);
            }
            None => names.push(other.clone()),
        }
    }
    names.into_iter().reduce(|a, b| if b.requests > a.requests { b } else { a })
}

/// Others on the CPUs while threads of the program are runnable.
fn cpu_part(facts: &Facts<'_>) -> Option<Part> {
    let others = facts.profile.pressure.others_cpu_share?;
    let queueing = facts.queueing();
    let queueing_ns = facts.queueing_ns();
    let own_ns = facts.account.sum(|e| e.busy).time_ns;
    let cpus = facts.profile.pressure.cpus.max(1) as f64;
    let own = own_ns / (facts.account.wall_ns * cpus).max(1.0);
    let part = others / (others + own).max(1e-9);
    if others < NUISANCE || part < NUISANCE || queueing_ns <= 0.0 {
        return None;
    }
    // The scheduler shares fairly: without others the wait is gone, apart from what threads take from each other.
    let alone = if facts.thread_count() as f64 <= cpus {
        Range::new(0.6, 0.95, 1.0)
    } else {
        Range::new(0.3, 1.0, 1.0).times(Range::exact(part))
    };
    let named = &facts.profile.pressure.others_on_cpu;
    let who = named
        .first()
        .map(|first| format!(", {}", largest_part("", &first.name, (first.share / part).min(1.0))))
        .unwrap_or_default();
    let mut evidence = Vec::new();
    if !named.is_empty() {
        let list: Vec<String> = named
            .iter()
            .take(3)
            .map(|o| {
                let kind = if o.kernel { "kernel thread" } else { "process" };
                format!("{} ({kind} {}) {}", o.name, o.pid, say::percent(o.share))
            })
            .collect();
        evidence.push(format!("busy CPU time by samples: {}", list.join(", ")));
    }
    Some(Part {
        saved_time: facts.saved_without_others(|e| queueing.weight(e)).part(alone),
        sentence: format!(
            "CPU contention: other processes take {} of CPU time{who}, and the program's threads wait for a CPU {} \
             of wall time",
            say::percent(others),
            say::percent(facts.wall_share(queueing_ns))
        ),
        evidence: [format!(
            "runnable without a CPU: {} of wall time; of the machine's CPU time ({cpus:.0} CPUs) other processes \
             used {}, the program {}",
            say::percent(facts.wall_share(queueing_ns)),
            say::percent(others),
            say::percent(own.min(1.0))
        )]
        .into_iter()
        .chain(evidence)
        .collect(),
        advice: "Give the program dedicated CPUs (taskset, cpuset), raise cpu.weight of its control group, or stop \
                 the other processes. nice acts only within one session if the kernel groups sessions \
                 (kernel.sched_autogroup_enabled).",
    })
}

/// The other processes' part of the traced requests, the sentence and its evidence.
fn traced_part(block: &BlockSample) -> Option<(Range, String, String)> {
    let others: u64 = block.others.iter().map(|o| o.requests).sum();
    let bytes: u64 = block.others.iter().map(|o| o.bytes).sum();
    let own_bytes = block.own_read_bytes + block.own_written_bytes;
    // Write-back by kernel threads may be the program's own: it counts as neither.
    let of = |others: u64, own: u64| others as f64 / ((others + own) as f64).max(1.0);
    let (by_count, by_bytes) = (of(others, block.own_requests), of(bytes, own_bytes));
    let first = largest(&block.others)?;
    let evidence = format!(
        "other processes sent {} requests with {} to the device, {} {} (thread {}, {} requests); the program sent {} with {}",
        say::count(others as f64),
        say::bytes(bytes as f64),
        if first.requests * 2 > others { "most from" } else { "the largest number from" },
        first.name,
        first.tid,
        say::count(first.requests as f64),
        say::count(block.own_requests as f64),
        say::bytes(own_bytes as f64)
    );
    // A disk works for requests as well as for bytes.
    let likely = (by_count + by_bytes) / 2.0;
    let of_first = (of(first.requests, others - first.requests) + of(first.bytes, bytes - first.bytes)) / 2.0;
    let sentence = format!(
        "Contention at the device: {} of its work is for other processes, {}",
        say::percent(likely),
        largest_part("by ", &first.name, of_first)
    );
    Some((Range::new(by_count.min(by_bytes), likely, by_count.max(by_bytes)), sentence, evidence))
}

/// The same by the devices' counter of bytes read.
fn counted_part(facts: &Facts<'_>, waits_ns: f64) -> Option<(Range, String, String)> {
    let own = facts.profile.io.device_read_bytes? as f64;
    let sum_of = |field: fn(&DeviceUse) -> u64| facts.profile.devices.iter().map(field).sum::<u64>();
    let all = sum_of(|d| d.read_bytes);
    if all as f64 <= own {
        return None;
    }
    let part = 1.0 - own / all as f64;
    // Reads of other processes delay the program no longer than they take.
    let taken_ns = sum_of(|d| d.read_ns) as f64 * part;
    let possible = if taken_ns > 0.0 { (taken_ns / waits_ns.max(1.0)).min(1.0) } else { 1.0 };
    let evidence = format!(
        "{} were read from the devices, {} of it for the program",
        say::bytes(all as f64),
        say::bytes(own)
    );
    let sentence =
        format!("Contention at the device: {} of the bytes read are for other processes", say::percent(part));
    Some((Range::new(0.5 * part, part, part).times(Range::exact(possible)), sentence, evidence))
}
