//! The meaning of the path report: what each layer costs, where the time of a measured cell goes, what limits it.
//!
//! Pure functions of plain data: the same record gives the same report on any machine. No I/O, no clock, no randomness
//! that the caller did not seed.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod calibration;
pub mod change;
pub mod costs;
pub mod cross_check;
pub mod facts;
pub mod fit;
pub mod ledger;
pub mod limit;
pub mod methods;
pub mod per_request;
pub mod plan;
pub mod reconcile;
pub mod trial;

#[cfg(test)]
mod interval_tests;
#[cfg(test)]
mod measured_tests;
#[cfg(test)]
mod synthetic;
