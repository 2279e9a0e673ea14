//! Whether the device got faster or slower between the recorded run and the replay. Reads counters; no verdict.

use std::fs;
use std::path::Path;

use iowhy_core::profile::{DeviceUse, Profile};
use iowhy_linux::block::counters::{self, DeviceCounters};

/// Fewer requests have no mean.
const MIN_REQUESTS: u64 = 20;
/// Smallest ratio of mean latencies that is reported.
const MIN_RATIO: f64 = 1.2;
/// Largest ratio of mean sizes at which latencies are compared.
const MAX_SIZE_RATIO: f64 = 1.5;

/// The kinds of requests.
const KINDS: [&str; 3] = ["read", "write", "flush"];

/// Requests, bytes and time of one kind.
type Sum = (u64, u64, u64);

/// The busiest device of the recorded run, among those that hold files of the program where they are known, and the kind of
/// its requests that took most time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DevicePace {
    device: String,
    kind: usize,
    was: Sum,
}

impl DevicePace {
    pub(super) fn new(profile: &Profile) -> Option<DevicePace> {
        let sums = |d: &DeviceUse| {
            [
                (d.reads, d.read_bytes, d.read_ns),
                (d.writes, d.written_bytes, d.write_ns),
                (d.flushes, 0, d.flush_ns),
            ]
        };
        let longest = |d: &DeviceUse| sums(d).into_iter().enumerate().max_by_key(|(_, sum)| sum.2);
        let holds = |d: &DeviceUse| {
            profile.files.iter().filter_map(|f| f.device.as_ref()).any(|of| is_on(of, &d.name))
        };
        let known = profile.devices.iter().any(holds);
        let devices = profile.devices.iter().filter(|d| !known || holds(d));
        let all = devices.filter_map(|d| longest(d).map(|(kind, was)| (d, kind, was)));
        let (device, kind, was) = all.max_by_key(|(d, ..)| d.busy_ns)?;
        (was.0 >= MIN_REQUESTS).then(|| DevicePace { device: device.name.clone(), kind, was })
    }

    pub(super) fn counters(&self) -> Option<DeviceCounters> {
        let folder = Path::new("/sys/class/block").join(self.device.replace('/', "!"));
        counters::parse(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// How its mean latency changed, in words; `None` where it is about the same, or sizes differ, or requests are few.
    pub(super) fn changed(&self, seen: &DeviceCounters) -> Option<String> {
        let now = [
            (seen.read_requests, seen.read_bytes, seen.read_ns),
            (seen.write_requests, seen.write_bytes, seen.write_ns),
            (seen.flush_requests, 0, seen.flush_ns),
        ][self.kind];
        let mean = |total: u64, sum: Sum| total as f64 / sum.0.max(1) as f64;
        let apart = |a: f64, b: f64| (a / b).max(b / a);
        let sizes = (mean(self.was.1, self.was), mean(now.1, now));
        if now.0 < MIN_REQUESTS || (sizes != (0.0, 0.0) && apart(sizes.0, sizes.1) > MAX_SIZE_RATIO) {
            return None;
        }
        let (was_ns, now_ns) = (mean(self.was.2, self.was), mean(now.2, now));
        (was_ns > 0.0 && now_ns > 0.0 && apart(was_ns, now_ns) > MIN_RATIO).then(|| {
            format!(
                "mean {} latency of `{}` is {:.2}x that of the recorded run ({:.0} and {:.0} µs, {} and {} requests of \
                 all programs): if the machine has changed, run it again",
                KINDS[self.kind],
                self.device,
                now_ns / was_ns,
                now_ns / 1e3,
                was_ns / 1e3,
                now.0,
                self.was.0,
            )
        })
    }
}

/// Whether a device is `whole` or a partition of it: `vda1` of `vda`, `nvme0n1p2` of `nvme0n1`.
fn is_on(device: &str, whole: &str) -> bool {
    device.strip_prefix(whole).is_some_and(|rest| {
        let number = rest.strip_prefix('p').unwrap_or(rest);
        number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::FileUse;

    use super::*;

    #[test]
    fn a_slower_device_is_reported_and_other_requests_are_not_compared() {
        let device = |name: &str, busy_ns| DeviceUse {
            name: name.to_owned(),
            reads: 100,
            read_bytes: 409_600,
            read_ns: 4_000_000,
            flushes: 50,
            flush_ns: 500_000,
            busy_ns,
            ..DeviceUse::default()
        };
        let mut profile = Profile::default();
        assert_eq!(DevicePace::new(&profile), None);
        profile.devices = vec![device("vdb", 7), device("vda", 9)];
        let pace = DevicePace::new(&profile).unwrap();
        let reads = |n: u64, bytes: u64, us: u64| DeviceCounters {
            read_requests: n,
            read_bytes: n * bytes,
            read_ns: n * us * 1000,
            ..DeviceCounters::default()
        };
        let told = pace.changed(&reads(200, 4096, 66)).unwrap();
        assert!(told.starts_with("mean read latency of `vda` is 1.65x"), "{told}");
        assert!(told.contains("(66 and 40 µs, 200 and 100 requests"), "{told}");
        assert!(pace.changed(&reads(200, 4096, 20)).is_some_and(|t| t.contains("0.50x")));
        assert_eq!(pace.changed(&reads(200, 4096, 44)), None, "about as long");
        assert_eq!(pace.changed(&reads(200, 65_536, 66)), None, "of another size");
        assert_eq!(pace.changed(&reads(5, 4096, 66)), None, "few");
        // A backup keeps another device busy.
        let file = |device: &str| FileUse { device: Some(device.to_owned()), ..FileUse::default() };
        profile.files = vec![file("vdb1")];
        assert_eq!(DevicePace::new(&profile).map(|pace| pace.device), Some("vdb".to_owned()));
        profile.files = vec![file("vdc")];
        assert_eq!(DevicePace::new(&profile).map(|pace| pace.device), Some("vda".to_owned()), "not known");
        assert!(is_on("nvme0n1p2", "nvme0n1") && !is_on("sdaa1", "sda") && !is_on("vdb", "vda"));
        profile.devices[1].reads = 3;
        assert_eq!(DevicePace::new(&profile), None, "too few to have a mean");
    }
}
