//! Results for people. Renderers take a record and return text with colour codes; `main` prints it through a stream
//! that removes the codes where nobody wants them. No renderer measures, decides or explains.

pub mod bench;
pub mod cell;
pub mod classic;
pub mod compare;
pub mod doctor;
#[cfg(test)]
mod golden_tests;
pub mod heading;
pub mod members;
pub mod mrc;
pub mod path;
pub mod run_time;
pub mod sim;
pub mod stripe;
pub mod trace;
pub mod tree;
pub mod trial;
pub mod witness;
