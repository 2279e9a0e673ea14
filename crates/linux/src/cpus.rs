//! Which CPUs are online. Those that come later are not watched.

/// Numbers of the CPUs that are online, in order; never empty.
pub fn online() -> Vec<u32> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").map(|text| parse(&text));
    match listed {
        Ok(cpus) if !cpus.is_empty() => cpus,
        _ => (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect(),
    }
}

/// A list such as `0-3,8,10-11`. Parts that make no sense are passed over.
fn parse(text: &str) -> Vec<u32> {
    // No Linux has more; a guard against a range without end.
    const MAX: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
            && last < MAX
        {
            cpus.extend(first..=last);
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse("0\n"), [0]);
        assert!(parse("x,4-y,4294967295").is_empty());
        assert!(!online().is_empty());
    }
}
