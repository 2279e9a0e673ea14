//! The rule `noisy-neighbour`. Its page of the manual:
#![doc = include_str!("page.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{DeviceUse, OtherUser};

use super::gain::Savings;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, WORTH_SAVING, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule { id: FindingId::NoisyNeighbour, manual: include_str!("page.md"), judge };

/// Others' part of the device's work, or of the CPUs', below which they are no nuisance.
const NUISANCE: f64 = 0.2;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let at_device = device_part(facts);
    let at_cpu = cpu_part(facts);
    // Each must matter by itself; what matters most is said first.
    let enough = WORTH_SAVING * facts.account.wall_ns;
    let mut parts: Vec<&Part> =
        [&at_device, &at_cpu].into_iter().flatten().filter(|p| p.savings.0.likely >= enough).collect();
    parts.sort_by(|a, b| b.savings.0.likely.total_cmp(&a.savings.0.likely));
    let worst = parts.first()?;
    let parts = parts.iter().copied();
    // Both parts count the queueing for a CPU that others' requests bring. Together they save no more than all that the
    // program waits for.
    let traced = facts.profile.block.is_some();
    let queueing = facts.queueing();
    let weight = |e: &Entry| queueing.weight(e).max(f64::from(waits_for_device(e, traced)));
    let most = facts.saved_without_others(weight).0.high;
    let savings = parts.clone().map(|p| p.savings).fold(Savings::default(), Savings::and).0.at_most(most);
    Draft {
        id: FindingId::NoisyNeighbour,
        cost_ns: parts.clone().map(|p| p.savings.0.likely).sum::<f64>().min(most),
        savings: Some(Savings(savings)),
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
    savings: Savings,
    sentence: String,
    evidence: Vec<String>,
    advice: &'static str,
}

/// Others' requests at the device: by tracing, else by the device's counter of bytes read against the program's.
fn device_part(facts: &Facts<'_>) -> Option<Part> {
    let traced = facts.profile.block.is_some();
    let waiting = |e: &Entry| waits_for_device(e, traced);
    let sum = facts.account.sum(waiting);
    let mut evidence = Vec::new();
    let (part, sentence) = match &facts.profile.block {
        Some(block) => {
            let others: u64 = block.others.iter().map(|o| o.requests).sum();
            let bytes: u64 = block.others.iter().map(|o| o.bytes).sum();
            let own_bytes = block.own_read_bytes + block.own_written_bytes;
            // Write-back by kernel threads may be the program's own: it counts as neither.
            let of = |others: u64, own: u64| others as f64 / ((others + own) as f64).max(1.0);
            let (by_count, by_bytes) = (of(others, block.own_requests), of(bytes, own_bytes));
            let first = largest(&block.others)?;
            evidence.push(format!(
                "others sent {} requests with {} to the device, {} {} (thread {}, {} requests); the program sent {} with {}",
                say::count(others as f64),
                say::bytes(bytes as f64),
                if first.requests * 2 > others { "most of them" } else { "the largest number from" },
                first.name,
                first.tid,
                say::count(first.requests as f64),
                say::count(block.own_requests as f64),
                say::bytes(own_bytes as f64)
            ));
            // A disk works for requests as well as for bytes: the truth lies between the two.
            let likely = (by_count + by_bytes) / 2.0;
            let sentence = format!(
                "Others use the device: {} of its work is not the program's, {}",
                say::percent(likely),
                largest_part(
                    "by ",
                    &first.name,
                    (of(first.requests, others - first.requests) + of(first.bytes, bytes - first.bytes))
                        / 2.0
                )
            );
            (Range::new(by_count.min(by_bytes), likely, by_count.max(by_bytes)), sentence)
        }
        None => {
            let own = facts.profile.io.device_read_bytes? as f64;
            let sum_of = |field: fn(&DeviceUse) -> u64| facts.profile.devices.iter().map(field).sum::<u64>();
            let all = sum_of(|d| d.read_bytes);
            if all as f64 <= own {
                return None;
            }
            let part = 1.0 - own / all as f64;
            // Their reads kept the program waiting no longer than they took.
            let taken_ns = sum_of(|d| d.read_ns) as f64 * part;
            let possible = if taken_ns > 0.0 { (taken_ns / sum.wall_ns.max(1.0)).min(1.0) } else { 1.0 };
            evidence.push(format!(
                "of {} that were read from the devices the program caused {}",
                say::bytes(all as f64),
                say::bytes(own)
            ));
            let sentence = format!(
                "Others use the device: {} of the bytes read from it were not fetched for the program",
                say::percent(part)
            );
            (Range::new(0.5 * part, part, part).times(Range::exact(possible)), sentence)
        }
    };
    if part.likely < NUISANCE || sum.wall_ns <= 0.0 {
        return None;
    }
    // Who keeps the device busy keeps CPUs busy with it.
    let queueing = facts.queueing();
    let savings = facts
        .saved_without_others(|e| f64::from(waiting(e)))
        .part(part)
        .part(Range::new(0.4, 0.95, 1.0))
        .and(facts.saved_without_others(|e| queueing.weight(e)).part(Range::new(0.0, 0.0, 1.0)));
    evidence.push(format!(
        "waiting for the device takes {} of the wall time",
        say::percent(facts.wall_share(sum.wall_ns))
    ));
    Some(Part {
        savings,
        sentence,
        evidence,
        advice: "Let the other program run at another time, on another device, or with less: ionice -c 3 (scheduler \
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
                let kind = if o.kernel { "a thread of the kernel" } else { "process" };
                format!("{} ({kind} {}) {}", o.name, o.pid, say::percent(o.share))
            })
            .collect();
        evidence.push(format!("of the busy CPU time, by samples: {}", list.join(", ")));
    }
    Some(Part {
        savings: facts.saved_without_others(|e| queueing.weight(e)).part(alone),
        sentence: format!(
            "Others use the CPUs: they take {} of the CPU time{who}, and the program's threads wait for a CPU {} of the \
             wall time",
            say::percent(others),
            say::percent(facts.wall_share(queueing_ns))
        ),
        evidence: [format!(
            "runnable without a CPU: {} of the wall time; others used {} of the machine's CPU time, {} of it on {cpus:.0} \
             CPUs was the program's",
            say::percent(facts.wall_share(queueing_ns)),
            say::percent(others),
            say::percent(own.min(1.0))
        )]
        .into_iter()
        .chain(evidence)
        .collect(),
        advice: "Give the program CPUs of its own (taskset, cpuset), raise cpu.weight of its control group, or stop what \
                 else is running. nice weighs only within one session where the kernel groups sessions \
                 (kernel.sched_autogroup_enabled).",
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::OtherOnCpu;

    use super::*;
    use crate::classify::Operation;
    use crate::findings::synthetic::Run;
    use crate::findings::synthetic::slow_and_repaired;

    fn reader(wait: f64, others: u64) -> Run {
        working_reader(wait, 1.0 - wait, others)
    }

    fn working_reader(wait: f64, work: f64, others: u64) -> Run {
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, wait)
            .busy(Operation::User, Layer::Program, work)
            .block(1000, 1000 << 17, 1000, 1000 << 17)
            .device(0.98, 3.0, |d| (d.reads, d.read_bytes) = (1000 + others, (1000 + others) << 17))
            .with(|p| {
                if let Some(block) = &mut p.block {
                    block.others = vec![OtherUser {
                        name: "fio".into(),
                        tid: 77,
                        requests: others,
                        bytes: others << 17,
                    }];
                }
            })
    }

    #[test]
    fn another_reader_is_named_and_a_quiet_machine_not() {
        let found = slow_and_repaired(FindingId::NoisyNeighbour, &reader(0.8, 3000), &reader(0.2, 10));
        // By hand: three quarters of the waiting are theirs, 95 % of that is saved.
        assert!((found.gain.unwrap().predicted - 1.0 / (1.0 - 0.8 * 0.75 * 0.95)).abs() < 1e-6);
        assert!(found.evidence[0].contains("fio (thread 77"));
    }

    #[test]
    fn most_of_it_is_more_than_half() {
        let run = |shares: &[(&str, u64)]| {
            reader(0.8, 3000).with(|p| {
                let other = |(n, (name, requests)): (usize, &(&str, u64))| OtherUser {
                    name: (*name).into(),
                    tid: n as u32 + 70,
                    requests: *requests,
                    bytes: requests << 17,
                };
                p.block.as_mut().unwrap().others = shares.iter().enumerate().map(other).collect();
            })
        };
        let sentence = |shares: &[(&str, u64)]| run(shares).findings()[0].sentence.clone();
        let spread = sentence(&[("a", 900), ("b", 800), ("c", 700), ("d", 600)]);
        assert!(spread.contains("the largest part by a (30 % of it)"), "{spread}");
        // Threads of one name count as one.
        let pool = sentence(&[("a", 900), ("b", 800), ("b", 700), ("b", 600)]);
        assert!(pool.contains("most of it by b"), "{pool}");
    }

    #[test]
    fn without_traced_requests_nothing_is_said_of_writes() {
        // Another program read much; this one waits for its own flushes.
        let run = |operation, wait| {
            Run::new(10.0)
                .wait(operation, wait, 0.8)
                .busy(Operation::User, Layer::Program, 0.2)
                .io((0, 0), (1000, 4_096_000))
                .device_read(1000)
                .device(0.98, 3.0, |d| (d.reads, d.read_bytes) = (3000, 3000 << 17))
                .ids()
        };
        assert!(!run(Operation::Sync, Wait::CacheFlush).contains(&FindingId::NoisyNeighbour));
        assert!(run(Operation::Read, Wait::DeviceRead).contains(&FindingId::NoisyNeighbour));
    }

    #[test]
    fn reads_that_did_not_happen_or_took_no_time_are_nobodys() {
        let run = |reads: u64, read_ns: u64| {
            Run::new(10.0)
                .wait(Operation::Unknown, Wait::DeviceRead, 0.5)
                .busy(Operation::User, Layer::Program, 0.5)
                .device_read(0)
                .device(0.6, 0.0, |d| (d.reads, d.read_bytes, d.read_ns) = (reads, reads << 12, read_ns))
                .ids()
        };
        assert!(!run(0, 0).contains(&FindingId::NoisyNeighbour));
        // 3 ms of others' reads cannot be the 5 s that the program waited; 4 s of them can be most of it.
        assert!(!run(28, 3_000_000).contains(&FindingId::NoisyNeighbour));
        assert!(run(2800, 4_000_000_000).contains(&FindingId::NoisyNeighbour));
    }

    #[test]
    fn a_place_that_costs_nothing_is_not_spoken_of() {
        let run = reader(0.8, 3000).with(|p| p.pressure.others_cpu_share = Some(0.9)).queued(0.001);
        let found = run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
        assert!(!found.advice.contains("taskset") && !found.evidence.iter().any(|e| e.contains("CPUs")));
    }

    #[test]
    fn a_crowded_cpu_and_device_together_gain_no_more_than_all_waiting() {
        // 30 % waiting for the device and 50 % for a CPU: a fifth of the run is work.
        let run =
            working_reader(0.3, 0.2, 3000).with(|p| p.pressure.others_cpu_share = Some(0.9)).queued(0.5);
        let found = run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
        assert_eq!(found.evidence.iter().filter(|e| e.starts_with("others sent")).count(), 1);
        assert!(found.evidence.iter().any(|e| e.starts_with("runnable without a CPU")), "{found:?}");
        let gain = found.gain.unwrap();
        let account = run.facts(|f| f.account.wall_ns);
        let waiting = run.facts(|f| {
            f.account.sum(|e| e.class.layer == Layer::CpuQueue || waits_for_device(e, true)).wall_ns
        });
        assert!(!gain.open_above && gain.high <= account / (account - waiting) * 1.001, "{gain:?}");
    }

    #[test]
    fn a_crowded_cpu_is_named_only_when_others_crowd_it() {
        let run = |others| {
            Run::new(10.0)
                .queued(0.5)
                .busy(Operation::User, Layer::Program, 0.5)
                .with(|p| p.pressure.others_cpu_share = Some(others))
        };
        assert_eq!(run(0.7).ids(), [FindingId::NoisyNeighbour, FindingId::CpuBound]);
        let named = run(0.7).with(|p| {
            p.pressure.others_on_cpu = vec![OtherOnCpu {
                name: "rustc".into(),
                pid: 9,
                share: 0.6,
                samples: 60,
                ..OtherOnCpu::default()
            }];
        });
        let found = &named.findings()[0];
        assert!(found.sentence.contains("most of it rustc"), "{found:?}");
        assert!(found.evidence.iter().any(|e| e.contains("rustc (process 9) 60 %")), "{found:?}");
        // A seventh of what others took is not most of it.
        let named = run(0.7).with(|p| {
            let other = |name: &str, pid, share| OtherOnCpu {
                name: name.into(),
                pid,
                share,
                ..OtherOnCpu::default()
            };
            p.pressure.others_on_cpu = vec![other("rustc", 9, 0.1), other("cc", 8, 0.05)];
        });
        let found = &named.findings()[0];
        assert!(!found.sentence.contains("most of it"), "{found:?}");
        assert!(found.sentence.contains("the largest part rustc (1"), "{found:?}");
        assert!(!run(0.0).ids().contains(&FindingId::NoisyNeighbour), "threads of its own crowd it");
    }
}
