//! The page cache of the user's files, put back after replays that were not asked for.
//!
//! A cold replay drops pages that the user may want: what was cached before is read again at the end, and no more is dropped than
//! the caller allows.

use iowhy_core::replay::{Op, Plan, PlanFile, Role, State};
use iowhy_core::units::Bytes;
use iowhy_probe::residency;

use super::files::{self, ReplayFile};

/// Pages are looked at and read again in pieces of this size.
const PIECE_BYTES: u64 = 2 << 20;
/// Ranges that calls come to are looked at as one where they are as near as this: twice the usual read-ahead.
const NEAR_BYTES: u64 = 256 << 10;
/// A file is cold if at most 1/N of its pages is cached.
const COLD_PART: u64 = 20;
/// Bytes of a warm file that may have to be fetched.
const MAX_FETCHED_BYTES: u64 = 64 << 20;

/// Dropping it reads again what was cached.
#[derive(Debug)]
pub struct CacheBefore {
    files: Vec<(ReplayFile, Vec<u64>)>,
}

impl CacheBefore {
    /// Looks at the user's files of a plan. `may_drop`: cached bytes that may be dropped for a while.
    ///
    /// # Errors
    /// The files are not in the cache state that the plan begins with, and bringing them there would take or drop too much, as the
    /// end of a sentence.
    pub fn look(plan: &Plan, may_drop: u64) -> Result<CacheBefore, String> {
        let mut before = CacheBefore { files: Vec::new() };
        let mut dropped = 0;
        let page = rustix::param::page_size() as u64;
        let users = |f: &&PlanFile| f.role == Role::User && f.size_bytes > 0 && !f.direct;
        for (at, planned) in (0..).zip(&plan.files).filter(|(_, f)| users(f)) {
            let file = files::open(planned, 0).map_err(|problem| problem.message)?;
            let look = |from: u64, bytes: u64| {
                residency::look(file.plain(), from, bytes)
                    .map_err(|why| format!("the page cache of `{}` is not visible: {why}", planned.path))
            };
            let seen = look(0, planned.size_bytes)?;
            match planned.state {
                State::Warm => {
                    let mut missing = 0;
                    for (from, to) in called(plan, at) {
                        let seen = look(from, to - from)?;
                        missing += (seen.pages - seen.resident) * page;
                    }
                    if missing > MAX_FETCHED_BYTES {
                        return Err(format!(
                            "{} of `{}` are not in the page cache, and were there while the program ran",
                            Bytes(missing),
                            planned.path
                        ));
                    }
                }
                State::Cold if seen.resident * COLD_PART <= seen.pages => {}
                State::Cold => {
                    dropped += seen.resident * page;
                    if dropped > may_drop {
                        return Err(format!(
                            "it would drop {} of `{}` from the page cache",
                            Bytes(seen.resident * page),
                            planned.path
                        ));
                    }
                    let pieces = pieces(&file, planned.size_bytes);
                    before.files.push((file, pieces));
                }
            }
        }
        Ok(before)
    }

    /// Bytes that are read again at the end, if all of them are dropped.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, pieces)| pieces.len() as u64 * PIECE_BYTES).sum()
    }
}

/// Ranges of a file that calls of a plan come to, in order, those that are near each other as one: from and to. All of the file, where each
/// run comes to other places or offsets wrap around. There are no more of them than actions, nor than fit into the file.
fn called(plan: &Plan, file: u32) -> Vec<(u64, u64)> {
    let Some(planned) = plan.files.get(file as usize) else { return Vec::new() };
    let whole = vec![(0, planned.size_bytes)];
    if planned.shift_bytes > 0 {
        return whole;
    }
    let mut ranges = Vec::new();
    for action in plan.actions().filter(|a| a.file == file && a.bytes > 0 && a.op != Op::SmallFile) {
        let (first, last) = (action.at(0), action.at(action.count.saturating_sub(1)));
        let end = first.max(last).saturating_add(action.bytes);
        if end > planned.size_bytes {
            return whole;
        }
        ranges.push((first.min(last), end));
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let near = next.0 <= last.1.saturating_add(NEAR_BYTES);
        if near {
            last.1 = last.1.max(next.1);
        }
        near
    });
    ranges
}

/// Where pieces begin of which most is cached.
fn pieces(file: &ReplayFile, bytes: u64) -> Vec<u64> {
    let starts = (0..bytes.div_ceil(PIECE_BYTES)).map(|i| i * PIECE_BYTES);
    let cached = |start: &u64| {
        residency::look(file.plain(), *start, PIECE_BYTES.min(bytes - start))
            .is_ok_and(|seen| 2 * seen.resident > seen.pages)
    };
    starts.filter(cached).collect()
}

impl Drop for CacheBefore {
    fn drop(&mut self) {
        for (file, pieces) in &self.files {
            for start in pieces {
                // The page cache is no data: what cannot be read again is read by the next who wants it.
                let _ = residency::pass(file.plain(), *start, PIECE_BYTES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn of_a_warm_file_only_what_calls_come_to_must_be_cached() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("library");
        let bytes = MAX_FETCHED_BYTES + (8 << 20);
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        let missing = |read: u64, shift_bytes: u64| {
            let planned = PlanFile {
                size_bytes: bytes,
                shift_bytes,
                ..PlanFile::new(path.to_str().unwrap(), Role::User)
            };
            let read = iowhy_core::replay::Action::one(Op::Read { fresh: false }, 0, 4096, read, 0.0);
            let plan = Plan { files: vec![planned], threads: vec![vec![read]], ..Plan::default() };
            CacheBefore::look(&plan, 0).map(|_| ())
        };
        if residency::look(file.as_fd(), 0, bytes).is_err() {
            // Not the owner, or a kernel that shows nothing.
            return assert!(missing(4096, 0).is_err());
        }
        assert_eq!(missing(4096, 0), Ok(()));
        assert!(missing(bytes, 0).is_err() && missing(4096, 4096).is_err());
    }

    #[test]
    fn ranges_of_calls_are_few_however_many_calls_there_are() {
        use iowhy_core::replay::Action;
        let read = |offset, bytes, count, stride| Action {
            count,
            stride,
            ..Action::one(Op::Read { fresh: false }, 0, offset, bytes, 0.0)
        };
        let ranges = |size_bytes, actions: Vec<Action>| {
            let file = PlanFile { size_bytes, ..PlanFile::new("/d", Role::User) };
            called(&Plan { files: vec![file], threads: vec![actions], ..Plan::default() }, 0)
        };
        let far = 1 << 50;
        let all = vec![read(far, 4096, 1 << 24, -4096), read(0, 100, 1, 0), read(NEAR_BYTES, 100, 1, 0)];
        let backwards = far - ((1 << 24) - 1) * 4096;
        assert_eq!(ranges(1 << 60, all), [(0, NEAR_BYTES + 100), (backwards, far + 4096)]);
        assert_eq!(ranges(1000, vec![read(990, 100, 1, 0)]), [(0, 1000)], "it wraps around");
        assert_eq!(ranges(1000, vec![read(0, 0, 9, 0)]), [], "a seek comes to nothing");
    }

    #[test]
    fn what_was_cached_is_cached_again_and_no_more_is_dropped_than_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let bytes = 3 * PIECE_BYTES;
        std::fs::write(&path, vec![7; bytes as usize]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        let plan = |state| Plan {
            files: vec![PlanFile {
                size_bytes: bytes,
                state,
                ..PlanFile::new(path.to_str().unwrap(), Role::User)
            }],
            ..Plan::default()
        };
        let cached = || residency::look(file.as_fd(), 0, bytes).map(|seen| seen.share());
        if cached().is_err() {
            // Not the owner, or a kernel that shows nothing: nothing may be dropped either.
            assert!(CacheBefore::look(&plan(State::Cold), u64::MAX).is_err());
            return;
        }
        assert!(CacheBefore::look(&plan(State::Cold), bytes / 2).unwrap_err().contains("would drop"));
        let before = CacheBefore::look(&plan(State::Cold), bytes).unwrap();
        residency::evict(file.as_fd(), 0, bytes).unwrap();
        if cached().unwrap() > 0.99 {
            return eprintln!("skipped: the temporary directory is in memory, where nothing can be evicted");
        }
        drop(before);
        assert!(cached().unwrap() > 0.99);
        assert!(CacheBefore::look(&plan(State::Warm), 0).is_ok());
    }
}
