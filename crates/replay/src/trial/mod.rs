//! Proves findings: plans a baseline and repairs, measures them in interleaved rounds, judges the times.
//!
//! One arm is one plan. Invariant: no repair gets a verdict where its baseline does not reproduce the program's I/O time.

mod arms;
mod baselines;
mod combined;
mod device_pace;
mod elsewhere;
mod first_touches;
mod judge;
mod predict;
mod prove;

pub use self::arms::Progress;
pub use self::elsewhere::{Places, replay_on};
pub use self::predict::{Calibration, Predicted, predict};
pub use self::prove::{Request, prove};
