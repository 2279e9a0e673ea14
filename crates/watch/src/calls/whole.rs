//! A record of every call, and of the page faults between them: its packed steps, their sums, and the part of it that a replay takes.
//! Invariant: each step is in the sums, and those of the part are steps of the record without one left out between.

use std::collections::{BTreeMap, HashMap};

use iowhy_core::profile::{CompleteRecord, Step, StepKind, StepTotal, Stretch};

use super::packed::{Packed, Timed};

/// The part is taken out of the record in slices of this length, and no step is longer than one.
const SLICE_NS: u64 = 10_000_000;
/// Time that the threads of a part are active, on average.
const PART_NS: u64 = 1_200_000_000;
/// Steps of a part.
const MAX_PART_STEPS: u64 = 65_536;
/// Of parts that have nearly as much time in calls on files the first one is taken: its cache state is nearest to the start.
const NEARLY: f64 = 0.8;

/// The record of a run.
#[derive(Debug, Default)]
pub(super) struct Whole {
    packed: Packed,
    /// By thread: a run of equal calls that may go on.
    pending: BTreeMap<u32, Timed>,
    calls: u64,
    faults: u64,
    fault_time_ns: u64,
    end_ns: u64,
}

/// What is done in a slice.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    steps: u64,
    active_ns: u64,
    on_files_ns: u64,
}

impl Whole {
    pub(super) fn is_full(&self) -> bool {
        self.packed.is_full()
    }

    /// A call of any kind returned, this time after the start.
    pub(super) fn call(&mut self, returned_ns: u64) {
        self.calls += 1;
        self.end_ns = self.end_ns.max(returned_ns);
    }

    /// A page fault that took `time_ns` ended, this time after the start.
    pub(super) fn fault(&mut self, ended_ns: u64, time_ns: u64) {
        self.faults += 1;
        self.fault_time_ns = self.fault_time_ns.saturating_add(time_ns);
        self.end_ns = self.end_ns.max(ended_ns);
    }

    /// A step that began this time after the start.
    pub(super) fn step(&mut self, begin_ns: u64, step: Step) {
        let thread = step.thread;
        if let Some(before) = self.pending.get_mut(&thread) {
            if begin_ns.saturating_sub(before.begin_ns) < SLICE_NS && before.step.absorb(&step) {
                return;
            }
            self.packed.push(std::mem::take(before));
        }
        self.pending.insert(thread, Timed { begin_ns, step });
    }

    /// The record and its part. `on_file`: whether a serial number is that of a file with offsets.
    pub(super) fn finish(mut self, on_file: impl Fn(u32) -> bool) -> (CompleteRecord, Stretch) {
        for (_, last) in std::mem::take(&mut self.pending) {
            self.packed.push(last);
        }
        let mut totals: HashMap<(Option<u32>, StepKind), StepTotal> = HashMap::new();
        let mut slices: BTreeMap<u64, Slice> = BTreeMap::new();
        let mut threads = 0;
        for Timed { begin_ns, step } in self.packed.steps() {
            let total = totals.entry((step.file, step.kind)).or_default();
            (total.file, total.kind) = (step.file, step.kind);
            total.calls += u64::from(step.count);
            total.bytes = total.bytes.saturating_add(step.bytes.saturating_mul(u64::from(step.count)));
            total.time_ns = total.time_ns.saturating_add(step.time_ns);
            let slice = slices.entry(begin_ns / SLICE_NS).or_default();
            slice.steps += 1;
            slice.active_ns = slice.active_ns.saturating_add(step.gap_ns.saturating_add(step.time_ns));
            slice.on_files_ns += if step.file.is_some_and(&on_file) { step.time_ns } else { 0 };
            threads = threads.max(u64::from(step.thread) + 1);
        }
        let slices: Vec<(u64, Slice)> = slices.into_iter().collect();
        let (first, last) = part(&slices, PART_NS * threads.clamp(1, 1 << 20));
        let within = |timed: &Timed| (first..=last).contains(&(timed.begin_ns / SLICE_NS));
        let mut steps: Vec<Timed> = self.packed.steps().filter(within).collect();
        steps.sort_by_key(|timed| timed.begin_ns);
        let from_ns = if slices.first().is_some_and(|(at, _)| *at == first) { 0 } else { first * SLICE_NS };
        let end = |timed: &Timed| timed.begin_ns + timed.step.gap_ns + timed.step.time_ns;
        let end_ns = steps.iter().map(end).max().unwrap_or(from_ns).min(self.end_ns);
        let mut totals: Vec<StepTotal> = totals.into_values().collect();
        totals.sort_by_key(|total| (total.file, total.kind as u8));
        let record = CompleteRecord {
            calls: self.calls,
            faults: self.faults,
            fault_time_ns: self.fault_time_ns,
            length_ns: self.end_ns,
            from_ns,
            totals,
            ..CompleteRecord::default()
        };
        let steps = steps.into_iter().map(|timed| timed.step).collect();
        (record, Stretch { length_ns: end_ns.saturating_sub(from_ns), steps })
    }
}

/// The first and the last slice of the part: as long as a part may be, and of those with the most time in calls on files the
/// first one, nearly.
fn part(slices: &[(u64, Slice)], most_ns: u64) -> (u64, u64) {
    let mut parts = Vec::new();
    let (mut end, mut sum) = (0, Slice::default());
    for begin in 0..slices.len() {
        while let Some((_, next)) = slices.get(end) {
            let fits = sum.active_ns + next.active_ns <= most_ns && sum.steps + next.steps <= MAX_PART_STEPS;
            // A part has at least one slice, however many steps that has.
            if !fits && end > begin {
                break;
            }
            sum.active_ns += next.active_ns;
            sum.steps += next.steps;
            sum.on_files_ns += next.on_files_ns;
            end += 1;
        }
        parts.push((begin, end, sum.on_files_ns));
        if end == slices.len() {
            break;
        }
        let gone = slices[begin].1;
        sum.active_ns -= gone.active_ns;
        sum.steps -= gone.steps;
        sum.on_files_ns -= gone.on_files_ns;
    }
    let most = parts.iter().map(|(.., on_files)| *on_files).max().unwrap_or(0);
    let chosen = parts.iter().find(|(.., on_files)| *on_files as f64 >= NEARLY * most as f64);
    chosen.map_or((0, 0), |(begin, end, _)| (slices[*begin].0, slices[*end - 1].0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(place: u64, time_ns: u64) -> Step {
        Step {
            file: Some(0),
            place: Some(place),
            bytes: 100,
            count: 1,
            time_ns,
            gap_ns: 10,
            ..Step::default()
        }
    }

    fn recorded(steps: impl Iterator<Item = (u64, Step)>) -> (CompleteRecord, Stretch) {
        let mut whole = Whole::default();
        for (begin_ns, step) in steps {
            whole.call(begin_ns + step.time_ns);
            whole.step(begin_ns, step);
        }
        whole.finish(|_| true)
    }

    fn sums(stretch: &Stretch) -> (u64, u64, u64) {
        let each = |s: &Step| (u64::from(s.count), s.bytes * u64::from(s.count), s.time_ns);
        stretch.steps.iter().map(each).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
    }

    #[test]
    fn a_short_run_is_its_own_part_and_nothing_is_lost() {
        let steps = (0..1000).map(|n| (n * 1000, Step { thread: (n % 2) as u32, ..read(n * n, 7) }));
        let (record, part) = recorded(steps);
        assert_eq!((record.calls, record.from_ns, record.totals.len()), (1000, 0, 1));
        let total = record.totals[0];
        assert_eq!(sums(&part), (total.calls, total.bytes, total.time_ns));
        assert_eq!((total.calls, total.bytes, total.time_ns), (1000, 100_000, 7000));
    }

    #[test]
    fn calls_in_a_row_are_one_step_and_no_longer_than_a_slice() {
        let (record, part) = recorded((0..30_000).map(|n| (n * 1000, read(n * 100, 900))));
        assert_eq!(part.steps.iter().map(|s| s.count).collect::<Vec<_>>(), [10_000, 10_000, 10_000]);
        assert_eq!(record.totals[0].calls, 30_000);
    }

    #[test]
    fn of_a_long_run_one_part_without_a_gap_is_taken_where_files_are_used() {
        // Ten seconds with hardly any time in calls, then ten seconds in them.
        let idle = (0..1000).map(|n| (n * 10_000_000, Step { gap_ns: 9_000_000, ..read(n * n, 1) }));
        let busy = (0..10_000).map(|n| (10_000_000_000 + n * 1_000_000, read(n * n, 900_000)));
        let (record, part) = recorded(idle.chain(busy));
        assert_eq!(record.totals[0].calls, 11_000);
        assert!(record.from_ns >= 9_000_000_000 && record.from_ns <= 10_000_000_000, "{}", record.from_ns);
        let (calls, _, time_ns) = sums(&part);
        assert!((900_000_000..=PART_NS).contains(&time_ns) && calls < 1400, "{time_ns} {calls}");
        let busy = || part.steps.iter().filter(|s| s.gap_ns < 1000).map(|s| (s.place, u64::from(s.count)));
        let begin = busy().next().and_then(|(place, _)| place).map_or(0, u64::isqrt);
        let mut next = begin;
        for (place, count) in busy() {
            assert_eq!(place, Some(next * next));
            next += count;
        }
    }
}
