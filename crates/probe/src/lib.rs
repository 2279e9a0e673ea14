//! Drives I/O itself and times it.
//!
//! This room and `iowhy-watch` are the only ones that talk to the kernel and the only ones with `unsafe`. What may
//! not enter: interpretation of results (`iowhy-path` does that), terminal output, command-line parsing.
//!
//! The waist is [`access::Access`]: one way of moving bytes, bound to one open target, used by one thread. Above it
//! stands the [`runner`], below it one file per family of system calls in [`method`].

pub mod access;
pub mod buffer;
pub mod campaign;
pub mod clock;
pub mod counters;
pub mod environment;
pub mod fault;
pub mod hot_loop;
pub mod interrupt;
pub mod last_act;
pub mod listed;
pub mod lookup;
pub mod made;
pub mod method;
pub mod pace;
pub mod pass;
pub mod residency;
pub mod ruler;
pub mod runner;
pub mod setting;
pub mod sigbus;
pub mod target;
pub mod tree;
pub mod volume;
