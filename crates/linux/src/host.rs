//! What tells this machine from others that work on the same job: its name, the run of its kernel, its wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The name of this host, as uname(2) has it.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Random identifier of this run of the kernel (proc(5)). Containers of one machine share it, and two machines of one name do not.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// A random identifier (random(4)), new each time.
pub fn random_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    match text.trim() {
        // Without /proc: no two processes of a machine at one time have the same.
        "" => format!("{}-{}", std::process::id(), crate::clock::monotonic_ns()),
        id => id.to_owned(),
    }
}

/// The wall clock in seconds since 1970. Other hosts' clocks differ.
pub fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
