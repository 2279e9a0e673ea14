//! Tests of the rule `queue-depth-one`.

use iowhy_core::layer::Layer;

use super::*;
use crate::findings::synthetic::{
    Run, access, bound_leaves, device_course, looked, model, slow_and_repaired,
};

/// Random reads of 4 KiB with this queue depth.
fn random(depth: f64) -> Run {
    let mut run = Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, 0.8)
        .busy(Operation::Read, Layer::Device, 0.2)
        .io((100_000, 409_600_000), (0, 0))
        .device_read(409_600_000)
        .file(8 << 30, |f| f.reads = access(1000, 4_096_000, 0))
        .device(0.8, depth, |d| (d.reads, d.read_bytes) = (100_000, 409_600_000));
    run.model = Some(model());
    run
}

/// The same by eight threads.
fn by_threads() -> Run {
    let thread =
        |run: Run| run.wait(Operation::Read, Wait::DeviceRead, 0.8).busy(Operation::Read, Layer::Device, 0.2);
    (1..8).fold(random(8.0), |run, _| run.second_thread(thread))
}

#[test]
fn random_reads_one_at_a_time_are_named_and_eight_at_a_time_not() {
    let found = slow_and_repaired(FindingId::QueueDepthOne, &random(1.0), &by_threads());
    // By hand: four at once, as measured, leave a quarter of 8 s of waiting.
    bound_leaves(&found, 0.2);
}

#[test]
fn read_ahead_that_nobody_waits_for_is_no_depth_of_the_program() {
    // The kernel reads pages beside those that are asked for, while the program waits for one read at a time.
    let beside = random(2.3);
    let found = &beside.findings()[0];
    assert_eq!(found.id, FindingId::QueueDepthOne);
    assert!(
        found.evidence.iter().any(|e| e.contains("2.3 requests") && e.contains("not wait for")),
        "{found:?}"
    );
    let announced = beside.calls(&[("pread64", 100_000), ("fadvise64", 50_000)]);
    assert!(!announced.ids().contains(&FindingId::QueueDepthOne), "its own announcements are");
    assert!(
        !random(4.0).ids().contains(&FindingId::QueueDepthOne),
        "the device serves no more than four at once"
    );
}

#[test]
fn sequential_reads_want_read_ahead_and_large_ones_a_faster_device() {
    let mut run = random(1.0);
    run.profile.files[0].reads = access(1000, 4_096_000, 990);
    assert!(!run.ids().contains(&FindingId::QueueDepthOne));
    let mut run = random(1.0);
    run.profile.devices[0].reads = 100;
    assert!(!run.ids().contains(&FindingId::QueueDepthOne));
}

#[test]
fn an_unknown_order_is_said_and_both_cures_are_named() {
    let mut run = random(1.0);
    run.profile.files.clear();
    let found = &run.findings()[0];
    assert!(found.advice.contains("If the requests are sequential"), "{found:?}");
    assert!(!random(1.0).findings()[0].advice.contains("If the requests are"));
}

#[test]
fn direct_requests_are_not_told_to_read_ahead() {
    let run = random(1.0).with(|p| p.files[0].reads.direct = looked(1000, 1000));
    let advice = &run.findings()[0].advice;
    assert!(advice.contains("io_uring") && !advice.contains("WILLNEED"), "{advice}");
}

#[test]
fn of_an_unknown_device_all_waits_may_go() {
    let found = random(1.0).findings().remove(0);
    assert!(found.sentence.contains("could serve several"), "measured: {found:?}");
    let mut run = random(1.0);
    run.model = None;
    let found = run.findings().remove(0);
    assert!(!found.sentence.contains("several"), "nobody measured it: {found:?}");
    assert_eq!(found.gain_rest_unchanged, None, "10 of 10 s");
}

#[test]
fn a_device_that_became_slower_may_have_a_limit_for_any_depth() {
    let run = |later: f64| {
        let steps = (0..80).map(|n| (if n < 30 { 200.0 } else { later }, 4096.0, 1.0, 1.0));
        random(1.0).with(|p| p.course = Some(device_course(steps))).findings().remove(0)
    };
    let said = "vda took 2.00 ms for each request from 3.00 s on, 500 µs before (medians of steps of time): if a limit of the volume holds them back, more in flight only wait longer";
    assert_eq!(run(50.0).evidence[1], said);
    assert!(!run(200.0).evidence.iter().any(|e| e.contains("limit of the volume")));
}
