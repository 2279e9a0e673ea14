//! Observes other programs and says what was seen: a [`Profile`](iowhy_core::profile::Profile).
//!
//! This room and `iowhy-probe`, `iowhy-linux` are the only ones that talk to the kernel and the only ones with `unsafe`. What may
//! not enter: meaning (which layer a function belongs to, whether a wait is a fault: `iowhy-diagnose`), terminal
//! output, command-line parsing.
//!
//! Records of the kernel become [`event::Event`]s, events become a time line of threads, the time line becomes stacks
//! with times. What events cannot say comes from `/proc` and from short bursts of system-call tracing.
//!
//! The program under watch is never harmed: nothing is injected into it, it is never stopped, and it runs on whatever
//! happens to the watcher.

pub mod block;
pub mod calls;
pub mod child;
pub mod event;
pub mod perf;
pub mod session;
pub mod symbols;
pub mod timeline;
pub mod tracefs;
