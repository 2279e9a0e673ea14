//! What the program's own reads and writes would miss at each size of the page cache: the exact LRU curve of its recorded calls, where
//! nearly all of them were recorded. The kernel's cache is no exact LRU, so this is a model and says so.
//! Non-goal: mapped pages, which are in no call.

use std::collections::HashMap;

use iowhy_core::profile::{Step, StepKind};
use iowhy_sim::curve::lru::{LruCounter, LruCurve};

use super::super::facts::{PAGE_BYTES, Side, is_storage_kind};
use super::super::{Facts, say};

/// This part of the calls on files must be in the record: the curve is of all of them then, give or take as much.
const RECORDED: f64 = 0.99;
/// References to pages beyond which no curve is made: it takes 50 ns a page.
const MAX_REFERENCES: u64 = 1 << 21;
/// A size that misses less than this share more than the next larger one is as good as that.
const SAME: f64 = 0.02;
/// Sizes that are told, each half of the next one.
const SIZES: u32 = 4;

/// The curve.
pub(super) struct OwnCurve(LruCurve);

impl OwnCurve {
    /// `None`: too few of the calls were recorded, or too many pages.
    pub(super) fn new(facts: &Facts<'_>) -> Option<OwnCurve> {
        let pattern = &facts.profile.pattern;
        // One file may be open in several ways.
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let files: Vec<Option<(u32, u64)>> = pattern
            .files
            .iter()
            .map(|file| {
                let next = numbers.len() as u32;
                let number = *numbers.entry(&file.path).or_insert(next);
                let size = file.identity.map_or(u64::MAX, |identity| identity.size_bytes);
                is_storage_kind(&file.kind).then_some((number, size))
            })
            .collect();
        let (mut calls, mut left) = (0, MAX_REFERENCES);
        let mut pages: HashMap<(u32, u64), u32> = HashMap::new();
        let mut counter = LruCounter::new();
        let mut ids = Vec::new();
        for step in pattern.stretches.iter().flat_map(|stretch| &stretch.steps) {
            let file = step.file.and_then(|file| *files.get(file as usize)?);
            let (Some((file, size)), Some(_)) = (file, step.place) else { continue };
            if !matches!(step.kind, StepKind::Read | StepKind::Write) {
                continue;
            }
            calls += u64::from(step.count);
            for (first, last) in ranges(step, size) {
                left = left.checked_sub(last + 1 - first)?;
                for page in first..=last {
                    let next = pages.len() as u32;
                    ids.push(*pages.entry((file, page)).or_insert(next));
                }
            }
            counter.references(&ids);
            ids.clear();
        }
        let counted: u64 = facts.storage_files().map(|f| f.reads.calls.saturating_add(f.writes.calls)).sum();
        let all = Side::BOTH.iter().all(|side| facts.calls_are_counted_by_file(*side));
        (all && counted > 0 && calls as f64 >= RECORDED * counted as f64).then(|| OwnCurve(counter.finish()))
    }

    /// The smallest cache that keeps all that is used again, in bytes; `None`: nothing is.
    pub(super) fn working_set(&self) -> Option<f64> {
        let reused = self.0.references() - self.0.distinct();
        let almost = self.0.distinct() + (SAME * reused as f64) as u64;
        self.0.smallest(almost).filter(|room| reused > 0 && *room > 0).map(|room| room as f64 * PAGE_BYTES)
    }

    /// `3 MiB 100 %, 6 MiB 60 %, 12 MiB 25 % (only first uses)`.
    pub(super) fn evidence(&self) -> Option<String> {
        let enough = self.working_set()?;
        let mut told: Vec<(f64, f64)> = Vec::new();
        for halved in (0..SIZES).rev() {
            let bytes = enough / f64::from(1 << halved);
            let ratio = self.0.miss_ratio((bytes / PAGE_BYTES) as u64);
            if told.last().is_some_and(|(_, before)| before - ratio < SAME) {
                told.pop();
            }
            told.push((bytes, ratio));
        }
        let words: Vec<String> = told
            .iter()
            .map(|(bytes, ratio)| format!("{} {}", say::bytes(*bytes), say::percent(*ratio)))
            .collect();
        Some(format!(
            "pages of its own reads and writes that miss a page cache of a size (LRU, modelled): {}; a larger one helps nothing",
            words.join(", ")
        ))
    }
}

/// First and last page of each call of a step that moves something.
fn ranges(step: &Step, size: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let page = PAGE_BYTES as u64;
    (0..i64::from(step.count)).filter_map(move |n| {
        let from = step.place?.checked_add_signed(step.stride.checked_mul(n)?)?;
        let to = from.checked_add(step.bytes)?.min(if step.kind == StepKind::Read { size } else { u64::MAX });
        (to > from).then(|| (from / page, (to - 1) / page))
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{CallPattern, Stretch};

    use super::*;
    use crate::findings::synthetic::{Run, access};

    /// Passes over a file of 64 pages, of which these calls were recorded.
    fn passes(recorded: u32) -> Run {
        let mut pattern = CallPattern::default();
        let file = Some(pattern.file("/data", "regular", None));
        let step = Step { file, place: Some(0), bytes: 4096, count: 64, stride: 4096, ..Step::default() };
        let steps = vec![step; (recorded / 64) as usize];
        pattern.add(Stretch { length_ns: 1, steps });
        Run::new(1.0)
            .io((640, 640 * 4096), (0, 0))
            .calls(&[("pread64", 640), ("openat", 1)])
            .file(64 * 4096, |f| f.reads = access(640, 640 * 4096, 640))
            .with(|p| p.pattern = pattern)
    }

    #[test]
    fn passes_over_a_file_need_all_of_it() {
        passes(640).facts(|facts| {
            let curve = OwnCurve::new(facts).unwrap();
            assert_eq!(curve.working_set(), Some(64.0 * 4096.0));
            let words = curve.evidence().unwrap();
            assert!(words.contains("128 KiB 100 %, 256 KiB 10 %;"), "{words}");
        });
    }

    #[test]
    fn where_calls_are_missing_there_is_no_curve() {
        passes(576).facts(|facts| assert!(OwnCurve::new(facts).is_none()));
        let once = passes(640).with(|p| p.pattern.stretches[0].steps.truncate(1));
        once.facts(|facts| assert!(OwnCurve::new(facts).is_none()));
    }

    #[test]
    fn what_is_used_once_has_no_working_set() {
        let run = passes(640).with(|p| {
            p.pattern.stretches[0].steps.truncate(1);
            p.files[0].reads = access(64, 64 * 4096, 64);
            p.calls.as_mut().unwrap().calls[0].calls = 64;
        });
        run.facts(|facts| {
            let curve = OwnCurve::new(facts).unwrap();
            assert_eq!((curve.working_set(), curve.evidence()), (None, None));
        });
    }

    #[test]
    fn a_read_beyond_the_end_moves_nothing() {
        let step = Step { place: Some(4096), bytes: 8192, count: 3, stride: 8192, ..Step::default() };
        assert_eq!(ranges(&step, 10_000).collect::<Vec<_>>(), [(1, 2)]);
        let write = Step { kind: StepKind::Write, ..step };
        assert_eq!(ranges(&write, 10_000).collect::<Vec<_>>(), [(1, 2), (3, 4), (5, 6)]);
    }
}
