//! Turns samples into a fitted model, a ledger that closes, a limit with its evidence, and verdicts.
//!
//! Pure functions of plain data: the same record gives the same explanation on any machine. What may not enter:
//! I/O, a clock, randomness that is not seeded by the caller, `unsafe`.
#![forbid(unsafe_code)]

pub mod facts;
