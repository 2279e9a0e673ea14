//! Observes other programs and records what was seen: a [`Profile`](iowhy_core::profile::Profile) of raw facts. Which layer
//! a function belongs to, and whether a wait is a problem, is decided elsewhere.
//! Records of the kernel become [`event::Event`]s, events a time line of threads, the time line stacks with times.
//! Invariant: nothing is injected into the program, it is never stopped, and it runs on whatever happens to iowhy.

pub mod block;
pub mod calls;
pub mod child;
mod course;
pub mod event;
pub mod event_log;
mod in_kernel;
pub mod machine;
pub mod perf;
mod records;
pub mod session;
pub mod symbols;
pub mod timeline;
