//! The account of a whole machine: which processes wait for which layer, on which device, and who causes it.
//!
//! A wait is attributed once. Delay by others is in proportion to their requests at the device while the wait lasts: it is inferred, and no
//! more than the wait. What a lock's holder or another process ended is that one's.

mod closure;
mod verdict;

use std::collections::BTreeMap;

use iowhy_core::layer::Layer;
use iowhy_core::machine::{MachineProfile, Wait};
use iowhy_core::profile::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classify::Classifier;

pub use closure::{Closure, closure};
pub use verdict::{Verdict, verdict};

/// Who waits for what, and who causes it. Indices are those of the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineAccount {
    /// Time that threads of processes waited on the I/O path or for memory, in thread nanoseconds.
    pub waited_ns: f64,
    /// The same of threads of the kernel, which wait for others.
    pub kernel_waited_ns: f64,
    /// Processes by their waits, longest first.
    pub waiters: Vec<Waiter>,
    /// Who delayed others, most first.
    pub culprits: Vec<Culprit>,
    /// Waits by device, in thread nanoseconds: index into the devices of the profile.
    pub devices: Vec<Part>,
}

/// A process that waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    /// Index into the subjects of the profile.
    pub subject: u32,
    /// Waits.
    pub count: u64,
    /// Their time, in thread nanoseconds.
    pub time_ns: f64,
    /// The longest one.
    pub longest_ns: u64,
    /// By layer, most first.
    pub layers: Vec<LayerPart>,
    /// By device, most first.
    pub devices: Vec<Part>,
    /// By the process that served it (a user-space file system), most first.
    pub servers: Vec<Part>,
    /// The parts that others caused, most first.
    pub caused_by: Vec<Part>,
}

/// Who delayed others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    /// Index into the subjects of the profile.
    pub subject: u32,
    /// Delay of other processes, in thread nanoseconds.
    pub time_ns: f64,
    /// Whom, most first.
    pub victims: Vec<Part>,
    /// At which devices, most first. Delay by a lock is at none.
    pub devices: Vec<Part>,
}

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Index into the subjects or devices of the profile.
    pub of: u32,
    /// Thread nanoseconds.
    pub time_ns: f64,
}

/// A part of a time, by layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerPart {
    /// Which layer.
    pub layer: Layer,
    /// Thread nanoseconds.
    pub time_ns: f64,
}

/// Times by index.
type Sums = BTreeMap<u32, f64>;

/// A waiter or culprit in the making.
#[derive(Default)]
struct Sum {
    count: u64,
    time_ns: f64,
    longest_ns: u64,
    layers: BTreeMap<Layer, f64>,
    devices: Sums,
    servers: Sums,
    others: Sums,
}

/// Whether a subject is meant: a control group as the subject of a watch.
pub type Meant<'a> = &'a dyn Fn(u32) -> bool;

/// The account. `meant` says which subjects are asked about; delay of others is left out.
pub fn account(profile: &MachineProfile, classifier: &Classifier, meant: Meant<'_>) -> MachineAccount {
    let layers: Vec<Option<Layer>> =
        profile.stacks.iter().map(|stack| layer_of_stack(stack, classifier)).collect();
    let (mut waiters, mut culprits, mut devices) = (BTreeMap::new(), BTreeMap::new(), Sums::new());
    let mut account = MachineAccount::default();
    for wait in &profile.waits {
        let Some(layer) = layer(wait, &layers) else { continue };
        let Some(subject) = profile.subjects.get(wait.subject as usize) else { continue };
        if !meant(wait.subject) {
            continue;
        }
        let time_ns = wait.time_ns as f64;
        if subject.kernel {
            account.kernel_waited_ns += time_ns;
            continue;
        }
        account.waited_ns += time_ns;
        let sum: &mut Sum = waiters.entry(wait.subject).or_default();
        sum.count += wait.count;
        sum.time_ns += time_ns;
        sum.longest_ns = sum.longest_ns.max(wait.longest_ns);
        *sum.layers.entry(layer).or_default() += time_ns;
        if let Some(device) = wait.device {
            *sum.devices.entry(device).or_default() += time_ns;
            *devices.entry(device).or_default() += time_ns;
        }
        if let Some(server) = wait.ended_by.filter(|_| layer == Layer::Server) {
            *sum.servers.entry(server).or_default() += time_ns;
        }
        for (culprit, part_ns) in causes(wait, layer) {
            *sum.others.entry(culprit).or_default() += part_ns;
            let culprit: &mut Sum = culprits.entry(culprit).or_default();
            culprit.time_ns += part_ns;
            *culprit.others.entry(wait.subject).or_default() += part_ns;
            if let Some(device) = wait.device {
                *culprit.devices.entry(device).or_default() += part_ns;
            }
        }
    }
    account.devices = parts(devices);
    account.waiters = by_time(
        waiters.into_iter().map(|(subject, sum)| Waiter {
            subject,
            count: sum.count,
            time_ns: sum.time_ns,
            longest_ns: sum.longest_ns,
            layers: by_layer(sum.layers),
            devices: parts(sum.devices),
            servers: parts(sum.servers),
            caused_by: parts(sum.others),
        }),
        |waiter| waiter.time_ns,
    );
    account.culprits = by_time(
        culprits.into_iter().map(|(subject, sum)| Culprit {
            subject,
            time_ns: sum.time_ns,
            victims: parts(sum.others),
            devices: parts(sum.devices),
        }),
        |culprit| culprit.time_ns,
    );
    account
}

/// Who caused a wait, and how much of it: others at the device in proportion to their requests; of a lock whoever gave it back.
fn causes(wait: &Wait, layer: Layer) -> Vec<(u32, f64)> {
    let holder = wait.ended_by.filter(|by| layer == Layer::Lock && *by != wait.subject);
    match holder {
        Some(holder) => vec![(holder, wait.time_ns as f64)],
        None => wait.caused.iter().map(|part| (part.subject, part.time_ns)).collect(),
    }
}

/// `None`: not on the I/O path.
fn layer(wait: &Wait, layers: &[Option<Layer>]) -> Option<Layer> {
    if wait.reclaim {
        return Some(Layer::Memory);
    }
    match wait.stack.and_then(|stack| layers.get(stack as usize)) {
        Some(layer) => *layer,
        // A wait that a device ended is on the path, whatever its stack was.
        None => wait.device.map(|_| Layer::Unexplained),
    }
}

fn layer_of_stack(stack: &[String], classifier: &Classifier) -> Option<Layer> {
    let frames: Vec<&str> = stack.iter().map(String::as_str).collect();
    classifier.on_path(&frames).then(|| classifier.classify(&frames, State::Blocked).layer)
}

fn by_time<T>(all: impl Iterator<Item = T>, time_ns: impl Fn(&T) -> f64) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_by(|a, b| time_ns(b).total_cmp(&time_ns(a)));
    all
}

fn parts(sums: Sums) -> Vec<Part> {
    by_time(sums.into_iter().map(|(of, time_ns)| Part { of, time_ns }), |part| part.time_ns)
}

fn by_layer(sums: BTreeMap<Layer, f64>) -> Vec<LayerPart> {
    by_time(sums.into_iter().map(|(layer, time_ns)| LayerPart { layer, time_ns }), |part| part.time_ns)
}

#[cfg(test)]
mod tests;
