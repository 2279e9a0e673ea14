//! What block devices did between two instants, and how their queues are set up.
//!
//! Invariant: a device whose counters stand still (`iostats` off) is not said to have done nothing: it is left out.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::block::counters::{self, DeviceCounters};
use iowhy_core::profile::{DeviceUse, OverLimit};

use crate::block::sysfs::{self, Sysfs};
use crate::block::volume_log;
use crate::choice;
use crate::control_group::ControlGroups;
use crate::reader::Reader;

/// Volumes that are asked for their limits, each by a command to its controller.
const MAX_VOLUMES: usize = 32;
/// Where the counters stand.
const COUNTERS: &str = "/proc/diskstats";

/// The counters of all block devices at one instant, partitions included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// `None`: they could not be read, so that a difference to them would be counters since the machine started.
    devices: Option<Vec<(String, DeviceCounters)>>,
    /// How long volumes that tell it were over their limits.
    over_limit: HashMap<String, OverLimit>,
}

impl Snapshot {
    /// Reads them all at once: 20 us for ten devices. Empty without `/proc/diskstats`.
    ///
    /// The last request's bytes are counted before its waiter wakes, its time just after; read-ahead in flight is
    /// counted when it lands.
    pub fn take(reader: &mut Reader) -> Snapshot {
        Snapshot::of(reader.read(format_args!("{COUNTERS}")))
    }

    /// The same, with what volumes of cloud providers tell of their limits.
    pub fn with_limits(reader: &mut Reader) -> Snapshot {
        let mut snapshot = Snapshot::take(reader);
        let names = snapshot.devices.iter().flatten().map(|(name, _)| name);
        let known = names.filter_map(|name| Some((name.clone(), volume_log::read(name)?)));
        snapshot.over_limit = known.take(MAX_VOLUMES).collect();
        snapshot
    }

    /// The file that is read, to be held open.
    pub fn open(reader: &mut Reader) -> Option<OwnedFd> {
        reader.open(format_args!("{COUNTERS}"))
    }

    /// As [`Snapshot::take`], from the file that [`Snapshot::open`] gave.
    pub fn read(reader: &mut Reader, file: Option<&OwnedFd>) -> Snapshot {
        Snapshot::of(file.and_then(|file| reader.read_held_list(file)))
    }

    fn of(text: Option<&[u8]>) -> Snapshot {
        let devices = text.map(|text| parse(&String::from_utf8_lossy(text)));
        Snapshot { devices, over_limit: HashMap::new() }
    }

    /// What each device did since an earlier snapshot; nothing where one of them could not be read.
    pub fn since<'a>(&'a self, earlier: &'a Snapshot) -> impl Iterator<Item = (&'a str, DeviceCounters)> {
        let now = self.devices.iter().flatten().filter(|_| earlier.devices.is_some());
        // A device that came meanwhile began at zero.
        now.map(|(name, now)| {
            (name.as_str(), now.since(earlier.counters(name).unwrap_or(&DeviceCounters::default())))
        })
    }

    /// `None` where it is not known at both ends.
    fn over_limit(&self, earlier: &Snapshot, name: &str) -> Option<OverLimit> {
        Some(self.over_limit.get(name)?.since(*earlier.over_limit.get(name)?))
    }

    fn counters(&self, name: &str) -> Option<&DeviceCounters> {
        self.devices.iter().flatten().find(|(known, _)| known == name).map(|(_, counters)| counters)
    }
}

/// Lines of `/proc/diskstats`: major, minor, name, and the fields of the device's `stat` file.
fn parse(text: &str) -> Vec<(String, DeviceCounters)> {
    let line = |line: &str| {
        let (_major, rest) = line.trim_start().split_once(' ')?;
        let (_minor, rest) = rest.trim_start().split_once(' ')?;
        let (name, fields) = rest.split_once(' ')?;
        Some((name.to_owned(), counters::parse(fields)?))
    };
    text.lines().filter_map(line).collect()
}

/// What whole disks and stacked devices did between two snapshots: those in `wanted` first, then others that did
/// anything, most bytes first. `groups` are those of the program, for limits that apply to it.
pub fn uses(
    before: &Snapshot,
    after: &Snapshot,
    wanted: &[String],
    groups: &ControlGroups,
) -> Vec<DeviceUse> {
    uses_in(&Sysfs::new(), before, after, wanted, groups)
}

fn uses_in(
    sysfs: &Sysfs,
    before: &Snapshot,
    after: &Snapshot,
    wanted: &[String],
    groups: &ControlGroups,
) -> Vec<DeviceUse> {
    let mut found: Vec<(bool, u64, DeviceUse)> = Vec::new();
    for (name, passed) in after.since(before) {
        let queue = Queue { directory: sysfs.class_directory(name) };
        let is_wanted = wanted.iter().any(|wanted| wanted == name);
        let idle = DeviceCounters { busy_ns: passed.busy_ns, ..DeviceCounters::default() };
        if (is_wanted || passed != idle) && !queue.is_partition() && queue.counts() {
            found.push((
                is_wanted,
                passed.read_bytes.saturating_add(passed.write_bytes),
                DeviceUse {
                    over_limit: after.over_limit(before, name),
                    ..use_of(name, &passed, &queue, groups)
                },
            ));
        }
    }
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.name.cmp(&b.2.name)));
    found.into_iter().map(|(_, _, device)| device).collect()
}

fn use_of(name: &str, passed: &DeviceCounters, queue: &Queue, groups: &ControlGroups) -> DeviceUse {
    let number = queue.text("dev").map(|number| (name.to_owned(), number));
    DeviceUse {
        name: name.to_owned(),
        reads: passed.read_requests,
        read_bytes: passed.read_bytes,
        read_ns: passed.read_ns,
        writes: passed.write_requests,
        written_bytes: passed.write_bytes,
        write_ns: passed.write_ns,
        flushes: passed.flush_requests,
        flush_ns: passed.flush_ns,
        busy_ns: passed.busy_ns,
        rotational: queue.number("queue/rotational").map(|flag| flag != 0),
        read_ahead_bytes: queue.number("queue/read_ahead_kb").and_then(|kib| kib.checked_mul(1024)),
        queue_requests: queue.number("queue/nr_requests"),
        scheduler: queue.text("queue/scheduler").and_then(|text| Some(choice::parse(&text)?.0)),
        throttle: number
            .map(|number| groups.throttles(&[number]).join("; "))
            .filter(|words| !words.is_empty()),
        over_limit: None,
    }
}

/// A device's directory in sysfs.
struct Queue {
    directory: PathBuf,
}

impl Queue {
    fn is_partition(&self) -> bool {
        self.directory.join("partition").exists()
    }

    fn counts(&self) -> bool {
        self.number("queue/iostats") != Some(0)
    }

    fn text(&self, file: &str) -> Option<String> {
        sysfs::text(&self.directory.join(file))
    }

    fn number(&self, file: &str) -> Option<u64> {
        sysfs::number(&self.directory.join(file))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEFORE: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
        254       0 vda 10 1 100 5 20 2 200 6 0 7 11 0 0 0 0 3 4\n 254       1 vda1 10 1 100 5 20 2 200 6 0 7 11 0 0 0 0 0 0\n\
        253 0 dm-0 1 0 8 0 0 0 0 0 0 0 0\nbroken\n8 0 sdz 1 2\n";
    const AFTER: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
        254       0 vda 15 1 140 9 21 2 201 8 0 10 15 0 0 0 0 5 9\n 254       1 vda1 15 1 140 5 20 2 200 6 0 7 11 0 0 0 0 0 0\n\
        253 0 dm-0 1 0 8 0 0 0 0 0 0 0 0\n 8 16 sdb 1 0 4 1 0 0 0 0 0 1 1\n";

    fn snapshot(text: &str) -> Snapshot {
        Snapshot { devices: Some(parse(text)), ..Snapshot::default() }
    }

    fn made_up() -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = sys.path().join("class/block").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("vda/queue/rotational", "1\n");
        write("vda/queue/read_ahead_kb", "128\n");
        write("vda/queue/nr_requests", "64\n");
        write("vda/queue/scheduler", "none [mq-deadline] kyber\n");
        write("vda/dev", "254:0\n");
        write("vda1/partition", "1\n");
        sys
    }

    #[test]
    fn devices_that_were_wanted_or_moved_are_told_with_their_differences() {
        let sys = made_up();
        let wanted = ["dm-0".to_owned()];
        let uses = uses_in(
            &Sysfs::at(sys.path().to_owned()),
            &snapshot(BEFORE),
            &snapshot(AFTER),
            &wanted,
            &ControlGroups::default(),
        );
        assert_eq!(uses.iter().map(|u| u.name.as_str()).collect::<Vec<_>>(), ["dm-0", "vda", "sdb"]);
        let vda = &uses[1];
        assert_eq!((vda.reads, vda.read_bytes, vda.read_ns), (5, 40 * 512, 4_000_000));
        assert_eq!((vda.writes, vda.written_bytes, vda.write_ns), (1, 512, 2_000_000));
        assert_eq!((vda.flushes, vda.flush_ns, vda.busy_ns), (2, 5_000_000, 3_000_000));
        assert_eq!(
            (vda.rotational, vda.read_ahead_bytes, vda.queue_requests),
            (Some(true), Some(131_072), Some(64))
        );
        assert_eq!(vda.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!((uses[0].reads, uses[0].rotational, uses[2].read_bytes), (0, None, 2048));
    }

    #[test]
    fn time_over_a_limit_is_what_was_added_between_both_ends() {
        let over = |ns| {
            let limits = OverLimit { volume_requests_ns: ns, volume_bytes_ns: 7, ..OverLimit::default() };
            HashMap::from([("vda".to_owned(), limits)])
        };
        let (before, mut after) = (
            Snapshot { over_limit: over(100), ..snapshot(BEFORE) },
            Snapshot { over_limit: over(350), ..snapshot(AFTER) },
        );
        let added = after.over_limit(&before, "vda").unwrap();
        assert_eq!((added.volume_requests_ns, added.volume_bytes_ns), (250, 0));
        assert_eq!(added.longest(), Some(("the volume's limit of requests a second", 250)));
        after.over_limit.clear();
        assert_eq!(after.over_limit(&before, "vda"), None);
    }

    #[test]
    fn a_device_that_does_not_count_is_left_out() {
        let sys = made_up();
        std::fs::write(sys.path().join("class/block/vda/queue/iostats"), "0\n").unwrap();
        let wanted = ["vda".to_owned()];
        let uses = uses_in(
            &Sysfs::at(sys.path().to_owned()),
            &snapshot(BEFORE),
            &snapshot(AFTER),
            &wanted,
            &ControlGroups::default(),
        );
        assert!(uses.iter().all(|u| u.name != "vda"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([0-9 \n]|vda|.){0,80}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn two_snapshots_of_this_machine_never_run_backwards() {
        let mut reader = Reader::new();
        let before = Snapshot::take(&mut reader);
        if before.devices.as_ref().is_none_or(Vec::is_empty) {
            eprintln!("skipped: no block devices are listed here");
            return;
        }
        let all: Vec<String> = before.devices.iter().flatten().map(|(name, _)| name.clone()).collect();
        let after = Snapshot::take(&mut reader);
        let uses = uses(&before, &after, &all, &ControlGroups::of_process(None));
        assert!(uses.iter().all(|u| u.read_bytes < 1 << 40 && u.written_bytes < 1 << 40), "{uses:?}");
    }
}
