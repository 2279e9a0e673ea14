//! The rule `noisy-neighbour`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{BlockSample, DeviceTime, OtherOnCpu, OtherUser};

use super::facts::ENOUGH_LOOKS;
use super::gain::SavedTime;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, repairs, say};
use crate::account::{Delay, Entry};

pub(super) const RULE: Rule = Rule {
    id: FindingId::NoisyNeighbour,
    claim: "other processes use the device or the CPU",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repairs::of_others),
};

/// Standard errors between a mean and the ends of its 95 % interval.
const ERRORS: f64 = 1.96;
/// Other processes that are named.
const MAX_NAMED: usize = 3;
/// Characters of a command line in the evidence.
const MAX_COMMAND: usize = 60;

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
    // Together they save no more than all that the program waits for.
    let queueing = facts.queueing();
    let weight = |e: &Entry| queueing.weight(e).max(delayed(e, Range::exact(1.0)).high);
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

/// The part of an entry that other programs' requests took, where `shared` of the time together at the device was theirs.
fn delayed(e: &Entry, shared: Range) -> Range {
    let Delay { behind_ns, beside_ns } = e.delay;
    let part = |shared: f64| ((behind_ns + shared * beside_ns) / e.time_ns.max(1.0)).min(1.0);
    Range::new(part(shared.low), part(shared.likely), part(shared.high))
}

/// What others do at one place.
struct Part {
    saved_time: SavedTime,
    sentence: String,
    evidence: Vec<String>,
    advice: &'static str,
}

/// Delay by others' requests at the devices of the program's own, sleep by sleep. Where requests were not seen, no delay can be
/// shown.
fn device_part(facts: &Facts<'_>) -> Option<Part> {
    let block = facts.profile.block.as_ref()?;
    let delay = facts.account.sum(|_| true).delay;
    let shared = part_of_shared_time(block);
    let saved = |pick: fn(Range) -> f64| facts.saved_without_others(|e| pick(delayed(e, shared))).0;
    let saved_time =
        SavedTime(Range::new(saved(|r| r.low).low, saved(|r| r.likely).likely, saved(|r| r.high).high));
    let likely = saved_time.0.likely;
    let first = block.others.first().filter(|_| likely > 0.0)?;
    let of_first = delay_of(first) as f64 / (block.others.iter().map(delay_of).sum::<u64>() as f64).max(1.0);
    let mut evidence = vec![format!(
        "threads waited {} for a request that was queued while one of another process was at the same device, and {} \
         while both were there (thread time)",
        say::time(delay.behind_ns),
        say::time(delay.beside_ns)
    )];
    evidence.push(shared_time_in_words(block));
    let named = block.others.iter().filter(|o| delay_of(o) > 0).take(MAX_NAMED).map(in_words);
    evidence.push(format!("delay by process: {}", named.collect::<Vec<_>>().join("; ")));
    Some(Part {
        saved_time,
        sentence: format!(
            "Contention at the device: requests of other processes cost {} of wall time, {}",
            say::percent(facts.wall_share(likely)),
            largest_part("by ", &who(&first.name, first.pid), of_first)
        ),
        evidence,
        advice: "Run the other process at another time, on another device, or with less I/O: ionice -c 3 (scheduler \
                 bfq), io.max or io.weight of its control group.",
    })
}

/// The part of the time together at the device that others caused: how much longer requests take there beside others than
/// alone. All of it at most; where too few were alone, nothing is shown.
fn part_of_shared_time(block: &BlockSample) -> Range {
    let (Some(alone), Some(beside)) = (enough(block.alone), enough(block.beside_others)) else {
        return Range::new(0.0, 0.0, 1.0);
    };
    let longer = |alone: f64, beside: f64| (1.0 - alone / beside.max(1.0)).max(0.0);
    let low = longer(alone.mean_ns + ERRORS * alone.error_ns, beside.mean_ns - ERRORS * beside.error_ns);
    Range::new(low, longer(alone.mean_ns, beside.mean_ns), 1.0)
}

fn enough(time: Option<DeviceTime>) -> Option<DeviceTime> {
    time.filter(|time| time.n >= ENOUGH_LOOKS)
}

fn shared_time_in_words(block: &BlockSample) -> String {
    match (enough(block.alone), enough(block.beside_others)) {
        (Some(alone), Some(beside)) => format!(
            "a request of the program takes {} at the device beside requests of others ({} of them), and {} alone ({})",
            say::time(beside.mean_ns),
            say::count(beside.n as f64),
            say::time(alone.mean_ns),
            say::count(alone.n as f64)
        ),
        _ => "how much of the time together at the device others caused is not known: too few requests were alone there, \
              or beside others"
            .to_owned(),
    }
}

/// Sleeping time that another process is charged with, shared time at the device included.
fn delay_of(other: &OtherUser) -> u64 {
    other.behind_ns.unwrap_or(0).saturating_add(other.beside_ns.unwrap_or(0))
}

/// `dd (process 77)`; a pool has no number.
fn who(name: &str, pid: u32) -> String {
    if pid == 0 { name.to_owned() } else { format!("{name} (process {pid})") }
}

/// The same with its command line, delay and requests.
fn in_words(other: &OtherUser) -> String {
    let behind = say::time(other.behind_ns.unwrap_or(0) as f64);
    let beside = say::time(other.beside_ns.unwrap_or(0) as f64);
    format!(
        "{}{} {behind} queued, {beside} together at the device, in {} requests with {}",
        who(&other.name, other.pid),
        command(other.command.as_deref()),
        say::count(other.requests as f64),
        say::bytes(other.bytes as f64)
    )
}

/// A blank and the command line in quotes.
fn command(command: Option<&str>) -> String {
    let Some(command) = command else { return String::new() };
    let cut: String = command.chars().take(MAX_COMMAND).collect();
    format!(" `{cut}{}`", if cut.len() < command.len() { "..." } else { "" })
}

/// The largest user among others, as a part of theirs: `most of it by fio`, `the largest part by fio (14 %)`.
fn largest_part(by: &str, name: &str, part: f64) -> String {
    if part > 0.5 {
        format!("most of it {by}{name}")
    } else {
        format!("the largest part {by}{name} ({} of it)", say::percent(part))
    }
}

/// The part of the named CPU time of others that processes took: threads of the kernel work for all, mostly write-back, perhaps of
/// this program, and nobody can stop them.
fn part_of_processes(named: &[OtherOnCpu]) -> f64 {
    let sum = |wanted: fn(&OtherOnCpu) -> bool| {
        named.iter().filter(|other| wanted(other)).map(|other| other.samples).sum::<u64>() as f64
    };
    let all = sum(|_| true);
    if all > 0.0 { sum(|other| !other.kernel) / all } else { 1.0 }
}

/// Others on the CPUs while threads of the program are runnable.
fn cpu_part(facts: &Facts<'_>) -> Option<Part> {
    let named = &facts.profile.pressure.others_on_cpu;
    let others = facts.profile.pressure.others_cpu_share? * part_of_processes(named);
    let queueing = facts.queueing();
    let queueing_ns = facts.queueing_ns();
    let own_ns = facts.account.sum(|e| e.busy).time_ns;
    let cpus = facts.profile.pressure.cpus.max(1) as f64;
    let machine_ns = facts.account.wall_ns * cpus;
    let own = own_ns / machine_ns.max(1.0);
    let part = others / (others + own).max(1e-9);
    if queueing_ns <= 0.0 {
        return None;
    }
    // Whom a thread waits for runs meanwhile.
    let possible = (others * machine_ns / queueing_ns).min(1.0);
    // The scheduler shares fairly: without others the wait is gone, apart from what threads take from each other.
    let alone = if facts.thread_count() as f64 <= cpus {
        Range::new(0.6, 0.95, 1.0)
    } else {
        Range::new(0.3, 1.0, 1.0).times(Range::exact(part))
    };
    let who = named
        .iter()
        .find(|other| !other.kernel)
        .map(|first| {
            format!(", {}", largest_part("", &who(&first.name, first.pid), (first.share / part).min(1.0)))
        })
        .unwrap_or_default();
    let mut evidence = Vec::new();
    if !named.is_empty() {
        let list: Vec<String> = named
            .iter()
            .take(3)
            .map(|o| {
                let kind = if o.kernel { "kernel thread" } else { "process" };
                let command = command(o.command.as_deref());
                format!("{} ({kind} {}){command} {}", o.name, o.pid, say::percent(o.share))
            })
            .collect();
        evidence.push(format!("busy CPU time by samples: {}", list.join(", ")));
    }
    Some(Part {
        saved_time: facts.saved_without_others(|e| queueing.weight(e)).part(alone.times(Range::exact(possible))),
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
