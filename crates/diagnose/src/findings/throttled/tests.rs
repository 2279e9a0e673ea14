//! Tests of the rule `throttled`.

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, slow_and_repaired};

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
    assert!((found.gain.unwrap().predicted - 1.0 / (1.0 - 0.8 * 0.93)).abs() < 1e-6);
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
