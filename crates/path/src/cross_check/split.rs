//! The account of a request, split by the stack samples of the same requests. How much CPU time and waiting it takes is
//! measured exactly; samples tell in which layers, and what lies in functions of no known layer is `unexplained`. What calibration
//! cells of other sizes lack of the measured time is an error of that prediction, and the cross-check tells it.
//!
//! Invariant: the total stays what it was. `program` and `call` are left to the calibration cells: the clock cannot fire while
//! the kernel is entered or left. Many requests of a ring share one entry, so that its `call` is the ring's own work, which samples see. A load from a mapping has no call, and the clock fires in the program right after the fault and while the
//! load waits: there samples show no boundary, and beyond the loop that is measured apart nothing but the mapping is left.

use std::collections::BTreeMap;

use iowhy_core::cell::CellRun;
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::Tier;
use iowhy_core::rng::Rng;

use super::part::IO_WAIT;
use super::{MIN_SAMPLES, Observed};
use crate::costs::Layers;
use crate::ledger::{MANY_IN_FLIGHT, layer_estimates};
use crate::per_request::rounds;

/// Layers below this share of the samples are left out.
const TRACE: f64 = 5e-3;

/// Splits `layers`, the account of `run` by calibration cells of its own, by samples. Unchanged where there are too few.
pub fn split(seen: &Observed, run: &CellRun, layers: Layers, seed: u64) -> Layers {
    let many = run.workload.method.asynchronous() && run.workload.depth >= MANY_IN_FLIGHT;
    let split = (layers.own_cells || many) && seen.samples >= MIN_SAMPLES;
    let Some(point) = layers.ledger.as_ref().filter(|_| split) else { return layers };
    let below = if many { IN_A_RING } else { BELOW_A_CALL };
    if run.workload.method.mapped() && is_memory_alone(point) {
        let closed = Shares { busy: vec![(Layer::Memory, 1.0)], waits: Vec::new(), part: 1.0, below };
        let note = "CPU time beyond the loop is the mapping's".to_owned();
        return closed.of(run, layers, |closed, _| closed.clone(), vec![note], seed);
    }
    let by_requests = seen.tier >= Tier::Observer && seen.sleeps(IO_WAIT) >= MIN_SAMPLES;
    let (busy, kept) = shares(&seen.busy, if reaches_device(point) { seen.interrupts } else { 0 }, below);
    let shares = Shares {
        below,
        busy,
        waits: if by_requests { seen.wait_shares(IO_WAIT) } else { Vec::new() },
        part: kept as f64 / seen.samples.max(kept) as f64,
    };
    let (known, lacking) = shares.sums(point);
    if kept < MIN_SAMPLES || known + lacking <= 0.0 {
        return layers;
    }
    let still = |note: &String| !note.ends_with("together") || (note.starts_with("device") && !by_requests);
    let mut notes: Vec<String> = layers.notes.iter().filter(|note| still(note)).cloned().collect();
    let beyond = if many { "the program" } else { "the call" };
    notes.push(format!("CPU time beyond {beyond} is split by {kept} stack samples"));
    shares.of(run, layers, |shares, rng| shares.drawn(kept, rng), notes, seed)
}

/// Whether the mapping is all that the account has below the program.
fn is_memory_alone(account: &Ledger) -> bool {
    account
        .entries()
        .iter()
        .all(|e| e.id == Layer::Memory || !BELOW_A_CALL.contains(&e.id) || e.busy_ns == 0.0)
}

/// Whether interrupts that hit the request may be those of its own completion.
fn reaches_device(ledger: &Ledger) -> bool {
    ledger.get(Layer::Device).wait_ns > 0.0
}

/// Shares of the samples by layer, without what calibration cells tell, and how many samples these are; interrupts are the driver's.
fn shares(samples: &BTreeMap<Layer, u64>, interrupts: u64, below: &[Layer]) -> (Vec<(Layer, f64)>, u64) {
    let mut counts = samples.clone();
    *counts.entry(Layer::Device).or_default() += interrupts;
    counts.retain(|layer, _| *layer != Layer::Program && (*layer != Layer::Call || below.contains(layer)));
    let all: u64 = counts.values().sum();
    counts.retain(|_, n| *n as f64 > TRACE * all as f64);
    let kept: u64 = counts.values().sum();
    (counts.into_iter().map(|(layer, n)| (layer, n as f64 / kept as f64)).collect(), kept)
}

/// Layers that samples split, of a request with a call of its own.
const BELOW_A_CALL: &[Layer] = &[Layer::Filesystem, Layer::Cache, Layer::Copy, Layer::Memory, Layer::Block];
/// The same of a request that shares its call with many others.
const IN_A_RING: &[Layer] =
    &[Layer::Call, Layer::Filesystem, Layer::Cache, Layer::Copy, Layer::Memory, Layer::Block];

/// Shares of layers: of CPU time in `below`, and of waiting for storage; empty where it stays as it is.
#[derive(Clone)]
struct Shares {
    busy: Vec<(Layer, f64)>,
    waits: Vec<(Layer, f64)>,
    /// Part of the samples that is in `below`, the device's interrupts and layers of no cell.
    part: f64,
    below: &'static [Layer],
}

impl Shares {
    /// CPU time that an account has in `below`: by cells, and what they lack of the time that was measured.
    fn sums(&self, account: &Ledger) -> (f64, f64) {
        let known = account.entries().iter().filter(|entry| self.below.contains(&entry.id));
        (known.map(|entry| entry.busy_ns).sum(), account.get(Layer::Unexplained).busy_ns)
    }

    /// The ledger with its sums in these shares. Of what the cells lack, as much is below the call as samples are; the rest stays
    /// unexplained.
    fn apply(&self, from: &Ledger) -> Ledger {
        let mut to = Ledger::default();
        let (known, lacking) = self.sums(from);
        let whole: f64 = from.entries().iter().map(|entry| entry.busy_ns).sum();
        let busy = (known + lacking).min((self.part * whole).max(known)).max(0.0);
        for entry in from.entries() {
            if !self.below.contains(&entry.id) && entry.id != Layer::Unexplained {
                to.add(entry.id, entry.busy_ns, 0.0);
            }
        }
        to.add(Layer::Unexplained, known + lacking - busy, 0.0);
        self.busy.iter().for_each(|(layer, share)| to.add(*layer, busy * share, 0.0));
        let mut waiting = 0.0;
        for entry in from.entries() {
            if IO_WAIT.contains(&entry.id) && !self.waits.is_empty() {
                waiting += entry.wait_ns;
            } else {
                to.add(entry.id, 0.0, entry.wait_ns);
            }
        }
        self.waits.iter().for_each(|(layer, share)| to.add(*layer, 0.0, waiting * share));
        to
    }

    /// An account with its sums in these shares, in each of its draws as `drawn` has them.
    fn of(
        &self,
        run: &CellRun,
        layers: Layers,
        drawn: impl Fn(&Shares, &mut Rng) -> Shares,
        notes: Vec<String>,
        seed: u64,
    ) -> Layers {
        let Some(point) = &layers.ledger else { return layers };
        let mut rng = Rng::new(seed);
        let ledger = self.apply(point);
        let draws: Vec<Ledger> = layers.draws.iter().map(|draw| drawn(self, &mut rng).apply(draw)).collect();
        let estimates = match layers.estimates.is_empty() {
            true => Vec::new(),
            false => layer_estimates(&ledger, &draws, rounds(run).count()),
        };
        Layers { ledger: Some(ledger), estimates, notes, draws, ..layers }
    }

    /// As another `n` samples might have had it.
    fn drawn(&self, n: u64, rng: &mut Rng) -> Shares {
        let mut of = |shares: &[(Layer, f64)]| {
            let mut drawn: Vec<(Layer, f64)> = shares
                .iter()
                .map(|(layer, share)| {
                    // The sum of twelve uniform numbers less 6 is near enough to a normal one.
                    let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                    (*layer, (share + normal * (share * (1.0 - share) / n as f64).sqrt()).max(0.0))
                })
                .collect();
            let all: f64 = drawn.iter().map(|(_, share)| share).sum();
            drawn.iter_mut().for_each(|(_, share)| *share /= all.max(f64::MIN_POSITIVE));
            drawn
        };
        Shares { busy: of(&self.busy), waits: self.waits.clone(), ..*self }
    }
}
