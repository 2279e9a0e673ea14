//! How long a run is, and how much of the program's time it stands for.

use iowhy_core::layer::Layer;
use iowhy_diagnose::account::Entry;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

const MAX_PASSES: u32 = 5000;

/// How much of a run is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Planned duration of one run of an arm, where it can be chosen.
    pub(crate) arm_ns: f64,
    /// Longest planned duration of the baseline.
    pub(crate) max_arm_ns: f64,
    /// Largest amount that one run writes.
    pub(crate) written_bytes: u64,
    /// Largest scratch file that is filled beforehand.
    pub(crate) filled_bytes: u64,
    /// Most files of a scratch tree.
    pub(crate) files: f64,
    /// Most files that one run makes and leaves to its end. To remove them is no part of a run's time, but may take longer than it
    /// (1 to 2 ms each on a disk mounted with `discard`).
    pub(crate) made_files: u64,
}

impl Bounds {
    /// A proof.
    pub(crate) const PROOF: Bounds = Bounds {
        arm_ns: 3e8,
        max_arm_ns: 1.2e9,
        written_bytes: 512 << 20,
        filled_bytes: 512 << 20,
        files: 4000.0,
        made_files: 400,
    };
    /// A calibration of 4 s: seven rounds of a baseline and of changes that together take as long again.
    pub(crate) const CALIBRATION: Bounds = Bounds {
        arm_ns: 5e7,
        max_arm_ns: 2.5e8,
        written_bytes: 64 << 20,
        filled_bytes: 16 << 20,
        files: 1000.0,
        made_files: 50,
    };
}

/// What recording took, as a share of the run: it is CPU time of the threads that ran.
pub(super) fn recording_share(facts: &Facts<'_>) -> f64 {
    let ran: u64 = facts.profile.threads.iter().map(|t| t.running_ns).sum();
    let ran = (ran as f64).max(facts.account.wall_ns);
    if ran > 0.0 { (facts.profile.observer.in_program_ns / ran).clamp(0.0, 1.0) } else { 0.0 }
}

/// Wall time of these operations with their proportional part of CPU queueing, whose stack says little about its cause.
pub(super) fn wall_ns(facts: &Facts<'_>, operations: &[Operation]) -> f64 {
    let queued = |e: &Entry| e.class.layer == Layer::CpuQueue;
    let of = facts.account.sum(|e| operations.contains(&e.class.operation) && !queued(e)).wall_ns;
    of * with_queueing(facts)
}

/// By what factor CPU queueing made the run longer.
fn with_queueing(facts: &Facts<'_>) -> f64 {
    let queue = facts.account.sum(|e| e.class.layer == Layer::CpuQueue).wall_ns;
    let active = facts.account.wall_ns - facts.account.idle_wall_ns;
    if queue > 0.0 && active > queue { active / (active - queue) } else { 1.0 }
}

/// Passes that make a plan take about [`Bounds::arm_ns`] where one takes `pass_ns`.
pub(super) fn passes(pass_ns: f64, most: f64, bounds: &Bounds) -> u32 {
    let wanted = (bounds.arm_ns / pass_ns.max(1.0)).ceil();
    wanted.clamp(1.0, most.clamp(1.0, f64::from(MAX_PASSES))) as u32
}
