//! Plans of the unchanged run, from a profile. Pure functions: no I/O, no clock.
//!
//! `recorded` makes that of the record of every call, or of the mappings in it; many small files have a plan of their own. The
//! other modules bound a plan: free space, file system, length of a run.

mod baseline;
mod calls;
mod control_groups;
mod duration;
mod earlier_reads;
pub(crate) mod elsewhere;
pub(crate) mod free_space;
mod mappings;
mod not_replayed;
mod open_flags;
pub(crate) mod recorded;
pub(crate) mod same_system;
pub(crate) mod small_files;
pub(crate) mod source;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod touches_tests;
pub mod what_if;
pub(crate) mod window;

pub(crate) use self::baseline::Baseline;
pub(crate) use self::duration::Bounds;
pub(crate) use self::recorded::Part;
