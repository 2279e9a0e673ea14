//! The words of iowhy and its pure mathematics.
//!
//! Every other crate knows this one and none of its siblings. No I/O, no clock, no randomness
//! that is not seeded by the caller, terminal output, `unsafe`.
#![forbid(unsafe_code)]

pub mod cell;
pub mod environment;
pub mod estimate;
pub mod finding;
pub mod histogram;
pub mod layer;
pub mod limit;
pub mod machine;
pub mod model;
pub mod nearest;
pub mod pattern;
pub mod problem;
pub mod profile;
pub mod replay;
pub mod request;
pub mod rng;
pub mod saved_model;
pub mod schedule;
pub mod service;
pub mod setting;
pub mod stats;
pub mod stripe;
pub mod summary;
pub mod tails;
pub mod text;
pub mod units;
pub mod volume;
pub mod warning;
pub mod workload;
