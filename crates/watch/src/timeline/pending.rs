//! What the time line holds back until a round of looks or the run is over: data only.

use super::hash::FastMap;
use super::stacks::StackId;

/// The looks of one time.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) time_ns: u64,
    /// Account, stack, running, active.
    pub(super) round: Vec<(u32, StackId, bool, bool)>,
    /// Threads that were active when they were last looked at.
    pub(super) active: u64,
}

/// Clock samples of threads whose events the kernel had closed, by stack.
#[derive(Default)]
pub(super) struct AfterExit(pub(super) FastMap<StackId, u64>);

/// What the kernel counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTime {
    /// Of the whole program.
    pub(super) total_ns: Option<u64>,
    /// Of the first thread alone.
    pub(super) first_thread_ns: Option<u64>,
    /// The total is no lower bound: threads cannot have run for longer.
    pub(super) exact: bool,
    /// What interrupts and the hypervisor took of all CPUs meanwhile.
    pub(super) taken_ns: u64,
}
