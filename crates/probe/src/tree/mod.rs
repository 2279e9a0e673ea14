//! Trees of small files: made, found where they are, walked by threads side by side, removed.
//!
//! Non-goal: statistics, and what is printed of them. Invariants: only names that we made are written, renamed or removed;
//! files that were found are only opened for reading, and symbolic links are not followed; data is called cold or warm by what
//! was seen of it before a pass.

mod build;
mod files;
mod mark;
mod pass;
mod removal;

pub use build::{Shape, Tree};
pub use files::{Files, Order, PassedOver, Spot};
pub use pass::{MAX_READERS, Operation, Pass, Phase, State, run, set_state};
pub use removal::remove;

#[cfg(test)]
mod attack_tests;
