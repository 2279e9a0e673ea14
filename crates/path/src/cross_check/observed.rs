//! What the profile of a cell's requests shows: clock samples and sleeps by layer, in totals.

use std::collections::BTreeMap;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Profile, SampledShare, Thread, Tier};
use iowhy_core::workload::Workload;
use iowhy_diagnose::account::Account;
use iowhy_diagnose::classify::Operation;

use super::part::belongs;

/// The profile of a cell's requests, in totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The tier that was used.
    pub tier: Tier,
    /// Clock samples in the requests.
    pub samples: u64,
    /// Samples by layer.
    pub(super) busy: BTreeMap<Layer, u64>,
    pub(super) interrupts: u64,
    pub(super) waits: BTreeMap<Layer, Waited>,
    /// CPU time that recording took out of the requests and what is around them, by the profile's self-test.
    pub(super) recording_ns: f64,
}

/// Sleeps with one meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Waited {
    time_ns: f64,
    sleeps: u64,
}

/// Sums what belongs to the requests of a cell. `measuring` picks the measuring threads.
pub fn observed(
    profile: &Profile,
    account: &Account,
    workload: &Workload,
    measuring: impl Fn(&Thread) -> bool,
) -> Observed {
    let mut seen = Observed {
        tier: profile.sight.tier,
        recording_ns: profile.observer.in_program_ns,
        ..Observed::default()
    };
    for entry in &account.entries {
        let thread = profile.threads.get(entry.thread as usize);
        let recording = entry.class.layer == Layer::Observer;
        if !thread.is_some_and(&measuring) || recording || !belongs(workload, entry.class.operation) {
            continue;
        }
        if entry.busy {
            seen.samples += entry.events;
            *match entry.class.operation {
                Operation::Interrupt => &mut seen.interrupts,
                _ => seen.busy.entry(entry.class.layer).or_default(),
            } += entry.events;
        } else if entry.class.operation != Operation::Unknown && entry.class.layer != Layer::CpuQueue {
            let waited = seen.waits.entry(entry.class.layer).or_default();
            waited.time_ns += entry.time_ns;
            waited.sleeps += entry.events;
        }
    }
    seen
}

impl Observed {
    /// Adds a further profile of the same cell.
    pub fn add(&mut self, more: Observed) {
        self.tier = self.tier.min(more.tier);
        self.samples += more.samples;
        self.interrupts += more.interrupts;
        self.recording_ns += more.recording_ns;
        for (layer, samples) in more.busy {
            *self.busy.entry(layer).or_default() += samples;
        }
        for (layer, waited) in more.waits {
            let sum = self.waits.entry(layer).or_default();
            sum.time_ns += waited.time_ns;
            sum.sleeps += waited.sleeps;
        }
    }

    /// CPU time of a profiled request without what recording took, over `measured_ns`, that of an unprofiled one. The profile
    /// covers `watched`.
    pub(super) fn pace(&self, watched: &CellRun, measured_ns: f64) -> Option<f64> {
        let (cpu_ns, requests) =
            watched.samples.iter().fold((0, 0), |sum, s| (sum.0 + s.cpu_ns, sum.1 + s.requests));
        let own_ns = (cpu_ns as f64 - self.recording_ns).max(0.0) / requests as f64;
        (measured_ns > 0.0 && requests > 0).then_some(own_ns / measured_ns)
    }

    /// Share of the samples, as CPU time of one request.
    pub(super) fn busy_estimate(&self, samples: u64, cpu_ns: f64) -> Estimate {
        of_share(samples, self.samples, cpu_ns)
    }

    /// Sleeps in these layers.
    pub(super) fn sleeps(&self, layers: &[Layer]) -> u64 {
        layers.iter().filter_map(|layer| self.waits.get(layer)).map(|waited| waited.sleeps).sum()
    }

    /// Share of all sleeps in these layers, by time, as waiting of one request. Where no sleep was seen: anything.
    pub(super) fn wait_estimate(&self, layers: &[Layer], wait_ns: f64) -> Estimate {
        let all: f64 = self.waits.values().map(|waited| waited.time_ns).sum();
        let sleeps: u64 = self.waits.values().map(|waited| waited.sleeps).sum();
        let part: f64 =
            layers.iter().filter_map(|layer| self.waits.get(layer)).map(|waited| waited.time_ns).sum();
        let share = if all > 0.0 { part / all } else { 0.0 };
        let estimate = of_share((share * sleeps as f64).round() as u64, sleeps, wait_ns);
        Estimate { value: share * wait_ns, ..estimate }
    }

    /// Waiting by layer, as shares of all sleeps.
    pub(super) fn wait_shares(&self, layers: &[Layer]) -> Vec<(Layer, f64)> {
        let of = |layer: &Layer| self.waits.get(layer).map_or(0.0, |waited| waited.time_ns);
        let all: f64 = layers.iter().map(of).sum();
        if all > 0.0 { layers.iter().map(|layer| (*layer, of(layer) / all)).collect() } else { Vec::new() }
    }
}

/// `hits` of `n` events as a part of `whole_ns`, with Wilson's interval.
fn of_share(hits: u64, n: u64, whole_ns: f64) -> Estimate {
    let share = SampledShare { hits, n };
    let (low, high) = share.interval().unwrap_or((0.0, 1.0));
    // At the ends the formula is exact but for rounding.
    let (low, high) = (if hits == 0 { 0.0 } else { low }, if hits == n { 1.0 } else { high });
    Estimate {
        value: share.value().unwrap_or(0.0) * whole_ns,
        low: low * whole_ns,
        high: high * whole_ns,
        unit: Unit::Nanoseconds,
        n,
    }
}
