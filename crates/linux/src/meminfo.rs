//! `/proc/meminfo` (proc_meminfo(5)).

/// One line in bytes: `MemAvailable:   1234 kB`.
pub fn bytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_is_asked_for_is_read_in_bytes() {
        let text = "MemTotal: 9 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(bytes(text, "MemAvailable"), Some(2 << 20));
        assert_eq!(bytes(text, "Mem"), None);
        assert_eq!(bytes("MemTotal: 9 pages\n", "MemTotal"), None);
    }
}
