//! The path report: which cells are measured (`plan`), what each layer costs (`fit`), where the time of a cell goes
//! (`ledger`), what limits it (`limit`), how methods and records of cells compare (`methods`, `change`), and what ranks reach
//! together (`ranks`).
//!
//! Only `targets` opens files. No clock, no unseeded randomness: the same cells give the same report on any machine.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod calibration;
pub mod change;
pub mod costs;
pub mod cross_check;
pub mod facts;
pub mod faster;
pub mod fit;
pub mod ledger;
pub mod limit;
pub mod local;
pub mod methods;
pub mod per_request;
pub mod plan;
pub mod ranks;
pub mod reconcile;
pub mod saved;
pub mod targets;
pub mod trial;

#[cfg(test)]
mod coverage_tests;
#[cfg(test)]
mod interval_tests;
#[cfg(test)]
mod measured_tests;
#[cfg(test)]
mod synthetic;
