//! Our own memory.

/// Greatest resident memory of this process so far, buffers and mapped file pages included; `None` without procfs.
pub fn peak_memory_bytes() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// `VmHWM:    5328 kB`
fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t    5328 kB\nVmRSS:\t 12 kB\n"), Some(5328 << 10));
        assert_eq!(peak_of("Name:\tx\n"), None);
    }
}
