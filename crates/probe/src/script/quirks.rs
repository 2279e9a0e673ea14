//! What a real machine does and a linear model does not say: a speed that drifts, copies that cost more beyond a cache size,
//! costs for each folio, memory that is provided on first use. For tests of what is concluded from such a machine.

use std::sync::atomic::{AtomicU64, Ordering};

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::workload::{CacheState, Workload};

/// Effects on top of a script's costs. All targets of one machine share them, and its time.
#[derive(Debug, Default)]
pub struct Quirks {
    /// The speed is a triangular wave of this relative height around 1: the mean time of a request is unchanged.
    pub drift_share: f64,
    /// Period of that wave, in nanoseconds of the machine's time.
    pub drift_ns: u64,
    /// Bytes of a request beyond this many cost `large_factor` times as much to copy.
    pub large_bytes: u64,
    /// See `large_bytes`.
    pub large_factor: f64,
    /// Size of a folio; 0 for none.
    pub folio_bytes: u64,
    /// Cost of `cache` for each folio that a read through the cache touches.
    pub folio_ns: f64,
    /// Bytes read into the cache that first have to be given memory.
    pub lazy_bytes: AtomicU64,
    /// Cost of that for each byte, on the CPU.
    pub lazy_ns_per_byte: f64,
    /// Time that all requests took so far.
    pub elapsed_ns: AtomicU64,
}

impl Quirks {
    /// Adds what a request of `bytes` costs beyond the script.
    pub fn charge(&self, workload: &Workload, bytes: u64, copy_ns_per_byte: f64, ledger: &mut Ledger) {
        let cached = ledger.get(Layer::Copy).busy_ns > 0.0;
        if cached && bytes > self.large_bytes && self.large_factor > 0.0 {
            let beyond = (bytes - self.large_bytes) as f64;
            ledger.add(Layer::Copy, beyond * copy_ns_per_byte * (self.large_factor - 1.0), 0.0);
        }
        if cached && self.folio_bytes > 0 {
            ledger.add(Layer::Cache, bytes.div_ceil(self.folio_bytes) as f64 * self.folio_ns, 0.0);
        }
        if workload.state == CacheState::Cold {
            let left = self.lazy_bytes.load(Ordering::Relaxed);
            let taken = left.min(bytes);
            self.lazy_bytes.store(left - taken, Ordering::Relaxed);
            ledger.add(Layer::Memory, taken as f64 * self.lazy_ns_per_byte, 0.0);
        }
    }

    /// Gives memory to as many bytes beforehand.
    pub(crate) fn populate(&self, bytes: u64) {
        self.lazy_bytes
            .store(self.lazy_bytes.load(Ordering::Relaxed).saturating_sub(bytes), Ordering::Relaxed);
    }

    /// How much longer everything takes at this time of the machine.
    pub(crate) fn slowdown(&self) -> f64 {
        if self.drift_ns == 0 {
            return 1.0;
        }
        let phase = (self.elapsed_ns.load(Ordering::Relaxed) % self.drift_ns) as f64 / self.drift_ns as f64;
        let wave = if phase < 0.5 { 4.0 * phase - 1.0 } else { 3.0 - 4.0 * phase };
        1.0 / (1.0 + self.drift_share * wave)
    }

    /// Lets the machine's time pass.
    pub(crate) fn pass(&self, ns: u64) {
        self.elapsed_ns.fetch_add(ns, Ordering::Relaxed);
    }
}
