//! Labelled programs on which the diagnosis is tested: a slow and a repaired variant do the same useful work, and the
//! cause of the slowness is known. No part of the product.
//!
//! A [`Case`] is data. [`Stage`] prepares its files and conditions (loop devices, control groups, other processes), which
//! are undone on drop; [`Stage::before`] prepares one run, [`Stage::command`] is the command.

pub mod case;
pub mod catalogue;
mod files;
pub mod others;
pub mod program;
pub mod served;
mod skip;
mod stage;
mod surroundings;

pub use case::{Case, Need, Variant};
pub use skip::Skip;
pub use stage::Stage;
