//! The rule `throttled`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::DeviceUse;

use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::account::Entry;
use crate::classify::Wait;

pub(super) const RULE: Rule = Rule {
    id: FindingId::Throttled,
    claim: "a configured limit holds the program back",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// Where a device has a limit, part of the waits for it are the limit's: from this busy share on it is the device.
const BUSY: f64 = 0.9;

/// The devices are idle when they are busy for less than this part of the time that is spent waiting for them.
const IDLE: f64 = 0.4;
/// A wait of this multiple of the request's time at the device has another cause.
const LONG: f64 = 4.0;
/// Fewer waits show no limit: on a busy machine a single page that another process reads may take long.
const MIN_WAITS: u64 = 8;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let limits = limits(facts);
    let held_in_block = |e: &Entry| e.class.wait == Some(Wait::BlockThrottle);
    // Where no limit is known, one long wait is a device that stalled once.
    let habitual = !limits.is_empty() || facts.account.sum(held_in_block).events >= MIN_WAITS;
    let at_block = |e: &Entry| habitual && held_in_block(e);
    // Where the limit itself was not seen, it shows: threads wait much longer than the device takes, which is idle.
    let held = held_back(facts);
    // A limited request that read-ahead or write-back sent waits in the queue, and the thread for its page.
    let busy = busy_share(facts);
    let holds = !limits.is_empty() && busy.is_some_and(|b| b < BUSY);
    let for_pages = |e: &Entry| (holds && page_wait(e)) || (held && request_wait(e));
    // A queue that others fill is not what limits.
    let own_part = if limits.is_empty() { 1.0 - facts.others_part_of_queue() } else { 1.0 };
    let (block, pages) = (facts.account.sum(at_block), facts.account.sum(for_pages));
    let block_ns = own_part * block.wall_ns;
    let idle_part = busy.map_or(0.0, |b| 1.0 - b);
    let mut cost_ns = block_ns + pages.wall_ns;
    let mut evidence = Vec::new();
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    if block_ns > 0.0 {
        evidence
            .push(format!("requests are held back in the block layer for {} of wall time", share(block_ns)));
    }
    if pages.wall_ns > 0.0 {
        evidence.push(format!(
            "waiting for the device takes {} of wall time, while the device is idle {} of wall time",
            share(pages.wall_ns),
            say::percent(idle_part)
        ));
    }
    evidence.extend(limits.iter().map(|l| format!("limit: {l}")));

    let pressure = &facts.profile.pressure;
    let queued = |e: &Entry| e.class.layer == Layer::CpuQueue;
    let cpu = cpu_limit(facts, queued);
    let stopped = cpu.map_or(0.0, |(part, _)| part);
    let removable = facts.removable_by_others(|e| {
        let held = own_part * f64::from(at_block(e)) + stopped * f64::from(queued(e));
        held.max(f64::from(for_pages(e)))
    });
    if let Some((_, wall_ns)) = cpu {
        cost_ns += wall_ns;
        evidence.push(format!(
            "the control group was stopped for {} by its CPU limit{}",
            say::time(pressure.cpu_throttled_ns.unwrap_or(0) as f64),
            pressure.cpu_limit.map_or(String::new(), |c| format!(" (limit: {c:.2} CPUs)"))
        ));
    }
    let cpu_is_worse = cpu.is_some_and(|(_, wall_ns)| wall_ns > block_ns + pages.wall_ns);
    let (what, advice) = if cpu_is_worse {
        (
            "The control group's CPU limit",
            "Raise the limit of the control group (cpu.max; in Kubernetes the CPU limit), or use fewer threads at once.",
        )
    } else if limits.is_empty() {
        (
            "A limit of the block layer",
            "Check what limits it: write-back throttling (/sys/block/DEV/queue/wbt_lat_usec), the length of the queue \
             (nr_requests), or a control group (io.max, io.latency, io.cost).",
        )
    } else {
        (
            "A configured limit on the device",
            "Raise or remove the limit (io.max of the control group, io.latency, io.cost), or send fewer requests and bytes.",
        )
    };
    Draft {
        id: FindingId::Throttled,
        cost_ns,
        removable: Some(removable),
        sentence: format!("{what} holds the program back {} of wall time", share(cost_ns)),
        evidence,
        advice: advice.into(),
    }
    .finding(facts)
}

fn request_wait(e: &Entry) -> bool {
    matches!(e.class.wait, Some(Wait::DeviceRead | Wait::DeviceWrite | Wait::Completion))
}

fn page_wait(e: &Entry) -> bool {
    request_wait(e) || matches!(e.class.wait, Some(Wait::DataWriteback | Wait::DirtyThrottle))
}

/// Whether requests are held back before they reach the device: threads wait for them while no device has any in flight
/// for most of that time, and each wait is many times as long as a request takes.
fn held_back(facts: &Facts<'_>) -> bool {
    let waits = facts.account.sum(request_wait);
    let devices = &facts.profile.devices;
    let busy_ns: f64 = devices.iter().map(|d| d.busy_ns as f64).sum();
    let requests: u64 = devices.iter().map(|d| d.reads.saturating_add(d.writes)).sum();
    let took_ns: f64 = devices.iter().map(|d| d.read_ns as f64 + d.write_ns as f64).sum();
    if waits.events < MIN_WAITS || requests == 0 {
        return false;
    }
    let (wait, service) = (waits.time_ns / waits.events as f64, took_ns / requests as f64);
    busy_ns < IDLE * waits.wall_ns && wait > LONG * service
}

/// The part of the queueing that the CPU limit takes, and its wall time: threads of a stopped group are runnable without a CPU, so not
/// more than that.
fn cpu_limit(facts: &Facts<'_>, queued: impl Fn(&Entry) -> bool) -> Option<(f64, f64)> {
    let stopped = facts.profile.pressure.cpu_throttled_ns.filter(|n| *n > 0)? as f64;
    let sum = facts.account.sum(&queued);
    if sum.time_ns <= 0.0 {
        return None;
    }
    // The counter is the sum over CPUs: of the time of the threads, as the queue time is.
    let part = (stopped / sum.time_ns).min(1.0);
    Some((part, sum.wall_ns * part))
}

/// Part of the wall time in which the device had a request in flight; where one has a limit, that one: a device above it is busy while it
/// holds back.
fn busy_share(facts: &Facts<'_>) -> Option<f64> {
    let limited = facts.profile.devices.iter().filter(|d| d.throttle.is_some());
    let Some(busy_ns) = limited.map(|d| d.busy_ns).max() else { return facts.device_busy_share() };
    (facts.account.wall_ns > 0.0).then(|| (busy_ns as f64 / facts.account.wall_ns).min(1.0))
}

/// The configured limits of the devices.
fn limits(facts: &Facts<'_>) -> Vec<String> {
    let of = |d: &DeviceUse| Some(format!("{}: {}", d.name, d.throttle.as_ref()?));
    facts.profile.devices.iter().filter_map(of).collect()
}
