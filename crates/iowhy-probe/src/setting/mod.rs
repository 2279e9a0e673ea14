//! Settings of the machine that I/O depends on: reading them (`read`), and changing one for a while ([`Held`]).
//!
//! What may not enter: what a setting means (explain's). Invariants: reading changes nothing and works without root; a change
//! is put back whatever happens.

mod held;
mod read;

pub use held::{Held, undo_left};
pub use read::{Place, read, read_one};
