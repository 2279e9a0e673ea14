//! Simulates caches, read-ahead, layouts, stripes and disks in virtual time.
//!
//! Deterministic: the same input and seed give the same output to the digit, on any number of cores.
#![forbid(unsafe_code)]

mod cache;
pub mod curve;
pub mod device;
mod effect;
mod engine;
mod event;
pub mod files;
pub mod laws;
pub mod layout;
pub mod ledger;
pub mod machine;
pub mod outcome;
pub mod policy;
pub mod readahead;
pub mod requests;
pub mod scheduler;
pub mod sweep;
mod unit;
pub mod volume;
pub mod workload;

pub use engine::{run, run_guarded, run_watched};
