//! Recorded calls that a plan is made of: the record of every call, or one of the windows in which calls were recorded.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use iowhy_core::profile::{CompleteRecord, Step, StepKind, Stretch};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

/// Calls without a gap between them.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    /// The record that they are a part of; `None`: a window, which says nothing about the rest of the run.
    pub(super) record: Option<&'a CompleteRecord>,
    /// The calls.
    pub(super) part: Cow<'a, Stretch>,
    /// Whether the first call of the run is the first of these.
    from_start: bool,
}

impl<'a> Source<'a> {
    /// The part of the record of every call that is meant for a replay.
    ///
    /// # Errors
    /// There is none, as the end of a sentence.
    pub(crate) fn record(facts: &Facts<'a>) -> Result<Source<'a>, String> {
        let pattern = &facts.profile.pattern;
        let both = pattern.record.as_ref().zip(pattern.stretches.first());
        let (record, part) =
            both.ok_or_else(|| "it holds no record of every call of the program".to_owned())?;
        Ok(Source { record: Some(record), part: Cow::Borrowed(part), from_start: record.from_ns == 0 })
    }

    /// The window that stands for the run, up to a duration. It has calls that move bytes or make them durable, and shares its time out among
    /// kinds of calls as the run does; of several such windows it is the one with most time in calls.
    ///
    /// # Errors
    /// No call was recorded, as the end of a sentence.
    pub(crate) fn window(facts: &Facts<'a>, most_ns: f64) -> Result<Source<'a>, String> {
        let cut = facts.profile.pattern.stretches.iter().map(|stretch| beginning(stretch, most_ns));
        let windows: Vec<(usize, Stretch, [f64; KINDS.len()])> = cut
            .enumerate()
            .filter(|(_, stretch)| stretch.steps.iter().any(matters))
            .map(|(index, stretch)| {
                let times = KINDS.map(|(kinds, _)| {
                    stretch.steps.iter().filter(|s| kinds.contains(&s.kind)).map(|s| s.time_ns as f64).sum()
                });
                (index, stretch, times)
            })
            .collect();
        let run = KINDS
            .map(|(_, operations)| facts.account.sum(|e| operations.contains(&e.class.operation)).time_ns);
        let like_run = |times: &[f64]| alike(times, &run);
        let most_alike = windows.iter().map(|(.., times)| like_run(times)).fold(0.0, f64::max);
        let (index, part, _) = windows
            .into_iter()
            .filter(|(.., times)| like_run(times) >= ALIKE * most_alike)
            .max_by(|a, b| a.2.iter().sum::<f64>().total_cmp(&b.2.iter().sum()))
            .ok_or_else(|| "no call on a file was recorded with its place".to_owned())?;
        Ok(Source { record: None, part: Cow::Owned(part), from_start: index == 0 })
    }

    /// The same with the touches of these files of the pattern and no others: those are the program's own time before its next step.
    pub(super) fn with_touches_of(&self, files: &HashSet<u32>) -> Source<'a> {
        let stays =
            |step: &Step| step.kind != StepKind::Touch || step.file.is_some_and(|file| files.contains(&file));
        if self.part.steps.iter().all(stays) {
            return self.clone();
        }
        let mut own: HashMap<u32, u64> = HashMap::new();
        let mut steps = Vec::new();
        for step in &self.part.steps {
            let own_ns = own.remove(&step.thread).unwrap_or(0).saturating_add(step.gap_ns);
            if stays(step) {
                steps.push(Step { gap_ns: own_ns, ..step.clone() });
            } else {
                own.insert(step.thread, own_ns.saturating_add(step.time_ns));
            }
        }
        Source { part: Cow::Owned(Stretch { length_ns: self.part.length_ns, steps }), ..self.clone() }
    }

    /// The first part of it, by the time of its longest thread.
    pub(super) fn beginning(&self, part: f64) -> Source<'a> {
        let mut spent: HashMap<u32, u64> = HashMap::new();
        for step in &self.part.steps {
            *spent.entry(step.thread).or_default() += step.time_ns + step.gap_ns;
        }
        let longest = spent.into_values().max().unwrap_or(0);
        Source { part: Cow::Owned(beginning(&self.part, part * longest as f64)), ..self.clone() }
    }

    /// Whether it is a window of the run, not a record of all of it.
    pub(super) fn is_window(&self) -> bool {
        self.record.is_none()
    }

    pub(super) fn begins_the_run(&self) -> bool {
        self.from_start
    }

    /// Calls of a kind in the whole run: of the record; else what was counted of its system call, shared out as in the window.
    pub(super) fn in_run(&self, facts: &Facts<'_>, kind: StepKind) -> f64 {
        if let Some(record) = self.record {
            return record
                .totals
                .iter()
                .filter(|total| total.kind == kind)
                .map(|total| total.calls as f64)
                .sum();
        }
        let seen = |pick: &dyn Fn(StepKind) -> bool| -> f64 {
            self.part.steps.iter().filter(|s| pick(s.kind)).map(|s| f64::from(s.count.max(1))).sum()
        };
        let maps = |kind| matches!(kind, StepKind::Map | StepKind::MmapAnon);
        let counted = facts.counted_calls(&["mmap"]).filter(|_| maps(kind));
        let share = seen(&|k| k == kind) / seen(&maps).max(1.0);
        counted.map_or_else(|| seen(&|k| k == kind), |calls| calls * share)
    }
}

/// Kinds of calls, and the operations of the account that they are.
const KINDS: [(&[StepKind], &[Operation]); 5] = [
    (&[StepKind::Read], &[Operation::Read]),
    (&[StepKind::Write], &[Operation::Write]),
    (&[StepKind::Sync], &[Operation::Sync]),
    (&[StepKind::Map, StepKind::MmapAnon], &[Operation::Map, Operation::Fault]),
    (&[StepKind::Seek], &[Operation::Descriptor]),
];

/// A window whose cosine is this part of the largest is as good as that one. Chosen.
const ALIKE: f64 = 0.9;

/// The cosine of the angle between two vectors of times, 0 to 1: 1 where both share their time out in the same way, or one has none.
fn alike(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 1.0 }
}

/// Whether a step is what a plan is made for.
fn matters(step: &Step) -> bool {
    matches!(
        step.kind,
        StepKind::Read | StepKind::Write | StepKind::Sync | StepKind::Map | StepKind::MmapAnon
    )
}

/// The calls of a stretch up to a time in one of its threads.
fn beginning(stretch: &Stretch, most_ns: f64) -> Stretch {
    let mut spent: HashMap<u32, f64> = HashMap::new();
    let mut steps = Vec::new();
    for step in &stretch.steps {
        let spent = spent.entry(step.thread).or_default();
        let (count, takes) = (f64::from(step.count.max(1)), (step.time_ns + step.gap_ns) as f64);
        let left = most_ns - *spent;
        if takes > left {
            let fits = (count * left / takes).floor();
            if fits >= 1.0 {
                let part = |ns: u64| (ns as f64 * fits / count) as u64;
                let (gap_ns, time_ns) = (part(step.gap_ns), part(step.time_ns));
                steps.push(Step { count: fits as u32, gap_ns, time_ns, ..step.clone() });
            }
            break;
        }
        *spent += takes;
        steps.push(step.clone());
    }
    Stretch { length_ns: stretch.length_ns.min(most_ns as u64), steps }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;

    fn step(kind: StepKind, count: u32, time_ns: u64) -> Step {
        Step { kind, count, time_ns, file: Some(0), place: Some(0), bytes: 1, ..Step::default() }
    }

    #[test]
    fn the_fullest_window_is_taken_up_to_its_time() {
        let stretch = |steps: Vec<Step>| Stretch { length_ns: 1000, steps };
        let run = Run::new(1.0).with(|p| {
            p.pattern.stretches = vec![
                stretch(vec![step(StepKind::Seek, 9, 900)]),
                stretch(vec![step(StepKind::Read, 1, 100), step(StepKind::Write, 10, 500)]),
                stretch(vec![step(StepKind::Read, 1, 50)]),
            ];
        });
        run.facts(|f| {
            let source = Source::window(f, 350.0).unwrap();
            let counts: Vec<u32> = source.part.steps.iter().map(|s| s.count).collect();
            assert_eq!(
                (counts, source.begins_the_run(), source.part.steps[1].time_ns),
                (vec![1, 5], false, 250)
            );
            let half: Vec<u32> = source.beginning(0.5).part.steps.iter().map(|s| s.count).collect();
            assert_eq!(half, [1, 1], "175 of 350 ns");
            assert!(Source::record(f).unwrap_err().contains("no record of every call"));
        });
        let seeks_cost = run.clone().busy(Operation::Descriptor, Layer::Call, 0.5);
        let with_seeks = seeks_cost.with(|p| p.pattern.stretches[2].steps.push(step(StepKind::Seek, 9, 90)));
        let kinds = |source: Source<'_>| source.part.steps.iter().map(|s| s.kind).collect::<Vec<_>>();
        let taken = with_seeks.facts(|f| Source::window(f, 1e9).map(kinds));
        assert_eq!(taken, Ok(vec![StepKind::Read, StepKind::Seek]));
        let nothing = Run::new(1.0).facts(|f| Source::window(f, 1e9).map(|_| ()));
        assert!(nothing.unwrap_err().contains("no call on a file"));
    }

    #[test]
    fn mappings_of_the_run_are_shared_out_as_in_the_window() {
        let run = Run::new(1.0).calls(&[("mmap", 100)]).with(|p| {
            let steps = vec![step(StepKind::Map, 3, 3), step(StepKind::MmapAnon, 1, 1)];
            p.pattern.stretches = vec![Stretch { length_ns: 9, steps }];
        });
        run.facts(|f| {
            let source = Source::window(f, 1e9).unwrap();
            assert_eq!(source.in_run(f, StepKind::Map), 75.0);
            assert_eq!(source.in_run(f, StepKind::Read), 0.0);
        });
    }
}
