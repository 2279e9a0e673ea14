//! From a kernel stack to meaning: which operation the program asked for, which layer the time was spent in, and what
//! was waited for.
//!
//! The outermost system call or fault is the **operation**; the innermost function that is in the table is the
//! **layer**, functions that only help (locks, lists, string copies) being looked through. The table is data
//! (`symbols.toml`), versioned by kernel; nothing here knows a function by name.

use iowhy_core::layer::Layer;

/// What the program asked the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// The program's own code: no kernel frame.
    User,
    /// read, pread, readv, preadv2, copy_file_range, sendfile, splice.
    Read,
    /// write, pwrite, writev, pwritev2.
    Write,
    /// fsync, fdatasync, sync_file_range, sync, msync.
    Sync,
    /// open, openat, creat.
    Open,
    /// close.
    Close,
    /// stat, access, statfs, readlink, extended attributes.
    Stat,
    /// getdents, rename, unlink, mkdir, link, truncate, fallocate and others that change names or sizes.
    Names,
    /// lseek, fcntl, flock, fadvise, readahead, ioctl on descriptors.
    Descriptor,
    /// mmap, munmap, mprotect, madvise, mlock, brk.
    Map,
    /// Page faults.
    Fault,
    /// io_uring, and its worker threads.
    Ring,
    /// Linux asynchronous I/O.
    Aio,
    /// fork, clone, execve, wait, exit.
    Process,
    /// futex.
    Futex,
    /// poll, select, epoll.
    Poll,
    /// Sockets: send, recv, accept, connect.
    Socket,
    /// nanosleep, timers.
    Sleep,
    /// Any other system call.
    Other,
    /// Interrupts that arrived while the thread ran: other's work.
    Interrupt,
    /// A kernel stack whose outermost frames say nothing (kernel threads, truncated stacks).
    Unknown,
}

/// What a sleep waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// Data from the device, into the page cache or directly.
    DeviceRead,
    /// A direct write on its way to the device.
    DeviceWrite,
    /// Dirty data being written back.
    DataWriteback,
    /// The device's own cache being flushed.
    CacheFlush,
    /// A commit of the journal or log.
    Journal,
    /// Room in the journal or log.
    JournalSpace,
    /// Dirty throttling.
    DirtyThrottle,
    /// A limit of the block layer: control group, write-back throttling, no free tag.
    BlockThrottle,
    /// Memory: reclaim, compaction.
    Reclaim,
    /// The lock of an inode.
    InodeLock,
    /// The lock of the address space.
    MmapLock,
    /// Another kernel lock.
    KernelLock,
    /// Room or data in a pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A timer.
    Timer,
    /// Another thread of the program (futex).
    Futex,
    /// A child process.
    Child,
    /// poll, select, epoll: whatever the program waits for there.
    Poll,
    /// A terminal.
    Terminal,
    /// Completions of asynchronous I/O (ring, aio): the device, as far as the thread can know.
    Completion,
    /// A user-space file system (FUSE) or a file server.
    Server,
    /// Something that the table does not know.
    Unknown,
}

impl Wait {
    /// Whether it is on the path between the program and the disk.
    pub fn on_path(self) -> bool {
        !matches!(
            self,
            Wait::Pipe
                | Wait::Socket
                | Wait::Timer
                | Wait::Futex
                | Wait::Child
                | Wait::Poll
                | Wait::Terminal
                | Wait::Unknown
        )
    }
}

/// Meaning of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// What was asked for.
    pub operation: Operation,
    /// Where the time was spent. [`Layer::Unexplained`] when no frame is in the table.
    pub layer: Layer,
    /// What was waited for; `None` for time on a CPU or in its queue.
    pub wait: Option<Wait>,
}
