//! The account of slow calls: in which part of the path each spent its time, who had a part in it, and what most of the slowest have in common.
//!
//! Invariant: the parts of a call sum to its time. Delay by others is in proportion to their requests at the device while a wait lasts: it is
//! inferred, and no more than the wait.

mod findings;

use std::collections::BTreeMap;

use iowhy_core::layer::Layer;
use iowhy_core::profile::State;
use iowhy_core::tails::{CallWait, SlowCall, TailsProfile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classify::{ByName, Class, Classifier, Operation, Wait};
use crate::machine::Part;

pub use findings::{TailFinding, findings};

/// Operations whose calls may be timed: those that work on files.
pub const OPERATIONS: [Operation; 9] = [
    Operation::Read,
    Operation::Write,
    Operation::Sync,
    Operation::Open,
    Operation::Close,
    Operation::Stat,
    Operation::Names,
    Operation::Descriptor,
    Operation::Map,
];

/// On a CPU.
const RUNNING: &str = "running";
/// In the queue of a device.
const DEVICE_QUEUE: &str = "device-queue";
/// Held back by a limit of the block layer or of dirty memory.
const THROTTLE: &str = "throttle";

/// Where the time of a call went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallAccount {
    /// Its parts, longest first.
    pub parts: Vec<CallPart>,
    /// The time that others caused, longest first: index into the subjects of the profile.
    pub caused_by: Vec<Part>,
}

/// A part of the time of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPart {
    /// `running`; `cpu-queue`: able to run, without a CPU; `device-queue`; `throttle`; else the layer that it waited for.
    pub part: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// Waits; 0 for time on a CPU or in its queue.
    pub waits: u64,
    /// Index into the devices of the profile.
    pub device: Option<u32>,
    /// Index into the subjects: who served it, gave the lock back, or committed the journal.
    pub by: Option<u32>,
    /// Kernel function that waited; of the longest of the waits.
    pub function: Option<String>,
    /// The part of it that others caused.
    pub caused_by: Vec<Part>,
    /// What `by`, a thread of the kernel, waited for meanwhile, longest first.
    pub meanwhile: Vec<Meanwhile>,
}

/// A wait of a thread of the kernel that somebody waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meanwhile {
    /// The layer that it waited for.
    pub part: String,
    /// Index into the devices.
    pub device: Option<u32>,
    /// Index into the subjects: whose data the request held whose end woke it.
    pub data_of: Option<u32>,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
}

/// The account of a call.
pub fn account(profile: &TailsProfile, call: &SlowCall, classifier: &Classifier) -> CallAccount {
    let mut parts = Vec::new();
    for (part, time_ns) in [(RUNNING, call.running_ns), (Layer::CpuQueue.id(), call.queued_ns)] {
        if time_ns > 0 {
            parts.push(CallPart { part: part.to_owned(), time_ns: time_ns as f64, ..CallPart::default() });
        }
    }
    let mut caused: BTreeMap<u32, f64> = BTreeMap::new();
    let mut known: Vec<(CallPart, u64)> = Vec::new();
    for wait in &call.waits {
        for part in of_wait(profile, call.subject, wait, classifier) {
            part.caused_by.iter().for_each(|part| *caused.entry(part.of).or_default() += part.time_ns);
            add(&mut known, part, wait.time_ns);
        }
    }
    parts.extend(known.into_iter().map(|(part, _)| part));
    let told: u64 = call.waits.iter().map(|wait| wait.time_ns).sum();
    let untold = call.asleep_ns.saturating_sub(told);
    if untold > 0 {
        let part = Layer::Unexplained.id().to_owned();
        parts.push(CallPart { part, time_ns: untold as f64, waits: call.waits_lost, ..CallPart::default() });
    }
    parts.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
    let caused_by = longest_first(caused.into_iter().map(|(of, time_ns)| Part { of, time_ns }).collect());
    CallAccount { parts, caused_by }
}

/// The parts of a wait of a process: in the queue of the device, and the rest. Nobody causes its waits for its own locks, and whoever uses
/// a device causes no wait for something else, such as a pipe.
fn of_wait(profile: &TailsProfile, own: u32, wait: &CallWait, classifier: &Classifier) -> Vec<CallPart> {
    let frames = frames(profile, wait.stack);
    let class = wait.stack.map(|_| classifier.classify(&frames, State::Blocked));
    let (name, layer) = part_of(class.as_ref(), wait.device);
    let by = wait.ended_by.filter(|_| matches!(layer, Layer::Lock | Layer::Server | Layer::Journal));
    let holder = by.filter(|_| layer == Layer::Lock);
    let device = wait.device.filter(|_| layer != Layer::Elsewhere);
    let caused = match holder {
        Some(holder) if holder == own => Vec::new(),
        _ if layer == Layer::Elsewhere => Vec::new(),
        Some(holder) => vec![Part { of: holder, time_ns: wait.time_ns as f64 }],
        None => wait.caused.iter().map(|part| Part { of: part.subject, time_ns: part.time_ns }).collect(),
    };
    let share = |ns: u64| if wait.time_ns == 0 { 0.0 } else { ns as f64 / wait.time_ns as f64 };
    let scaled = |share: f64| {
        longest_first(caused.iter().map(|part| Part { of: part.of, time_ns: part.time_ns * share }).collect())
    };
    // Whoever waits for a limit has no request yet: what is in the queue then is an earlier one.
    let queue_ns = if name == Layer::Device.id() { wait.queue_ns.min(wait.time_ns) } else { 0 };
    let rest_ns = wait.time_ns - queue_ns;
    let function = frames.iter().find(|frame| !matches!(classifier.by_name(frame), ByName::Helper));
    let whole = CallPart {
        part: name.to_owned(),
        time_ns: rest_ns as f64,
        waits: wait.count,
        device,
        by,
        function: function.map(|name| (*name).to_owned()),
        caused_by: scaled(share(rest_ns)),
        meanwhile: meanwhile(profile, wait, classifier),
    };
    let queued = CallPart {
        part: DEVICE_QUEUE.to_owned(),
        time_ns: queue_ns as f64,
        caused_by: scaled(share(queue_ns)),
        by: None,
        meanwhile: Vec::new(),
        ..whole.clone()
    };
    [queued, whole].into_iter().filter(|part| part.time_ns > 0.0).collect()
}

/// Adds it to the part of the same kind. `of_ns`: its wait; the function of the longest stands for all.
fn add(known: &mut Vec<(CallPart, u64)>, part: CallPart, of_ns: u64) {
    let key = |part: &CallPart| (part.part.clone(), part.device, part.by);
    let Some((same, longest_ns)) = known.iter_mut().find(|(other, _)| key(other) == key(&part)) else {
        known.push((part, of_ns));
        return;
    };
    same.time_ns += part.time_ns;
    same.waits += part.waits;
    if of_ns > *longest_ns {
        (same.function, *longest_ns) = (part.function, of_ns);
    }
    for more in part.caused_by {
        match same.caused_by.iter_mut().find(|caused| caused.of == more.of) {
            Some(caused) => caused.time_ns += more.time_ns,
            None => same.caused_by.push(more),
        }
    }
    same.caused_by = longest_first(std::mem::take(&mut same.caused_by));
    for more in part.meanwhile {
        add_meanwhile(&mut same.meanwhile, more);
    }
}

/// What the thread of the kernel that ended a wait waited for meanwhile.
fn meanwhile(profile: &TailsProfile, wait: &CallWait, classifier: &Classifier) -> Vec<Meanwhile> {
    let mut all = Vec::new();
    for helped in &wait.helper {
        let frames = frames(profile, helped.stack);
        let class = helped.stack.map(|_| classifier.classify(&frames, State::Blocked));
        // The commit itself waits for nothing but the device, whose request ended it.
        let (name, layer) = part_of(class.as_ref(), helped.device);
        let is_device = helped.device.is_some() && matches!(layer, Layer::Journal | Layer::Unexplained);
        let part = if is_device { Layer::Device.id() } else { name };
        let (device, data_of, time_ns) = (helped.device, helped.data_of, helped.time_ns as f64);
        add_meanwhile(&mut all, Meanwhile { part: part.to_owned(), device, data_of, time_ns });
    }
    all
}

fn add_meanwhile(all: &mut Vec<Meanwhile>, more: Meanwhile) {
    let key = |of: &Meanwhile| (of.part.clone(), of.device, of.data_of);
    match all.iter_mut().find(|known| key(known) == key(&more)) {
        Some(known) => known.time_ns += more.time_ns,
        None => all.push(more),
    }
    all.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
}

/// The name of the part that a wait belongs to, and its layer.
fn part_of(class: Option<&Class>, device: Option<u32>) -> (&'static str, Layer) {
    let Some(class) = class else {
        // A wait that a device ended is the device's, whatever its stack was.
        let layer = if device.is_some() { Layer::Device } else { Layer::Unexplained };
        return (layer.id(), layer);
    };
    match class.wait {
        Some(Wait::BlockThrottle | Wait::DirtyThrottle) => (THROTTLE, class.layer),
        _ => (class.layer.id(), class.layer),
    }
}

fn frames(profile: &TailsProfile, stack: Option<u32>) -> Vec<&str> {
    let stack = stack.and_then(|stack| profile.stacks.get(stack as usize));
    stack.map(|frames| frames.iter().map(String::as_str).collect()).unwrap_or_default()
}

fn longest_first(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
    parts
}

#[cfg(test)]
mod tests;
