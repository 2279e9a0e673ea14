//! How to watch: what the caller decides.

use iowhy_core::profile::Tier;

/// How to watch.
pub struct Options<'a> {
    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path: such a thread is
    /// active, and takes its part of the wall clock.
    pub on_path: &'a dyn Fn(&[&str]) -> bool,
    /// Use no tier above this one.
    pub tier: Tier,
    /// Whether every system call is to be counted in the kernel, and windows of them recorded for their order and
    /// durations (tier observer only).
    pub count_calls: bool,
    /// Whether every call is to be recorded, instead of windows of them (with `count_calls`).
    pub record_calls: bool,
    /// Whether what has a time of its own is kept, in bounded memory: [`Watched::events`](super::Watched::events).
    pub keep_events: bool,
    /// Called once, when everything that follows is seen.
    pub begun: &'a dyn Fn(),
}
