//! The kernel's own counters, read exactly at start and end: devices, this thread, kernel threads.
//!
//! Goal: totals whose differences hold for exactly the time between two readings. Non-goal: sampling, rates.

mod device;
mod kernel_threads;
mod memory;
mod thread;

pub use device::{DeviceCounters, devices, settle};
pub use kernel_threads::KernelThreads;
pub use memory::peak_memory_bytes;
pub use thread::{ThreadUsage, thread_usage};

/// The first number of `/proc/PID/schedstat` is time on the CPU, the second time runnable without one (both ns).
/// Source: Documentation/scheduler/sched-stats.rst.
fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_schedstat;

    #[test]
    fn schedstat_gives_run_time_and_delay() {
        assert_eq!(parse_schedstat("13020386 9890995 65\n"), Some((13_020_386, 9_890_995)));
        for broken in ["", "1", "a b c", "-1 2 3"] {
            assert_eq!(parse_schedstat(broken), None, "{broken:?}");
        }
    }
}
