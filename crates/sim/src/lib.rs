//! What if: caches, read-ahead, layout, stripes and disks, answered in virtual time.
//!
//! Deterministic: the same input and seed give the same output to the digit, on any number of cores. What may not
//! enter: I/O, a clock, formats of trace files, printing.
#![forbid(unsafe_code)]

mod cache;
pub mod curve;
pub mod device;
mod engine;
mod event;
mod hash;
pub mod laws;
pub mod layout;
pub mod ledger;
pub mod machine;
pub mod outcome;
pub mod places;
pub mod policy;
pub mod readahead;
pub mod requests;
pub mod scheduler;
pub mod sweep;
mod unit;
pub mod volume;
pub mod workload;

pub use engine::{run, run_guarded, run_watched};
