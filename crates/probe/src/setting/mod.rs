//! Settings of the machine that I/O depends on: `read` reads them, [`ChangedSetting`] changes one for a while.
//!
//! Invariants: reading changes nothing and works without root; a change is always restored. What a setting means is
//! decided in `iowhy-diagnose`.

mod changed;
mod dm_crypt;
mod mount_time;
mod read;
mod restore;

pub use changed::{ChangedSetting, restore_leftovers};
pub use read::{Storage, read, read_device, read_each};
