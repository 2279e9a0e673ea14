//! The one reader of the kernel's texts (`/proc`, `/sys`, control groups), and what every crate needs of the kernel: names
//! in file systems, users, signals, clocks, terminals. It does not measure, judge or print.

pub mod block;
pub mod choice;
pub mod clock;
pub mod control_group;
pub mod cpus;
pub mod file_facts;
pub mod file_handles;
pub mod file_size;
pub mod fuse;
pub mod holes;
pub mod host;
pub mod identity;
pub mod meminfo;
pub mod memory_use;
pub mod mounts;
pub mod mountstats;
pub mod names;
pub mod page_cache;
pub mod pressure;
pub mod process;
pub mod psi;
pub mod reader;
pub mod served;
pub mod signals;
pub mod syscalls;
pub mod terminal;
