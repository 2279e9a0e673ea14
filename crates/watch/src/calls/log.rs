//! Recorded calls in their order, as far as they move bytes or steer how bytes are moved: what a replay needs, in bounded
//! memory, and the page faults between them; and how long calls took. A file is told by its [`FileKey`]; its path is looked up when the run has ended.

mod names;
mod pieces;
mod slowest;

use std::collections::{HashMap, HashSet};

use iowhy_core::profile::{CallPattern, Step, StepKind, StepTotal, Stretch};
use iowhy_linux::syscalls;

use super::whole::Whole;
use super::{Direction, FileKey, Place, Shape, UNKNOWN, open_flags, portable_flags};
use crate::event_log::SlowCall;
use names::Names;
use pieces::Pieces;
use slowest::Slowest;

/// Places of buffers are told within a page.
const PAGE: u64 = 4096;
/// Number of records that are page faults (`FAULT` of `bpf/faults.h`).
const FAULT: u32 = u32::MAX;
/// Files that are told apart in a pattern: those with the most steps. All others are one file without a path.
const MAX_FILES: usize = 256;
/// Longest stretch.
const MAX_STRETCH_NS: u64 = 200_000_000;
/// In this time a program is loaded: what it does then says little of what it does later.
const LOADING_NS: u64 = 20_000_000;

/// A call that returned, as the observer in the kernel recorded it (`struct record` in `bpf/observer.bpf.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallRecord {
    /// CLOCK_MONOTONIC.
    pub(crate) entered_ns: u64,
    pub(crate) returned_ns: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) number: u32,
    /// Flags of the open file, as in open(2).
    pub(crate) flags: u32,
    /// What the call returned.
    pub(crate) value: i64,
    pub(crate) arguments: [u64; 6],
    /// The file that it worked on; of two, the source.
    pub(crate) file: Option<FileKey>,
    /// Position of the open file after the call; of a call that looked a path up and opened nothing: which name that was (0: not known).
    pub(crate) position: u64,
}

impl CallRecord {
    /// Whether it is no call but a page fault of the program's own code. Its first argument is the address.
    pub(crate) fn is_fault(&self) -> bool {
        self.number == FAULT
    }
}

/// How long the recorded calls took: how many, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration {
    calls: u64,
    time_ns: u64,
}

impl Duration {
    fn add(&mut self, time_ns: u64) {
        self.calls += 1;
        self.time_ns = self.time_ns.saturating_add(time_ns);
    }

    /// The time of so many calls at the mean duration of those that were recorded; 0 where none was.
    pub(crate) fn of(self, calls: u64) -> u64 {
        if self.calls == 0 { 0 } else { (calls as f64 * self.time_ns as f64 / self.calls as f64) as u64 }
    }
}

/// Durations by name of the call, and of reads and writes by path of the file.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    pub(crate) by_name: HashMap<&'static str, Duration>,
    pub(crate) by_path: HashMap<String, [Duration; 2]>,
}

/// What is logged.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    /// In which way a file was open: the serial numbers that steps refer to while they are logged.
    serials: HashMap<(FileKey, u32), u32>,
    stretches: CallPattern,
    by_number: HashMap<u32, Duration>,
    by_file: HashMap<FileKey, [Duration; 2]>,
    /// Numbers of threads, over all stretches.
    threads: HashMap<u32, u32>,
    steps: Vec<Step>,
    /// By thread: when its last call returned, and the index of its last step.
    last: HashMap<u32, (u64, Option<usize>)>,
    pieces: Pieces,
    names: Names,
    /// Calls that began earlier are not recorded whole.
    window_ns: u64,
    start_ns: u64,
    end_ns: u64,
    /// Until when the program is loaded; `None`: it was loaded before.
    loaded_ns: Option<u64>,
    /// What was recorded until then.
    loading: Stretch,
    /// Every call is recorded: then there are no stretches before the end.
    whole: Option<Whole>,
    /// With [`CallLog::whole`], by thread: when its last call of any kind returned, and its time between calls since its last step.
    between: HashMap<u32, (u64, u64)>,
    /// The longest calls, where they are kept.
    slowest: Option<Slowest>,
    overlap: Overlap,
}

/// How much of the time in calls is beside calls of other threads.
#[derive(Debug, Default)]
struct Overlap {
    /// Thread and return of the call that returned last.
    last: Option<(u32, u64)>,
    beside_ns: u64,
    all_ns: u64,
}

impl Overlap {
    /// Takes calls on files with offsets, and page faults on mapped ones, in the order of their return: each is beside the one before from when it began to when that
    /// returned.
    fn take(&mut self, record: &CallRecord) {
        let time_ns = record.returned_ns.saturating_sub(record.entered_ns);
        let other = self.last.filter(|(tid, _)| *tid != record.tid);
        let beside_ns = other.map_or(0, |(_, returned_ns)| returned_ns.saturating_sub(record.entered_ns));
        self.beside_ns = self.beside_ns.saturating_add(beside_ns.min(time_ns));
        self.all_ns = self.all_ns.saturating_add(time_ns);
        self.last = Some((record.tid, record.returned_ns));
    }

    fn share(&self) -> Option<f64> {
        (self.all_ns > 0).then(|| self.beside_ns as f64 / self.all_ns as f64)
    }
}

/// A step, and the memory that it used.
struct Seen {
    step: Step,
    memory: Option<u64>,
}

impl CallLog {
    /// The log of a run that starts now (CLOCK_MONOTONIC). `loads`: with loading the program.
    pub(crate) fn new(now_ns: u64, loads: bool) -> CallLog {
        CallLog { loaded_ns: loads.then(|| now_ns.saturating_add(LOADING_NS)), ..CallLog::default() }
    }

    /// The log of every call of a run that starts now.
    pub(crate) fn of_all(now_ns: u64) -> CallLog {
        let whole = Some(Whole::default());
        CallLog { whole, window_ns: now_ns, start_ns: now_ns, end_ns: now_ns, ..CallLog::default() }
    }

    /// Keeps the longest calls with their times from now on: [`CallLog::slowest`].
    pub(crate) fn keep_slowest(&mut self) {
        self.slowest = Some(Slowest::default());
    }

    /// The longest calls, in order of time, where they were kept. `path` tells where a file was when it was met first.
    pub(crate) fn slowest(&mut self, path: impl Fn(FileKey) -> Option<String>) -> Vec<SlowCall> {
        self.slowest.take().map(|slowest| slowest.finish(path)).unwrap_or_default()
    }

    /// Whether a log of every call has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.whole.as_ref().is_some_and(Whole::is_full)
    }

    /// Calls are recorded without a gap from now on.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        (self.window_ns, self.start_ns, self.end_ns) = (now_ns, now_ns, now_ns);
        self.last.clear();
    }

    /// Takes a call. One that began before the calls were recorded is left out.
    pub(crate) fn take(&mut self, record: &CallRecord) {
        if record.entered_ns < self.window_ns {
            return;
        }
        if record.is_fault() {
            return self.take_fault(record);
        }
        if let Some(whole) = &mut self.whole {
            whole.call(record.returned_ns.saturating_sub(self.start_ns));
            self.pass(record);
        } else if record.entered_ns >= self.stretch_end_ns() {
            self.end_stretch();
            (self.start_ns, self.end_ns) = (record.entered_ns, record.entered_ns);
            // Threads go on: the time between two calls reaches over the end of a stretch.
            self.last.values_mut().for_each(|(_, index)| *index = None);
        }
        if let Some(slowest) = &mut self.slowest {
            slowest.take(record);
        }
        let time_ns = record.returned_ns.saturating_sub(record.entered_ns);
        self.by_number.entry(record.number).or_default().add(time_ns);
        self.names.take(record);
        if record.value < 0 {
            return;
        }
        self.pieces.follow(record);
        let shape = Shape::from_number(i64::from(record.number));
        if let (Shape::Move { direction, .. }, Some(file)) = (shape, record.file) {
            self.by_file.entry(file).or_default()[direction as usize].add(time_ns);
        }
        if record.file.is_some_and(FileKey::has_offsets) {
            self.overlap.take(record);
        }
        if let Some(seen) = self.seen(record, shape) {
            self.note(record, seen);
        }
    }

    /// Takes a page fault. One that is on no file that was mapped in this record is the program's own time, as all faults are in windows.
    fn take_fault(&mut self, record: &CallRecord) {
        let ended_ns = record.returned_ns.saturating_sub(self.start_ns);
        let Some(whole) = &mut self.whole else { return };
        let time_ns = record.returned_ns.saturating_sub(record.entered_ns);
        whole.fault(ended_ns, time_ns);
        let Some(mapped) = self.pieces.file_at(record.pid, record.arguments[0]) else { return };
        self.overlap.take(record);
        self.pass(record);
        let step = Step {
            kind: StepKind::Touch,
            file: Some(mapped.file),
            place: Some(mapped.offset / PAGE * PAGE),
            bytes: PAGE,
            argument: mapped.advice,
            count: 1,
            time_ns,
            ..Step::default()
        };
        self.note(record, Seen { step, memory: None });
    }

    /// The program's own time goes on when a record ends.
    fn pass(&mut self, record: &CallRecord) {
        let (returned, between) = self.between.entry(record.tid).or_insert((record.entered_ns, 0));
        *between += record.entered_ns.saturating_sub(*returned);
        *returned = record.returned_ns;
    }

    /// When the stretch is over that is being logged.
    fn stretch_end_ns(&self) -> u64 {
        let longest = self.start_ns.saturating_add(MAX_STRETCH_NS);
        match self.loaded_ns {
            Some(loaded) => loaded.clamp(self.start_ns, longest),
            None => longest,
        }
    }

    /// The step of a call that succeeded. `None`: of a kind that is not logged.
    fn seen(&mut self, record: &CallRecord, shape: Shape) -> Option<Seen> {
        let CallRecord { arguments, value, .. } = record;
        let bytes = u64::try_from(*value).unwrap_or(0);
        let flags = arguments[3] as u32;
        let anonymous = flags & libc::MAP_ANONYMOUS as u32 != 0;
        let (kind, place, bytes, argument, memory) = match shape {
            Shape::Move { direction, place, asked } => {
                let kind = if direction == Direction::Read { StepKind::Read } else { StepKind::Write };
                let asked = asked.map_or(bytes, |index| arguments[index]);
                let memory = shape.has_buffer().then_some(arguments[1]);
                (kind, offset(record, direction, place), asked, 0, memory)
            }
            Shape::Seek => (StepKind::Seek, Some(bytes), 0, 0, None),
            Shape::Sync => {
                let is_fsync = i64::from(record.number) == libc::SYS_fsync;
                (StepKind::Sync, None, 0, u32::from(is_fsync), None)
            }
            Shape::Map if anonymous => (StepKind::MmapAnon, None, arguments[1], flags, Some(bytes)),
            Shape::Map => (StepKind::Map, Some(arguments[5]), arguments[1], flags, Some(bytes)),
            Shape::Unmap => (StepKind::Munmap, None, arguments[1], 0, Some(arguments[0])),
            Shape::Advise => (StepKind::Advise, Some(arguments[1]), arguments[2], flags, None),
            Shape::Allocate => {
                (StepKind::Allocate, Some(arguments[2]), arguments[3], arguments[1] as u32, None)
            }
            Shape::AdviseMap => {
                (StepKind::AdviseMap, None, arguments[1], arguments[2] as u32, Some(arguments[0]))
            }
            Shape::Open { .. } => {
                (StepKind::Open, None, 0, open_flags(i64::from(record.number), arguments), None)
            }
            _ => return None,
        };
        let file = record.file.map(|file| {
            let next = self.serials.len() as u32;
            // Whether a descriptor is closed at exec changes nothing for its calls.
            let open = (file, portable_flags(record.flags & !(libc::O_CLOEXEC as u32)));
            *self.serials.entry(open).or_insert(next)
        });
        let buffer_offset = match kind {
            StepKind::Read | StepKind::Write => memory.map(|at| (at % PAGE) as u16),
            _ => None,
        };
        let time_ns = record.returned_ns.saturating_sub(record.entered_ns);
        let step =
            Step { kind, file, place, bytes, argument, buffer_offset, count: 1, time_ns, ..Step::default() };
        Some(Seen { step, memory })
    }

    fn note(&mut self, record: &CallRecord, mut seen: Seen) {
        if self.steps.len() >= CallPattern::MAX_STRETCH_STEPS {
            return;
        }
        let Some(fresh) = self.pieces.take(record.pid, &seen.step, seen.memory) else { return };
        if let (StepKind::AdviseMap, Some(at)) = (seen.step.kind, seen.memory) {
            let mapped = self.pieces.file_at(record.pid, at);
            (seen.step.file, seen.step.place) = (mapped.map(|m| m.file), mapped.map(|m| m.offset));
        }
        let next = self.threads.len() as u32;
        let thread = *self.threads.entry(record.tid).or_insert(next);
        if let Some(whole) = &mut self.whole {
            let gap_ns = self.between.get_mut(&record.tid).map_or(0, |(_, gap)| std::mem::take(gap));
            let begin_ns = record.entered_ns.saturating_sub(self.start_ns);
            whole.step(begin_ns, Step { thread, fresh, gap_ns, ..seen.step });
            return;
        }
        let (returned, index) = self.last.get(&record.tid).copied().unwrap_or((self.start_ns, None));
        let gap_ns = record.entered_ns.saturating_sub(returned);
        let step = Step { thread, fresh, gap_ns, ..seen.step };
        let before = index.and_then(|index| self.steps.get_mut(index));
        let index = if before.is_some_and(|before| before.absorb(&step)) {
            index
        } else {
            self.steps.push(step);
            Some(self.steps.len() - 1)
        };
        self.last.insert(record.tid, (record.returned_ns, index));
        self.end_ns = self.end_ns.max(record.returned_ns);
    }

    /// Calls are not recorded from now on.
    pub(crate) fn end(&mut self) {
        self.end_stretch();
        self.last.clear();
    }

    fn end_stretch(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let stretch = Stretch { length_ns: self.end_ns.saturating_sub(self.start_ns), steps };
        match self.loaded_ns.take() {
            Some(_) => self.loading = stretch,
            None => self.stretches.add(stretch),
        }
        self.pieces.clear();
    }

    /// All that was logged. `path` tells where a file was when it was met first. The time in which the program was loaded
    /// is left out where anything was recorded after it.
    pub(crate) fn finish(mut self, path: impl Fn(FileKey) -> Option<String>) -> (CallPattern, Durations) {
        self.end();
        let CallLog { serials, mut stretches, loading, by_number, by_file, whole, overlap, names, .. } = self;
        (stretches.overlap, stretches.lookups) = (overlap.share(), names.lookups());
        if let Some(whole) = whole {
            let on_files: HashSet<u32> = serials
                .iter()
                .filter(|((file, _), _)| file.has_offsets())
                .map(|(_, serial)| *serial)
                .collect();
            let (record, part) = whole.finish(|serial| on_files.contains(&serial));
            (stretches.record, stretches.stretches) = (Some(record), vec![part]);
        } else if stretches.stretches.is_empty() {
            stretches.add(loading);
        }
        let named_durations =
            |(number, sum): (u32, Duration)| Some((syscalls::name(i64::from(number))?, sum));
        let by_name = by_number.into_iter().filter_map(named_durations).collect();
        let mut durations = Durations { by_name, by_path: HashMap::new() };
        for (file, sums) in by_file {
            let Some(path) = path(file) else { continue };
            let entry = durations.by_path.entry(path).or_default();
            for (sum, more) in entry.iter_mut().zip(sums) {
                sum.calls += more.calls;
                sum.time_ns = sum.time_ns.saturating_add(more.time_ns);
            }
        }
        (named(stretches, &serials, path), durations)
    }
}

/// Where a transfer began, where that is known.
fn offset(record: &CallRecord, direction: Direction, place: Place) -> Option<u64> {
    record.file.filter(|file| file.has_offsets())?;
    // A write by position to such a file moves the position to its end; one at an offset ignores the offset.
    let appends = direction == Direction::Write && record.flags & libc::O_APPEND as u32 != 0;
    if appends && place != Place::Position {
        return None;
    }
    let by_position = record.position.checked_sub(u64::try_from(record.value).unwrap_or(0));
    match place {
        Place::Position => by_position,
        Place::Argument(index) => Some(record.arguments[index]),
        Place::ArgumentOrPosition(index) if record.arguments[index] == u64::MAX => by_position,
        Place::ArgumentOrPosition(index) => Some(record.arguments[index]),
        Place::Pointer(index) if record.arguments[index] == 0 => by_position,
        Place::Pointer(_) => None,
    }
}

/// Gives the files of all steps their paths.
fn named(
    logged: CallPattern,
    serials: &HashMap<(FileKey, u32), u32>,
    path: impl Fn(FileKey) -> Option<String>,
) -> CallPattern {
    let mut uses: HashMap<u32, u64> = HashMap::new();
    let steps = logged.stretches.iter().flat_map(|s| &s.steps).map(|s| (s.file, u64::from(s.count)));
    let totals = logged.record.iter().flat_map(|r| &r.totals).map(|t| (t.file, t.calls));
    for (file, calls) in steps.chain(totals) {
        if let Some(file) = file {
            *uses.entry(file).or_default() += calls;
        }
    }
    let mut by_serial: Vec<((FileKey, u32), u32)> = serials
        .iter()
        .map(|(open, serial)| (*open, *serial))
        .filter(|(_, serial)| uses.contains_key(serial))
        .collect();
    by_serial.sort_by_key(|(_, serial)| (std::cmp::Reverse(uses[serial]), *serial));
    let mut pattern =
        CallPattern { overlap: logged.overlap, lookups: logged.lookups, ..CallPattern::default() };
    let mut index: HashMap<u32, u32> = HashMap::new();
    for (nth, ((file, flags), serial)) in by_serial.into_iter().enumerate() {
        let known = path(file).filter(|_| nth < MAX_FILES);
        let (path, kind) = known.as_deref().map_or((UNKNOWN, "unknown"), |path| (path, file.kind()));
        index.insert(serial, pattern.file(path, kind, Some(flags)));
    }
    let at = |serial: Option<u32>| serial.and_then(|serial| index.get(&serial).copied());
    for Stretch { length_ns, mut steps } in logged.stretches {
        steps.iter_mut().for_each(|step| step.file = at(step.file));
        match logged.record {
            Some(_) => pattern.stretches.push(Stretch { length_ns, steps }),
            None => pattern.add(Stretch { length_ns, steps }),
        }
    }
    pattern.record = logged.record.map(|mut record| {
        record.totals = merged(record.totals.into_iter().map(|t| StepTotal { file: at(t.file), ..t }));
        record
    });
    pattern
}

/// One sum for each file and kind: files without a path are one.
fn merged(totals: impl Iterator<Item = StepTotal>) -> Vec<StepTotal> {
    let mut merged: Vec<StepTotal> = Vec::new();
    for total in totals {
        match merged.iter_mut().find(|known| (known.file, known.kind) == (total.file, total.kind)) {
            Some(sum) => {
                sum.calls += total.calls;
                sum.bytes = sum.bytes.saturating_add(total.bytes);
                sum.time_ns = sum.time_ns.saturating_add(total.time_ns);
            }
            None => merged.push(total),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
