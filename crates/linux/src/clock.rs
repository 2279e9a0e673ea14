//! The clocks of the kernel: CLOCK_MONOTONIC, which records, deadlines and signals share, and CPU time.

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds. Async-signal-safe.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// The time of day of a time of [`monotonic_ns`], in nanoseconds since 1970, by the clock as it is now.
pub fn unix_ns(monotonic: u64) -> u64 {
    let passed = monotonic_ns().saturating_sub(monotonic);
    read_ns(ClockId::Realtime).saturating_sub(passed)
}

/// By how much the time of a file may lag behind the clock: the kernel takes it from the last timer tick.
pub fn file_time_lag_ns() -> u64 {
    let step = clock_getres(ClockId::RealtimeCoarse);
    (step.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(step.tv_nsec as u64)
}

/// CPU time of the calling thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far, ended ones too, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Both count from a start and are never negative.
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}
