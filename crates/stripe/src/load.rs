//! The load that stripes are compared by: a workload or a trace, whose reading is the caller's.

use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::service::DiskCurves;
use iowhy_core::warning::Warning;
use iowhy_sim::machine::Machine;
use iowhy_sim::outcome::Outcome;
use iowhy_sim::requests::VolumeRequests;
use iowhy_sim::sweep::Settings;
use iowhy_sim::workload::Workload;

/// Requests that can be simulated on any machine, and listed as they reach its volume.
pub trait Load: Sync {
    /// The workload; `None` for a trace.
    fn workload(&self) -> Option<&Workload>;

    /// Whether requests arrive at their own times, whatever is still in flight (an open load).
    fn is_open(&self) -> bool;

    /// Clients of a closed load, each with one request in flight; `None` for an open one.
    fn clients(&self) -> Option<u32>;

    /// Simulates the first `first` requests.
    ///
    /// # Errors
    /// What the machine or the trace refuse.
    fn run_first(
        &self,
        machine: &Machine,
        seed: u64,
        first: u64,
        warnings: &mut Vec<Warning>,
    ) -> Result<Outcome, Problem>;

    /// The offsets of the first `first` requests on the volume of a machine.
    ///
    /// # Errors
    /// What the machine or the trace refuse.
    fn volume_requests(&self, machine: &Machine, seed: u64, first: u64) -> Result<VolumeRequests, Problem>;
}

/// Shows progress: the share that is done, the time left, the present step.
pub type Progress<'a> = &'a (dyn Fn(f64, Duration, &str) + Sync);

/// What is asked of stripes of these disks.
pub struct Question<'a> {
    /// The load.
    pub load: &'a dyn Load,
    /// Settings of the simulated machine.
    pub settings: &'a Settings,
    /// Interleaves in bytes, rising.
    pub interleaves: &'a [u64],
    /// The disks, in the order in which they were named.
    pub disks: &'a [DiskCurves],
    /// Seed of every draw.
    pub seed: u64,
    /// Where progress is shown.
    pub progress: Progress<'a>,
}
