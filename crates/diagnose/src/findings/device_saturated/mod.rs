//! The rule `device-saturated`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use iowhy_core::profile::OverLimit;

use crate::account::Entry;
use crate::classify::Wait;
use crate::paces::{self, Plateau};

pub(super) const RULE: Rule = Rule {
    id: FindingId::DeviceSaturated,
    claim: "the device is at its limit",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { choices: repair::CHOICES, ..Repairs::one(repair::repaired) },
};

/// The device is busy all the time from here.
const BUSY: f64 = 0.9;
/// This number of in flight keep any device at work, where its parallelism was not measured.
const MANY: f64 = 4.0;
/// Requests of this size keep a device at its transfer rate even one at a time.
const LARGE_BYTES: f64 = 65_536.0;
/// What helps where each request costs the device more than its bytes.
const FEWER_REQUESTS: &str = "Make fewer requests: larger ones, with what is used together side by side, and keep what is read \
                              again in memory. Or request fewer bytes (compress, read only the columns or ranges that are needed)";
/// What helps where it is bytes.
const FEWER_BYTES: &str = "Request fewer bytes (compress, cache data that is read again, read only the columns or ranges \
                           that are needed)";
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
    let over = device.over_limit.and_then(OverLimit::longest);
    let over = over.filter(|(_, ns)| facts.wall_share(*ns as f64) >= MUCH);
    if facts.share_without_queueing(sum.wall_ns) < MUCH || (busy < BUSY && over.is_none()) {
        return None;
    }
    let in_flight = facts.in_flight();
    let enough = facts.model.map_or(MANY, |m| (0.75 * m.device_parallelism).max(2.0));
    let requests = device.reads + device.writes;
    let bytes = (device.read_bytes + device.written_bytes) as f64;
    let mean = (requests > 0).then(|| bytes / requests as f64);
    let much_is_asked = in_flight.is_some_and(|n| n >= enough) || mean.is_some_and(|b| b >= LARGE_BYTES);
    if !much_is_asked && over.is_none() {
        return None;
    }
    let mut evidence = vec![format!(
        "{} was busy {} of wall time: {}, {} requests",
        device.name,
        say::percent(busy),
        say::rate(bytes, facts.account.wall_ns),
        say::count(requests as f64)
    )];
    evidence.extend(in_flight.map(|n| format!("queue depth {n:.1} while it was busy")));
    evidence.extend(plateau_in_words(facts, &device.name));
    evidence.extend(device.over_limit.and_then(OverLimit::longest).map(|(limit, ns)| {
        format!(
            "more was asked than {limit} allows {} of wall time, by the volume's own count",
            say::percent(facts.wall_share(ns as f64))
        )
    }));
    evidence.extend(mean.map(|b| format!("mean request size: {}", say::bytes(b))));
    evidence.push(format!(
        "waiting for it takes {} of wall time; reordering the same requests or more queue depth would not help much",
        say::percent(facts.wall_share(sum.wall_ns))
    ));
    let what = over.map_or_else(
        || format!("The device is saturated: {} is busy {} of wall time", device.name, say::percent(busy)),
        |(limit, ns)| {
            format!(
                "{} is at {limit} {} of wall time",
                device.name,
                say::percent(facts.wall_share(ns as f64))
            )
        },
    );
    Draft {
        id: FindingId::DeviceSaturated,
        cost_ns: sum.wall_ns,
        removable: None,
        sentence: format!(
            "{what}, and the program waits for it {} of wall time",
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice: format!(
            "{}, spread the data over more devices, or use a faster one{}.",
            if mean.is_some_and(|b| b < LARGE_BYTES) { FEWER_REQUESTS } else { FEWER_BYTES },
            if over.is_some() { " (the provider sells volumes and machines with higher limits)" } else { "" }
        ),
    }
    .finding(facts)
}

/// That more requests in flight only wait longer, where it was seen.
fn plateau_in_words(facts: &Facts<'_>, device: &str) -> Option<String> {
    let Plateau { pace, in_flight: [few, many] } = paces::plateau(facts.profile.course.as_ref()?, device)?;
    Some(format!(
        "it served {} requests/s (middle half {} to {}, n = {} steps) whether {few:.0} or {many:.0} were in flight: more of them only wait longer",
        say::count(pace.per_second),
        say::count(pace.middle_half[0]),
        say::count(pace.middle_half[1]),
        pace.steps
    ))
}
