//! What the kernel tells us, decoded: the waist between the sources of events (ring buffers, false sources in tests)
//! and all that is made of them.
//!
//! Invariant: a consumer gets events in the order of their times, over all CPUs.

/// What perf writes instead of a process or thread number when the task has already been released (`-1`, see
/// `perf_event_pid_type` in kernel/events/core.c): no thread has it.
pub const RELEASED: u32 = u32::MAX;

/// One event. Borrowed data lives as long as the call that hands it over.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// CPU it happened on.
    pub cpu: u32,
    /// Process of the task that it happened in (for a clock sample or a request: the task on the CPU).
    pub pid: u32,
    /// Thread of it; 0 is an idle CPU. Of a sample or a switch never [`RELEASED`].
    pub tid: u32,
    /// What happened.
    pub kind: Kind<'a>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'a> {
    /// The clock ticked while the task was on a CPU.
    Tick(Chain<'a>),
    /// The stack with which the task leaves its CPU; the matching [`Kind::Out`] follows.
    LeavingStack(Chain<'a>),
    /// The task left its CPU.
    Out {
        /// It could have gone on, but had to make room.
        preempted: bool,
    },
    /// The task got a CPU.
    In,
    /// A new task; `pid` and `tid` of the event are those of the child.
    Fork {
        /// Process of the parent.
        parent_pid: u32,
        /// The thread that forked.
        parent_tid: u32,
    },
    /// The task ended.
    Exit,
    /// The task has a new name.
    Name {
        /// The name.
        name: &'a str,
        /// Because it executed another program.
        exec: bool,
    },
    /// Code or data of a file appeared in the process's address space.
    Map {
        /// First address.
        start: u64,
        /// Length in bytes.
        length: u64,
        /// Offset in the file.
        offset: u64,
        /// Whether it may be executed.
        code: bool,
        /// Path, or a name in brackets.
        path: &'a str,
    },
    /// Records that the kernel could not store on this CPU.
    Lost {
        /// How many.
        records: u64,
    },
    /// Something happened to a request of the block layer; the task of the event is the one on the CPU.
    Request(BlockRequest<'a>),
    /// Requests of the program's rings that work on files: the first one is under way, or the last one has gone.
    RingFiles {
        /// Whether there is one from now on.
        busy: bool,
    },
}

/// Call chains, innermost first, context markers removed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chain<'a> {
    /// Kernel addresses. Empty: the task was in user mode, or the kernel may not be looked at.
    pub kernel: &'a [u64],
    /// User addresses, by frame pointers: code that keeps none ends the chain, or adds an address that is none.
    pub user: &'a [u64],
    /// A copy of the user stack, or only its registers, where they were told.
    pub stack: Option<UserStack<'a>>,
}

/// The innermost part of a user stack and the registers that lead through it, on x86-64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserStack<'a> {
    /// Place in the code.
    pub instruction: u64,
    /// Address of the first word.
    pub pointer: u64,
    /// The frame pointer, where the code keeps one there.
    pub frame: u64,
    /// The stack, from its pointer upwards; empty where only registers were told.
    pub words: &'a [u64],
}

impl UserStack<'_> {
    /// The word at an address, where it was copied.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.pointer).filter(|offset| offset % 8 == 0)? / 8;
        self.words.get(usize::try_from(at).ok()?).copied()
    }
}

/// A request of the block layer, and what happened to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockRequest<'a> {
    /// What happened.
    pub step: Step,
    /// Where the kernel holds it: its identity until it is done.
    pub address: u64,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// First sector.
    pub sector: u64,
    /// Length; of [`Step::Done`] the part that is done.
    pub bytes: u64,
    /// What it does.
    pub operation: Operation,
    /// The task on the CPU is a thread of the kernel.
    pub by_kernel: bool,
    /// It reads what the file system keeps beside files: inodes, directories, maps of blocks. False once the device has it.
    pub metadata: bool,
    /// Name of the task on the CPU.
    pub task: &'a str,
    /// Events of requests, of all CPUs, that were lost before this one.
    pub lost: u32,
}

/// Bytes of a sector, on every device (Linux block layer).
pub const SECTOR: u64 = 512;

impl BlockRequest<'_> {
    /// Whether it may be one that was to do so many bytes from this sector on, and may have grown at both ends while it was queued; else it
    /// is a later one in the same memory.
    pub fn may_be(&self, sector: u64, left_bytes: u64) -> bool {
        let end = |sector: u64, bytes: u64| sector.saturating_add(bytes / SECTOR);
        self.sector <= sector && end(self.sector, self.bytes) >= end(sector, left_bytes)
    }
}

/// A step in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits in the queue of the scheduler.
    Inserted,
    /// It goes to the driver.
    Issued,
    /// The device has done it, or a part of it.
    Done,
    /// It is no more: its bytes belong to another request.
    Merged,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read {
        /// Because read-ahead asked.
        ahead: bool,
    },
    /// Writes.
    Write,
    /// Empties the write cache of the device.
    Flush,
    /// Gives blocks up, or makes them zero without sending zeros.
    Discard,
    /// Whatever else moves no data of the program.
    Other,
}
