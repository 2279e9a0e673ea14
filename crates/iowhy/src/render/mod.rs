//! Results for people. Renderers take a record and return text with colour codes; `main` prints it through a stream
//! that removes the codes where the output is no terminal. No renderer measures, decides or explains.

pub mod classic;
pub mod doctor;
pub mod mrc;
pub mod sim;
pub mod stripe;
pub mod trace;
pub mod tree;
pub mod trial;
