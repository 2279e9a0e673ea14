//! One thread of a replay.
//!
//! What may not enter: allocation between the start and the end of its time, but where the plan itself takes memory anew.

use std::os::fd::{AsRawFd, OwnedFd};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Action, Advice, Op, Plan, Role};
use iowhy_linux::file_size;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::call;
use super::files::Opened;
use super::handling::Handling;
use super::ring::Ring;
use super::small_files::Ready;
use iowhy_probe::buffer::Buffer;
use iowhy_probe::clock::Clock;
use iowhy_probe::interrupt;
use iowhy_probe::method::mapped::mapping::{Mapping, Purpose};
use iowhy_probe::sigbus::Guard;

/// The program's own time is spun in pieces of no less than this: reading the clock takes some 20 ns.
const LEAST_SPIN_NS: f64 = 2000.0;
/// Signals and the limit are looked at after so many calls.
const LOOK_EVERY: u32 = 256;
/// A run ends here, whatever its plan says.
const LONGEST_NS: u64 = 20_000_000_000;
/// Memory begins somewhere within one.
const PAGE: usize = 4096;
/// Seed of what is written.
const CONTENT_SEED: u64 = 0x0070_726f_7665;

/// What a thread did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) think_ns: u64,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) major_faults: u64,
}

/// A mapping that is kept, protected while its file may shrink.
struct Kept {
    file: u32,
    /// Before the mapping, so that it is dropped first.
    guard: Guard,
    mapping: Mapping,
}

/// A thread with its memory.
pub(super) struct Hands<'a> {
    plan: &'a Plan,
    actions: &'a [Action],
    /// Passes of earlier runs, for places in the user's files.
    first_pass: u64,
    files: &'a [Opened],
    /// Before the buffer, so that it is dropped first: it may still write there.
    ring: Option<Ring>,
    buffer: Buffer,
    kept: Vec<Kept>,
    guard: Option<Guard>,
    small: Option<Handling<'a>>,
    /// Other memory, larger than the caches of a CPU; may be empty.
    elsewhere: &'a [u8],
    clock: Clock,
    /// Own time that is still to be spun.
    owed_ns: f64,
    since_look: u32,
    limit_ns: u64,
    done: Done,
}

impl<'a> Hands<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        thread: usize,
        first_pass: u64,
        files: &'a [Opened],
        ready: Option<&'a Ready>,
        elsewhere: &'a [u8],
    ) -> Result<Self, Problem> {
        let actions: &[Action] = plan.threads.get(thread).map_or(&[], Vec::as_slice);
        let moves = |a: &&Action| matches!(a.op, Op::Read { .. } | Op::Write);
        let most = actions.iter().filter(moves).map(|a| a.bytes).max().unwrap_or(0);
        let most = most.max(plan.tree.as_ref().map_or(0, Handling::buffer_bytes));
        let slots = plan.depth.max(1) as usize;
        let slot = usize::try_from(most).unwrap_or(usize::MAX).max(1).next_multiple_of(4096);
        // The first slot may begin anywhere in its page.
        let bytes = slot
            .checked_mul(slots)
            .and_then(|bytes| bytes.checked_add(PAGE))
            .ok_or_else(|| Problem::failed("a request is too large"))?;
        let mut buffer = Buffer::new(bytes)?;
        if actions.iter().any(|a| matches!(a.op, Op::Write | Op::SmallFile)) {
            buffer.fill(CONTENT_SEED);
        }
        let maps = actions.iter().any(|a| matches!(a.op, Op::MapReadUnmap { .. }));
        Ok(Hands {
            plan,
            actions,
            first_pass,
            files,
            buffer,
            kept: Vec::new(),
            guard: if maps { Some(iowhy_probe::fault::guard()?) } else { None },
            ring: if plan.depth > 1 { Some(Ring::new(plan.depth, slot)?) } else { None },
            small: plan.tree.as_ref().zip(ready).map(|(tree, ready)| Handling::new(tree, ready)),
            elsewhere,
            clock: Clock::real(),
            owed_ns: 0.0,
            since_look: 0,
            limit_ns: u64::MAX,
            done: Done::default(),
        })
    }

    /// Carries out all passes.
    pub(super) fn work(&mut self) -> Result<Done, Problem> {
        let faults = major_faults();
        self.done.start_ns = self.clock.now_ns();
        self.limit_ns = self.done.start_ns + LONGEST_NS;
        let result = self.passes();
        if let Some(ring) = &mut self.ring {
            self.done.bytes += ring.drain()?;
        }
        self.spin();
        self.done.end_ns = self.clock.now_ns();
        self.done.major_faults = major_faults().saturating_sub(faults);
        result.map(|()| self.done)
    }

    fn passes(&mut self) -> Result<(), Problem> {
        let actions = self.actions;
        for pass in 0..u64::from(self.plan.passes.max(1)) {
            for action in actions {
                for i in 0..action.count {
                    self.think(action.think_ns);
                    self.call(action, pass, i)?;
                    self.since_look += 1;
                    let long = matches!(action.op, Op::Fsync { .. } | Op::FsyncAfter { .. });
                    if long || self.since_look >= LOOK_EVERY {
                        self.since_look = 0;
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
        if self.owed_ns >= LEAST_SPIN_NS {
            self.spin();
        }
    }

    fn spin(&mut self) {
        if self.owed_ns < 1.0 {
            return;
        }
        let from = self.clock.now_ns();
        let until = from + self.owed_ns as u64;
        let mut now = from;
        while now < until {
            std::hint::spin_loop();
            now = self.clock.now_ns();
        }
        self.done.think_ns += now - from;
        self.owed_ns = 0.0;
    }

    #[inline]
    fn call(&mut self, action: &Action, pass: u64, i: u32) -> Result<(), Problem> {
        if action.op == Op::SmallFile {
            return self.handle(action.at(i));
        }
        let (files, plan) = (self.files, self.plan);
        let at = action.file as usize;
        if let Op::MmapAnon { populate } = action.op {
            self.done.calls += 1;
            return match take_and_give_back(action.bytes as usize, populate) {
                Ok(_) => Ok(()),
                Err(errno) => Err(Problem::failed(format!(
                    "taking {} bytes of memory failed: {}",
                    action.bytes,
                    std::io::Error::from(errno)
                ))),
            };
        }
        let (Some(opened), Some(file)) = (files.get(at), plan.files.get(at)) else {
            return Err(Problem::failed("a plan names a file that it does not have"));
        };
        if action.op == Op::Truncate {
            return self.throw_away(opened, file.role);
        }
        let onwards = match file.role {
            // What is said of a whole file has no place.
            _ if action.bytes == 0 => 0,
            Role::User => self.first_pass + pass,
            _ => pass,
        };
        let mut place = action.at(i).wrapping_add(onwards.wrapping_mul(file.shift_bytes));
        if file.role != Role::ScratchEmpty && place.saturating_add(action.bytes) > file.size_bytes {
            // Whole blocks, so that direct requests stay aligned.
            let whole = (file.size_bytes / 4096 * 4096).max(1);
            place %= whole;
            if place + action.bytes > file.size_bytes {
                place = 0;
            }
        }
        self.done.calls += 1;
        let (fd, bytes) = (&opened.fd, action.bytes as usize);
        let sink = file.role == Role::Sink;
        let from = usize::from(file.buffer_offset) % PAGE;
        let result = match action.op {
            Op::Read { fresh: true } => read_into_fresh(fd, bytes, place, from),
            Op::Read { fresh: false } if sink => call::read(fd, self.buffer.part_mut(from, bytes)),
            Op::Read { fresh: false } => match &mut self.ring {
                Some(ring) => ring.read(fd, &mut self.buffer, bytes, place),
                None => call::read_at(fd, self.buffer.part_mut(from, bytes), place),
            },
            Op::Write if sink => call::write(fd, self.buffer.part(from, bytes)),
            Op::Write => call::write_at(fd, self.buffer.part(from, bytes), place),
            Op::Seek => call::seek(fd, place),
            Op::Fsync { metadata } => call::sync(fd, metadata),
            Op::FsyncAfter { passes } if !self.ends(pass, passes) => {
                self.done.calls -= 1;
                return Ok(());
            }
            Op::FsyncAfter { .. } => call::sync(fd, false),
            Op::FadviseDontNeed => advise_range(fd, place, bytes, rustix::fs::Advice::DontNeed),
            Op::FadviseWillNeed => advise_range(fd, place, bytes, rustix::fs::Advice::WillNeed),
            Op::SyncFileRange => begin_write_back(fd, place, bytes),
            Op::RecreateFile => opened.renew(),
            Op::MapReadUnmap { populate } => self.window(fd, place, bytes, populate, file.advice),
            Op::TouchPages | Op::TouchLines => return self.look(action, fd, place, bytes),
            // Done above.
            Op::MmapAnon { .. } | Op::SmallFile | Op::Truncate => return Ok(()),
        };
        match result {
            Ok(moved) => {
                self.done.bytes += moved as u64;
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(self.failed(action, place, errno)),
        }
    }

    /// Whether a batch of so many passes ends with this one.
    fn ends(&self, pass: u64, passes: u32) -> bool {
        let done = pass + 1;
        done.is_multiple_of(u64::from(passes.max(1))) || done == u64::from(self.plan.passes.max(1))
    }

    /// Only what is ours, and as if no time passed.
    fn throw_away(&mut self, opened: &Opened, role: Role) -> Result<(), Problem> {
        if role != Role::ScratchEmpty {
            return Ok(());
        }
        let from = self.clock.now_ns();
        rustix::fs::ftruncate(&opened.fd, 0).map_err(|errno| {
            Problem::failed(format!("cannot empty a scratch file: {}", std::io::Error::from(errno)))
        })?;
        // The pages come back to the next writes, still in the caches of the CPU; those of a program that writes on and on
        // are not there.
        let sum =
            self.elsewhere.iter().step_by(64).fold(0u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
        std::hint::black_box(sum);
        self.done.think_ns += self.clock.now_ns().saturating_sub(from);
        Ok(())
    }

    fn handle(&mut self, number: u64) -> Result<(), Problem> {
        let Some(small) = &mut self.small else {
            return Err(Problem::failed("a plan names files of a tree that it does not have"));
        };
        let handled = small.file(number, &mut self.buffer)?;
        self.done.calls += handled.calls;
        self.done.bytes += handled.bytes;
        Ok(())
    }

    #[cold]
    fn failed(&self, action: &Action, place: u64, errno: Errno) -> Problem {
        let path = self.plan.files.get(action.file as usize).map_or("?", |f| f.path.as_str());
        let (what, whose) = match action.op {
            Op::Write | Op::Fsync { .. } | Op::FsyncAfter { .. } | Op::SyncFileRange | Op::RecreateFile => {
                ("writing", "the scratch file beside ")
            }
            Op::MapReadUnmap { .. } | Op::TouchPages | Op::TouchLines => ("mapping", ""),
            _ => ("reading", ""),
        };
        let problem = Problem::failed(format!(
            "{what} {} bytes at {place} of {whose}`{path}` failed: {}",
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

    fn window(
        &mut self,
        fd: &OwnedFd,
        place: u64,
        bytes: usize,
        populate: bool,
        advice: Advice,
    ) -> Result<usize, Errno> {
        let purpose = if populate { Purpose::Populate } else { Purpose::Load };
        let mapping = Mapping::new(fd, place, bytes as u64, purpose)?;
        advise(&mapping, advice);
        if let (Some(guard), Some(range)) = (&self.guard, mapping.range(place, bytes)) {
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

    fn look(&mut self, action: &Action, fd: &OwnedFd, place: u64, bytes: usize) -> Result<(), Problem> {
        let file = action.file;
        if !self.kept.iter().any(|kept| kept.file == file) {
            let planned = &self.plan.files[file as usize];
            let mapping = Mapping::new(fd, 0, planned.size_bytes, Purpose::Load).map_err(|errno| {
                Problem::failed(format!("cannot map `{}`: {}", planned.path, std::io::Error::from(errno)))
            })?;
            advise(&mapping, planned.advice);
            let guard = iowhy_probe::fault::guard()?;
            guard.cover(mapping.start(), mapping.bytes());
            self.kept.push(Kept { file, mapping, guard });
        }
        let Some(kept) = self.kept.iter().find(|kept| kept.file == file) else { return Ok(()) };
        match kept.mapping.range(place, bytes) {
            Some(range) if action.op == Op::TouchLines => range.load_lines(),
            Some(range) => range.load_pages(),
            None => {}
        }
        if kept.guard.vanished() {
            return Err(Problem::failed("a mapped file became shorter during the replay"));
        }
        self.done.bytes += bytes as u64;
        Ok(())
    }
}

fn advise_range(fd: &OwnedFd, place: u64, bytes: usize, advice: rustix::fs::Advice) -> Result<usize, Errno> {
    rustix::fs::fadvise(fd, place, std::num::NonZeroU64::new(bytes as u64), advice).map(|()| 0)
}

/// A hint that the kernel does not take leaves the mapping as it is.
fn advise(mapping: &Mapping, advice: Advice) {
    let advice = match advice {
        Advice::Normal => return,
        Advice::Random => rustix::mm::Advice::Random,
        Advice::Sequential => rustix::mm::Advice::Sequential,
    };
    // SAFETY: the range is this mapping, and neither advice changes its content.
    let _ = unsafe { rustix::mm::madvise(mapping.start().cast(), mapping.bytes(), advice) };
}

/// Lets the kernel begin to write a range back.
fn begin_write_back(fd: &OwnedFd, place: u64, bytes: usize) -> Result<usize, Errno> {
    let (Ok(from), Ok(length)) = (i64::try_from(place), i64::try_from(bytes)) else {
        return Err(Errno::INVAL);
    };
    // SAFETY: sync_file_range(2) takes numbers, and touches no memory of ours.
    let done = unsafe { libc::sync_file_range(fd.as_raw_fd(), from, length, libc::SYNC_FILE_RANGE_WRITE) };
    if done == 0 {
        Ok(0)
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Reads into memory that is taken from the kernel for this call and given back after it; `from` its beginning.
fn read_into_fresh(fd: &OwnedFd, bytes: usize, place: u64, from: usize) -> Result<usize, Errno> {
    with_fresh(bytes + from, MapFlags::PRIVATE, |memory| {
        call::read_at(fd, memory.get_mut(from..).unwrap_or_default(), place)
    })?
}

/// Takes memory and gives it back; every page of it is there in between.
fn take_and_give_back(bytes: usize, populate: bool) -> Result<usize, Errno> {
    let flags = if populate { MapFlags::PRIVATE | MapFlags::POPULATE } else { MapFlags::PRIVATE };
    with_fresh(bytes, flags, |memory| {
        if !populate {
            memory.iter_mut().step_by(rustix::param::page_size()).for_each(|byte| *byte = 1);
            std::hint::black_box(&memory);
        }
        0
    })
}

/// Memory from the kernel for one use.
fn with_fresh<T>(bytes: usize, flags: MapFlags, used: impl FnOnce(&mut [u8]) -> T) -> Result<T, Errno> {
    let bytes = bytes.max(1);
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
    }?;
    // SAFETY: the kernel zeroes anonymous pages, and the mapping lives until it is unmapped below; nobody else knows it.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes) };
    let result = used(memory);
    // SAFETY: the mapping was made above, and its slice is used no more.
    let _ = unsafe { rustix::mm::munmap(start, bytes) };
    Ok(result)
}

/// Faults of this thread that waited for a device.
fn major_faults() -> u64 {
    // SAFETY: `rusage` is plain numbers, for which zero is a value; the kernel writes to the local.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_THREAD, &mut usage) == 0 { usage.ru_majflt as u64 } else { 0 }
    }
}
