//! Proves findings: plans a baseline and repairs, measures them in interleaved rounds, judges the times.
//!
//! One arm is one plan. Invariant: no repair gets a verdict where its baseline does not reproduce the program's I/O time.

mod arms;
mod baselines;
mod combined;
mod device_pace;
mod judge;
mod prove;

pub use self::arms::Progress;
pub use self::prove::{Request, prove};
