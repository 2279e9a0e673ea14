//! What every part needs of the kernel, once for everybody.
//!
//! Non-goal: measuring, judging, printing.

pub mod block;
pub mod choice;
pub mod clock;
pub mod control_group;
pub mod cpus;
pub mod file_facts;
pub mod file_size;
pub mod identity;
pub mod meminfo;
pub mod mounts;
pub mod names;
pub mod page_cache;
pub mod pressure;
pub mod process;
pub mod reader;
pub mod served;
pub mod signals;
pub mod syscalls;
pub mod terminal;
