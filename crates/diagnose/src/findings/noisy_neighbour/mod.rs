//! The rule `noisy-neighbour`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{BlockSample, DeviceTime, OtherOnCpu, OtherUser};

use super::facts::ENOUGH_LOOKS;
use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, repairs, say};
use crate::account::{Delay, Entry};
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule {
    id: FindingId::NoisyNeighbour,
    claim: "other processes use the device or the CPU",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none(repairs::OF_OTHERS),
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
        [&at_device, &at_cpu].into_iter().flatten().filter(|p| p.removable.booked_ns >= enough).collect();
    parts.sort_by(|a, b| b.removable.booked_ns.total_cmp(&a.removable.booked_ns));
    let worst = parts.first()?;
    let parts = parts.iter().copied();
    // Together they save no more than all that the program waits for.
    let queueing = facts.queueing();
    let room = facts.others_part_of_queue().ceil();
    let all = facts.removable_by_others(|e| queueing.weight(e).max(delayed(e, 1.0, room)));
    let sum = |of: fn(&Removable) -> f64| parts.clone().map(|p| of(&p.removable)).sum::<f64>();
    let removable = Removable {
        certain_ns: sum(|r| r.certain_ns),
        booked_ns: sum(|r| r.booked_ns),
        most_ns: sum(|r| r.most_ns),
        answering: None,
    }
    .at_most(all.most_ns);
    Draft {
        id: FindingId::NoisyNeighbour,
        cost_ns: removable.booked_ns,
        removable: Some(removable),
        sentence: worst.sentence.clone(),
        evidence: parts.clone().flat_map(|p| p.evidence.iter().cloned()).collect(),
        advice: parts.map(|p| p.advice).collect::<Vec<_>>().join(" "),
    }
    .finding(facts)
}

/// The part of an entry that other programs' requests took, where `shared` of the time together at the device was theirs, and
/// `room` of the places in its queue.
fn delayed(e: &Entry, shared: f64, room: f64) -> f64 {
    if for_room(e) {
        return room;
    }
    let Delay { behind_ns, beside_ns } = e.delay;
    ((behind_ns + shared * beside_ns) / e.time_ns.max(1.0)).min(1.0)
}

/// Waits for a place in the queue of a device, before there is a request.
fn for_room(e: &Entry) -> bool {
    e.class.wait == Some(Wait::BlockThrottle)
}

/// What others do at one place.
struct Part {
    removable: Removable,
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
    let of_others = 1.0 - facts.part_of_watch();
    // A limit holds back what others leave room for.
    let limited = facts.profile.devices.iter().any(|device| device.throttle.is_some());
    let room = if limited { 0.0 } else { facts.others_part_of_queue() };
    let part = |e: &Entry| if for_room(e) { 1.0 } else { of_others };
    let going = |shared, room| facts.removable_by_others(|e| part(e) * delayed(e, shared, room));
    // By numbers of requests it is an estimate whose places they are, unless the program itself fills no queue.
    let removable = Removable {
        certain_ns: going(shared.low, room.floor()).certain_ns,
        booked_ns: going(shared.value, room).booked_ns,
        most_ns: going(shared.high, room.ceil()).most_ns,
        answering: None,
    };
    let first = block.others.iter().find(|other| !other.watch).filter(|_| removable.booked_ns > 0.0)?;
    // By the waits that were theirs, or, where all were for a place in the queue, by their requests.
    let others = block.others.iter().filter(|other| !other.watch);
    let measure: fn(&OtherUser) -> u64 =
        if others.clone().any(|other| delay_of(other) > 0) { delay_of } else { |other| other.requests };
    let of_first = measure(first) as f64 / (others.map(measure).sum::<u64>() as f64).max(1.0);
    let mut evidence = vec![format!(
        "threads waited {} for a request that was queued while one of another process was at the same device, and {} \
         while both were there (thread time)",
        say::time(delay.behind_ns),
        say::time(delay.beside_ns)
    )];
    evidence.push(shared_time_in_words(block));
    let waits = facts.account.sum(for_room);
    if room > 0.0 && waits.time_ns > 0.0 {
        evidence.push(format!(
            "threads waited {} for a place in the queue of the device, of whose requests others sent {}",
            say::time(waits.time_ns),
            say::percent(room)
        ));
    }
    let named = block.others.iter().filter(|o| measure(o) > 0).take(MAX_NAMED).map(in_words);
    evidence.push(format!("delay by process: {}", named.collect::<Vec<_>>().join("; ")));
    Some(Part {
        removable,
        sentence: format!(
            "Contention at the device: requests of other processes cost {} of wall time, {}",
            say::percent(facts.wall_share(removable.booked_ns)),
            largest_part("by ", &who(&first.name, first.pid), of_first)
        ),
        evidence,
        advice: "Run the other process at another time, on another device, or with less I/O: ionice -c 3 (scheduler \
                 bfq), io.max or io.weight of its control group.",
    })
}

/// The part of the time together at the device that others caused: how much longer requests take there beside others than
/// alone, by two measured means. Where too few were alone, nothing is shown.
fn part_of_shared_time(block: &BlockSample) -> Estimate {
    let longer = |alone: f64, beside: f64| (1.0 - alone / beside.max(1.0)).clamp(0.0, 1.0);
    let (value, low, high, n) = match (enough(block.alone), enough(block.beside_others)) {
        (Some(alone), Some(beside)) => {
            let (a, b) = (ERRORS * alone.error_ns, ERRORS * beside.error_ns);
            let (alone_ns, beside_ns) = (alone.mean_ns, beside.mean_ns);
            let ends = (longer(alone_ns + a, beside_ns - b), longer(alone_ns - a, beside_ns + b));
            (longer(alone_ns, beside_ns), ends.0, ends.1, alone.n.min(beside.n))
        }
        _ => (0.0, 0.0, 1.0, 0),
    };
    Estimate { value, low, high, unit: Unit::Ratio, n }
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
    // Without others the wait is gone, apart from what threads take from each other: the scheduler shares fairly.
    let alone = if facts.thread_count() as f64 <= cpus { 1.0 } else { part };
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
        removable: facts.removable_by_others(|e| alone * possible * queueing.weight(e)),
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
