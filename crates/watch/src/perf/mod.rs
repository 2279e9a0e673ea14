//! The kernel's own events, through `perf_event_open(2)`: what may be recorded ([`rights()`]), recording it
//! ([`Recorder`]) and what recording costs ([`self_test()`]).
//! Records leave as [`crate::event::Event`]s in the order of their times. Only software events are used:
//! they need no hardware counters, which virtual machines often do not have.

mod attr;
mod explain;
mod merge;
mod record;
mod recorder;
mod rights;
mod ring;
mod self_test;

pub use recorder::{Counts, Recorder, Subject};
pub use rights::{Rights, rights};
pub use self_test::{SelfTest, self_test};

#[cfg(test)]
mod live_tests;

/// How many CPUs there are.
pub(crate) fn online_cpus() -> u64 {
    iowhy_linux::cpus::online().len() as u64
}
