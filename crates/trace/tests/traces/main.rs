//! Whole files: small ones of every format with known content, there and back through every format that can be written,
//! and thousands of damaged ones.
//!
//! Golden files are under `tests/golden`. `program.strace` and `fio3.iolog` were captured from strace 6.1 and fio 3.33;
//! the others follow the definitions of their formats.

mod common;
mod damage;
mod golden;
mod round_trip;
mod strace;
