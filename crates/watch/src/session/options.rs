//! How to watch: what the caller decides.

use iowhy_core::profile::Tier;

/// How to watch.
pub struct Options<'a> {
    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path: such a thread is
    /// active, and takes its part of the wall clock.
    pub on_path: &'a dyn Fn(&[&str]) -> bool,
    /// Use no tier above this one.
    pub tier: Tier,
    /// Whether short bursts of system-call tracing are wanted (tier observer only).
    pub call_bursts: bool,
    /// Whether every system call is to be counted in the kernel (tier observer only): exact, but each call takes longer.
    pub count_calls: bool,
}
