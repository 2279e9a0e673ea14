//! One thread of a replay. It allocates nothing while it is timed, except where the plan maps fresh memory.

use std::mem::discriminant;
use std::os::fd::{AsRawFd, OwnedFd};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Action, Advice, Op, Plan, Role};
use iowhy_linux::file_size;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::files::ReplayFile;
use super::libc_calls;
use super::read_ring::ReadRing;
use super::scratch_trees::RunNames;
use super::small_file_ops::SmallFileOps;
use crate::parts::Parts;
use iowhy_probe::buffer::Buffer;
use iowhy_probe::clock::Clock;
use iowhy_probe::fault;
use iowhy_probe::interrupt;
use iowhy_probe::method::mapped::mapping::{Mapping, Purpose};
use iowhy_probe::ruler;
use iowhy_probe::sigbus::Guard;

/// Think time is spun in pieces of at least this: reading the clock takes some 20 ns.
const MIN_SPIN_NS: f64 = 2000.0;
/// Calls between checks for signals and the time limit.
const CALLS_PER_CHECK: u32 = 256;
/// Longest run, whatever the plan says.
const MAX_RUN_NS: u64 = 20_000_000_000;
const PAGE: usize = 4096;
/// Of written data.
const CONTENT_SEED: u64 = 0x0070_726f_7665;

/// Times and counts of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadOutcome {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) think_ns: u64,
    /// Reading the clock between calls.
    pub(super) clock_ns: f64,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) major_faults: u64,
    pub(super) parts: Parts,
}

/// A mapping of a whole file, guarded against a file that shrinks.
struct KeptMapping {
    file: u32,
    /// Declared before the mapping, so that it is dropped first.
    guard: Guard,
    mapping: Mapping,
}

/// A thread with its memory.
pub(super) struct ReplayThread<'a> {
    plan: &'a Plan,
    actions: &'a [Action],
    /// Passes of earlier runs, which shift offsets in user files.
    first_pass: u64,
    files: &'a [ReplayFile],
    /// Declared before the buffer, so that it is dropped first: the kernel may still write there.
    ring: Option<ReadRing>,
    buffer: Buffer,
    mappings: Vec<KeptMapping>,
    guard: Option<Guard>,
    small_files: Option<SmallFileOps<'a>>,
    /// Larger than the caches of a CPU, or empty.
    cold_memory: &'a [u8],
    clock: Clock,
    /// Cost of one reading of it.
    clock_read_ns: f64,
    /// Think time that is still to be spun.
    owed_ns: f64,
    calls_since_check: u32,
    limit_ns: u64,
    /// The kind of the calls since `mark_ns`, whose time is not in a part yet.
    current: Option<Op>,
    mark_ns: u64,
    outcome: ThreadOutcome,
}

impl<'a> ReplayThread<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        thread: usize,
        first_pass: u64,
        files: &'a [ReplayFile],
        names: Option<&'a RunNames>,
        cold_memory: &'a [u8],
    ) -> Result<Self, Problem> {
        let actions: &[Action] = plan.threads.get(thread).map_or(&[], Vec::as_slice);
        let moves = |a: &&Action| matches!(a.op, Op::Read { .. } | Op::Write);
        let most = actions.iter().filter(moves).map(|a| a.bytes).max().unwrap_or(0);
        let most = most.max(plan.tree.as_ref().map_or(0, SmallFileOps::buffer_bytes));
        let slots = plan.depth.max(1) as usize;
        let slot = usize::try_from(most).unwrap_or(usize::MAX).max(1).next_multiple_of(4096);
        // One page more: the first slot may begin anywhere in its page.
        let bytes = slot
            .checked_mul(slots)
            .and_then(|bytes| bytes.checked_add(PAGE))
            .ok_or_else(|| Problem::failed("a request is too large"))?;
        let mut buffer = Buffer::new(bytes)?;
        if actions.iter().any(|a| matches!(a.op, Op::Write | Op::SmallFile)) {
            buffer.fill(CONTENT_SEED);
        }
        let maps = actions.iter().any(|a| matches!(a.op, Op::MapReadUnmap { .. }));
        Ok(ReplayThread {
            plan,
            actions,
            first_pass,
            files,
            buffer,
            mappings: Vec::new(),
            guard: if maps { Some(fault::guard()?) } else { None },
            ring: if plan.depth > 1 { Some(ReadRing::new(plan.depth, slot)?) } else { None },
            small_files: plan.tree.as_ref().zip(names).map(|(tree, names)| SmallFileOps::new(tree, names)),
            cold_memory,
            clock: Clock::real(),
            clock_read_ns: ruler::clock_read_ns(),
            owed_ns: 0.0,
            calls_since_check: 0,
            limit_ns: u64::MAX,
            current: None,
            mark_ns: 0,
            outcome: ThreadOutcome::default(),
        })
    }

    /// Carries out all passes.
    pub(super) fn run(&mut self) -> Result<ThreadOutcome, Problem> {
        if self.plan.touched_before {
            self.touch_all()?;
        }
        let faults = major_faults();
        self.outcome.start_ns = self.clock.now_ns();
        self.limit_ns = self.outcome.start_ns + MAX_RUN_NS;
        let result = self.passes();
        if let Some(ring) = &mut self.ring {
            self.outcome.bytes += ring.drain()?;
        }
        self.end_part();
        self.spin();
        self.outcome.end_ns = self.clock.now_ns();
        self.outcome.major_faults = major_faults().saturating_sub(faults);
        result.map(|()| self.outcome)
    }

    /// Touches what the passes will touch, without its time.
    fn touch_all(&mut self) -> Result<(), Problem> {
        let actions = self.actions;
        let until_ns = self.clock.now_ns() + MAX_RUN_NS;
        for pass in 0..u64::from(self.plan.passes.max(1)) {
            for action in actions.iter().filter(|a| matches!(a.op, Op::TouchPages | Op::TouchLines)) {
                for i in 0..action.count {
                    self.call(action, pass, i)?;
                }
                if interrupt::requested() || self.clock.now_ns() > until_ns {
                    break;
                }
            }
        }
        self.outcome = ThreadOutcome::default();
        Ok(())
    }

    fn passes(&mut self) -> Result<(), Problem> {
        let actions = self.actions;
        for pass in 0..u64::from(self.plan.passes.max(1)) {
            for action in actions {
                if self.current.is_none_or(|op| discriminant(&op) != discriminant(&action.op)) {
                    self.end_part();
                    self.current = Some(action.op);
                }
                for i in 0..action.count {
                    self.think(action.think_ns);
                    self.call(action, pass, i)?;
                    self.calls_since_check += 1;
                    let long = action.op.is_sync();
                    if long || self.calls_since_check >= CALLS_PER_CHECK {
                        self.calls_since_check = 0;
                        if interrupt::requested() {
                            return Ok(());
                        }
                        if self.clock.now_ns() > self.limit_ns {
                            return Err(Problem::failed("a replay took longer than 20 s"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn think(&mut self, ns: f64) {
        self.owed_ns += ns;
        if self.owed_ns >= MIN_SPIN_NS {
            self.spin();
        }
    }

    fn spin(&mut self) {
        if self.owed_ns < 1.0 {
            return;
        }
        let from = self.end_part();
        let until = from + self.owed_ns as u64;
        let mut now = from;
        while now < until {
            std::hint::spin_loop();
            now = self.clock.now_ns();
        }
        self.outcome.think_ns += now - from;
        self.mark_ns = now;
        self.owed_ns = 0.0;
    }

    /// Adds the time since the last mark to its part, without that of reading the clock. Returns the time now, which is the new mark.
    fn end_part(&mut self) -> u64 {
        let now = self.clock.now_ns();
        if let Some(op) = self.current {
            let took = now.saturating_sub(self.mark_ns) as f64;
            let reading = self.clock_read_ns.min(took);
            *self.outcome.parts.of(op) += took - reading;
            self.outcome.clock_ns += reading;
        }
        self.mark_ns = now;
        now
    }

    #[inline]
    fn call(&mut self, action: &Action, pass: u64, i: u32) -> Result<(), Problem> {
        if action.op == Op::SmallFile {
            return self.small_file(action.at(i));
        }
        let (files, plan) = (self.files, self.plan);
        let at = action.file as usize;
        if let Op::MmapAnon { populate } = action.op {
            self.outcome.calls += 1;
            return match map_and_unmap(action.bytes as usize, populate) {
                Ok(_) => Ok(()),
                Err(errno) => Err(Problem::failed(format!(
                    "mapping {} bytes of memory failed: {}",
                    action.bytes,
                    std::io::Error::from(errno)
                ))),
            };
        }
        let (Some(opened), Some(file)) = (files.get(at), plan.files.get(at)) else {
            return Err(Problem::failed("a plan names a file that it does not have"));
        };
        if action.op == Op::Truncate {
            return self.drop_dirty(opened, file.role);
        }
        let shifts = match file.role {
            // Advice on a whole file has no offset.
            _ if action.bytes == 0 => 0,
            Role::User => self.first_pass + pass,
            _ => pass,
        };
        let offset = file.place(action.at(i), action.bytes, shifts);
        self.outcome.calls += 1;
        let (fd, bytes) = (&opened.fd, action.bytes as usize);
        let sink = file.role == Role::Sink;
        let from = usize::from(file.buffer_offset) % PAGE;
        let result = match action.op {
            Op::Read { fresh: true } => read_into_fresh(fd, bytes, offset, from),
            Op::Read { fresh: false } if sink => libc_calls::read(fd, self.buffer.part_mut(from, bytes)),
            Op::Read { fresh: false } => match &mut self.ring {
                Some(ring) => ring.read(fd, &mut self.buffer, bytes, offset),
                None => libc_calls::read_at(fd, self.buffer.part_mut(from, bytes), offset),
            },
            Op::Write if sink => libc_calls::write(fd, self.buffer.part(from, bytes)),
            Op::Write => libc_calls::write_at(fd, self.buffer.part(from, bytes), offset),
            Op::Seek => libc_calls::seek(fd, offset),
            Op::Fsync { metadata } => libc_calls::sync(fd, metadata),
            Op::SyncDirectory => opened.sync_directory(),
            Op::FadviseDontNeed => advise_range(fd, offset, bytes, rustix::fs::Advice::DontNeed),
            Op::FadviseWillNeed => advise_range(fd, offset, bytes, rustix::fs::Advice::WillNeed),
            Op::SyncFileRange => begin_write_back(fd, offset, bytes),
            Op::Allocate { keep_size } => allocate(fd, offset, action.bytes, keep_size),
            Op::MakeFile { stays } => opened.make(stays),
            Op::MapReadUnmap { populate } => self.map_read_unmap(fd, offset, bytes, populate, file.advice),
            Op::TouchPages | Op::TouchLines => return self.read_mapping(action, fd, offset, bytes),
            // Handled above.
            Op::MmapAnon { .. } | Op::SmallFile | Op::Truncate => return Ok(()),
        };
        match result {
            Ok(moved) => {
                self.outcome.bytes += moved as u64;
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(self.failed(action, offset, errno)),
        }
    }

    /// Empties a scratch file so that it has no dirty pages; the time counts as think time.
    fn drop_dirty(&mut self, opened: &ReplayFile, role: Role) -> Result<(), Problem> {
        if role != Role::ScratchEmpty {
            return Ok(());
        }
        let from = self.end_part();
        rustix::fs::ftruncate(&opened.fd, 0).map_err(|errno| {
            Problem::failed(format!("cannot empty a scratch file: {}", std::io::Error::from(errno)))
        })?;
        // The next writes reuse these pages while the CPU caches them; a program that keeps writing gets cold ones.
        let sum =
            self.cold_memory.iter().step_by(64).fold(0u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
        std::hint::black_box(sum);
        self.mark_ns = self.clock.now_ns();
        self.outcome.think_ns += self.mark_ns.saturating_sub(from);
        Ok(())
    }

    fn small_file(&mut self, number: u64) -> Result<(), Problem> {
        let Some(small_files) = &mut self.small_files else {
            return Err(Problem::failed("a plan names files of a tree that it does not have"));
        };
        let counts = small_files.file(number, &mut self.buffer)?;
        self.outcome.calls += counts.calls;
        self.outcome.bytes += counts.bytes;
        Ok(())
    }

    #[cold]
    fn failed(&self, action: &Action, offset: u64, errno: Errno) -> Problem {
        let path = self.plan.files.get(action.file as usize).map_or("?", |f| f.path.as_str());
        let (doing, which) = match action.op {
            Op::Write
            | Op::Fsync { .. }
            | Op::SyncDirectory
            | Op::SyncFileRange
            | Op::Allocate { .. }
            | Op::MakeFile { .. } => ("writing", "the scratch file beside "),
            Op::MapReadUnmap { .. } | Op::TouchPages | Op::TouchLines => ("mapping", ""),
            _ => ("reading", ""),
        };
        let problem = Problem::failed(format!(
            "{doing} {} bytes at offset {offset} of {which}`{path}` failed: {}",
            action.bytes,
            std::io::Error::from(errno)
        ));
        match errno {
            Errno::NOSPC | Errno::DQUOT => {
                problem.hint("make room on that file system; nothing was left on it")
            }
            Errno::FBIG => file_size::explained(problem, &errno.into()),
            _ => problem,
        }
    }

    fn map_read_unmap(
        &mut self,
        fd: &OwnedFd,
        offset: u64,
        bytes: usize,
        populate: bool,
        advice: Advice,
    ) -> Result<usize, Errno> {
        let purpose = if populate { Purpose::Populate } else { Purpose::Load };
        let mapping = Mapping::new(fd, offset, bytes as u64, purpose)?;
        advise(&mapping, advice);
        if let (Some(guard), Some(range)) = (&self.guard, mapping.range(offset, bytes)) {
            guard.cover(mapping.start(), mapping.bytes());
            range.load_pages();
            let vanished = guard.vanished();
            guard.uncover();
            if vanished {
                return Err(Errno::FAULT);
            }
        }
        Ok(bytes)
    }

    fn read_mapping(
        &mut self,
        action: &Action,
        fd: &OwnedFd,
        offset: u64,
        bytes: usize,
    ) -> Result<(), Problem> {
        let file = action.file;
        if !self.mappings.iter().any(|kept| kept.file == file) {
            let planned = &self.plan.files[file as usize];
            let mapping = Mapping::new(fd, 0, planned.size_bytes, Purpose::Load).map_err(|errno| {
                Problem::failed(format!("cannot map `{}`: {}", planned.path, std::io::Error::from(errno)))
            })?;
            advise(&mapping, planned.advice);
            let guard = fault::guard()?;
            guard.cover(mapping.start(), mapping.bytes());
            self.mappings.push(KeptMapping { file, mapping, guard });
        }
        let Some(kept) = self.mappings.iter().find(|kept| kept.file == file) else { return Ok(()) };
        match kept.mapping.range(offset, bytes) {
            Some(range) if action.op == Op::TouchLines => range.load_lines(),
            Some(range) => range.load_pages(),
            None => {}
        }
        if kept.guard.vanished() {
            return Err(Problem::failed("a mapped file became shorter during the replay"));
        }
        self.outcome.bytes += bytes as u64;
        Ok(())
    }
}

fn advise_range(fd: &OwnedFd, offset: u64, bytes: usize, advice: rustix::fs::Advice) -> Result<usize, Errno> {
    rustix::fs::fadvise(fd, offset, std::num::NonZeroU64::new(bytes as u64), advice).map(|()| 0)
}

/// A file system that cannot refuses, as it refuses the program, which goes on.
fn allocate(fd: &OwnedFd, offset: u64, bytes: u64, keep_size: bool) -> Result<usize, Errno> {
    let mode = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
    match rustix::fs::fallocate(fd, mode, offset, bytes) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// A refused hint leaves the mapping as it is.
fn advise(mapping: &Mapping, advice: Advice) {
    let advice = match advice {
        Advice::Normal => return,
        Advice::Random => rustix::mm::Advice::Random,
        Advice::Sequential => rustix::mm::Advice::Sequential,
    };
    // SAFETY: the range is this mapping, and neither advice changes its content.
    let _ = unsafe { rustix::mm::madvise(mapping.start().cast(), mapping.bytes(), advice) };
}

/// Starts write-back of a range without waiting for it.
fn begin_write_back(fd: &OwnedFd, offset: u64, bytes: usize) -> Result<usize, Errno> {
    let (Ok(from), Ok(length)) = (i64::try_from(offset), i64::try_from(bytes)) else {
        return Err(Errno::INVAL);
    };
    // SAFETY: sync_file_range(2) takes numbers and touches no memory of this process.
    let done = unsafe { libc::sync_file_range(fd.as_raw_fd(), from, length, libc::SYNC_FILE_RANGE_WRITE) };
    if done == 0 {
        Ok(0)
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Reads into memory that is mapped for this call, `from` bytes behind its start.
fn read_into_fresh(fd: &OwnedFd, bytes: usize, offset: u64, from: usize) -> Result<usize, Errno> {
    with_fresh(bytes + from, MapFlags::PRIVATE, |memory| {
        libc_calls::read_at(fd, memory.get_mut(from..).unwrap_or_default(), offset)
    })?
}

/// Maps anonymous memory, makes every page resident, and unmaps it.
fn map_and_unmap(bytes: usize, populate: bool) -> Result<usize, Errno> {
    let flags = if populate { MapFlags::PRIVATE | MapFlags::POPULATE } else { MapFlags::PRIVATE };
    with_fresh(bytes, flags, |memory| {
        if !populate {
            memory.iter_mut().step_by(rustix::param::page_size()).for_each(|byte| *byte = 1);
            std::hint::black_box(&memory);
        }
        0
    })
}

/// Anonymous memory for one use.
fn with_fresh<T>(bytes: usize, flags: MapFlags, used: impl FnOnce(&mut [u8]) -> T) -> Result<T, Errno> {
    let bytes = bytes.max(1);
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
    }?;
    // SAFETY: the kernel zeroes anonymous pages; the mapping lives until munmap below, and nothing else uses it.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes) };
    let result = used(memory);
    // SAFETY: the mapping was made above, and its slice is used no more.
    let _ = unsafe { rustix::mm::munmap(start, bytes) };
    Ok(result)
}

/// Page faults of this thread that waited for a device.
fn major_faults() -> u64 {
    // SAFETY: `rusage` is plain numbers, for which zero is a value; the kernel writes to the local.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_THREAD, &mut usage) == 0 { usage.ru_majflt as u64 } else { 0 }
    }
}
