//! Reads the program's counts and the machine's counters in steps of time.
//!
//! Goal: what changed while the program ran, at a cost that does not grow with the run or the program. Non-goal: who caused it.
//! Invariant: the steps of each column sum to its change from beginning to end.

use std::collections::HashMap;

use iowhy_core::profile::{Course, CourseStep};
use iowhy_linux::block::sysfs::Sysfs;
use iowhy_linux::block::uses::Snapshot;
use iowhy_linux::meminfo;
use iowhy_linux::psi::Totals;
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
    psi: Option<Totals>,
    devices: Snapshot,
    /// Whether a name is that of a partition: its whole disk counts the same requests.
    partitions: HashMap<String, bool>,
    course: Course,
}

impl CourseReader {
    /// Reads what later readings are compared with. The program's counts begin at 0.
    pub(crate) fn begin(now_ns: u64, reader: &mut Reader) -> CourseReader {
        CourseReader {
            begin_ns: now_ns,
            step_ns: STEP_NS,
            next_ns: now_ns + STEP_NS,
            own: Own::default(),
            psi: Totals::of_machine(),
            devices: Snapshot::take(reader),
            partitions: HashMap::new(),
            course: Course::default(),
        }
    }

    /// When [`CourseReader::step`] is due.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.next_ns
    }

    /// Ends a step now. `own`: the program's counts, where they are known.
    pub(crate) fn step(&mut self, now_ns: u64, own: Option<Own>, reader: &mut Reader) {
        let psi = Totals::of_machine();
        let devices = Snapshot::take(reader);
        let end_ns = now_ns.saturating_sub(self.begin_ns);
        let step = CourseStep {
            end_ns,
            own: own.map(|own| difference(own, self.own)),
            stalls: psi.as_ref().zip(self.psi.as_ref()).map(|(now, before)| {
                let passed = now.since(before);
                [passed.io_some_ns, passed.io_full_ns, passed.memory_some_ns, passed.cpu_some_ns]
            }),
            memory: memory(reader),
            devices: self.passed(&devices),
        };
        (self.own, self.psi, self.devices) = (own.unwrap_or(self.own), psi, devices);
        if self.course.push(step) {
            self.step_ns = self.step_ns.saturating_mul(2);
        }
        // A step that came late does not shorten the next ones: they would be too many.
        self.next_ns = now_ns + self.step_ns;
    }

    /// Ends the last step. `None`: the program ended within the first one.
    pub(crate) fn finish(mut self, now_ns: u64, own: Option<Own>, reader: &mut Reader) -> Option<Course> {
        if self.course.ends_ns.is_empty() {
            return None;
        }
        self.step(now_ns, own, reader);
        Some(self.course)
    }

    /// What whole disks and stacked devices did since the last step, those that did anything.
    fn passed(&mut self, now: &Snapshot) -> Vec<(String, [u64; 5])> {
        let mut passed = Vec::new();
        for (name, counters) in now.since(&self.devices) {
            let counts = [
                counters.read_bytes,
                counters.write_bytes,
                counters.requests(),
                counters.request_ns(),
                counters.busy_ns,
            ];
            if counts == [0; 5] {
                continue;
            }
            let is_partition = self
                .partitions
                .entry(name.to_owned())
                .or_insert_with(|| Sysfs::new().class_directory(name).join("partition").exists());
            if !*is_partition {
                passed.push((name.to_owned(), counts));
            }
        }
        passed
    }
}

fn difference(now: Own, before: Own) -> Own {
    std::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

/// Dirty, under write-back, available.
fn memory(reader: &mut Reader) -> Option<[u64; 3]> {
    let text = reader.text(format_args!("/proc/meminfo"))?;
    let bytes = |key| meminfo::bytes(text, key);
    Some([bytes("Dirty")?, bytes("Writeback")?, bytes("MemAvailable")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_program_sum_to_its_counts() {
        let mut reader = Reader::new();
        let mut course = CourseReader::begin(1_000, &mut reader);
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
        assert_eq!(CourseReader::begin(0, &mut reader).finish(99, None, &mut reader), None);
    }
}
