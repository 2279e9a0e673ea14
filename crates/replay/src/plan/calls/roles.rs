//! How the files of a plan take part: as the user's own or as scratch files, from an empty or a full one, cold or warm.
//! Deliberately absent: which file a call is on.

use iowhy_core::profile::StepKind;
use iowhy_core::replay::{Action, Op, Role, State};
use iowhy_diagnose::account::Entry;
use iowhy_diagnose::classify::{Operation, Wait};
use iowhy_diagnose::repair::order::{self, Order};

use super::super::open_flags::{O_APPEND, O_CREAT, O_EXCL, O_TRUNC};
use super::{Builder, PAGE};

/// A file of which more was in the cache when it was first seen was warm.
const WARM: f64 = 0.9;
/// The device must have read so much of what was read or written, else nothing was cold.
const LITTLE: f64 = 0.05;
/// From this part of the bytes, or of the time of the calls, on, a run is one of a cold file; else of a cached one.
const HALF: f64 = 0.5;
/// From this many times the part of a file that is used on, each round goes to another part: devices and hosts cache.
const ROOM: f64 = 2.0;
/// A file that so many of the bytes go to or come from is the one that matters.
const MOSTLY: f64 = 0.4;

impl Builder<'_> {
    /// Decides how a file takes part. `from_start`: the part begins with the run.
    pub(super) fn settle(&mut self, at: usize, from_start: bool) -> Result<(), String> {
        let index = at as u32;
        let actions: Vec<&Action> =
            self.plan.actions().filter(|a| a.file == index && order::has_place(a.op)).collect();
        if self.plan.files[at].role == Role::Sink {
            return Ok(());
        }
        if self.plan.any(|a| a.file == index && a.op.makes_file()) {
            // Each of them begins empty, and later calls go to the next.
            let file = &mut self.plan.files[at];
            (file.role, file.state, file.size_bytes) = (Role::ScratchEmpty, State::Warm, 0);
            return Ok(());
        }
        let written = self
            .plan
            .any(|a| a.file == index && matches!(a.op, Op::Write | Op::Fsync { .. } | Op::Allocate { .. }));
        let (low, high) = order::extent(&actions).unwrap_or((0, 0));
        let reads = actions.iter().any(|a| matches!(a.op, Op::Read { .. }));
        let file = &self.plan.files[at];
        let path = file.path.clone();
        // Made or emptied when it was opened; or only appended to.
        let appended = order::order(&actions) == Order::Sequential && !reads;
        let begins_empty = (appended && !self.is_written_over(&path)) || (from_start && self.was_made(&path));
        let role = match written {
            false => Role::User,
            true if begins_empty => Role::ScratchEmpty,
            true => Role::ScratchFull,
        };
        let moved = |picked: &dyn Fn(&Action) -> bool| -> f64 {
            let of = |a: &Action| a.bytes as f64 * f64::from(a.count);
            self.plan.actions().filter(|a| order::has_place(a.op) && picked(a)).map(of).sum()
        };
        let share = moved(&|a| a.file == index) / moved(&|_| true).max(1.0);
        // A library that is loaded with the program, for instance, is beside the matter.
        let matters = share >= LITTLE;
        let cold = matters && self.was_cold(&file.path, role, self.touches.on(index));
        let mut size = file.size_bytes;
        if role == Role::User && size == 0 && matters {
            return Err(format!("`{}` is gone or empty and cannot be read again", file.path));
        }
        if role == Role::ScratchFull {
            size = size.max(high).next_multiple_of(PAGE).min(self.bounds.filled_bytes);
        }
        let (shift, fit) = order::shift(&actions, size);
        let shift = if role == Role::User && fit >= ROOM && share >= MOSTLY { shift } else { 0 };
        let file = &mut self.plan.files[at];
        file.role = role;
        file.state = if cold { State::Cold } else { State::Warm };
        file.size_bytes = size;
        // Direct requests stay at whole blocks.
        file.shift_bytes = if file.direct { shift.next_multiple_of(PAGE) } else { shift };
        if role == Role::ScratchEmpty {
            let base = low / PAGE * PAGE;
            let actions = self.plan.threads.iter_mut().flatten();
            actions.filter(|a| a.file == index).for_each(|a| a.offset = a.offset.saturating_sub(base));
        }
        Ok(())
    }

    /// Whether the program made a file, or emptied it when it opened it.
    fn was_made(&self, path: &str) -> bool {
        let empties = |flags: u32| flags & O_TRUNC != 0 || flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
        let of = |index: u32| self.files.get(index as usize).is_some_and(|file| file.path == path);
        self.files.iter().any(|file| file.made == Some(true) && file.path == path)
            || self.opened.iter().any(|(index, flags)| of(*index) && empties(*flags))
    }

    /// Whether a file was there before, and the program writes over what is in it: it neither emptied it nor wrote at its end, but from its
    /// start on; or its writes waited for reads of the device, which writes behind the end never do. What the caller opened for the
    /// program may be empty. Known from all windows of the run.
    fn is_written_over(&self, path: &str) -> bool {
        if !self.files.iter().any(|file| file.made == Some(false) && file.path == path) {
            return false;
        }
        let of = |index: u32| self.files.get(index as usize).is_some_and(|file| file.path == path);
        let steps = || {
            let all = self.facts.profile.pattern.stretches.iter().flat_map(|stretch| &stretch.steps);
            all.filter(|step| step.file.is_some_and(of))
        };
        let mut opened = steps().filter(|s| s.kind == StepKind::Open).map(|s| s.argument).peekable();
        // Which file a program truncates is not recorded.
        let truncates = self.facts.counted_calls(&["ftruncate", "truncate"]).is_some_and(|calls| calls > 0.0);
        let from_its_start = !truncates
            && opened.peek().is_some()
            && opened.all(|flags| flags & (O_TRUNC | O_APPEND) == 0)
            && steps().any(|s| s.kind == StepKind::Write && s.place == Some(0));
        from_its_start || self.writes_wait_for_reads()
    }

    /// Whether writes wait for reads of the device that are more than the file system's own maps, which are read to find room.
    fn writes_wait_for_reads(&self) -> bool {
        let writes = |e: &Entry| e.class.operation == Operation::Write;
        let all_ns = self.facts.account.sum(writes).wall_ns;
        let reads_ns =
            self.facts.account.sum(|e| writes(e) && e.class.wait == Some(Wait::DeviceRead)).wall_ns;
        let io = &self.facts.profile.io;
        let fetched = io.device_read_bytes.unwrap_or(0) as f64;
        reads_ns > LITTLE * all_ns && fetched > LITTLE * io.written_bytes.unwrap_or(0) as f64
    }

    /// Whether a file was not cached at first, and its bytes came from the device: by reads, or by page faults of who touches it.
    fn was_cold(&self, path: &str, role: Role, touched: bool) -> bool {
        let io = &self.facts.profile.io;
        let used = self.facts.profile.files.iter().find(|f| f.path == path);
        let cached = used.and_then(|u| u.cached_before).unwrap_or(0.0);
        let (moved, operation) = match (touched, role) {
            (true, _) => (self.touched_bytes(path), Operation::Fault),
            (false, Role::User) => (io.read_bytes.unwrap_or(0), Operation::Read),
            (false, _) => (io.written_bytes.unwrap_or(0), Operation::Read),
        };
        let moved = moved as f64;
        let fetched = io.device_read_bytes.unwrap_or(0) as f64;
        let all_ns = self.facts.account.operation(operation).wall_ns;
        let waits = |e: &Entry| e.class.operation == operation && e.class.wait == Some(Wait::DeviceRead);
        let waited_ns = self.facts.account.sum(waits).wall_ns;
        let mostly = fetched >= HALF * moved || waited_ns >= HALF * all_ns;
        fetched > LITTLE * moved && mostly && cached < WARM
    }
}
