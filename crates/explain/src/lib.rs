//! Turns samples into a fitted model, a ledger that closes, a limit with its evidence, and verdicts.
//!
//! Pure functions of plain data: the same record gives the same explanation on any machine. What may not enter:
//! I/O, a clock, randomness that is not seeded by the caller, `unsafe`.
//!
//! [`ladder`] subtracts neighbours, [`fit`] turns all rungs into one `StackModel`, [`ledger`] splits a measured
//! cell by that model, [`limit`] says what holds the path back, [`reconcile`] holds claimed bytes against the
//! device's counters, and [`compare`] sets methods side by side. [`account`] and [`finding`] explain a watched program,
//! [`change`] and [`runs`] hold two records against each other, [`witness`] holds such an account against the fit, [`replay`] plans the proof of an advice, [`striping`] knows the rules of stripes.
#![forbid(unsafe_code)]

pub mod account;
pub mod change;
pub mod classic;
pub mod classify;
pub mod compare;
pub mod facts;
pub mod finding;
pub mod fit;
pub mod ladder;
pub mod ledger;
pub mod limit;
pub mod nnls;
pub mod per_request;
pub mod reconcile;
pub mod replay;
mod rows;
pub mod runs;
pub mod setting;
pub mod striping;
pub mod summary;
pub mod witness;
mod words;

#[cfg(test)]
mod synthetic;
