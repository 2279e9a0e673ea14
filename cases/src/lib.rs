//! Labelled programs: each has a known cause of its slowness, a slow and a repaired variant that do the same useful
//! work, and a recipe that sets the scene. They are the patients on which a diagnosis is tested; nothing here is part
//! of the product.
//!
//! A [`Case`] is data. [`Stage`] sets its scene in a folder on a disk, [`Stage::before`] brings the scene into the
//! state in which one run begins, [`Stage::command`] is what to run. Whatever a stage sets up outside its folder
//! (loop devices, control groups, neighbours) is undone when it is dropped.

pub mod case;
pub mod catalogue;
pub mod patient;
mod place;
mod scene;
mod stage;

pub use case::{Case, Need, Variant};
pub use stage::{Skip, Stage};
