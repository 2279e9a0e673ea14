//! Tests of the rule `noisy-neighbour`.

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
                block.others =
                    vec![OtherUser { name: "fio".into(), tid: 77, requests: others, bytes: others << 17 }];
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
    let run = working_reader(0.3, 0.2, 3000).with(|p| p.pressure.others_cpu_share = Some(0.9)).queued(0.5);
    let found = run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
    assert_eq!(found.evidence.iter().filter(|e| e.starts_with("other processes sent")).count(), 1);
    assert!(found.evidence.iter().any(|e| e.starts_with("runnable without a CPU")), "{found:?}");
    let gain = found.gain.unwrap();
    let account = run.facts(|f| f.account.wall_ns);
    let waiting = run
        .facts(|f| f.account.sum(|e| e.class.layer == Layer::CpuQueue || waits_for_device(e, true)).wall_ns);
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
        let other =
            |name: &str, pid, share| OtherOnCpu { name: name.into(), pid, share, ..OtherOnCpu::default() };
        p.pressure.others_on_cpu = vec![other("rustc", 9, 0.1), other("cc", 8, 0.05)];
    });
    let found = &named.findings()[0];
    assert!(!found.sentence.contains("most of it"), "{found:?}");
    assert!(found.sentence.contains("the largest part rustc (1"), "{found:?}");
    assert!(!run(0.0).ids().contains(&FindingId::NoisyNeighbour), "threads of its own crowd it");
}
