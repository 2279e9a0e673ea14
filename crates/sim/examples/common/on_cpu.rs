//! Time that this thread has been on a CPU: whatever else runs on the machine does not count, though it may slow us down.

use std::time::Instant;

/// Time on a CPU so far, in seconds; `None` where the kernel does not say.
fn so_far() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Runs something; seconds on a CPU (by the clock, where the kernel does not say), and the answer.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let (begun, before) = (Instant::now(), so_far());
    let answer = run();
    let seconds = match (before, so_far()) {
        (Some(before), Some(after)) if after > before => after - before,
        _ => begun.elapsed().as_secs_f64(),
    };
    (seconds, answer)
}
