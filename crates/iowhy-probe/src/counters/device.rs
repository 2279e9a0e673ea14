//! Block device counters from sysfs. Invariant: a device whose counters stand still (`iostats` off) is not read as
//! a device that moved nothing.

use std::fs;
use std::ops::Add;
use std::path::Path;
use std::time::{Duration, Instant};

/// Totals of one or more block devices since boot.
///
/// Bytes are exact when the last request's completion has been seen: the kernel counts them before it wakes the
/// waiter. Requests and times are counted just after, so that the last one may be missing from a reading.
/// Read-ahead that is in flight when the reader stops is counted when it lands: after 16 MiB read in order from a cold
/// file (window 8 MiB) a reading at once said 22 MiB, one after 100 ms 30 MiB. Direct reads of 64 MiB gave 64 MiB to
/// the byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Read requests completed.
    pub read_requests: u64,
    /// Sum of their times from allocation to completion (1 ms grain).
    pub read_ns: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Write requests completed.
    pub write_requests: u64,
    /// Sum of their times.
    pub write_ns: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Discard requests completed.
    pub discard_requests: u64,
    /// Sum of their times.
    pub discard_ns: u64,
    /// Flush requests completed.
    pub flush_requests: u64,
    /// Sum of their times.
    pub flush_ns: u64,
    /// Time in which at least one request was in flight; with several devices their sum.
    pub busy_ns: u64,
}

/// The kernel prints its times as 32-bit milliseconds: they start again at zero every 49.7 days.
const TIME_WRAP_NS: u64 = (1 << 32) * NS_PER_MS;
const NS_PER_MS: u64 = 1_000_000;
/// The unit of these files, whatever the device's own sector size is (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

impl DeviceCounters {
    /// What passed between an earlier reading and this one. Times are right across one wrap of the kernel's 32-bit
    /// milliseconds; a count that went down (the device was replaced) gives 0.
    #[must_use]
    pub fn since(&self, earlier: &DeviceCounters) -> DeviceCounters {
        self.combine(earlier, u64::saturating_sub, |now, then| {
            // A sum of wrapping times is known up to whole wraps, and so is its difference.
            let (now, then) = (now % TIME_WRAP_NS, then % TIME_WRAP_NS);
            if now >= then { now - then } else { now + TIME_WRAP_NS - then }
        })
    }

    /// Applies one operation to each pair of counts and another to each pair of times.
    fn combine(
        &self,
        other: &DeviceCounters,
        count: impl Fn(u64, u64) -> u64,
        time: impl Fn(u64, u64) -> u64,
    ) -> DeviceCounters {
        DeviceCounters {
            read_bytes: count(self.read_bytes, other.read_bytes),
            read_requests: count(self.read_requests, other.read_requests),
            read_ns: time(self.read_ns, other.read_ns),
            write_bytes: count(self.write_bytes, other.write_bytes),
            write_requests: count(self.write_requests, other.write_requests),
            write_ns: time(self.write_ns, other.write_ns),
            discard_bytes: count(self.discard_bytes, other.discard_bytes),
            discard_requests: count(self.discard_requests, other.discard_requests),
            discard_ns: time(self.discard_ns, other.discard_ns),
            flush_requests: count(self.flush_requests, other.flush_requests),
            flush_ns: time(self.flush_ns, other.flush_ns),
            busy_ns: time(self.busy_ns, other.busy_ns),
        }
    }
}

impl Add for DeviceCounters {
    type Output = DeviceCounters;
    fn add(self, other: DeviceCounters) -> DeviceCounters {
        self.combine(&other, u64::saturating_add, u64::saturating_add)
    }
}

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

/// The 11 to 17 fields of Documentation/block/stat.rst: requests, merges, sectors and milliseconds of reads, the same
/// of writes, requests in flight, milliseconds busy and in the queue; the same four of discards (since 4.18);
/// requests and milliseconds of flushes (since 5.5).
fn parse(text: &str) -> Option<DeviceCounters> {
    let fields: Vec<u64> =
        text.split_ascii_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    if fields.len() < 11 {
        return None;
    }
    let field = |i: usize| fields.get(i).copied().unwrap_or(0);
    let bytes = |i| field(i).saturating_mul(SECTOR_BYTES);
    let ns = |i| field(i).saturating_mul(NS_PER_MS);
    Some(DeviceCounters {
        read_requests: field(0),
        read_bytes: bytes(2),
        read_ns: ns(3),
        write_requests: field(4),
        write_bytes: bytes(6),
        write_ns: ns(7),
        busy_ns: ns(9),
        discard_requests: field(11),
        discard_bytes: bytes(13),
        discard_ns: ns(14),
        flush_requests: field(15),
        flush_ns: ns(16),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn every_field_of_the_kernels_line_lands_in_its_place() {
        let line = "  101  2  303  4  505  6  707  8  9  1010  11  1212  13  1414  15  1616  17\n";
        assert_eq!(
            parse(line),
            Some(DeviceCounters {
                read_requests: 101,
                read_bytes: 303 * 512,
                read_ns: 4_000_000,
                write_requests: 505,
                write_bytes: 707 * 512,
                write_ns: 8_000_000,
                busy_ns: 1_010_000_000,
                discard_requests: 1212,
                discard_bytes: 1414 * 512,
                discard_ns: 15_000_000,
                flush_requests: 1616,
                flush_ns: 17_000_000,
            })
        );
    }

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
    fn old_kernels_have_no_discards_and_no_flushes() {
        let old = parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.read_bytes, old.discard_bytes, old.flush_requests), (1536, 0, 0));
        for broken in ["", "1 2 3", "1 2 3 4 5 6 7 8 9 10 x", "-1 2 3 4 5 6 7 8 9 10 11"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn differences_survive_the_wrap_of_the_times_and_a_replaced_device() {
        let read_ns = (u64::from(u32::MAX) - 4) * NS_PER_MS;
        let before = DeviceCounters { read_ns, read_bytes: 100, flush_requests: 9, ..Default::default() };
        let after = DeviceCounters {
            read_ns: 7 * NS_PER_MS,
            read_bytes: 612,
            flush_requests: 2,
            ..Default::default()
        };
        let passed = after.since(&before);
        assert_eq!((passed.read_ns, passed.read_bytes, passed.flush_requests), (12 * NS_PER_MS, 512, 0));
        // Two devices, of which one wraps.
        let other = DeviceCounters { read_ns: 50 * NS_PER_MS, ..Default::default() };
        assert_eq!((after + other).since(&(before + other)).read_ns, 12 * NS_PER_MS);
        assert_eq!(after.since(&after), DeviceCounters::default());
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
