//! The counters of a block device: `/sys/class/block/NAME/stat`, and the same fields in `/proc/diskstats`.
//! Whether they move at all (`queue/iostats`) is for the caller to check.

use std::ops::Add;

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

    /// Requests of any kind that ended.
    pub fn requests(&self) -> u64 {
        [self.read_requests, self.write_requests, self.discard_requests, self.flush_requests]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Sum of their times.
    pub fn request_ns(&self) -> u64 {
        [self.read_ns, self.write_ns, self.discard_ns, self.flush_ns].into_iter().fold(0, u64::saturating_add)
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

/// The 11 to 17 fields of Documentation/block/stat.rst: requests, merges, sectors and milliseconds of reads, the same
/// of writes, requests in flight, milliseconds busy and in the queue; the same four of discards (since 4.18);
/// requests and milliseconds of flushes (since 5.5). A line of `/proc/diskstats` has the same fields after the name.
/// `None`: fewer than 11 fields, or one that is no number.
pub fn parse(text: &str) -> Option<DeviceCounters> {
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
}
