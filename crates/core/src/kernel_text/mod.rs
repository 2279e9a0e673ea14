//! Texts of the kernel (`/proc`, `/sys`, control groups) and what their numbers mean: pure functions of text, shared by
//! all that read them. What may not enter: reading.

pub mod block_stat;
pub mod choice;
pub mod control_group;
pub mod meminfo;
pub mod mountinfo;
pub mod schedstat;
