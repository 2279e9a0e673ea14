//! What a control group asked of block devices, and its own pressure, from files that are held open: no path is looked up to read them again, and
//! those of a group that is gone cannot be read.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::ControlGroups;
use crate::psi::{HeldTotals, Totals};
use crate::reader::Reader;

/// Version 1 counts in its throttle: a file of bytes and one of operations, with those of the groups below, or (before Linux 5.3) without.
const V1: [[&str; 2]; 2] = [
    ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"],
    ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"],
];

/// Of one device (`major:minor`) since the group was made: reads, bytes read, writes, bytes written.
pub(super) type DeviceTotals = (String, [u64; 4]);

/// The counters of a group.
#[derive(Debug)]
pub struct GroupCounters {
    path: String,
    io: Option<Io>,
    pressure: Option<HeldTotals>,
}

#[derive(Debug)]
enum Io {
    Unified(OwnedFd),
    V1 { bytes: OwnedFd, operations: OwnedFd },
}

impl GroupCounters {
    /// Those of a group whose directories (one for each hierarchy) are given. `None`: the kernel counts nothing of it.
    pub(super) fn open(reader: &mut Reader, path: &Path, directories: &[PathBuf]) -> Option<GroupCounters> {
        let io = directories.iter().find_map(|group| Io::open(reader, group));
        let pressure = directories.iter().find_map(|group| HeldTotals::of_group(reader, group));
        let path = path.to_string_lossy().into_owned();
        (io.is_some() || pressure.is_some()).then_some(GroupCounters { path, io, pressure })
    }

    /// Those of the group that a process is in now, if its I/O is counted. The group at the top of a hierarchy is the whole machine, or all
    /// that this container can see of it: that is nobody's own.
    pub fn of_process(reader: &mut Reader, pid: u32) -> Option<GroupCounters> {
        let groups = ControlGroups::of_process(Some(pid));
        [&groups.unified, &groups.block].into_iter().find_map(|all| {
            let [own, .., top] = all.as_slice() else { return None };
            let path = own.strip_prefix(top).ok()?;
            GroupCounters::open(reader, path, std::slice::from_ref(own)).filter(|group| group.io.is_some())
        })
    }

    /// Its path below the root of its hierarchy.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it asked of each device so far. `None`: that is not counted, or the group is gone.
    pub fn devices(&self, reader: &mut Reader) -> Option<Vec<DeviceTotals>> {
        match self.io.as_ref()? {
            Io::Unified(file) => Some(unified(&text(reader, file)?)),
            Io::V1 { bytes, operations } => {
                let operations = text(reader, operations)?;
                Some(v1(&text(reader, bytes)?, &operations))
            }
        }
    }

    /// Its own pressure figures. `None`: its hierarchy has none, or the group is gone.
    pub fn pressure(&self, reader: &mut Reader) -> Option<Totals> {
        self.pressure.as_ref()?.read(reader)
    }
}

impl Io {
    fn open(reader: &mut Reader, group: &Path) -> Option<Io> {
        let mut open = |file: &str| reader.open(format_args!("{}", group.join(file).display()));
        if let Some(file) = open("io.stat") {
            return Some(Io::Unified(file));
        }
        let [bytes, operations] = V1.into_iter().find(|[bytes, _]| group.join(bytes).exists())?;
        let io = Io::V1 { bytes: open(bytes)?, operations: open(operations)? };
        counts(reader, group, bytes).then_some(io)
    }
}

/// Whether the throttle of version 1 counts anything: since Linux 6.10 it does for a device from the first limit on that anybody sets there. The
/// group at the top has a line for each such device, a new group has none before its first operation.
fn counts(reader: &mut Reader, group: &Path, file: &str) -> bool {
    let top = group.ancestors().take_while(|above| above.join(file).exists()).last();
    let text = top.and_then(|top| reader.text(format_args!("{}", top.join(file).display())));
    text.is_some_and(|text| text.lines().any(|line| line.contains(':')))
}

fn text(reader: &mut Reader, file: &OwnedFd) -> Option<String> {
    reader.read_held_list(file).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// `254:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0`
fn unified(text: &str) -> Vec<DeviceTotals> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next().filter(|number| number.contains(':'))?.to_owned();
        let mut totals = [0; 4];
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            if let Some(at) = ["rios", "rbytes", "wios", "wbytes"].iter().position(|known| *known == key) {
                totals[at] = value.parse().unwrap_or(0);
            }
        }
        Some((number, totals))
    };
    text.lines().filter_map(line).collect()
}

/// `254:0 Read 4096`, a line for each kind of operation.
fn v1(bytes: &str, operations: &str) -> Vec<DeviceTotals> {
    let mut devices: Vec<DeviceTotals> = Vec::new();
    for (text, [read, write]) in [(operations, [0, 2]), (bytes, [1, 3])] {
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [number, kind, value] = words[..] else { continue };
            let at = match kind {
                "Read" => read,
                "Write" => write,
                _ => continue,
            };
            let known = devices.iter().position(|(known, _)| known == number).unwrap_or_else(|| {
                devices.push((number.to_owned(), [0; 4]));
                devices.len() - 1
            });
            devices[known].1[at] = value.parse().unwrap_or(0);
        }
    }
    devices
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_versions_tell_bytes_and_operations_of_each_device() {
        let stat = "254:0 rbytes=8192 wbytes=512 rios=2 wios=1 dbytes=7 dios=9 cost.usage=3\n7:0 \nbroken\n";
        let expected = [("254:0".to_owned(), [2, 8192, 1, 512]), ("7:0".to_owned(), [0; 4])];
        assert_eq!(unified(stat), expected);
        let bytes =
            "254:0 Read 8192\n254:0 Write 512\n254:0 Sync 9\n254:0 Total 8704\n7:0 Read 0\nTotal 8704\n";
        let operations = "254:0 Read 2\n254:0 Write 1\n254:0 Total 3\n7:0 Write 0\n";
        assert_eq!(v1(bytes, operations), expected);
    }

    #[test]
    fn counters_are_read_again_from_the_files_that_are_held() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = Reader::new();
        let path = Path::new("a/b");
        let group = folder.path().join(path);
        fs::create_dir_all(&group).unwrap();
        let directories = [group.clone()];
        assert!(GroupCounters::open(&mut reader, path, &directories).is_none(), "nothing is counted");
        fs::write(group.join("io.pressure"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap();
        let held = GroupCounters::open(&mut reader, path, &directories).unwrap();
        assert_eq!((held.devices(&mut reader), held.pressure(&mut reader).unwrap().io_some_ns), (None, 7000));
        fs::write(group.join("io.stat"), "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n").unwrap();
        let held = GroupCounters::open(&mut reader, path, &directories).unwrap();
        let first = held.devices(&mut reader).unwrap();
        fs::write(group.join("io.stat"), "8:0 rbytes=11 wbytes=2 rios=3 wios=4\n").unwrap();
        let second = held.devices(&mut reader).unwrap();
        assert_eq!((first[0].1, second[0].1), ([3, 1, 4, 2], [3, 11, 4, 2]));
        assert_eq!(held.path(), "a/b");
    }

    #[test]
    fn the_throttle_of_version_1_counts_only_where_the_group_at_the_top_has_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = Reader::new();
        let group = folder.path().join("a");
        fs::create_dir_all(&group).unwrap();
        let write =
            |dir: &Path, text: &str| V1[0].iter().for_each(|file| fs::write(dir.join(file), text).unwrap());
        write(folder.path(), "Total 0\n");
        write(&group, "Total 0\n");
        let mut open =
            || GroupCounters::open(&mut reader, Path::new("a"), std::slice::from_ref(&group)).is_some();
        assert!(!open());
        write(folder.path(), "7:0 Read 0\n7:0 Total 0\nTotal 0\n");
        assert!(open());
    }

    #[test]
    fn a_process_in_no_group_of_its_own_has_none() {
        assert!(GroupCounters::of_process(&mut Reader::new(), u32::MAX).is_none());
    }
}
