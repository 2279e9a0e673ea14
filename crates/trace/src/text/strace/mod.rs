//! Output of `strace -f -ttt -T`: calls on files as requests. Descriptors are followed through open, dup, fork and
//! close; calls that were interrupted in print (`<unfinished ...>`) are joined with their end.
//!
//! Times are those of the beginning of a call, requests come in the order of ends (and are put in order behind this).
//! Bytes are those moved, not those requested. Accesses that a trace of calls cannot show are counted:
//! through mappings, asynchronous interfaces, descriptors that were open before. Paths are as the program named them;
//! relative ones are not resolved, except against a directory that it opened.

mod call;
mod descriptors;

use iowhy_core::request::{Marks, Op, Request};

use self::call::{Outcome, What, arguments, descriptor, text};
use self::descriptors::{Descriptors, Known, Open};
use super::{LineParser, Refusal};
use crate::number;
use crate::reader::Sink;
use rustc_hash::FxHashMap;

/// Calls that wait for the rest of their line at most, and how long each may be.
const MAX_BEGUN: usize = 1 << 12;
const MAX_BEGUN_BYTES: usize = 16 << 10;

/// The parser.
#[derive(Debug, Default)]
pub(super) struct Strace {
    descriptors: Descriptors,
    /// By process: when the call began, its name, its arguments so far.
    begun: FxHashMap<u32, (u64, Vec<u8>, Vec<u8>)>,
}

const REFUSED: Refusal = "not a line of `strace -f -ttt -T`: left out";
const BEFORE: &str = "call on a descriptor that was opened before the trace began: left out";
const MAPPED: &str = "file mapped: accesses through memory are not in the trace";
const ASYNC: &str = "asynchronous submission (io_uring, io_submit): its requests are not in the trace";
const APPEND: &str = "appending write: its offset is the end of the file as far as the trace shows it";
const TABLE_FULL: &str = "more than a million open descriptors: not followed";

/// How a trace is recorded that this parser reads.
pub(crate) const RECORD: &str = "record it with times: `strace -f -ttt -T -o FILE CMD`";

/// Whether most lines are of a trace that was recorded without the times that its requests need.
pub(crate) fn lacks_times<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut lacking, mut others) = (0_u32, 0_u32);
    for line in lines.filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"---")) {
        *if call::lacks_time(line) { &mut lacking } else { &mut others } += 1;
    }
    lacking > others
}

/// One whole call.
struct Call<'a> {
    pid: u32,
    time_ns: u64,
    arguments: &'a [u8],
    outcome: Outcome,
}

impl Call<'_> {
    fn argument(&self, index: usize) -> &[u8] {
        arguments(self.arguments).nth(index).unwrap_or(b"")
    }

    fn number(&self, index: usize) -> Option<u64> {
        number::whole(self.argument(index))
    }

    /// Whether a flag is among those of an argument.
    fn flag(&self, index: usize, flag: &str) -> bool {
        memchr::memmem::find(self.argument(index), flag.as_bytes()).is_some()
    }

    fn request(&self, object: u64, op: Op) -> Request {
        let failed = self.outcome.result.is_none_or(|result| result < 0);
        Request {
            time_ns: self.time_ns,
            object,
            latency_ns: self.outcome.duration_ns,
            stream: self.pid,
            op,
            marks: if failed { Marks::FAILED } else { Marks::default() },
            ..Request::default()
        }
    }

    /// The result, if the call succeeded.
    fn succeeded(&self) -> Option<u64> {
        self.outcome.result.and_then(|result| u64::try_from(result).ok())
    }
}

impl LineParser for Strace {
    fn remedy(&self) -> Option<&'static str> {
        Some(RECORD)
    }

    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        if line.trim_ascii().is_empty() || line.starts_with(b"strace: ") {
            return Ok(());
        }
        let cut = call::cut(line).ok_or(REFUSED)?;
        if !self.descriptors.knows(cut.pid) {
            self.adopt(cut.pid, sink);
        }
        match cut.what {
            What::Aside => Ok(()),
            What::Ended => {
                self.begun.remove(&cut.pid);
                self.descriptors.end(cut.pid);
                Ok(())
            }
            What::Begun { name, arguments } => {
                if self.begun.len() < MAX_BEGUN && arguments.len() <= MAX_BEGUN_BYTES {
                    self.begun.insert(cut.pid, (cut.time_ns, name.to_vec(), arguments.to_vec()));
                    Ok(())
                } else {
                    Err("too many unfinished calls, or too long a one: left out")
                }
            }
            What::Resumed { name, rest } => {
                let (time_ns, begun, mut all) = self
                    .begun
                    .remove(&cut.pid)
                    .ok_or("end of a call whose beginning is not in the trace: left out")?;
                if begun != name {
                    return Err("end of another call than the one that began: left out");
                }
                all.extend_from_slice(rest);
                self.whole(name, cut.pid, time_ns, &all, sink)
            }
            What::Whole { name, rest } => self.whole(name, cut.pid, cut.time_ns, rest, sink),
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        for _ in self.begun.drain() {
            sink.lose("call without an end: left out");
        }
    }
}

impl Strace {
    fn whole(
        &mut self,
        name: &[u8],
        pid: u32,
        time_ns: u64,
        rest: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), Refusal> {
        let Some((arguments, outcome)) = call::finish(rest) else {
            // exit_group and its like have no result.
            return if rest.ends_with(b"= ?") || rest.ends_with(b")") { Ok(()) } else { Err(REFUSED) };
        };
        self.call(name, &Call { pid, time_ns, arguments, outcome }, sink);
        Ok(())
    }

    /// The first line of a process may come before the call that made it has returned: whoever is inside such a call is
    /// its parent.
    fn adopt(&mut self, child: u32, sink: &mut Sink<'_>) {
        let mut parents = self
            .begun
            .iter()
            .filter(|(_, (_, name, _))| matches!(name.as_slice(), b"clone" | b"clone3" | b"fork" | b"vfork"));
        if let (Some((parent, (_, _, arguments))), None) = (parents.next(), parents.next()) {
            let shared = memchr::memmem::find(arguments, b"CLONE_FILES").is_some();
            if !self.descriptors.child(*parent, child, shared) {
                sink.lose(TABLE_FULL);
            }
        }
    }

    fn call(&mut self, name: &[u8], call: &Call<'_>, sink: &mut Sink<'_>) {
        match name {
            b"read" | b"readv" => self.at_position(call, Op::Read, sink),
            b"write" | b"writev" => self.at_position(call, Op::Write, sink),
            b"pread64" | b"pread" | b"preadv" | b"preadv2" => self.at_offset(call, Op::Read, sink),
            b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => self.at_offset(call, Op::Write, sink),
            b"open" => self.open(call, None, 0, 1, sink),
            b"creat" => self.open(call, None, 0, usize::MAX, sink),
            b"openat" | b"openat2" => self.open(call, Some(0), 1, 2, sink),
            b"close" => self.close(call, sink),
            b"lseek" | b"_llseek" => self.seek(call),
            b"dup" | b"dup2" | b"dup3" | b"fcntl" | b"fcntl64" => self.duplicate(name, call),
            b"fsync" | b"fdatasync" | b"sync_file_range" => self.on_descriptor(call, Op::Sync, sink),
            b"ftruncate" | b"ftruncate64" => self.truncate(call, sink),
            b"fallocate" => self.allocate(call, sink),
            b"fstat" | b"fstat64" | b"getdents64" | b"getdents" => self.on_descriptor(call, Op::Other, sink),
            b"stat" | b"lstat" | b"access" | b"readlink" | b"truncate" => {
                self.on_path(call, None, 0, Op::Other, sink)
            }
            b"newfstatat" | b"statx" | b"faccessat" | b"faccessat2" | b"readlinkat" => {
                self.on_path(call, Some(0), 1, Op::Other, sink);
            }
            b"unlink" => self.on_path(call, None, 0, Op::Discard, sink),
            b"unlinkat" => self.on_path(call, Some(0), 1, Op::Discard, sink),
            b"mmap" | b"mmap2" => self.map(call, sink),
            b"sendfile" | b"sendfile64" => self.copy(call, (1, Some(2)), (0, None), sink),
            b"copy_file_range" | b"splice" => self.copy(call, (0, Some(1)), (2, Some(3)), sink),
            b"io_uring_enter" | b"io_submit" => sink.lose(ASYNC),
            b"clone" | b"clone3" | b"fork" | b"vfork" => self.process(call, sink),
            b"execve" | b"execveat" if call.succeeded().is_some() => self.descriptors.exec(call.pid),
            b"socket" | b"accept" | b"accept4" | b"eventfd2" | b"epoll_create1" | b"epoll_create"
            | b"timerfd_create" | b"signalfd4" | b"inotify_init1" | b"memfd_create" | b"pidfd_open"
            | b"io_uring_setup" | b"userfaultfd" | b"perf_event_open" | b"bpf" => {
                if let Some(fd) = call.succeeded().and_then(|fd| i32::try_from(fd).ok()) {
                    self.descriptors.elsewhere(call.pid, fd);
                }
            }
            b"pipe" | b"pipe2" => self.pair(call, 0),
            b"socketpair" => self.pair(call, 3),
            _ => {}
        }
    }

    /// The file of the descriptor in an argument. One that is not known is taken by its path, where strace prints it.
    fn file(&mut self, call: &Call<'_>, index: usize, sink: &mut Sink<'_>) -> Option<usize> {
        let (fd, path) = descriptor(call.argument(index))?;
        match self.descriptors.get(call.pid, fd) {
            Known::File(place) => return Some(place),
            Known::Elsewhere => return None,
            Known::No => {}
        }
        match path {
            Some(path) if path.starts_with(b"/") && !path.starts_with(b"/dev/pts") => {
                let open = Open { object: sink.names.number(path), ..Open::default() };
                if !self.descriptors.open(call.pid, fd, open, false) {
                    sink.lose(TABLE_FULL);
                }
                match self.descriptors.get(call.pid, fd) {
                    Known::File(place) => Some(place),
                    _ => None,
                }
            }
            Some(_) => {
                self.descriptors.elsewhere(call.pid, fd);
                None
            }
            None => {
                sink.lose(BEFORE);
                None
            }
        }
    }

    /// The name of a file; a relative one below the directory that its descriptor leads to.
    fn path(
        &mut self,
        call: &Call<'_>,
        directory: Option<usize>,
        index: usize,
        sink: &Sink<'_>,
    ) -> Option<Vec<u8>> {
        let path = text(call.argument(index))?;
        if path.starts_with(b"/") {
            return Some(path);
        }
        let Some((fd, shown)) = directory.and_then(|at| descriptor(call.argument(at))) else {
            return Some(path);
        };
        let known = match self.descriptors.get(call.pid, fd) {
            Known::File(place) => Some(self.descriptors.file(place).object),
            _ => None,
        };
        let base = shown.or_else(|| known.and_then(|object| sink.names.get(object)).map(str::as_bytes));
        match base {
            Some(base) if path.is_empty() => Some(base.to_vec()),
            Some(base) => Some([base, b"/", &path].concat()),
            None => Some(path),
        }
    }

    fn open(
        &mut self,
        call: &Call<'_>,
        directory: Option<usize>,
        path: usize,
        flags: usize,
        sink: &mut Sink<'_>,
    ) {
        let Some(name) = self.path(call, directory, path, sink) else { return };
        let object = sink.names.number(&name);
        sink.push(call.request(object, Op::Open));
        let Some(fd) = call.outcome.result.and_then(|fd| i32::try_from(fd).ok()).filter(|fd| *fd >= 0) else {
            return;
        };
        if call.flag(flags, "O_TRUNC") || flags == usize::MAX {
            self.descriptors.cut(object, 0);
        }
        let open = Open {
            object,
            offset: 0,
            append: call.flag(flags, "O_APPEND"),
            sync: call.flag(flags, "O_SYNC") || call.flag(flags, "O_DSYNC"),
        };
        if !self.descriptors.open(call.pid, fd, open, call.flag(flags, "O_CLOEXEC")) {
            sink.lose(TABLE_FULL);
        }
    }

    fn close(&mut self, call: &Call<'_>, sink: &mut Sink<'_>) {
        let Some((fd, _)) = descriptor(call.argument(0)) else { return };
        if let Some(open) = self.descriptors.close(call.pid, fd) {
            sink.push(call.request(open.object, Op::Close));
        }
    }

    /// Bytes moved at the file position.
    fn at_position(&mut self, call: &Call<'_>, op: Op, sink: &mut Sink<'_>) {
        let Some(place) = self.file(call, 0, sink) else { return };
        self.moved(call, place, op, sink);
    }

    /// Moves bytes at the position of an open file, and the position with them.
    fn moved(&mut self, call: &Call<'_>, place: usize, op: Op, sink: &mut Sink<'_>) {
        let bytes = call.succeeded().unwrap_or(0);
        let open = *self.descriptors.file(place);
        let offset = if open.append && op == Op::Write {
            if bytes > 0 {
                sink.lose(APPEND);
            }
            self.descriptors.end_of(open.object)
        } else {
            open.offset
        };
        let end = offset.saturating_add(bytes);
        self.descriptors.file(place).offset = end;
        self.push(call, open, op, offset, bytes, sink);
    }

    /// Bytes moved at an offset of the call's own: its fourth argument. -1 (preadv2, pwritev2) means the position.
    fn at_offset(&mut self, call: &Call<'_>, op: Op, sink: &mut Sink<'_>) {
        if call.argument(3) == b"-1" {
            return self.at_position(call, op, sink);
        }
        let Some(place) = self.file(call, 0, sink) else { return };
        let Some(offset) = call.number(3) else { return sink.lose("offset cannot be read: left out") };
        let open = *self.descriptors.file(place);
        self.push(call, open, op, offset, call.succeeded().unwrap_or(0), sink);
    }

    fn push(&mut self, call: &Call<'_>, open: Open, op: Op, offset: u64, bytes: u64, sink: &mut Sink<'_>) {
        let mut request = Request { offset, bytes, ..call.request(open.object, op) };
        if open.sync && op == Op::Write {
            request.marks = request.marks.with(Marks::SYNC);
        }
        self.descriptors.reaches(open.object, offset.saturating_add(bytes));
        sink.push(request);
    }

    fn seek(&mut self, call: &Call<'_>) {
        let (Some((fd, _)), Some(offset)) = (descriptor(call.argument(0)), call.succeeded()) else { return };
        if let Known::File(place) = self.descriptors.get(call.pid, fd) {
            self.descriptors.file(place).offset = offset;
        }
    }

    fn duplicate(&mut self, name: &[u8], call: &Call<'_>) {
        if name.starts_with(b"fcntl") && !call.flag(1, "F_DUPFD") {
            return;
        }
        let to = call.outcome.result.and_then(|fd| i32::try_from(fd).ok()).filter(|fd| *fd >= 0);
        if let (Some((from, _)), Some(to)) = (descriptor(call.argument(0)), to) {
            let close_on_exec = call.flag(1, "F_DUPFD_CLOEXEC") || call.flag(2, "O_CLOEXEC");
            self.descriptors.duplicate(call.pid, from, to, close_on_exec);
        }
    }

    /// A request about a whole open file.
    fn on_descriptor(&mut self, call: &Call<'_>, op: Op, sink: &mut Sink<'_>) {
        let Some((fd, _)) = descriptor(call.argument(0)) else { return };
        // Calls that move nothing are not missed where the descriptor is not known.
        if let Known::File(place) = self.descriptors.get(call.pid, fd) {
            let object = self.descriptors.file(place).object;
            self.descriptors.reaches(object, size_of_file(call.arguments));
            sink.push(call.request(object, op));
        } else if op == Op::Sync && self.file(call, 0, sink).is_some() {
            self.on_descriptor(call, op, sink);
        }
    }

    /// A request about a whole file by its path.
    fn on_path(
        &mut self,
        call: &Call<'_>,
        directory: Option<usize>,
        index: usize,
        op: Op,
        sink: &mut Sink<'_>,
    ) {
        let Some(name) = self.path(call, directory, index, sink).filter(|name| !name.is_empty()) else {
            return;
        };
        let object = sink.names.number(&name);
        self.descriptors.reaches(object, size_of_file(call.arguments));
        sink.push(call.request(object, op));
    }

    fn truncate(&mut self, call: &Call<'_>, sink: &mut Sink<'_>) {
        let Some(place) = self.file(call, 0, sink) else { return };
        let object = self.descriptors.file(place).object;
        if let (Some(_), Some(length)) = (call.succeeded(), call.number(1)) {
            self.descriptors.cut(object, length);
        }
        sink.push(call.request(object, Op::Other));
    }

    fn allocate(&mut self, call: &Call<'_>, sink: &mut Sink<'_>) {
        let Some(place) = self.file(call, 0, sink) else { return };
        let object = self.descriptors.file(place).object;
        let hole = call.flag(1, "PUNCH_HOLE") || call.flag(1, "ZERO_RANGE");
        let request = call.request(object, if hole { Op::Discard } else { Op::Other });
        let range = if hole { (call.number(2).unwrap_or(0), call.number(3).unwrap_or(0)) } else { (0, 0) };
        sink.push(Request { offset: range.0, bytes: range.1, ..request });
    }

    fn map(&mut self, call: &Call<'_>, sink: &mut Sink<'_>) {
        let Some((fd, _)) = descriptor(call.argument(4)) else { return };
        let Known::File(place) = self.descriptors.get(call.pid, fd) else { return };
        let object = self.descriptors.file(place).object;
        sink.lose(MAPPED);
        sink.push(Request { offset: offset_of_map(call.argument(5)), ..call.request(object, Op::Other) });
    }

    /// Bytes from one descriptor to another; each end has an argument for the descriptor and may have one for an
    /// offset of its own.
    fn copy(
        &mut self,
        call: &Call<'_>,
        from: (usize, Option<usize>),
        to: (usize, Option<usize>),
        sink: &mut Sink<'_>,
    ) {
        for ((fd, own), op) in [(from, Op::Read), (to, Op::Write)] {
            let Some((number, _)) = descriptor(call.argument(fd)) else { continue };
            let Known::File(place) = self.descriptors.get(call.pid, number) else { continue };
            let bytes = call.succeeded().unwrap_or(0);
            // `[4096]`, or `[4096] => [8192]`: the offset before the call.
            let offset =
                own.and_then(|own| number::leading(call.argument(own).strip_prefix(b"[")?)).map(|(n, _)| n);
            match offset {
                Some(offset) => {
                    let open = *self.descriptors.file(place);
                    self.push(call, open, op, offset, bytes, sink);
                }
                None => self.moved(call, place, op, sink),
            }
        }
    }

    fn process(&mut self, call: &Call<'_>, sink: &mut Sink<'_>) {
        let Some(child) = call.succeeded().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)
        else {
            return;
        };
        let shared = memchr::memmem::find(call.arguments, b"CLONE_FILES").is_some();
        if !self.descriptors.child(call.pid, child, shared) {
            sink.lose(TABLE_FULL);
        }
    }

    /// `[3, 4]`, with paths where strace prints them: two descriptors that are no files.
    fn pair(&mut self, call: &Call<'_>, index: usize) {
        if call.succeeded().is_none() {
            return;
        }
        let list: Vec<i32> = {
            let inside = call.argument(index);
            let inside = inside.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(b"");
            arguments(inside).filter_map(descriptor).map(|(fd, _)| fd).collect()
        };
        for fd in list {
            self.descriptors.elsewhere(call.pid, fd);
        }
    }
}

/// The size that a call about a file's metadata printed; 0 where it printed none.
fn size_of_file(arguments: &[u8]) -> u64 {
    let at = memchr::memmem::find(arguments, b"st_size=").map(|at| at + b"st_size=".len());
    at.and_then(|at| number::leading(&arguments[at..])).map_or(0, |(size, _)| size)
}

/// The last argument of mmap: decimal or hexadecimal.
fn offset_of_map(text: &[u8]) -> u64 {
    if text.starts_with(b"0x") {
        number::hexadecimal(text).unwrap_or(0)
    } else {
        number::whole(text).unwrap_or(0)
    }
}
