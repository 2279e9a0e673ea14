//! What if: caches, read-ahead, layout, stripes and disks, answered in virtual time.
//!
//! Deterministic: the same input and seed give the same output to the digit, on any number of cores. What may not
//! enter: I/O, a clock, formats of trace files, printing.
#![forbid(unsafe_code)]

pub mod curve;
pub mod policy;
