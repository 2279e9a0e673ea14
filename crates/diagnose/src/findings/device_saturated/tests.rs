//! Tests of the rule `device-saturated`.

use iowhy_core::layer::Layer;

use super::*;
use crate::classify::Operation;
use crate::findings::synthetic::{Run, access, device_course, slow_and_repaired};

fn pass(wait: f64, busy: f64) -> Run {
    Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, wait)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .io((40_000, 40_000 << 17), (0, 0))
        .device_read(40_000 << 17)
        .file(40_000 << 17, |f| f.reads = access(1000, 1000 << 17, 1000))
        .device(busy, 2.0, |d| (d.reads, d.read_bytes) = (40_000, 40_000 << 17))
}

#[test]
fn large_requests_at_a_busy_device_are_named_and_a_device_at_rest_not() {
    let found = slow_and_repaired(FindingId::DeviceSaturated, &pass(0.7, 0.98), &pass(0.1, 0.4));
    assert_eq!(found.gain, None, "how much fewer bytes there could be is not known");
}

#[test]
fn one_small_request_at_a_time_is_not_all_a_device_can() {
    let mut run = pass(0.7, 0.98);
    run.profile.devices[0].read_ns = run.profile.devices[0].busy_ns;
    run.profile.devices[0].read_bytes = 40_000 * 4096;
    assert!(!run.ids().contains(&FindingId::DeviceSaturated));
}

#[test]
fn a_device_that_only_others_use_is_not_the_one_that_is_waited_for() {
    let mut run = pass(0.7, 0.5);
    let own = run.profile.devices[0].clone();
    run.profile.files[0].device = Some(own.name.clone());
    let ids = |run: &Run| run.ids().contains(&FindingId::DeviceSaturated);
    run.profile.devices.push(iowhy_core::profile::DeviceUse {
        name: "others".into(),
        busy_ns: 2 * own.busy_ns,
        ..own
    });
    assert!(!ids(&run), "the busy one holds no file of the program");
    run.profile.files[0].device = Some("others".into());
    assert!(ids(&run));
}

#[test]
fn that_more_in_flight_only_wait_longer_is_said_where_it_was_seen() {
    let small = |in_flight: fn(u64) -> f64, pace: fn(f64) -> f64| {
        let steps = (0..80).map(|n| (pace(in_flight(n)), 4096.0, in_flight(n), 1.0));
        let run = pass(0.7, 0.98).device(0.98, 8.0, |d| (d.reads, d.read_bytes) = (40_000, 40_000 << 12));
        let run = run.with(|p| {
            p.files[0].reads = access(1000, 1000 << 12, 0);
            p.course = Some(device_course(steps));
        });
        run.findings().into_iter().find(|f| f.id == FindingId::DeviceSaturated).unwrap()
    };
    let varies = |n: u64| if n.is_multiple_of(2) { 4.0 } else { 16.0 };
    let limited = small(varies, |_| 300.0);
    let said = "it served 3,000 requests/s (middle half 3,000 to 3,000, n = 80 steps) whether 4 or 16 were in flight: more of them only wait longer";
    assert!(limited.evidence.iter().any(|e| e == said), "{limited:?}");
    assert!(limited.advice.starts_with("Make fewer requests"), "they are small: {}", limited.advice);
    let silent = |found: Finding| !found.evidence.iter().any(|e| e.contains("whether"));
    assert!(silent(small(varies, |in_flight| 20.0 * in_flight)) && silent(small(|_| 8.0, |_| 300.0)));
}

#[test]
fn a_volume_that_counts_time_over_its_limit_is_at_it_however_little_is_in_flight() {
    let mut run = pass(0.7, 0.5);
    run.profile.devices[0].read_bytes = 40_000 * 4096;
    let named = |run: &Run| run.findings().into_iter().find(|f| f.id == FindingId::DeviceSaturated);
    assert_eq!(named(&run), None);
    let over = OverLimit { volume_requests_ns: 6_000_000_000, volume_bytes_ns: 1, ..OverLimit::default() };
    run.profile.devices[0].over_limit = Some(over);
    let found = named(&run).unwrap();
    assert!(
        found.sentence.contains("at the volume's limit of requests a second 60 % of wall time"),
        "{found:?}"
    );
    assert!(found.advice.contains("higher limits"));
    run.profile.devices[0].over_limit = Some(OverLimit { volume_requests_ns: 1_000_000_000, ..over });
    assert_eq!(named(&run), None, "a tenth of the time is not most of the waiting");
}
