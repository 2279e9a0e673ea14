//! The calls of a burst in their order, as far as they move bytes or steer how bytes are moved: what a replay needs, in
//! bounded memory. A file is the serial number of its open description, which is resolved when the burst has ended.

use std::collections::HashMap;

use iowhy_core::profile::{CallPattern, Step, StepKind, Stretch};

use super::descriptors::Ended;

/// Less anonymous memory than this is the small change of an allocator.
const MIN_TAKEN_BYTES: u64 = 64 << 10;
/// Places of buffers are told within a page.
const PAGE: u64 = 4096;
/// Pieces of memory that are remembered of one process.
const MAX_PIECES: usize = 1024;

/// Memory that was mapped in this burst.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    bytes: u64,
    /// Anonymous, and nothing was read into it yet.
    unused: bool,
}

/// One call as the tracer saw it return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) entered_ns: u64,
    pub(super) returned_ns: u64,
    pub(super) kind: StepKind,
    /// Serial number of the description.
    pub(super) file: Option<u32>,
    pub(super) place: Option<u64>,
    pub(super) bytes: u64,
    pub(super) argument: u32,
    /// Where in the program's memory, for calls that have such a place.
    pub(super) memory: Option<u64>,
}

/// What is logged.
#[derive(Debug, Default)]
pub(super) struct StepLog {
    pattern: CallPattern,
    /// Numbers of threads, over all bursts.
    threads: HashMap<u32, u32>,
    steps: Vec<Step>,
    /// By thread: when its last call returned, and the index of its last step.
    last: HashMap<u32, (u64, Option<usize>)>,
    pieces: HashMap<u32, Vec<Piece>>,
    start_ns: u64,
    end_ns: u64,
}

impl StepLog {
    /// A burst begins.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.steps.clear();
        self.last.clear();
        self.pieces.clear();
        self.start_ns = now_ns;
        self.end_ns = now_ns;
    }

    /// A call returned and had succeeded.
    pub(super) fn note(&mut self, seen: Seen) {
        if self.steps.len() >= CallPattern::MAX_STRETCH_STEPS {
            return;
        }
        let Some(fresh) = self.memory(&seen) else { return };
        let next = self.threads.len() as u32;
        let thread = *self.threads.entry(seen.tid).or_insert(next);
        let (returned, index) = self.last.get(&seen.tid).copied().unwrap_or((self.start_ns, None));
        let step = Step {
            thread,
            kind: seen.kind,
            file: seen.file,
            place: seen.place,
            bytes: seen.bytes,
            argument: seen.argument,
            fresh,
            buffer_offset: match seen.kind {
                StepKind::Read | StepKind::Write => seen.memory.map(|at| (at % PAGE) as u16),
                _ => None,
            },
            count: 1,
            stride: 0,
            gap_ns: seen.entered_ns.saturating_sub(returned),
            time_ns: seen.returned_ns.saturating_sub(seen.entered_ns.max(self.start_ns)),
        };
        let before = index.and_then(|index| self.steps.get_mut(index));
        let index = if before.is_some_and(|before| before.absorb(&step)) {
            index
        } else {
            self.steps.push(step);
            Some(self.steps.len() - 1)
        };
        self.last.insert(seen.tid, (seen.returned_ns, index));
        self.end_ns = self.end_ns.max(seen.returned_ns);
    }

    /// Follows memory that comes and goes. Returns whether the call is the first to use its memory; `None` where the
    /// call concerns memory that is none of the program's files or buffers.
    fn memory(&mut self, seen: &Seen) -> Option<bool> {
        let pieces = self.pieces.entry(seen.pid).or_default();
        let holds = |p: &Piece, at: u64| at.checked_sub(p.start).is_some_and(|into| into < p.bytes);
        match (seen.kind, seen.memory) {
            (StepKind::MmapAnon, _) if seen.bytes < MIN_TAKEN_BYTES => None,
            (StepKind::MmapAnon | StepKind::Map, Some(start)) => {
                if pieces.len() >= MAX_PIECES {
                    pieces.remove(0);
                }
                pieces.push(Piece { start, bytes: seen.bytes, unused: seen.kind == StepKind::MmapAnon });
                Some(false)
            }
            (StepKind::Munmap, Some(start)) => {
                let at = pieces.iter().position(|p| holds(p, start))?;
                pieces.remove(at);
                Some(false)
            }
            (StepKind::AdviseMap, Some(at)) => pieces.iter().any(|p| holds(p, at)).then_some(false),
            (StepKind::Read | StepKind::Write, Some(at)) => {
                let piece = pieces.iter_mut().find(|p| holds(p, at));
                Some(piece.is_some_and(|p| std::mem::take(&mut p.unused)))
            }
            _ => Some(false),
        }
    }

    /// The burst ended; `ended` tells what its descriptions were.
    pub(super) fn end(&mut self, ended: Vec<Ended>) {
        let files: HashMap<u32, Ended> = ended.into_iter().map(|e| (e.serial, e)).collect();
        let mut steps = std::mem::take(&mut self.steps);
        for step in &mut steps {
            step.file = step
                .file
                .and_then(|serial| files.get(&serial))
                .map(|e| self.pattern.file(&e.path, &e.kind, e.flags.map(|f| f & !(libc::O_CLOEXEC as u32))));
        }
        self.pattern.add(Stretch { length_ns: self.end_ns.saturating_sub(self.start_ns), steps });
    }

    /// All that was logged.
    pub(super) fn take(&mut self) -> CallPattern {
        std::mem::take(&mut self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: StepKind, entered_ns: u64) -> Seen {
        Seen {
            pid: 1,
            tid: 1,
            entered_ns,
            returned_ns: entered_ns + 5,
            kind,
            file: Some(3),
            place: None,
            bytes: 0,
            argument: 0,
            memory: None,
        }
    }

    fn ended() -> Vec<Ended> {
        vec![Ended { serial: 3, path: "/a".into(), kind: "regular".into(), flags: Some(0) }]
    }

    #[test]
    fn calls_of_one_kind_in_a_row_are_one_step_with_the_time_between() {
        let mut log = StepLog::default();
        log.begin(100);
        for i in 0..10 {
            let place = Some(i * 64);
            log.note(Seen { place, bytes: 64, ..seen(StepKind::Read, 110 + i * 10) });
        }
        log.note(seen(StepKind::Sync, 300));
        log.end(ended());
        let pattern = log.take();
        let steps = &pattern.stretches[0].steps;
        assert_eq!((steps.len(), steps[0].count, steps[0].stride), (2, 10, 64));
        assert_eq!((steps[0].gap_ns, steps[0].time_ns), (10 + 9 * 5, 50));
        assert_eq!(steps[1].gap_ns, 300 - 205);
        assert_eq!((pattern.files[0].path.as_str(), steps[0].file), ("/a", Some(0)));
        assert_eq!(pattern.stretches[0].length_ns, 205);
    }

    #[test]
    fn memory_that_is_taken_for_a_read_is_fresh_once() {
        let mut log = StepLog::default();
        log.begin(0);
        let take = Seen { memory: Some(4096), bytes: 1 << 20, ..seen(StepKind::MmapAnon, 1) };
        log.note(take);
        for at in [10, 20] {
            log.note(Seen { memory: Some(5000), bytes: 100, place: Some(at), ..seen(StepKind::Read, at) });
        }
        log.note(Seen { memory: Some(4096), bytes: 1 << 20, ..seen(StepKind::Munmap, 30) });
        // Neither small pieces nor memory that was there before are told.
        log.note(Seen { memory: Some(1 << 30), bytes: 4096, ..seen(StepKind::MmapAnon, 40) });
        log.note(Seen { memory: Some(1 << 31), bytes: 4096, ..seen(StepKind::Munmap, 50) });
        log.end(ended());
        let steps = log.take().stretches.remove(0).steps;
        let kinds: Vec<_> = steps.iter().map(|s| (s.kind, s.fresh)).collect();
        let expected = [
            (StepKind::MmapAnon, false),
            (StepKind::Read, true),
            (StepKind::Read, false),
            (StepKind::Munmap, false),
        ];
        assert_eq!(kinds, expected);
        let offsets: Vec<Option<u16>> = steps.iter().map(|s| s.buffer_offset).collect();
        assert_eq!(offsets, [None, Some(5000 - 4096), Some(5000 - 4096), None]);
    }

    #[test]
    fn a_stretch_is_bounded() {
        let mut log = StepLog::default();
        log.begin(0);
        for i in 0..2 * CallPattern::MAX_STRETCH_STEPS as u64 {
            log.note(Seen { place: Some(i * i), bytes: 1, ..seen(StepKind::Read, i * 10) });
        }
        log.end(ended());
        assert_eq!(log.take().stretches[0].steps.len(), CallPattern::MAX_STRETCH_STEPS);
    }
}
