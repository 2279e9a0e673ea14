//! The kernel's own counters, read exactly at start and end: devices, this thread, kernel threads.
//!
//! Goal: totals whose differences hold for exactly the time between two readings. Non-goal: sampling, rates.

mod device;
mod kernel_threads;
mod memory;
mod thread;

pub(crate) use device::stacked;
pub use device::{DeviceCounters, devices, settle};
pub use kernel_threads::KernelThreads;
pub use memory::peak_memory_bytes;
pub(crate) use thread::UsageSpan;
pub use thread::{ThreadUsage, thread_usage};
