//! The meaning of a watched program: what each stack stands for, where the wall time goes, which findings follow.
//!
//! A profile holds raw facts; only this crate decides what a sleep means. Pure functions of plain data: no I/O, no clock.
#![forbid(unsafe_code)]

pub mod account;
pub mod advice;
pub mod classify;
mod divisions;
pub mod findings;
pub mod machine;
pub mod paces;
pub mod phases;
pub mod ranks;
pub mod repair;
pub mod runs;
pub mod setting;
pub mod tails;
