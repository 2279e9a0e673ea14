//! Reads the program's counts, its control group's and the machine's in steps of time.
//!
//! Goal: what changed meanwhile, at a cost that does not grow with the time or the program. Non-goal: who caused it.
//! Invariant: the steps of each column sum to its change from beginning to end.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use iowhy_core::profile::{Course, CourseStep, DeviceStep, GroupStep};
use iowhy_linux::block::sysfs::{Sysfs, members};
use iowhy_linux::block::uses::Snapshot;
use iowhy_linux::control_group::GroupCounters;
use iowhy_linux::meminfo;
use iowhy_linux::psi::{HeldTotals, Totals};
use iowhy_linux::reader::Reader;

/// Length of a step at first: ten a second.
const STEP_NS: u64 = 100_000_000;

/// Reads of the program, bytes read, writes, bytes written, syncs, since counting began.
pub(crate) type Own = [u64; 5];

/// The reader.
pub(crate) struct CourseReader {
    begin_ns: u64,
    step_ns: u64,
    next_ns: u64,
    own: Own,
    psi: Held<HeldTotals, Option<Totals>>,
    devices: Held<OwnedFd, Snapshot>,
    memory: Option<OwnedFd>,
    group: Option<Group>,
    names: Names,
    course: Course,
}

/// What is read again and again, and what it said last.
struct Held<F, T> {
    file: Option<F>,
    last: T,
}

/// A control group, and what its counters said last.
struct Group {
    counters: GroupCounters,
    psi: Option<Totals>,
    devices: Option<HashMap<String, [u64; 4]>>,
}

/// What is known of devices by their names.
struct Names {
    sysfs: Sysfs,
    /// By number.
    names: HashMap<String, Option<String>>,
    kinds: HashMap<String, DeviceKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DeviceKind {
    /// Its whole disk counts the same requests.
    Partition,
    /// Its requests are made of those of others: members, or the file behind a loop.
    Stacked,
    Whole,
}

impl CourseReader {
    /// Reads what later readings are compared with. The program's counts begin at 0. `group`: the control group that is followed.
    pub(crate) fn begin(now_ns: u64, group: Option<GroupCounters>, reader: &mut Reader) -> CourseReader {
        let psi = HeldTotals::of_machine(reader);
        let devices = Snapshot::open(reader);
        CourseReader {
            begin_ns: now_ns,
            step_ns: STEP_NS,
            next_ns: now_ns + STEP_NS,
            own: Own::default(),
            psi: Held { last: psi.as_ref().and_then(|psi| psi.read(reader)), file: psi },
            devices: Held { last: Snapshot::read(reader, devices.as_ref()), file: devices },
            memory: reader.open(format_args!("/proc/meminfo")),
            group: group.map(|group| Group::new(group, reader)),
            names: Names::new(),
            course: Course::default(),
        }
    }

    /// The same of a program, with the control group that its first process is in.
    pub(crate) fn of_program(now_ns: u64, pid: u32, reader: &mut Reader) -> CourseReader {
        let group = GroupCounters::of_process(reader, pid);
        CourseReader::begin(now_ns, group, reader)
    }

    /// When [`CourseReader::step`] is due.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.next_ns
    }

    /// Ends a step now. `own`: the program's counts, where they are known.
    pub(crate) fn step(&mut self, now_ns: u64, own: Option<Own>, reader: &mut Reader) {
        let psi = self.psi.file.as_ref().and_then(|psi| psi.read(reader));
        let devices = Snapshot::read(reader, self.devices.file.as_ref());
        let step = CourseStep {
            end_ns: now_ns.saturating_sub(self.begin_ns),
            own: own.map(|own| difference(own, self.own)),
            stalls: psi.as_ref().zip(self.psi.last.as_ref()).map(|(now, before)| {
                let passed = now.since(before);
                [passed.io_some_ns, passed.io_full_ns, passed.memory_some_ns, passed.cpu_some_ns]
            }),
            memory: self.memory.as_ref().and_then(|file| memory(file, reader)),
            devices: self.names.devices(&devices, &self.devices.last),
            group: self.group.as_mut().map(|group| group.step(&mut self.names, reader)),
        };
        (self.own, self.psi.last, self.devices.last) = (own.unwrap_or(self.own), psi, devices);
        if self.course.push(step) {
            self.step_ns = self.step_ns.saturating_mul(2);
        }
        // A step that came late does not shorten the next ones: they would be too many.
        self.next_ns = now_ns + self.step_ns;
    }

    /// Ends the last step. `None`: it ended within the first one.
    pub(crate) fn finish(mut self, now_ns: u64, own: Option<Own>, reader: &mut Reader) -> Option<Course> {
        if self.course.ends_ns.is_empty() {
            return None;
        }
        self.step(now_ns, own, reader);
        Some(self.course)
    }
}

impl Group {
    fn new(counters: GroupCounters, reader: &mut Reader) -> Group {
        let devices = counters.devices(reader).map(|devices| devices.into_iter().collect());
        Group { psi: counters.pressure(reader), devices, counters }
    }

    /// What it did since the last step; a group that is gone does nothing more.
    fn step(&mut self, names: &mut Names, reader: &mut Reader) -> GroupStep {
        let stalls = self.psi.map(|before| {
            let now = self.counters.pressure(reader).unwrap_or(before);
            self.psi = Some(now);
            let passed = now.since(&before);
            [passed.io_some_ns, passed.memory_some_ns]
        });
        let devices = self.devices.as_mut().map(|before| {
            let mut passed = Vec::new();
            for (number, now) in self.counters.devices(reader).unwrap_or_default() {
                let Some(name) = names.of(&number) else { continue };
                // A device that is listed for the first time began at 0.
                let last = before.insert(number, now).unwrap_or_default();
                let counts = std::array::from_fn(|at| now[at].saturating_sub(last[at]));
                if counts != [0; 4] {
                    let stacked = names.kind(&name) == DeviceKind::Stacked;
                    passed.push(DeviceStep { name, stacked, counts });
                }
            }
            passed
        });
        GroupStep { path: self.counters.path().to_owned(), stalls, devices }
    }
}

impl Names {
    fn new() -> Names {
        Names { sysfs: Sysfs::new(), names: HashMap::new(), kinds: HashMap::new() }
    }

    /// The name of a device by its number.
    fn of(&mut self, number: &str) -> Option<String> {
        let Names { sysfs, names, .. } = self;
        names.entry(number.to_owned()).or_insert_with(|| sysfs.name_of(number)).clone()
    }

    fn kind(&mut self, name: &str) -> DeviceKind {
        if let Some(kind) = self.kinds.get(name) {
            return *kind;
        }
        let directory = self.sysfs.class_directory(name);
        let kind = if directory.join("partition").exists() {
            DeviceKind::Partition
        } else if directory.join("loop").exists() || !members(&directory).is_empty() {
            DeviceKind::Stacked
        } else {
            DeviceKind::Whole
        };
        self.kinds.insert(name.to_owned(), kind);
        kind
    }

    /// What whole disks and stacked devices did between two readings, those that did anything.
    fn devices(&mut self, now: &Snapshot, before: &Snapshot) -> Vec<DeviceStep<7>> {
        let mut passed = Vec::new();
        for (name, counters) in now.since(before) {
            let counts = [
                counters.read_requests,
                counters.read_bytes,
                counters.write_requests,
                counters.write_bytes,
                counters.requests(),
                counters.request_ns(),
                counters.busy_ns,
            ];
            if counts == [0; 7] {
                continue;
            }
            let kind = self.kind(name);
            if kind != DeviceKind::Partition {
                let stacked = kind == DeviceKind::Stacked;
                passed.push(DeviceStep { name: name.to_owned(), stacked, counts });
            }
        }
        passed
    }
}

fn difference(now: Own, before: Own) -> Own {
    std::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

/// Dirty, under write-back, available.
fn memory(file: &OwnedFd, reader: &mut Reader) -> Option<[u64; 3]> {
    let text = std::str::from_utf8(reader.read_held(file)?).ok()?;
    let bytes = |key| meminfo::bytes(text, key);
    Some([bytes("Dirty")?, bytes("Writeback")?, bytes("MemAvailable")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_program_sum_to_its_counts() {
        let mut reader = Reader::new();
        let mut course = CourseReader::begin(1_000, None, &mut reader);
        assert_eq!(course.deadline_ns(), 1_000 + STEP_NS);
        let mut now_ns = 1_000;
        for n in 1..=2_000u64 {
            now_ns = course.deadline_ns();
            course.step(now_ns, Some([n, 10 * n, 2 * n, 20 * n, n / 7]), &mut reader);
        }
        let course =
            course.finish(now_ns + 5, Some([2_001, 20_010, 4_000, 40_000, 300]), &mut reader).unwrap();
        let sum = |column: &[u64]| column.iter().sum::<u64>();
        assert_eq!((sum(&course.reads), sum(&course.read_bytes)), (2_001, 20_010));
        assert_eq!(
            (sum(&course.writes), sum(&course.written_bytes), sum(&course.syncs)),
            (4_000, 40_000, 300)
        );
        assert_eq!(sum(&course.lengths_ns().collect::<Vec<_>>()), now_ns + 5 - 1_000);
        assert!(course.ends_ns.len() <= 602, "{}", course.ends_ns.len());
        assert!(course.devices.iter().all(|device| device.busy_ns.len() == course.ends_ns.len()));
    }

    #[test]
    fn a_run_shorter_than_a_step_has_none() {
        let mut reader = Reader::new();
        assert_eq!(CourseReader::begin(0, None, &mut reader).finish(99, None, &mut reader), None);
    }
}
