//! Carries out a plan ([`iowhy_core::replay`]): the same calls at the same offsets from the same threads, with the
//! program's own CPU time between them, from the same page-cache state.
//!
//! It changes no plan and judges nothing. Invariant: user files are opened read-only and checked against their recorded
//! identity; writes go to unnamed scratch files or a scratch tree.

mod cache_before;
mod cgroup_helper;
mod files;
mod free_space;
mod host_memory;
mod libc_calls;
mod local;
mod read_ring;
mod replay;
mod replay_thread;
mod scratch_trees;
mod small_file_ops;
mod start_barrier;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;

pub use cache_before::CacheBefore;
pub use cgroup_helper::{CgroupHelper, HelperCommand, serve};
pub use free_space::{file_system, room};
pub use local::{LocalReplay, RunOutcome};
pub use replay::Replay;
