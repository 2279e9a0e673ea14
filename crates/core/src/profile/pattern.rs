//! Stretches of the calls that a program made, in their order, with offsets, sizes and the time between: the source of a
//! replay. Counts are elsewhere ([`super::CallCounts`]).
//! Invariant: its size does not grow with the length of a run ([`CallPattern::MAX_STEPS`]).

use std::collections::BTreeMap;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// What was seen, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPattern {
    /// Files that the steps refer to by index; one entry for each way in which a file was open. Files that were mapped and
    /// are in no step follow.
    pub files: Vec<PatternFile>,
    /// Those that are kept, in order of time. With a [`CompleteRecord`] one: the part of it that a replay takes.
    pub stretches: Vec<Stretch>,
    /// Every call was recorded; absent where windows of calls were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<CompleteRecord>,
    /// Of the time in recorded calls on files with offsets and in page faults on mapped ones, the share in which another thread was in one as well, 0 to 1:
    /// near 0, threads take turns. Absent where no such call was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Look-ups of names; absent where none was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<Lookups>,
}

/// A record of every call of a run, from its start. All calls of the program but the last ones ([`CompleteRecord::missing`]) are in
/// the sums; none is missing between two others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompleteRecord {
    /// System calls in the record, of all kinds.
    pub calls: u64,
    /// System calls, and page faults where those are recorded, after those: the room for the record was full.
    pub missing: u64,
    /// Page faults of the program's own code in the record, those on anonymous memory as well.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub faults: u64,
    /// Time in the page faults that `faults` counts, of all threads together.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub fault_time_ns: u64,
    /// From the start of the record to the return of its last call.
    pub length_ns: u64,
    /// Where the stretch begins, from the start of the record.
    pub from_ns: u64,
    /// By how much the observer lengthened each recorded duration, measured after the run; absent where that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess_ns: Option<f64>,
    /// What recording a page fault took of the program's time, and by how much it lengthened its recorded duration; absent where no fault
    /// was recorded, or that could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_cost_ns: Option<f64>,
    /// See `fault_cost_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_excess_ns: Option<f64>,
    /// Sums over all steps of the record, by file and kind.
    pub totals: Vec<StepTotal>,
}

/// Steps of one kind on one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepTotal {
    /// Index into [`CallPattern::files`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u32>,
    /// The kind.
    pub kind: StepKind,
    /// Calls.
    pub calls: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Time in these calls, of all threads together.
    pub time_ns: u64,
}

/// A file with its flags when it was open and its identity at the end of the watch, which a replay checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternFile {
    /// Its path when it was met first, with ` (deleted)` where it is not there at the end; `?` for all files beyond the bound.
    pub path: String,
    /// As in [`super::FileUse::kind`].
    pub kind: String,
    /// Flags as in open(2) on x86-64, where known, without O_CLOEXEC and those that only matter to the open itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<u32>,
    /// Size, time of last change and identity, where its path still led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
    /// Whether it was made while the program was watched, by the time that its file system keeps of it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<bool>,
}

/// What tells a file from another, and from itself after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileIdentity {
    /// Number of the device it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its size.
    pub size_bytes: u64,
    /// When its content changed last: nanoseconds since the epoch.
    pub modified_ns: i64,
}

/// Calls that were recorded without a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Its length.
    pub length_ns: u64,
    /// Calls in order of their return. Calls that are none of [`StepKind`] are left out; their time is in the gaps.
    pub steps: Vec<Step>,
}

impl Stretch {
    /// Calls in it.
    pub fn calls(&self) -> u64 {
        self.steps.iter().map(|s| u64::from(s.count)).sum()
    }
}

/// What a call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Bytes from a file.
    #[default]
    Read,
    /// Bytes to a file.
    Write,
    /// The position of a descriptor is set.
    Seek,
    /// fsync, fdatasync.
    Sync,
    /// A file is mapped: with its offset, `argument` holds the flags.
    Map,
    /// Anonymous memory of 64 KiB or more is mapped: `argument` holds the flags.
    MmapAnon,
    /// Memory that was mapped in this stretch is unmapped.
    Munmap,
    /// posix_fadvise: `argument` is the advice; `bytes` 0 means to the end.
    Advise,
    /// madvise: `argument` is the advice; of a file that was mapped in this stretch with its offset.
    AdviseMap,
    /// fallocate of a range: `argument` is the mode.
    Allocate,
    /// A file was opened (in this stretch; the open itself); `file` is what was opened, `argument` the flags that were asked for, as
    /// in open(2) (0 for openat2).
    Open,
    /// No call: the program touched a page of a file that was mapped in this record, and that took a page fault. `argument` is the last advice
    /// on the order of accesses there (madvise). Pages that the kernel mapped along with it are in no step, nor are touches by calls.
    /// Only in a [`CompleteRecord`].
    Touch,
}

/// Recorded calls that looked a name up and opened nothing: stat, access and readlink that found it or found that there is none, and opens that
/// found none. The names themselves are not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lookups {
    /// Look-ups.
    pub calls: u64,
    /// Those of a name that had been looked up before in the record, with the same outcome. What was looked up while calls were not recorded is
    /// not known.
    pub repeated: u64,
    /// Those of names beyond the number that is told apart, of which none counts as repeated.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub beyond: u64,
}

impl Lookups {
    /// Look-ups for each name and outcome, at least; `None` without any.
    pub fn each(&self) -> Option<f64> {
        let first = self.calls.saturating_sub(self.repeated);
        (first > 0).then(|| self.calls as f64 / first as f64)
    }
}

/// One call, or a run of equal ones at evenly spaced offsets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Number of the thread within the run, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thread: u32,
    /// What it does.
    pub kind: StepKind,
    /// Index into [`CallPattern::files`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u32>,
    /// Offset in the file, where known.
    #[serde(rename = "offset", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Bytes asked for.
    #[serde(default, skip_serializing_if = "is_none_asked")]
    pub bytes: u64,
    /// See [`StepKind`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub argument: u32,
    /// Whether the bytes went to or came from memory that was taken for this call alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Where in its page the memory begins that the bytes went to or came from, 0 to 4,095; absent where calls of the run
    /// differ, and in kinds of calls without such memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_offset: Option<u16>,
    /// Equal calls in a row, at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// From the offset of one to that of the next.
    #[serde(default, skip_serializing_if = "is_still")]
    pub stride: i64,
    /// Time since the same thread's call before returned, summed over the run; tracing is in it. In a [`CompleteRecord`]: without the
    /// time in calls between that are no steps.
    pub gap_ns: u64,
    /// Time in the calls, summed over the run; tracing is in it.
    pub time_ns: u64,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_nothing(n: &u64) -> bool {
    *n == 0
}

fn is_none_asked(n: &u64) -> bool {
    *n == 0
}

fn is_still(n: &i64) -> bool {
    *n == 0
}

fn one() -> u32 {
    1
}

fn is_one(n: &u32) -> bool {
    *n == 1
}

impl Step {
    /// Takes `next` into this run of equal calls, if it continues it.
    pub fn absorb(&mut self, next: &Step) -> bool {
        let alike = self.thread == next.thread
            && self.kind == next.kind
            && self.file == next.file
            && self.bytes == next.bytes
            && self.argument == next.argument
            && self.fresh == next.fresh
            && !matches!(self.kind, StepKind::Map | StepKind::MmapAnon | StepKind::Munmap | StepKind::Open);
        let stride = match (self.place, next.place) {
            (None, None) => Some(0),
            (Some(first), Some(now)) => {
                let done = i64::from(self.count - 1).checked_mul(self.stride);
                let last = done.and_then(|done| first.checked_add_signed(done));
                last.and_then(|last| i64::try_from(i128::from(now) - i128::from(last)).ok())
            }
            _ => None,
        };
        let Some(stride) = stride.filter(|s| alike && (self.count == 1 || *s == self.stride)) else {
            return false;
        };
        let Some(count) = self.count.checked_add(next.count) else { return false };
        self.stride = stride;
        self.buffer_offset = self.buffer_offset.filter(|offset| next.buffer_offset == Some(*offset));
        self.count = count;
        self.gap_ns = self.gap_ns.saturating_add(next.gap_ns);
        self.time_ns = self.time_ns.saturating_add(next.time_ns);
        true
    }
}

/// Where in its page the memory begins that most bytes of these steps went to or came from; `None` where it is not known of
/// half of them.
pub fn buffer_offset<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<u16> {
    let mut by_offset: BTreeMap<u16, u64> = BTreeMap::new();
    let mut all = 0u64;
    for step in steps {
        let bytes = step.bytes.saturating_mul(u64::from(step.count.max(1)));
        all = all.saturating_add(bytes);
        if let Some(offset) = step.buffer_offset {
            let sum = by_offset.entry(offset).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let (offset, bytes) = by_offset.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    (bytes.saturating_mul(2) >= all).then_some(offset)
}

impl CallPattern {
    /// Steps of one stretch at the most.
    pub const MAX_STRETCH_STEPS: usize = 4096;
    /// Steps in all.
    const MAX_STEPS: usize = 8192;

    /// Adds a stretch. Where that is too many steps, those with the fewest calls go.
    pub fn add(&mut self, stretch: Stretch) {
        if stretch.steps.is_empty() {
            return;
        }
        self.stretches.push(stretch);
        while self.stretches.len() > 1
            && self.stretches.iter().map(|s| s.steps.len()).sum::<usize>() > Self::MAX_STEPS
        {
            let least = self.stretches.iter().enumerate().min_by_key(|(_, s)| s.calls()).map(|(i, _)| i);
            if let Some(least) = least {
                self.stretches.remove(least);
            }
        }
    }

    /// The index of a file that was open in this way; it is added where it is new.
    pub fn file(&mut self, path: &str, kind: &str, flags: Option<u32>) -> u32 {
        let same = |f: &PatternFile| f.path == path && f.kind == kind && f.flags == flags;
        let at = self.files.iter().position(same).unwrap_or_else(|| {
            self.files.push(PatternFile {
                path: path.into(),
                kind: kind.into(),
                flags,
                ..PatternFile::default()
            });
            self.files.len() - 1
        });
        at as u32
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty() && self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(place: u64) -> Step {
        Step { place: Some(place), bytes: 10, count: 1, gap_ns: 1, time_ns: 2, ..Step::default() }
    }

    #[test]
    fn a_run_of_equal_calls_is_one_step_whatever_its_stride() {
        for stride in [10, 4096, -10, 0] {
            let at = |i: i64| (100_000 + i * stride) as u64;
            let mut step = read(at(0));
            for i in 1..50 {
                assert!(step.absorb(&read(at(i))), "{stride} {i}");
            }
            assert_eq!((step.count, step.stride, step.gap_ns, step.time_ns), (50, stride, 50, 100));
            assert!(stride == 0 || !step.absorb(&read(at(51))), "a gap of two");
            assert!(!step.absorb(&Step { bytes: 11, ..read(at(50)) }));
            assert!(!step.absorb(&Step { kind: StepKind::Write, ..read(at(50)) }));
        }
    }

    #[test]
    fn the_place_of_the_memory_is_kept_while_it_is_the_same() {
        let from = |place: u64, offset: u16| Step { buffer_offset: Some(offset), ..read(place) };
        let mut step = from(0, 16);
        assert!(step.absorb(&from(10, 16)));
        assert_eq!(step.buffer_offset, Some(16));
        assert!(step.absorb(&from(20, 48)) && step.absorb(&from(30, 48)), "the run goes on");
        assert_eq!((step.buffer_offset, step.count), (None, 4));
    }

    #[test]
    fn the_place_of_most_bytes_counts_if_it_is_that_of_half_of_them() {
        let step = |buffer_offset, bytes, count| Step { buffer_offset, bytes, count, ..Step::default() };
        let of = |steps: &[Step]| buffer_offset(steps.iter());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[step(Some(16), 100, 3), step(Some(0), 200, 1)]), Some(16));
        assert_eq!(of(&[step(Some(16), 100, 3), step(None, 301, 1)]), None);
        assert_eq!(of(&[step(Some(16), 100, 3), step(Some(48), 300, 1), step(Some(0), 90, 1)]), None);
    }

    #[test]
    fn a_pattern_stays_bounded_and_keeps_the_fullest_stretches() {
        let mut pattern = CallPattern::default();
        for n in 0..5 {
            let count = if n == 2 { 1000 } else { n + 1 };
            let steps = vec![Step { count, ..read(7) }; 3000];
            pattern.add(Stretch { length_ns: 1, steps });
        }
        assert_eq!(pattern.stretches.len(), 2);
        let kept: Vec<u32> = pattern.stretches.iter().map(|s| s.steps[0].count).collect();
        assert_eq!(kept, [1000, 5]);
        pattern.add(Stretch::default());
        assert_eq!(pattern.stretches.len(), 2, "nothing was added");
    }

    #[test]
    fn files_are_told_apart_by_how_they_were_open_and_json_is_short() {
        let mut pattern = CallPattern::default();
        let a = pattern.file("/a", "regular", Some(0));
        assert_eq!((pattern.file("/a", "regular", Some(0)), pattern.file("/a", "regular", Some(1))), (a, 1));
        let text = serde_json::to_string(&read(5)).unwrap();
        assert_eq!(text, r#"{"kind":"read","offset":5,"bytes":10,"gap_ns":1,"time_ns":2}"#);
        assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), read(5));
    }
}
