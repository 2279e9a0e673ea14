//! How fast the device was while the run was replayed, against while the program ran: a replay that is not like the program
//! may be right, and the machine another. Reads counters; what may not enter: a verdict.

use std::fs;
use std::path::Path;

use iowhy_core::profile::{DeviceUse, Profile};
use iowhy_linux::block::counters::{self, DeviceCounters};

/// So many requests have a mean.
const FEWEST: u64 = 20;
/// Means that differ more than this many times are told.
const OTHERWISE: f64 = 1.2;
/// Requests of sizes that differ more are not compared.
const LIKE: f64 = 1.5;

/// The kinds of requests.
const KINDS: [&str; 3] = ["read", "write", "flush"];

/// Requests, bytes and time of one kind.
type Sum = (u64, u64, u64);

/// Of the devices that hold files of the program (of all, where that is not known) the one that was busy longest while it
/// ran, and the kind of its requests that took longest together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pace {
    device: String,
    kind: usize,
    was: Sum,
}

impl Pace {
    pub(super) fn of(profile: &Profile) -> Option<Pace> {
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
        (was.0 >= FEWEST).then(|| Pace { device: device.name.clone(), kind, was })
    }

    /// The counters of the device now.
    pub(super) fn counters(&self) -> Option<DeviceCounters> {
        let folder = Path::new("/sys/class/block").join(self.device.replace('/', "!"));
        counters::parse(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// How its requests of that kind differed from those of the run, in words; `None`: they took about as long, were few, or
    /// of another size.
    pub(super) fn otherwise(&self, seen: &DeviceCounters) -> Option<String> {
        let now = [
            (seen.read_requests, seen.read_bytes, seen.read_ns),
            (seen.write_requests, seen.write_bytes, seen.write_ns),
            (seen.flush_requests, 0, seen.flush_ns),
        ][self.kind];
        let mean = |total: u64, sum: Sum| total as f64 / sum.0.max(1) as f64;
        let apart = |a: f64, b: f64| (a / b).max(b / a);
        let sizes = (mean(self.was.1, self.was), mean(now.1, now));
        if now.0 < FEWEST || (sizes != (0.0, 0.0) && apart(sizes.0, sizes.1) > LIKE) {
            return None;
        }
        let (was_ns, now_ns) = (mean(self.was.2, self.was), mean(now.2, now));
        (was_ns > 0.0 && now_ns > 0.0 && apart(was_ns, now_ns) > OTHERWISE).then(|| {
            format!(
                "`{}` took {:.2} times as long for a {} as while the program ran ({:.0} against {:.0} µs, means of {} \
                 and {} requests of all programs): where the machine has changed, run it again",
                self.device,
                now_ns / was_ns,
                KINDS[self.kind],
                now_ns / 1e3,
                was_ns / 1e3,
                now.0,
                self.was.0,
            )
        })
    }
}

/// Whether a device is another, or a partition of it: `vda1` of `vda`, `nvme0n1p2` of `nvme0n1`.
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
    fn a_device_that_became_slower_is_told_and_one_that_is_asked_otherwise_is_not() {
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
        assert_eq!(Pace::of(&profile), None);
        profile.devices = vec![device("vdb", 7), device("vda", 9)];
        let pace = Pace::of(&profile).unwrap();
        let reads = |n: u64, bytes: u64, us: u64| DeviceCounters {
            read_requests: n,
            read_bytes: n * bytes,
            read_ns: n * us * 1000,
            ..DeviceCounters::default()
        };
        let told = pace.otherwise(&reads(200, 4096, 66)).unwrap();
        assert!(told.starts_with("`vda` took 1.65 times as long for a read"), "{told}");
        assert!(told.contains("(66 against 40 µs, means of 200 and 100 requests"), "{told}");
        assert!(pace.otherwise(&reads(200, 4096, 20)).is_some_and(|t| t.contains("0.50 times")));
        assert_eq!(pace.otherwise(&reads(200, 4096, 44)), None, "about as long");
        assert_eq!(pace.otherwise(&reads(200, 65_536, 66)), None, "of another size");
        assert_eq!(pace.otherwise(&reads(5, 4096, 66)), None, "few");
        // A backup keeps another device busy.
        let file = |device: &str| FileUse { device: Some(device.to_owned()), ..FileUse::default() };
        profile.files = vec![file("vdb1")];
        assert_eq!(Pace::of(&profile).map(|pace| pace.device), Some("vdb".to_owned()));
        profile.files = vec![file("vdc")];
        assert_eq!(Pace::of(&profile).map(|pace| pace.device), Some("vda".to_owned()), "not known");
        assert!(is_on("nvme0n1p2", "nvme0n1") && !is_on("sdaa1", "sda") && !is_on("vdb", "vda"));
        profile.devices[1].reads = 3;
        assert_eq!(Pace::of(&profile), None, "too few to have a mean");
    }
}
