//! Plans of the unchanged run, from a profile. Pure functions: no I/O, no clock.
//!
//! `recorded` chooses between recorded calls, faults on mapped files and reads on a ring; many small files have a plan of
//! their own. The other modules bound a plan: free space, file system, length of a run.

mod baseline;
mod calls;
mod control_groups;
mod duration;
mod faults;
pub(crate) mod free_space;
mod joined;
pub(crate) mod length;
pub(crate) mod recorded;
mod ring_reads;
pub(crate) mod same_system;
pub(crate) mod small_files;
#[cfg(test)]
mod tests;
pub mod what_if;

pub(crate) use self::baseline::Baseline;
