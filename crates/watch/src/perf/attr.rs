//! What each kind of event asks of the kernel, and the one place that opens events.
//!
//! Invariant: every event carries the same identification (id, task, time, CPU) and the same clock, so that all events
//! of one CPU can write into one ring and every record can be ordered.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use perf_event_open_sys as sys;
use sys::bindings as b;

/// Ticks of the clock of a CPU: 499 a second, a prime, so that it does not march in step with work that is done every
/// millisecond.
///
/// A tick with its stack, and the exit of a virtual machine that its timer makes, costs the program 20 to 45 us: 2 to
/// 4 % of a busy CPU at 997 a second, half of it at 499. Half as many samples widen an interval by 1.4 only, and CPU
/// time itself is not sampled but exact: one second of it is split into parts to 4 % of the whole (95 %), 16 seconds to
/// 1 %.
pub(crate) const CPU_PERIOD_NS: u64 = 1_000_000_000 / 499;
/// Ticks of the clock of a task: 99 a second. The kernel re-arms this timer at every switch, so a fast one would
/// change what it measures.
pub(crate) const TASK_PERIOD_NS: u64 = 1_000_000_000 / 99;

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Tells of forks, exits, names and maps. Never switched off.
    Side,
    /// Tells when tasks leave and get a CPU. Apart from [`Role::Side`] so that it can be switched off alone.
    Switch,
    /// Takes the stack when a task leaves its CPU.
    Leaving,
    /// Takes a stack at this period of CPU time, in nanoseconds.
    Clock {
        /// Nanoseconds between two ticks.
        period_ns: u64,
        /// How much of the user stack is copied, in bytes; 0 where nothing can be read from it.
        stack_bytes: u16,
    },
}

/// Most that is copied of one user stack: with it 99.4 % of the time of user stacks of PostgreSQL (pgbench) led to their start.
const MAX_STACK_BYTES: u64 = 16 << 10;
/// Less leads out of no library.
const MIN_STACK_BYTES: u64 = 1 << 10;
/// Copies of user stacks of all CPUs in a second, in bytes, at most. Chosen: by arithmetic a few hundredths of a CPU that copies 2 GB/s.
const COPIED_IN_A_SECOND: u64 = 64 << 20;
/// Nanoseconds between two drains of a ring, and the part of it that may be full of copies then.
const DRAIN_NS: u64 = 50_000_000;
const PART_OF_RING: u64 = 4;

/// How much of a user stack a clock with this period copies at each tick, in bytes, where it writes into a ring of this size. 0 where the
/// machine needs none (aarch64: compilers keep frame pointers there), or too little would be copied to be of use.
pub(crate) fn stack_bytes(period_ns: u64, ring_bytes: usize, cpus: usize) -> u16 {
    if cfg!(not(target_arch = "x86_64")) {
        return 0;
    }
    let period_ns = period_ns.max(1);
    let for_ring = ring_bytes as u64 / PART_OF_RING / (DRAIN_NS / period_ns).max(1);
    let for_reader = COPIED_IN_A_SECOND / (1_000_000_000 / period_ns).max(1) / cpus.max(1) as u64;
    let bytes = for_ring.min(for_reader).min(MAX_STACK_BYTES);
    if bytes < MIN_STACK_BYTES { 0 } else { (bytes - bytes % 8) as u16 }
}

/// The registers that lead through a user stack, in the order of their bits: frame pointer, stack pointer, place in the code
/// (`arch/x86/include/uapi/asm/perf_regs.h`).
const STACK_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// When an event begins to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At once.
    Now,
    /// When the task executes a program.
    Exec,
    /// When it is switched on.
    Later,
}

/// The fields of every sample before those of its role, and of the trailer of every other record.
const IDENTITY: u32 =
    b::PERF_SAMPLE_IDENTIFIER | b::PERF_SAMPLE_TID | b::PERF_SAMPLE_TIME | b::PERF_SAMPLE_CPU;

/// The description of an event. `inherit`: children and new threads of the task are recorded too.
fn attribute(role: Role, inherit: bool, start: Start) -> b::perf_event_attr {
    let mut attr = b::perf_event_attr {
        size: size_of::<b::perf_event_attr>() as u32,
        type_: b::PERF_TYPE_SOFTWARE,
        sample_type: u64::from(IDENTITY),
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    attr.set_inherit(u64::from(inherit));
    attr.set_disabled(u64::from(start != Start::Now));
    attr.set_enable_on_exec(u64::from(start == Start::Exec));
    // No number of bytes: the kernel wakes the reader when half of the ring is full.
    attr.set_watermark(1);
    match role {
        Role::Side | Role::Switch => {
            attr.config = u64::from(b::PERF_COUNT_SW_DUMMY);
            // It takes no samples, so nothing is lost by leaving the kernel out, and fewer rights are needed.
            attr.set_exclude_kernel(1);
            attr.set_exclude_hv(1);
            if role == Role::Switch {
                attr.set_context_switch(1);
            } else {
                attr.set_task(1);
                attr.set_comm(1);
                attr.set_comm_exec(1);
                attr.set_mmap(1);
                attr.set_mmap2(1);
                attr.set_mmap_data(1);
            }
        }
        Role::Leaving => {
            attr.config = u64::from(b::PERF_COUNT_SW_CONTEXT_SWITCHES);
            attr.sample_period = 1;
            attr.sample_type |= u64::from(b::PERF_SAMPLE_CALLCHAIN);
            // The kernel stack says what is waited for, the user stack who waits. Following frame pointers is cheap
            // beside the kernel's own unwinding, and what it costs is part of what the self-test measures.
        }
        Role::Clock { period_ns, stack_bytes } => {
            attr.config = u64::from(b::PERF_COUNT_SW_CPU_CLOCK);
            attr.sample_period = period_ns;
            attr.sample_type |= u64::from(b::PERF_SAMPLE_CALLCHAIN);
            if stack_bytes > 0 {
                attr.sample_type |= u64::from(b::PERF_SAMPLE_REGS_USER | b::PERF_SAMPLE_STACK_USER);
                attr.sample_regs_user = STACK_REGISTERS;
                attr.sample_stack_user = stack_bytes.into();
            }
            attr.set_exclude_idle(1);
        }
    }
    attr
}

/// Opens an event of a task (`task`: a thread's number, 0 for our own) or, without one, of everything on a CPU.
/// Without `cpu` the event follows the task over all CPUs; such an event cannot have a ring if it is inherited.
///
/// # Errors
/// As the system call gives them: EACCES or EPERM without the right, ESRCH for a task that is gone, EMFILE.
pub(crate) fn open(
    role: Role,
    task: Option<u32>,
    cpu: Option<u32>,
    inherit: bool,
    start: Start,
) -> io::Result<OwnedFd> {
    let mut attr = attribute(role, inherit, start);
    let pid = match task {
        Some(tid) => i32::try_from(tid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        None => -1,
    };
    let cpu = cpu.map_or(-1, |cpu| i32::try_from(cpu).unwrap_or(i32::MAX));
    if COUNTS_LOSSES.load(Ordering::Relaxed) {
        attr.read_format = u64::from(b::PERF_FORMAT_LOST);
        match open_as(&mut attr, pid, cpu) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => attr.read_format = 0,
            other => return other,
        }
        let opened = open_as(&mut attr, pid, cpu);
        if opened.is_ok() {
            COUNTS_LOSSES.store(false, Ordering::Relaxed);
        }
        return opened;
    }
    open_as(&mut attr, pid, cpu)
}

/// Whether this kernel counts the losses of each event (Linux 6.0); until it refuses, it is taken to.
static COUNTS_LOSSES: AtomicBool = AtomicBool::new(true);

fn open_as(attr: &mut b::perf_event_attr, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is a whole, initialised structure of the stated size and lives through the call.
    let fd = unsafe { sys::perf_event_open(attr, pid, cpu, -1, b::PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number that the records of this event carry.
pub(crate) fn id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes 8 bytes into `id`, which lives through the call.
    check(unsafe { sys::ioctls::ID(event.as_raw_fd(), &mut id) })?;
    Ok(id)
}

/// Records of this event, and of those that its children inherited, that found their ring full; 0 where the kernel
/// does not count them. A full ring tells of its losses only when it is written to again, which at the end may never
/// be.
pub(crate) fn lost(event: BorrowedFd<'_>) -> u64 {
    // The value of the event, then its losses.
    let mut answer = [0u8; 16];
    match rustix::io::read(event, &mut answer) {
        Ok(16) => u64::from_ne_bytes([
            answer[8], answer[9], answer[10], answer[11], answer[12], answer[13], answer[14], answer[15],
        ]),
        _ => 0,
    }
}

/// Makes `event` write into the ring of `leader`. Both must be bound to the same CPU.
pub(crate) fn redirect(event: &OwnedFd, leader: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes two descriptors and no memory.
    check(unsafe { sys::ioctls::SET_OUTPUT(event.as_raw_fd(), leader.as_raw_fd()) })
}

/// Switches the event, and those that its children inherited, on or off.
pub(crate) fn switch(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let fd = event.as_raw_fd();
    // SAFETY: takes a descriptor and no memory.
    check(unsafe { if on { sys::ioctls::ENABLE(fd, 0) } else { sys::ioctls::DISABLE(fd, 0) } })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
