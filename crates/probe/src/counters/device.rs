//! Block device counters from sysfs. Invariant: a device whose counters are off (`iostats`) is not read as
//! a device that moved nothing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_linux::block::counters::parse;

pub use iowhy_linux::block::counters::DeviceCounters;

/// Reads and sums the counters of the named devices (`vda`, `nvme0n1`, `dm-0`: leaf devices, so that nothing is
/// counted twice); `None` when there is no name, when one has no counters, or when its `iostats` are off.
pub fn devices(names: &[String]) -> Option<DeviceCounters> {
    let mut total: Option<DeviceCounters> = None;
    for name in names {
        let counters = device(Path::new("/sys/class/block").join(name).as_path())?;
        total = Some(total.unwrap_or_default() + counters);
    }
    total
}

/// Reads the counters of a stacked device. Its `iostats` say nothing: the device mapper counts while they read 0 (seen on
/// 6.1). Whether it counts shows in that its requests move.
pub(crate) fn stacked(name: &str) -> Option<DeviceCounters> {
    parse(&fs::read_to_string(Path::new("/sys/class/block").join(name).join("stat")).ok()?)
}

fn device(directory: &Path) -> Option<DeviceCounters> {
    // A partition's queue is its disk's; the kernel resolves the link before it goes up.
    let iostats = ["queue/iostats", "../queue/iostats"]
        .iter()
        .find_map(|at| fs::read_to_string(directory.join(at)).ok());
    if iostats.is_some_and(|value| value.trim() == "0") {
        return None;
    }
    parse(&fs::read_to_string(directory.join("stat")).ok()?)
}

/// Waits until nothing is in flight on the named devices, or until `patience` is over. What a slice has started, such
/// as read-ahead beyond its last byte, then counts for that slice and does not disturb the next.
pub fn settle(names: &[String], patience: Duration) {
    let begun = Instant::now();
    while names.iter().any(|name| in_flight(Path::new("/sys/class/block").join(name).as_path()) > 0)
        && begun.elapsed() < patience
    {
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Requests in flight: two numbers, reads and writes; 0 where they cannot be read.
fn in_flight(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("inflight")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|number| number.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_busy_device_is_waited_for_and_patience_ends() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("inflight"), "       3        4\n").unwrap();
        assert_eq!(in_flight(folder.path()), 7);
        assert_eq!(in_flight(Path::new("/nonexistent")), 0);
        // No device: nothing to wait for, whatever the patience.
        settle(&[], Duration::MAX);
    }

    #[test]
    fn a_device_that_is_not_there_or_does_not_count_has_no_counters() {
        assert_eq!(devices(&[]), None);
        assert_eq!(devices(&["no-such-device".into()]), None);
        let sys = tempfile::tempdir().unwrap();
        fs::create_dir(sys.path().join("queue")).unwrap();
        fs::write(sys.path().join("stat"), "1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert!(device(sys.path()).is_some());
        fs::write(sys.path().join("queue/iostats"), "1\n").unwrap();
        assert!(device(sys.path()).is_some());
        fs::write(sys.path().join("queue/iostats"), "0\n").unwrap();
        assert_eq!(device(sys.path()), None);
    }

    /// Conservation: what is read past the cache passes through the device.
    #[test]
    fn the_device_under_a_file_counts_at_least_what_is_read_from_it() {
        const BYTES: usize = 4 << 20;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0xa5; BYTES]).unwrap();
        file.sync_all().unwrap();
        let number = file.metadata().unwrap().dev();
        let link = format!("/sys/dev/block/{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        let Some(name) =
            fs::canonicalize(link).ok().and_then(|at| Some(at.file_name()?.to_str()?.to_owned()))
        else {
            eprintln!("skipped: no block device stands behind the temporary directory");
            return;
        };
        let Some(before) = devices(std::slice::from_ref(&name)) else {
            eprintln!("skipped: {name} has no counters");
            return;
        };
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let direct = rustix::fs::open(&path, rustix::fs::OFlags::DIRECT, rustix::fs::Mode::empty());
        let Ok(direct) = direct.map(File::from) else {
            eprintln!("skipped: no O_DIRECT in the temporary directory");
            return;
        };
        let mut memory = vec![0u8; BYTES + 4096];
        let start = memory.as_ptr().align_offset(4096);
        direct.read_exact_at(&mut memory[start..start + BYTES], 0).unwrap();
        assert!(memory[start..start + BYTES].iter().all(|&byte| byte == 0xa5));
        let passed = devices(&[name]).unwrap().since(&before);
        assert!(passed.read_bytes >= BYTES as u64, "{passed:?}");
    }
}
