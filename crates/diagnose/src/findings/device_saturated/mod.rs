//! The rule `device-saturated`. Its page of the manual:
#![doc = include_str!("page.md")]

pub(super) mod repair;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::{Facts, Rule, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule { id: FindingId::DeviceSaturated, manual: include_str!("page.md"), judge };

/// The device is busy all the time from here.
const BUSY: f64 = 0.9;
/// So many in flight keep any device at work, where its parallelism was not measured.
const MANY: f64 = 4.0;
/// Requests of this size keep a device at its transfer rate even one at a time.
const LARGE_BYTES: f64 = 65_536.0;
/// Waiting for the device must be this part of the wall time.
const MUCH: f64 = 0.3;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let waiting = |e: &Entry| {
        matches!(
            e.class.wait,
            Some(
                Wait::DeviceRead
                    | Wait::DeviceWrite
                    | Wait::DataWriteback
                    | Wait::DirtyThrottle
                    | Wait::Completion
                    | Wait::BlockThrottle
            )
        )
    };
    let sum = facts.account.sum(waiting);
    let device = facts.device()?;
    let busy = facts.device_busy_share()?;
    if facts.share_without_queueing(sum.wall_ns) < MUCH || busy < BUSY {
        return None;
    }
    let in_flight = facts.in_flight();
    let enough = facts.model.map_or(MANY, |m| (0.75 * m.device_parallelism).max(2.0));
    let requests = device.reads + device.writes;
    let bytes = (device.read_bytes + device.written_bytes) as f64;
    let mean = (requests > 0).then(|| bytes / requests as f64);
    if !in_flight.is_some_and(|n| n >= enough) && !mean.is_some_and(|b| b >= LARGE_BYTES) {
        return None;
    }
    let mut evidence = vec![format!(
        "{} was busy {} of the time: {}, {} requests",
        device.name,
        say::percent(busy),
        say::rate(bytes, facts.account.wall_ns),
        say::count(requests as f64)
    )];
    evidence.extend(in_flight.map(|n| format!("{n:.1} requests were in flight while it was busy")));
    evidence.extend(mean.map(|b| format!("a request is {} on average", say::bytes(b))));
    evidence.push(format!(
        "waiting for it takes {} of the wall time; no better order or depth of the same requests would help much",
        say::percent(facts.wall_share(sum.wall_ns))
    ));
    Draft {
        id: FindingId::DeviceSaturated,
        cost_ns: sum.wall_ns,
        savings: None,
        sentence: format!(
            "The device does all it can: {} is busy {} of the time, and {} of the time is waiting for it",
            device.name,
            say::percent(busy),
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: "Ask it for fewer bytes (compress, keep in memory what is read again, read only the columns or ranges \
                 that are needed), spread the data over more devices, or use a faster one."
            .into(),
    }
    .finding(facts)
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::classify::Operation;
    use crate::findings::synthetic::{Run, access, slow_and_repaired};

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
}
