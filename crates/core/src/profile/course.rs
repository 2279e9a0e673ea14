//! The program and its machine in steps of time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps that are kept: when there are more, pairs of them become one. Memory and records stay small whatever the length of a run.
const MAX_STEPS: usize = 600;
/// Devices that are kept apart.
const MAX_DEVICES: usize = 64;

/// What the program and the machine did in each step of time. Columns of one length, the number of steps; a column that could not be read
/// is empty. What is counted belongs to the step, what is a level was read at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// End of each step, in nanoseconds from the beginning; ascending.
    pub ends_ns: Vec<u64>,
    /// Calls of the program that read, from any kind of file, and returned.
    pub reads: Vec<u64>,
    /// Bytes they returned.
    pub read_bytes: Vec<u64>,
    /// Calls that wrote.
    pub writes: Vec<u64>,
    /// Bytes they took.
    pub written_bytes: Vec<u64>,
    /// Calls of the program that make data durable (fsync and its kin).
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
}

/// One block device, all its users together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCourse {
    /// Its name.
    pub name: String,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Bytes written.
    pub written_bytes: Vec<u64>,
    /// Requests of any kind that ended.
    pub requests: Vec<u64>,
    /// Sum of their times, in nanoseconds.
    pub request_ns: Vec<u64>,
    /// Time with at least one request in flight, in nanoseconds.
    pub busy_ns: Vec<u64>,
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
    /// Each device that did anything: bytes read, bytes written, requests, their time, time busy.
    pub devices: Vec<(String, [u64; 5])>,
}

impl Course {
    /// Adds a step. True: there were too many, and pairs of them became one; steps to come are to be twice as long.
    pub fn push(&mut self, step: Step) -> bool {
        let before = self.ends_ns.len();
        self.ends_ns.push(step.end_ns);
        append(self.own_mut(), step.own, before);
        append(self.stalls_mut(), step.stalls, before);
        append(self.memory_mut(), step.memory, before);
        for (name, counts) in step.devices {
            let at = self.devices.iter().position(|device| device.name == name).or_else(|| {
                (self.devices.len() < MAX_DEVICES).then(|| {
                    self.devices.push(DeviceCourse { name, ..DeviceCourse::default() });
                    self.devices.len() - 1
                })
            });
            if let Some(at) = at {
                for (column, value) in self.devices[at].columns_mut().into_iter().zip(counts) {
                    column.resize(before, 0);
                    column.push(value);
                }
            }
        }
        for column in self.devices.iter_mut().flat_map(DeviceCourse::columns_mut) {
            column.resize(before + 1, 0);
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

impl DeviceCourse {
    fn columns_mut(&mut self) -> [&mut Vec<u64>; 5] {
        [
            &mut self.read_bytes,
            &mut self.written_bytes,
            &mut self.requests,
            &mut self.request_ns,
            &mut self.busy_ns,
        ]
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
            devices: devices.iter().map(|(name, bytes)| ((*name).to_owned(), [*bytes, 0, 1, 0, 0])).collect(),
        }
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
        let full = (1..=steps).filter(|n| course.push(step(n * 100, *n, &[("vda", *n)]))).count();
        assert!(full >= 2 && course.ends_ns.len() <= MAX_STEPS, "{full}");
        let whole = steps * (steps + 1) / 2;
        assert_eq!(course.read_bytes.iter().sum::<u64>(), whole);
        assert_eq!(course.devices[0].read_bytes.iter().sum::<u64>(), whole);
        assert_eq!(course.devices[0].requests.iter().sum::<u64>(), steps);
        assert_eq!(course.lengths_ns().sum::<u64>(), steps * 100);
        assert_eq!(course.dirty_bytes, course.ends_ns);
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
