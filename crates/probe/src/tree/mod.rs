//! Trees of small files: made, found where they are, walked by threads side by side, removed.
//!
//! Non-goal: statistics, and what is printed of them. Invariants: only names that we made are written, renamed or removed;
//! files that were found are only opened for reading, and symbolic links are not followed; data is called cold or warm by what
//! was seen of it before a pass.

mod build;
mod files;
mod left;
mod pass;

pub use build::{Shape, Tree, remove};
pub use files::Spot;
pub use files::{Files, Order, PassedOver};
pub use pass::{MAX_READERS, Operation, Pass, Phase, State, run, set_state};

#[cfg(test)]
mod attack_tests;
