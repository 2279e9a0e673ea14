//! What a part of a record stands for: the calls of the whole run that are like its own.

use std::collections::HashMap;
use std::path::Path;

use iowhy_core::profile::{CompleteRecord, PatternFile, Step, StepKind, StepTotal};
use iowhy_core::replay::Op;

use super::{Builder, KERNEL};
use crate::plan::open_flags::{O_DIRECT, O_DSYNC};

/// Calls of a kind on two files are alike where they move as much, on the average, within this factor. Chosen.
const ALIKE: f64 = 2.0;

impl Builder<'_> {
    /// Time and calls of the whole record in the kinds of steps that are replayed, tracing included.
    pub(super) fn whole_run(&self, record: &CompleteRecord) -> (f64, f64) {
        let of_part = self.mean_sizes(&record.totals);
        let replayed = |total: &&StepTotal| {
            let step = Step { kind: total.kind, file: total.file, ..Step::default() };
            match total.kind {
                StepKind::Read | StepKind::Write | StepKind::Seek => {
                    self.takes_part(&step) || self.is_alike(total, &of_part)
                }
                StepKind::Sync => {
                    self.takes_part(&step)
                        || self.moment_in(total.file, None).is_some()
                        || self.is_alike(total, &of_part)
                }
                StepKind::Open => self.is_made_for_a_moment(total.file),
                StepKind::Touch => self.known(&step).is_some_and(|file| self.touches.on(file)),
                StepKind::Allocate => {
                    self.plan.any(|a| matches!(a.op, Op::Allocate { .. })) && self.takes_part(&step)
                }
                StepKind::Advise => self.plan.any(|a| a.op == Op::FadviseDontNeed) && self.takes_part(&step),
                _ => false,
            }
        };
        let totals = record.totals.iter().filter(replayed);
        totals.fold((0.0, 0.0), |(time, calls), t| (time + t.time_ns as f64, calls + t.calls as f64))
    }

    /// Whether steps on a file are in the plan, whichever thread made them.
    fn takes_part(&self, step: &Step) -> bool {
        let of_a_moment =
            || self.moments.iter().any(|((file, _), at)| Some(*file) == step.file && at.is_some());
        self.known(step).is_some() || of_a_moment()
    }

    /// Mean size of the calls on files that the part comes to, by kind of call and of access.
    fn mean_sizes(&self, totals: &[StepTotal]) -> HashMap<(StepKind, [bool; 2]), f64> {
        let mut sums: HashMap<(StepKind, [bool; 2]), (f64, f64)> = HashMap::new();
        for total in totals {
            let step = Step { kind: total.kind, file: total.file, ..Step::default() };
            let file = total.file.and_then(|index| self.files.get(index as usize));
            let Some(file) = file.filter(|_| self.takes_part(&step)) else { continue };
            let (bytes, calls) = sums.entry((total.kind, access(file))).or_default();
            *bytes += total.bytes as f64;
            *calls += total.calls as f64;
        }
        sums.into_iter().map(|(of, (bytes, calls))| (of, bytes / calls.max(1.0))).collect()
    }

    /// Whether calls on a file that the part does not come to are like those of the part: of the same kind, on a file that was opened for the
    /// same kind of access, and about as large. A program that goes through many files does in each what it does in the first.
    fn is_alike(&self, total: &StepTotal, of_part: &HashMap<(StepKind, [bool; 2]), f64>) -> bool {
        let Some(file) = self.not_met(total.file) else { return false };
        let Some(size) = of_part.get(&(total.kind, access(file))) else { return false };
        let of_other = total.bytes as f64 / total.calls.max(1) as f64;
        size.max(of_other) <= ALIKE * size.min(of_other)
    }

    /// A file on a disk that no step of the part is about.
    fn not_met(&self, index: Option<u32>) -> Option<&PatternFile> {
        let index = index?;
        let met = self.taken.get(index as usize)?.is_some();
        let for_a_moment = self.moments.keys().any(|(file, _)| *file == index);
        let file = self.files.get(index as usize).filter(|_| !met && !for_a_moment)?;
        let on_disk =
            Path::new(&file.path).is_absolute() && !KERNEL.iter().any(|of| file.path.starts_with(of));
        (file.kind == "regular" && on_disk).then_some(file)
    }
}

/// Whether a file was opened past the page cache, and for writes that are durable when they return.
fn access(file: &PatternFile) -> [bool; 2] {
    let flags = file.flags.unwrap_or(0);
    [flags & O_DIRECT != 0, flags & O_DSYNC != 0]
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_core::profile::FileIdentity;
    use iowhy_diagnose::classify::Operation;
    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;
    use crate::plan::recorded::of_record;
    use crate::plan::tests::recorded;

    #[test]
    fn files_that_the_part_does_not_come_to_are_of_the_run_where_they_are_used_alike() {
        let file = |name: &str, flags: u32| PatternFile {
            path: name.into(),
            kind: "regular".into(),
            flags: Some(flags),
            identity: Some(FileIdentity { size_bytes: 1 << 30, ..FileIdentity::default() }),
            ..PatternFile::default()
        };
        let read = Step {
            kind: StepKind::Read,
            file: Some(0),
            place: Some(0),
            bytes: 4096,
            stride: 4096,
            count: 1000,
            time_ns: 1_000_000,
            ..Step::default()
        };
        let scale = |other: PatternFile, bytes: u64, kind: StepKind| {
            let run = Run::new(1.0).busy(Operation::Read, Layer::Call, 0.9).with(|p| {
                p.pattern = recorded(vec![file("/data", 0), other], vec![read.clone()], 1);
                let record = p.pattern.record.as_mut().unwrap();
                let (calls, time_ns) = (3000, 3_000_000);
                record.totals.push(StepTotal { file: Some(1), kind, calls, bytes: calls * bytes, time_ns });
            });
            run.facts(|facts| of_record(facts).unwrap().scale)
        };
        assert_eq!(scale(file("/other", 0), 4000, StepKind::Read), 4.0);
        assert_eq!(scale(file("/other", 0), 65536, StepKind::Read), 1.0, "larger calls");
        assert_eq!(scale(file("/other", O_DIRECT), 4096, StepKind::Read), 1.0, "past the page cache");
        assert_eq!(scale(file("/other", 0), 4096, StepKind::Write), 1.0, "of another kind");
        assert_eq!(scale(file("/proc/other", 0), 4096, StepKind::Read), 1.0, "the kernel makes it");
    }
}
