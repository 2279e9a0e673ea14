//! What is measured for each question: cells, their roles, and how large their slices are. No measuring here.

pub mod sweep;
