//! A program, its control group and its machine in steps of time; or a machine alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps that are kept: when there are more, pairs of them become one. Memory and records stay small whatever the length of a run.
const MAX_STEPS: usize = 600;
/// Devices that are kept apart.
const MAX_DEVICES: usize = 64;

/// What the program and the machine did in each step of time. Columns of one length, the number of steps; a column that could not be read
/// is empty, and so are the program's where a whole machine was watched. What is counted belongs to the step, what is a level was read at
/// its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// End of each step, in nanoseconds from the beginning; ascending.
    pub ends_ns: Vec<u64>,
    /// Calls of the program that read, from any kind of file, and returned; and requests of rings (io_uring) that read files.
    pub reads: Vec<u64>,
    /// Bytes they returned.
    pub read_bytes: Vec<u64>,
    /// The same of writing.
    pub writes: Vec<u64>,
    /// Bytes they took.
    pub written_bytes: Vec<u64>,
    /// The same of making data durable (fsync and its kin).
    pub syncs: Vec<u64>,
    /// Time in which at least one task of the machine waited for I/O (PSI).
    pub io_some_ns: Vec<u64>,
    /// Time in which tasks of the machine waited for I/O and none ran.
    pub io_full_ns: Vec<u64>,
    /// Time in which at least one task of the machine waited for memory.
    pub memory_some_ns: Vec<u64>,
    /// Time in which at least one task of the machine waited for a CPU.
    pub cpu_some_ns: Vec<u64>,
    /// Level: bytes in memory that have yet to be written.
    pub dirty_bytes: Vec<u64>,
    /// Level: bytes that are being written.
    pub writeback_bytes: Vec<u64>,
    /// Level: memory that programs could have without swapping.
    pub available_bytes: Vec<u64>,
    /// Block devices that did anything, in the order in which they first did.
    pub devices: Vec<DeviceCourse>,
    /// The control group that was asked about, or that the program was in when it was first seen; absent: there is none, or the kernel counts
    /// nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCourse>,
}

/// A control group: what it asked of block devices, and its own waits. It is counted where a request is made, also one that a limit then
/// holds back. When the group is gone, it does nothing more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupCourse {
    /// Its path below the root of its hierarchy.
    pub path: String,
    /// Time in which at least one of its tasks waited for I/O (PSI).
    pub io_some_ns: Vec<u64>,
    /// Time in which at least one of its tasks waited for memory.
    pub memory_some_ns: Vec<u64>,
    /// Block devices that it asked for anything, in the order in which it first did; `null`: that is not counted.
    pub devices: Option<Vec<GroupDeviceCourse>>,
}

/// What a control group asked of a block device (`io.stat`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupDeviceCourse {
    /// Its name.
    pub name: String,
    /// Operations that read.
    pub reads: Vec<u64>,
    /// Their bytes.
    pub read_bytes: Vec<u64>,
    /// Operations that write.
    pub writes: Vec<u64>,
    /// Their bytes.
    pub written_bytes: Vec<u64>,
    /// Its requests are made of those of other devices (RAID, LVM, loop): both together would count twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stacked: bool,
}

/// One block device, all its users together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCourse {
    /// Its name.
    pub name: String,
    /// Requests to read that ended.
    pub reads: Vec<u64>,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Requests to write that ended.
    pub writes: Vec<u64>,
    /// Bytes written.
    pub written_bytes: Vec<u64>,
    /// Requests of any kind that ended.
    pub requests: Vec<u64>,
    /// Sum of their times, in nanoseconds.
    pub request_ns: Vec<u64>,
    /// Time with at least one request in flight, in nanoseconds.
    pub busy_ns: Vec<u64>,
    /// Its requests are made of those of other devices (RAID, LVM, loop): both together would count twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stacked: bool,
}

/// What a step brought. Groups that could not be read are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its end, in nanoseconds from the beginning.
    pub end_ns: u64,
    /// Reads, bytes read, writes, bytes written, syncs.
    pub own: Option<[u64; 5]>,
    /// Waits: I/O some, I/O full, memory some, CPU some, in nanoseconds.
    pub stalls: Option<[u64; 4]>,
    /// Dirty, under write-back, available, in bytes.
    pub memory: Option<[u64; 3]>,
    /// Each device that did anything: reads, bytes read, writes, bytes written, requests of any kind, their time, time busy.
    pub devices: Vec<DeviceStep<7>>,
    /// The control group.
    pub group: Option<GroupStep>,
}

/// A device in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStep<const N: usize> {
    /// Its name.
    pub name: String,
    /// Its requests are made of those of other devices.
    pub stacked: bool,
    /// What it did.
    pub counts: [u64; N],
}

/// A control group in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStep {
    /// Its path.
    pub path: String,
    /// Waits: I/O some, memory some, in nanoseconds.
    pub stalls: Option<[u64; 2]>,
    /// Each device that it asked for anything: reads, bytes read, writes, bytes written.
    pub devices: Option<Vec<DeviceStep<4>>>,
}

impl Course {
    /// Adds a step. True: there were too many, and pairs of them became one; steps to come are to be twice as long.
    pub fn push(&mut self, step: Step) -> bool {
        let before = self.ends_ns.len();
        self.ends_ns.push(step.end_ns);
        append(self.own_mut(), step.own, before);
        append(self.stalls_mut(), step.stalls, before);
        append(self.memory_mut(), step.memory, before);
        add(&mut self.devices, step.devices, before);
        if let Some(step) = step.group {
            let GroupStep { path, stalls, devices } = step;
            let counts = devices.is_some().then(Vec::new);
            let group = self.group.get_or_insert_with(|| GroupCourse {
                path,
                devices: counts,
                ..GroupCourse::default()
            });
            append([&mut group.io_some_ns, &mut group.memory_some_ns], stalls, before);
            match (devices, &mut group.devices) {
                (Some(devices), Some(known)) => add(known, devices, before),
                (_, known) => *known = None,
            }
        }
        let full = self.ends_ns.len() > MAX_STEPS;
        if full {
            self.halve();
        }
        full
    }

    /// Length of each step, in nanoseconds.
    pub fn lengths_ns(&self) -> impl Iterator<Item = u64> + '_ {
        let begins = std::iter::once(0).chain(self.ends_ns.iter().copied());
        begins.zip(&self.ends_ns).map(|(begin, end)| end.saturating_sub(begin))
    }

    /// Makes one step of each two.
    fn halve(&mut self) {
        let later = |column: &mut Vec<u64>| {
            *column = column.chunks(2).filter_map(|pair| pair.last().copied()).collect();
        };
        let sum = |column: &mut Vec<u64>| {
            *column =
                column.chunks(2).map(|pair| pair.iter().copied().fold(0, u64::saturating_add)).collect();
        };
        later(&mut self.ends_ns);
        self.memory_mut().into_iter().for_each(later);
        self.own_mut().into_iter().for_each(sum);
        self.stalls_mut().into_iter().for_each(sum);
        self.devices.iter_mut().flat_map(DeviceCourse::columns_mut).for_each(sum);
        if let Some(group) = &mut self.group {
            [&mut group.io_some_ns, &mut group.memory_some_ns].into_iter().for_each(sum);
            group.devices.iter_mut().flatten().flat_map(GroupDeviceCourse::columns_mut).for_each(sum);
        }
    }

    fn own_mut(&mut self) -> [&mut Vec<u64>; 5] {
        [&mut self.reads, &mut self.read_bytes, &mut self.writes, &mut self.written_bytes, &mut self.syncs]
    }

    fn stalls_mut(&mut self) -> [&mut Vec<u64>; 4] {
        [&mut self.io_some_ns, &mut self.io_full_ns, &mut self.memory_some_ns, &mut self.cpu_some_ns]
    }

    fn memory_mut(&mut self) -> [&mut Vec<u64>; 3] {
        [&mut self.dirty_bytes, &mut self.writeback_bytes, &mut self.available_bytes]
    }
}

/// A column that could not be read once is not told: what is missing is no zero.
fn append<const N: usize>(columns: [&mut Vec<u64>; N], values: Option<[u64; N]>, before: usize) {
    match values {
        Some(values) => {
            for (column, value) in columns.into_iter().zip(values) {
                if column.len() == before {
                    column.push(value);
                }
            }
        }
        None => columns.into_iter().for_each(Vec::clear),
    }
}

/// A device of which so many quantities are kept.
trait Columns<const N: usize> {
    fn new(name: String, stacked: bool) -> Self;
    fn name(&self) -> &str;
    fn columns_mut(&mut self) -> [&mut Vec<u64>; N];
}

/// Adds a step to devices that have had so many. One that comes later did nothing before.
fn add<const N: usize, D: Columns<N>>(devices: &mut Vec<D>, step: Vec<DeviceStep<N>>, before: usize) {
    for DeviceStep { name, stacked, counts } in step {
        let at = devices.iter().position(|device| device.name() == name).or_else(|| {
            (devices.len() < MAX_DEVICES).then(|| {
                devices.push(D::new(name, stacked));
                devices.len() - 1
            })
        });
        if let Some(at) = at {
            for (column, value) in devices[at].columns_mut().into_iter().zip(counts) {
                column.resize(before, 0);
                column.push(value);
            }
        }
    }
    for column in devices.iter_mut().flat_map(D::columns_mut) {
        column.resize(before + 1, 0);
    }
}

impl Columns<7> for DeviceCourse {
    fn new(name: String, stacked: bool) -> DeviceCourse {
        DeviceCourse { name, stacked, ..DeviceCourse::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn columns_mut(&mut self) -> [&mut Vec<u64>; 7] {
        [
            &mut self.reads,
            &mut self.read_bytes,
            &mut self.writes,
            &mut self.written_bytes,
            &mut self.requests,
            &mut self.request_ns,
            &mut self.busy_ns,
        ]
    }
}

impl Columns<4> for GroupDeviceCourse {
    fn new(name: String, stacked: bool) -> GroupDeviceCourse {
        GroupDeviceCourse { name, stacked, ..GroupDeviceCourse::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn columns_mut(&mut self) -> [&mut Vec<u64>; 4] {
        [&mut self.reads, &mut self.read_bytes, &mut self.writes, &mut self.written_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(end_ns: u64, bytes: u64, devices: &[(&str, u64)]) -> Step {
        Step {
            end_ns,
            own: Some([1, bytes, 0, 0, 0]),
            stalls: Some([end_ns; 4]),
            memory: Some([end_ns, 0, 7]),
            devices: devices
                .iter()
                .map(|(name, bytes)| DeviceStep {
                    name: (*name).to_owned(),
                    stacked: false,
                    counts: [1, *bytes, 0, 0, 1, 0, 0],
                })
                .collect(),
            group: None,
        }
    }

    fn group(bytes: Option<u64>) -> Option<GroupStep> {
        let device = |bytes| DeviceStep { name: "vda".to_owned(), stacked: false, counts: [1, bytes, 0, 0] };
        Some(GroupStep {
            path: "a".to_owned(),
            stalls: bytes.map(|bytes| [bytes, 0]),
            devices: bytes.map(|bytes| vec![device(bytes)]),
        })
    }

    #[test]
    fn a_device_that_comes_later_did_nothing_before() {
        let mut course = Course::default();
        assert!(!course.push(step(100, 5, &[])));
        assert!(!course.push(step(200, 6, &[("vda", 9)])));
        assert!(!course.push(step(300, 7, &[])));
        assert_eq!(course.devices[0].read_bytes, [0, 9, 0]);
        assert_eq!(course.lengths_ns().collect::<Vec<_>>(), [100; 3]);
    }

    #[test]
    fn joining_steps_keeps_every_sum_and_the_last_levels() {
        let mut course = Course::default();
        let steps = 3 * MAX_STEPS as u64;
        let made = |n: u64| Step { group: group(Some(n)), ..step(n * 100, n, &[("vda", n)]) };
        let full = (1..=steps).filter(|n| course.push(made(*n))).count();
        assert!(full >= 2 && course.ends_ns.len() <= MAX_STEPS, "{full}");
        let whole = steps * (steps + 1) / 2;
        assert_eq!(course.read_bytes.iter().sum::<u64>(), whole);
        assert_eq!(course.devices[0].read_bytes.iter().sum::<u64>(), whole);
        assert_eq!(course.devices[0].requests.iter().sum::<u64>(), steps);
        assert_eq!(course.lengths_ns().sum::<u64>(), steps * 100);
        assert_eq!(course.dirty_bytes, course.ends_ns);
        let group = course.group.unwrap();
        let device = &group.devices.unwrap()[0];
        assert_eq!((device.read_bytes.iter().sum::<u64>(), device.reads.iter().sum::<u64>()), (whole, steps));
        assert_eq!(group.io_some_ns.iter().sum::<u64>(), whole);
    }

    #[test]
    fn a_group_that_is_not_counted_has_no_devices_instead_of_idle_ones() {
        let mut course = Course::default();
        course.push(Step { group: group(Some(1)), ..step(100, 1, &[]) });
        course.push(Step { group: group(None), ..step(200, 1, &[]) });
        course.push(Step { group: group(Some(1)), ..step(300, 1, &[]) });
        assert_eq!(course.group, Some(GroupCourse { path: "a".to_owned(), ..GroupCourse::default() }));
    }

    #[test]
    fn what_could_not_be_read_once_is_not_told() {
        let mut course = Course::default();
        course.push(step(100, 1, &[]));
        course.push(Step { stalls: None, ..step(200, 2, &[]) });
        course.push(step(300, 3, &[]));
        assert!(course.io_some_ns.is_empty());
        assert_eq!(course.read_bytes, [1, 2, 3]);
    }
}
