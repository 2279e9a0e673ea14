//! What the kernel tells without any events: `/proc`, `/sys`, control groups, cachestat.
//!
//! Goal: readings that cost little and that hold whatever happens to the process that is read: it may vanish at any
//! instant, hide, or bear an odd name. A reading that fails is `None` or is left out; it is never a guess and never an
//! error, for there is nothing that the user could do about it. Non-goal: what the readings mean.

pub mod cache;
pub mod census;
pub mod control_group;
pub mod counters;
pub mod devices;
pub mod file_facts;
pub mod open_files;
pub mod pressure;
pub mod reader;
pub mod syscalls;
pub mod task;
pub mod tree;
pub mod under;
