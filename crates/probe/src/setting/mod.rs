//! Settings of the machine that I/O depends on: reading them (`read`), and changing one for a while ([`Held`], whose
//! steps are in `back` and `mount_time`).
//!
//! What may not enter: what a setting means (explain's). Invariants: reading changes nothing and works without root; a change
//! is put back whatever happens.

mod back;
mod held;
mod mount_time;
mod read;

pub use held::{Held, undo_left};
pub use read::{Place, read, read_each, read_queue};
