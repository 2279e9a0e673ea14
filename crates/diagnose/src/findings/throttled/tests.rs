//! Tests of the rule `throttled`.

use iowhy_core::profile::{OtherUser, SampledShare};

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, access, bound_leaves, slow_and_repaired};

fn reader(block: f64, limit: Option<&str>) -> Run {
    Run::new(10.0)
        .wait(Operation::Read, Wait::BlockThrottle, block)
        .busy(Operation::User, Layer::Program, 1.0 - block)
        .device(0.1, 1.0, |d| d.throttle = limit.map(str::to_owned))
}

#[test]
fn a_limit_is_named_and_no_limit_not() {
    let slow = reader(0.8, Some("io.max of /limited: 10 MiB/s of reads"));
    let found = slow_and_repaired(FindingId::Throttled, &slow, &reader(0.0, None));
    assert!(found.evidence.iter().any(|e| e == "limit: vda: io.max of /limited: 10 MiB/s of reads"));
    bound_leaves(&found, 0.2);
}

#[test]
fn a_cpu_limit_is_named_by_its_size() {
    let run = Run::new(10.0).queued(0.6).busy(Operation::User, Layer::Program, 0.4).with(|p| {
        p.pressure.cpu_throttled_ns = Some(6_000_000_000);
        p.pressure.cpu_limit = Some(0.4);
    });
    let found = &run.findings()[0];
    assert_eq!(found.id, FindingId::Throttled);
    assert!(found.sentence.contains("CPU limit") && found.evidence[0].contains("0.40 CPUs"));
}

#[test]
fn a_limit_that_was_not_seen_shows_in_an_idle_device() {
    let run = |busy: f64, took_ns: u64| {
        Run::new(10.0)
            .wait(Operation::Ring, Wait::Completion, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .device(busy, 1.0, |d| (d.reads, d.read_ns) = (1000, 1000 * took_ns))
            .ids()
            .contains(&FindingId::Throttled)
    };
    // A thousand waits of 8 ms each.
    assert!(run(0.1, 200_000));
    assert!(!run(0.8, 200_000), "the device is at work meanwhile");
    assert!(!run(0.1, 8_000_000), "each request takes as long as the wait");
}

#[test]
fn a_single_long_wait_shows_no_limit() {
    let run = |wait: Wait, waits: u64, limit: Option<&str>| {
        Run::new(10.0)
            .sleeps(Operation::Fault, wait, 0.5, waits)
            .busy(Operation::User, Layer::Program, 0.5)
            .device(0.1, 1.0, |d| {
                (d.reads, d.read_ns, d.throttle) = (1000, 200_000_000, limit.map(str::to_owned));
            })
            .ids()
            .contains(&FindingId::Throttled)
    };
    for wait in [Wait::DeviceRead, Wait::BlockThrottle] {
        assert!(run(wait, MIN_WAITS, None) && !run(wait, 1, None), "{wait:?}");
    }
    assert!(run(Wait::BlockThrottle, 1, Some("io.max")), "a limit that is configured needs no habit");
}

/// One request at a time fills no queue: those who do are named, and no limit.
#[test]
fn a_queue_that_others_fill_is_no_limit() {
    let run = |others: u64| {
        reader(0.8, None).block(1000, 1000 << 12, 0, 0).with(|p| {
            let block = p.block.as_mut().unwrap();
            block.in_flight = Some(1.0);
            let other = OtherUser { name: "fio".into(), pid: 77, requests: others, ..OtherUser::default() };
            block.others = if others > 0 { vec![other] } else { Vec::new() };
        })
    };
    assert_eq!(run(0).ids()[0], FindingId::Throttled);
    let found = &run(1000).findings()[0];
    assert_eq!(found.id, FindingId::NoisyNeighbour);
    assert!(found.sentence.contains("fio (process 77)"), "{}", found.sentence);
}

#[test]
fn small_direct_requests_below_a_limit_wait_for_the_limit() {
    let run = |limit: Option<&str>| {
        let limit = limit.map(str::to_owned);
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.95)
            .busy(Operation::User, Layer::Program, 0.05)
            .device(0.2, 1.0, |d| d.throttle = limit)
            .io((1000, 1000 << 12), (0, 0))
            .file(1 << 30, |f| {
                f.reads = access(1000, 1000 << 12, 1000);
                f.reads.direct = SampledShare { hits: 1000, n: 1000 };
            })
    };
    assert_eq!(run(None).ids()[0], FindingId::SmallRequests, "no sample of the clock met a call");
    let ids = run(Some("reads are limited to 81920 bytes/s (io.max)")).ids();
    assert!(ids[0] == FindingId::Throttled && !ids.contains(&FindingId::SmallRequests), "{ids:?}");
}

#[test]
fn a_device_above_the_limited_one_is_busy_and_not_at_work() {
    let run = Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, 0.99)
        .busy(Operation::User, Layer::Program, 0.01)
        .device(0.2, 1.0, |d| {
            (d.reads, d.throttle) =
                (60, Some("reads on vda are limited to 81920 bytes/s (io.max)".to_owned()));
        })
        .device(0.99, 1.0, |d| (d.reads, d.name) = (60, "loop1".to_owned()));
    assert_eq!(run.ids()[0], FindingId::Throttled, "{:?}", run.findings());
}
