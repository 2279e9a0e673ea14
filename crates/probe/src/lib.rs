//! Drives I/O and times it: [`access::Access`] is the narrow interface of a method, [`runner`] and [`campaign`] are
//! above it, one file per family of system calls in [`method`] below it.
//!
//! It deliberately does not interpret results (`iowhy-path` does), print, or parse options.

pub mod access;
pub mod arm;
pub mod buffer;
pub mod campaign;
pub mod clock;
pub mod counters;
pub mod environment;
pub mod fault;
pub mod hot_loop;
pub mod interleave;
pub mod interrupt;
pub mod last_act;
pub mod listed;
pub mod lookup;
pub mod machine;
pub mod method;
pub mod pace;
pub mod pass;
pub mod residency;
pub mod ruler;
pub mod runner;
pub mod scratch_fs;
pub mod script;
pub mod setting;
pub mod sigbus;
mod stream;
pub mod target;
pub mod together;
pub mod tree;
pub mod volume;
