//! Tests of the rule `noisy-neighbour`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::OtherOnCpu;

use super::*;
use crate::classify::{Operation, Wait};
use crate::findings::synthetic::{Run, bound_leaves, slow_and_repaired};

/// A program that reads for this part of its time. Parts of the waits are behind and beside requests of others.
fn reader(wait: f64, (behind, beside): (f64, f64)) -> Run {
    Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, wait)
        .delayed(behind, beside)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .block(1000, 1000 << 17, 1000, 1000 << 17)
        .with(|p| {
            if let Some(block) = &mut p.block {
                let ns = |part: f64| Some((part * wait * 10e9) as u64);
                block.others = vec![other("fio", 77, (ns(behind), ns(beside)))];
            }
        })
}

fn other(name: &str, pid: u32, (behind_ns, beside_ns): (Option<u64>, Option<u64>)) -> OtherUser {
    let command = Some(format!("/usr/bin/{name} --name=job"));
    let watch = name == "iowhy";
    OtherUser { name: name.into(), pid, command, watch, requests: 30, bytes: 30 << 17, behind_ns, beside_ns }
}

/// Means of requests alone and beside others, in microseconds, with 1 % of error.
fn measured(run: Run, alone: (f64, u64), beside: (f64, u64)) -> Run {
    let time = |(us, n): (f64, u64)| Some(DeviceTime { mean_ns: us * 1e3, error_ns: us * 10.0, n });
    run.with(|p| {
        let block = p.block.as_mut().unwrap();
        (block.alone, block.beside_others) = (time(alone), time(beside));
    })
}

#[test]
fn queueing_behind_another_process_is_its_delay_and_requests_elsewhere_are_not() {
    let many_requests = reader(0.8, (0.0, 0.0)).with(|p| {
        p.block.as_mut().unwrap().others[0].requests = 1_000_000;
    });
    let found = slow_and_repaired(FindingId::NoisyNeighbour, &reader(0.8, (0.8, 0.1)), &many_requests);
    // By hand: 80 % of the reading is behind others; 10 % of it is beside them, and at most that is theirs too.
    assert!((found.share - 0.8 * 0.8).abs() < 1e-6, "{found:?}");
    bound_leaves(&found, 1.0 - 0.8 * 0.9);
    assert!(found.evidence[2].contains("fio (process 77) `/usr/bin/fio --name=job`"), "{found:?}");
}

#[test]
fn time_together_at_the_device_is_theirs_as_far_as_requests_take_longer() {
    let run = reader(0.8, (0.0, 1.0));
    assert!(!run.ids().contains(&FindingId::NoisyNeighbour), "no request was alone: no delay is shown");
    let named = |run: &Run| run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour);
    let slower = measured(reader(0.8, (0.0, 1.0)), (100.0, 50), (400.0, 500));
    let found = named(&slower).unwrap();
    assert!((found.share - 0.8 * 0.75).abs() < 1e-6, "{found:?}");
    // By hand: 98.04 of 407.84 us at the ends of both intervals.
    bound_leaves(&found, 1.0 - 0.8 * (1.0 - 98.04 / 407.84));
    let as_fast = measured(reader(0.8, (0.0, 1.0)), (100.0, 50), (101.0, 500));
    assert_eq!(named(&as_fast), None);
    let too_few = measured(reader(0.8, (0.0, 1.0)), (100.0, 5), (400.0, 500));
    assert_eq!(named(&too_few), None);
}

#[test]
fn most_of_it_is_more_than_half() {
    let sentence = |shares: &[(&str, u64)]| {
        let run = reader(0.8, (0.9, 0.0)).with(|p| {
            let others =
                shares.iter().zip(70..).map(|((name, ns), pid)| other(name, pid, (Some(*ns), Some(0))));
            p.block.as_mut().unwrap().others = others.collect();
        });
        run.findings()[0].sentence.clone()
    };
    let spread = sentence(&[("a", 900), ("b", 800), ("c", 700), ("d", 600)]);
    assert!(spread.contains("the largest part by a (process 70) (30 % of it)"), "{spread}");
    let one = sentence(&[("a", 900), ("b", 100)]);
    assert!(one.contains("most of it by a (process 70)"), "{one}");
}

#[test]
fn without_traced_requests_nothing_is_said_of_the_device() {
    // Another program read much; whether this one waited for it, nobody saw.
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
    assert!(!run(Operation::Read, Wait::DeviceRead).contains(&FindingId::NoisyNeighbour));
}

#[test]
fn a_place_that_costs_nothing_is_not_spoken_of() {
    let run = reader(0.8, (0.8, 0.0)).with(|p| p.pressure.others_cpu_share = Some(0.9)).queued(0.001);
    let found = run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
    assert!(!found.advice.contains("taskset") && !found.evidence.iter().any(|e| e.contains("CPUs")));
}

#[test]
fn a_crowded_cpu_and_device_together_gain_no_more_than_all_waiting() {
    // 30 % waiting for the device and 50 % for a CPU: a fifth of the run is work.
    let run = Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, 0.3)
        .delayed(0.9, 0.1)
        .busy(Operation::User, Layer::Program, 0.2)
        .queued(0.5)
        .block(1000, 1000 << 17, 1000, 1000 << 17)
        .with(|p| {
            p.pressure.others_cpu_share = Some(0.9);
            p.block.as_mut().unwrap().others = vec![other("fio", 77, (Some(1), Some(1)))];
        });
    let found = run.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
    assert_eq!(found.evidence.iter().filter(|e| e.starts_with("threads waited")).count(), 1);
    assert!(found.evidence.iter().any(|e| e.starts_with("runnable without a CPU")), "{found:?}");
    bound_leaves(&found, 0.2);
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
            command: Some("rustc --crate-name x".into()),
            share: 0.6,
            samples: 60,
            ..OtherOnCpu::default()
        }];
    });
    let found = &named.findings()[0];
    assert!(found.sentence.contains("most of it rustc (process 9)"), "{found:?}");
    let command = "rustc (process 9) `rustc --crate-name x` 60 %";
    assert!(found.evidence.iter().any(|e| e.contains(command)), "{found:?}");
    // A seventh of what others took is not most of it.
    let named = run(0.7).with(|p| {
        let other =
            |name: &str, pid, share| OtherOnCpu { name: name.into(), pid, share, ..OtherOnCpu::default() };
        p.pressure.others_on_cpu = vec![other("rustc", 9, 0.1), other("cc", 8, 0.05)];
    });
    let found = &named.findings()[0];
    assert!(!found.sentence.contains("most of it"), "{found:?}");
    assert!(found.sentence.contains("the largest part rustc (process 9) (1"), "{found:?}");
    // The kernel's write-back may be the program's own, and is no neighbour.
    let by_kernel = |samples| {
        run(0.7).with(|p| {
            let of = |name: &str, kernel, samples| OtherOnCpu {
                name: name.into(),
                kernel,
                samples,
                ..OtherOnCpu::default()
            };
            p.pressure.others_on_cpu = vec![of("kworker/u4:1", true, 1000), of("cc", false, samples)];
        })
    };
    assert!(!by_kernel(0).ids().contains(&FindingId::NoisyNeighbour));
    let found = &by_kernel(1000).findings()[0];
    assert!(
        found.sentence.contains("other processes take 35 %") && found.sentence.contains("cc"),
        "{found:?}"
    );
    assert!(!run(0.0).ids().contains(&FindingId::NoisyNeighbour), "threads of its own crowd it");
    // 5 s in the queue; the others ran for 20 ms of the 20 s that two CPUs have.
    assert!(!run(0.001).ids().contains(&FindingId::NoisyNeighbour), "they ran too little for it");
}

#[test]
fn commands_are_cut_to_a_line() {
    assert_eq!(command(None), "");
    assert_eq!(command(Some("dd if=a")), " `dd if=a`");
    assert!(command(Some(&"x".repeat(90))).ends_with("x...`"));
}

#[test]
fn what_iowhy_reads_while_it_watches_is_no_neighbour() {
    let behind = |name: &'static str| {
        reader(0.8, (0.8, 0.0)).with(move |p| {
            p.block.as_mut().unwrap().others = vec![other(name, 9, (Some(6_400_000_000), Some(0)))];
        })
    };
    assert!(behind("fio").ids().contains(&FindingId::NoisyNeighbour));
    assert!(!behind("iowhy").ids().contains(&FindingId::NoisyNeighbour));
    let both = reader(0.8, (0.8, 0.0)).with(|p| {
        let others = &mut p.block.as_mut().unwrap().others;
        let half = Some(3_200_000_000);
        *others = vec![other("iowhy", 9, (half, Some(0))), other("fio", 77, (half, Some(0)))];
    });
    let found = both.findings().into_iter().find(|f| f.id == FindingId::NoisyNeighbour).unwrap();
    // By hand: 64 % of the time is behind others, and half of it is fio's.
    assert!((found.share - 0.32).abs() < 1e-6, "{found:?}");
    assert!(found.sentence.contains("most of it by fio (process 77)"), "{}", found.sentence);
}
