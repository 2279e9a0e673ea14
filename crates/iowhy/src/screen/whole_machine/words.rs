//! Sentences about a whole machine.

use std::path::Path;

use iowhy_core::layer::Layer;
use iowhy_core::machine::{Cost, Device, TimedShare};
use iowhy_core::profile::Limited;
use iowhy_core::units::{counted, per_cent, time};
use iowhy_diagnose::machine::{Closure, Verdict};
use iowhy_view::document::Part;

use super::{HARDLY, device, named, percent_of, who};
use crate::record::whole_machine::WholeMachineRecord;

/// From here on a device is busy nearly all the time.
const SATURATED: f64 = 0.9;
/// So few requests at once are one after the other.
const ONE_AT_A_TIME: f64 = 1.5;

/// The answer in one sentence.
pub(crate) fn verdict(record: &WholeMachineRecord) -> String {
    let stalls = || {
        let share = |figure: &str| {
            let found = record.closure.iter().find(|c| c.figure == figure);
            percent_of(found.map_or(0.0, |c| c.counted_share.unwrap_or(c.explained_share)))
        };
        format!(
            "pressure: io {}, memory {}, cpu {}",
            share("io some"),
            share("memory some"),
            share("cpu some")
        )
    };
    let at = |index: Option<u32>| index.map(|index| device(record, index));
    match record.verdict {
        Verdict::Idle { proven: true } => format!("Idle: no process waited for I/O or memory ({})", stalls()),
        Verdict::Idle { proven: false } => format!("No wait for I/O or memory was seen ({})", stalls()),
        Verdict::CpuBound { share } => format!(
            "No wait for I/O or memory was seen; tasks waited for a CPU {} of the time",
            percent_of(share)
        ),
        Verdict::Culprit { subject, device, share, victim } => {
            let at = at(device).map(|name| format!(" at {name}")).unwrap_or_default();
            format!(
                "{} causes {} of the time that processes wait for I/O: its requests delay {}{at}",
                who(record, subject),
                percent_of(share),
                who(record, victim)
            )
        }
        Verdict::Alone { subject, device, layer, share, caused, held } => {
            let of = device;
            let at = at(device).map(|name| format!(" on {name}")).unwrap_or_default();
            let (who, share) = (who(record, subject), percent_of(share));
            let id = layer.id();
            let waits = format!("{who} has {share} of the time that processes wait: it waits for `{id}`{at}");
            let why = if held { held_back(record) } else { why_alone(record, layer, of, caused) };
            format!("{waits}{why}")
        }
        Verdict::Many { device, waiters } => {
            let at = at(device).map(|name| format!(", most for {name}")).unwrap_or_default();
            format!("{waiters} processes wait for I/O{at}; no single one causes most of it")
        }
    }
}

/// Requests do not come to the device: the limit of the groups of the one that waits, where there is one.
fn held_back(record: &WholeMachineRecord) -> String {
    let disk = record.limits.iter().find(|limit| limit.of == Limited::Disk);
    match disk {
        Some(limit) => format!(", and its requests are held back before the device: {}", limit.words),
        None => ", and most of that while no request of anybody is there".to_owned(),
    }
}

/// What is known of the cause, where one process waits most.
fn why_alone(record: &WholeMachineRecord, layer: Layer, device: Option<u32>, caused: f64) -> String {
    match memory_limit(record).filter(|_| layer == Layer::Memory) {
        Some(limit) => format!(": {limit}"),
        None if caused >= HARDLY => {
            let first = record.account.waiters.first();
            let parts = first.map(|first| named(record, &first.caused_by, first.time_ns, who));
            let parts =
                parts.filter(|parts| !parts.is_empty()).map(|parts| format!(": {}", parts.join(", ")));
            format!("; others cause {} of that{}", percent_of(caused), parts.unwrap_or_default())
        }
        // Where the device is not known, nor is what others did there.
        None if device.is_none() || record.profile.lost.requests > 0 => String::new(),
        None => ", and others hardly cause that".to_owned(),
    }
}

/// The memory limit that the group which was asked about has reached meanwhile: its own, by its own counters.
fn memory_limit(record: &WholeMachineRecord) -> Option<&str> {
    let group = record.group.as_ref()?;
    let reached = [group.memory_high_events, group.memory_limit_events].into_iter().flatten().any(|n| n > 0);
    let own = |set_by: &str| Path::new(set_by).ends_with(&group.path);
    let limit = group.limits.iter().find(|l| l.of == Limited::Memory && own(&l.set_by));
    limit.filter(|_| reached).map(|limit| limit.words.as_str())
}

/// PSI in a line, with how much of it is explained.
pub(crate) fn pressure(record: &WholeMachineRecord) -> String {
    let figure = |of: &Closure| match (of.counted_share, of.ratio) {
        (Some(counted), Some(ratio)) => {
            format!("{} {} ({} explained)", of.figure, percent_of(counted), percent_of(ratio))
        }
        (Some(counted), None) => format!("{} {}", of.figure, percent_of(counted)),
        (None, _) => format!("{} {} (computed)", of.figure, percent_of(of.explained_share)),
    };
    let figures: Vec<String> = record.closure.iter().map(figure).collect();
    format!("PSI: {}", figures.join(", "))
}

/// What watching cost, and what is inferred.
pub(crate) fn cost(record: &WholeMachineRecord) -> String {
    let (cost, wall_ns) = (&record.profile.cost, (record.profile.wall_ns as f64).max(1.0));
    let all_ns = wall_ns * record.profile.cpus.max(1) as f64;
    let own = hundredths(cost.own_cpu_ns as f64 / all_ns);
    let told = format!("{} told; of all CPU time {own} in iowhy", counted(cost.waits, "wait", "waits"));
    let told = format!("{told} and {}", in_kernel(cost));
    let culprits = &record.account.culprits;
    let is_kernel = |of: u32| record.profile.subjects.get(of as usize).is_some_and(|s| s.kernel);
    let infers =
        if culprits.is_empty() { "" } else { "; `caused by` is inferred from requests at the device" };
    let kernel = culprits.iter().any(|culprit| is_kernel(culprit.subject));
    let kernel = if kernel { "; a thread of the kernel works for others: for whom is not known" } else { "" };
    format!("{told}{infers}{kernel}")
}

/// Watching takes little: tenths would be nothing.
fn hundredths(share: f64) -> String {
    per_cent(share * 100.0, 2)
}

/// What the observer's programs took, or why that is not known.
fn in_kernel(cost: &Cost) -> String {
    let Some(TimedShare { share, interval, samples, sample_ns }) = cost.observer else {
        let why = cost.observer_unknown.as_deref().unwrap_or("no sample ended in this time");
        return format!("what its programs in the kernel took is not known ({why})");
    };
    let range = interval
        .map(|[low, high]| format!("95 % interval {} to {}, ", hundredths(low), hundredths(high)))
        .unwrap_or_default();
    let samples = counted(samples, "sample", "samples");
    format!(
        "{} in its programs in the kernel ({range}{samples} of {})",
        hundredths(share),
        time(sample_ns as f64)
    )
}

/// What limits a device, as far as its requests tell.
pub(super) fn limit(of: &Device, wall_ns: f64) -> String {
    let (busy, at_once) =
        (of.busy_ns as f64 / wall_ns, of.in_flight_ns as f64 / (of.busy_ns as f64).max(1.0));
    let words = match (busy >= SATURATED, of.queue_ns > of.service_ns, at_once <= ONE_AT_A_TIME) {
        (_, true, _) => "queue before it",
        (true, _, true) => "one at a time",
        (true, _, false) => "busy",
        (false, ..) => "",
    };
    words.to_owned()
}

/// Commands that say more.
pub(super) fn next(record: &WholeMachineRecord) -> Vec<Part> {
    let pid =
        |subject: u32| record.profile.subjects.get(subject as usize).map(|s| s.pid).filter(|pid| *pid > 0);
    let mut subjects: Vec<u32> = Vec::new();
    if !matches!(record.verdict, Verdict::Idle { .. } | Verdict::CpuBound { .. }) {
        subjects.extend(record.account.waiters.first().map(|waiter| waiter.subject));
        if let Verdict::Culprit { subject, .. } = record.verdict {
            subjects.push(subject);
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut pids: Vec<u32> = subjects.into_iter().filter_map(pid).collect();
    pids.dedup();
    if pids.is_empty() {
        parts.push(Part::Text(
            "run it again while the problem lasts, for longer: `sudo iowhy --all --time 60s`".to_owned(),
        ));
    }
    parts.extend(pids.into_iter().map(|pid| Part::Command(format!("sudo iowhy attach {pid} --time 10s"))));
    parts
}
