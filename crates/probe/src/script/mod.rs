//! The script of a false machine: a stack model in virtual time, as plain data.
//!
//! [`cost`] computes what a request costs, [`device`] when the device has completed it, [`spec`] reads a script from the
//! command line. Without noise a request takes the same virtual time on every machine. Non-goal: resembling a real
//! machine beyond its model and [`quirks`] (no read-ahead that runs ahead, no cache that fills).

pub mod cost;
pub mod device;
pub mod quirks;
pub mod spec;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use iowhy_core::model::StackModel;

use crate::counters::DeviceCounters;
use device::Totals;
use quirks::Quirks;

/// The target that a script plays; all are on the same machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptedTarget {
    /// A file on the device.
    #[default]
    File,
    /// `/dev/null`: a read ends at once with no bytes.
    NullDevice,
    /// `/dev/zero`: a read fills user memory with zeros.
    ZeroDevice,
    /// A memory file (memfd, tmpfs): the page cache without a file system's own extra.
    Memory,
}

/// Behaviour of a scripted target.
#[derive(Debug)]
pub struct Script {
    /// The true costs.
    pub model: StackModel,
    /// Relative standard deviation of every cost, drawn from the seed; 0 is exact.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Size of the scripted target.
    pub size_bytes: u64,
    /// The request with this number (from 0, per thread) fails with EIO.
    pub fail_at: Option<u64>,
    /// The target on the machine.
    pub target: ScriptedTarget,
    /// What the model does not say.
    pub quirks: Arc<Quirks>,
    /// Counters of its device, over all targets and threads.
    pub(crate) device: Arc<Totals>,
    /// How often it was opened: the noise of each opening is another part of the seeded sequence.
    pub(crate) opened: Arc<AtomicU64>,
}

impl Script {
    /// A file of 64 GiB on the machine of this model, exact and without failures.
    pub fn new(model: StackModel) -> Script {
        Script {
            model,
            noise: 0.0,
            seed: 1,
            size_bytes: 64 << 30,
            fail_at: None,
            target: ScriptedTarget::File,
            quirks: Arc::default(),
            device: Arc::default(),
            opened: Arc::default(),
        }
    }

    /// Another target on the same machine, with the same noise, failure and device counters.
    #[must_use]
    pub fn on_target(&self, target: ScriptedTarget) -> Script {
        Script {
            model: self.model.clone(),
            noise: self.noise,
            seed: self.seed,
            size_bytes: self.size_bytes,
            fail_at: self.fail_at,
            target,
            quirks: Arc::clone(&self.quirks),
            device: Arc::clone(&self.device),
            opened: Arc::clone(&self.opened),
        }
    }

    /// Counters of the scripted device so far, over all targets and threads, like those of a real device.
    pub fn device_counters(&self) -> DeviceCounters {
        self.device.read()
    }
}
