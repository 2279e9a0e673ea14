//! The words of the classifier: operations, kinds of wait, and the meaning of a stack.
//!
//! Identifiers are part of the output format and never change their meaning. What may not enter: names of kernel
//! functions.

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
    /// Copying a file into the writable layer of an overlay, which a call that changes it waits for.
    CopyUp,
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
    /// What tracers and profilers, iowhy among them, add to a call.
    Observer,
    /// A kernel stack whose outermost frames say nothing (kernel threads, truncated stacks).
    Unknown,
}

impl Operation {
    /// All of them.
    pub const ALL: &'static [Operation] = &[
        Operation::User,
        Operation::Read,
        Operation::Write,
        Operation::Sync,
        Operation::Open,
        Operation::Close,
        Operation::Stat,
        Operation::Names,
        Operation::CopyUp,
        Operation::Descriptor,
        Operation::Map,
        Operation::Fault,
        Operation::Ring,
        Operation::Aio,
        Operation::Process,
        Operation::Futex,
        Operation::Poll,
        Operation::Socket,
        Operation::Sleep,
        Operation::Other,
        Operation::Interrupt,
        Operation::Observer,
        Operation::Unknown,
    ];

    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Operation::User => "user",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Open => "open",
            Operation::Close => "close",
            Operation::Stat => "stat",
            Operation::Names => "names",
            Operation::CopyUp => "copy-up",
            Operation::Descriptor => "descriptor",
            Operation::Map => "map",
            Operation::Fault => "fault",
            Operation::Ring => "ring",
            Operation::Aio => "aio",
            Operation::Process => "process",
            Operation::Futex => "futex",
            Operation::Poll => "poll",
            Operation::Socket => "socket",
            Operation::Sleep => "sleep",
            Operation::Other => "other",
            Operation::Interrupt => "interrupt",
            Operation::Observer => "observer",
            Operation::Unknown => "unknown",
        }
    }

    /// What it is called in sentences: "reads", "page faults".
    pub fn words(self) -> &'static str {
        match self {
            Operation::User => "the program's own code",
            Operation::Read => "reads",
            Operation::Write => "writes",
            Operation::Sync => "making data durable",
            Operation::Open => "opening files",
            Operation::Close => "closing files",
            Operation::Stat => "examining files",
            Operation::Names => "changing names and sizes",
            Operation::CopyUp => "copying files up into an overlay",
            Operation::Descriptor => "descriptor calls",
            Operation::Map => "mapping memory",
            Operation::Fault => "page faults",
            Operation::Ring => "io_uring",
            Operation::Aio => "asynchronous I/O",
            Operation::Process => "starting and ending processes",
            Operation::Futex => "waiting for other threads",
            Operation::Poll => "polling",
            Operation::Socket => "sockets",
            Operation::Sleep => "sleeping",
            Operation::Other => "other system calls",
            Operation::Interrupt => "interrupts",
            Operation::Observer => "being observed",
            Operation::Unknown => "operation not seen",
        }
    }

    /// The operation of an identifier.
    pub fn from_id(id: &str) -> Option<Operation> {
        Self::ALL.iter().copied().find(|o| o.id() == id)
    }
}

/// What a sleep waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// Data from the device, into the page cache or directly.
    DeviceRead,
    /// A direct write, or a discard of freed blocks, on its way to the device.
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
    /// A lock on a file that a program asked for (flock, fcntl).
    FileLock,
    /// Another kernel lock.
    KernelLock,
    /// Room or data in a pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A timer.
    Timer,
    /// A signal.
    Signal,
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
    /// All of them.
    pub const ALL: &'static [Wait] = &[
        Wait::DeviceRead,
        Wait::DeviceWrite,
        Wait::DataWriteback,
        Wait::CacheFlush,
        Wait::Journal,
        Wait::JournalSpace,
        Wait::DirtyThrottle,
        Wait::BlockThrottle,
        Wait::Reclaim,
        Wait::InodeLock,
        Wait::MmapLock,
        Wait::FileLock,
        Wait::KernelLock,
        Wait::Pipe,
        Wait::Socket,
        Wait::Timer,
        Wait::Signal,
        Wait::Futex,
        Wait::Child,
        Wait::Poll,
        Wait::Terminal,
        Wait::Completion,
        Wait::Server,
        Wait::Unknown,
    ];

    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Wait::DeviceRead => "device-read",
            Wait::DeviceWrite => "device-write",
            Wait::DataWriteback => "data-writeback",
            Wait::CacheFlush => "cache-flush",
            Wait::Journal => "journal",
            Wait::JournalSpace => "journal-space",
            Wait::DirtyThrottle => "dirty-throttle",
            Wait::BlockThrottle => "block-throttle",
            Wait::Reclaim => "reclaim",
            Wait::InodeLock => "inode-lock",
            Wait::MmapLock => "mmap-lock",
            Wait::FileLock => "file-lock",
            Wait::KernelLock => "kernel-lock",
            Wait::Pipe => "pipe",
            Wait::Socket => "socket",
            Wait::Timer => "timer",
            Wait::Signal => "signal",
            Wait::Futex => "futex",
            Wait::Child => "child",
            Wait::Poll => "poll",
            Wait::Terminal => "terminal",
            Wait::Completion => "completion",
            Wait::Server => "server",
            Wait::Unknown => "unknown",
        }
    }

    /// What was waited for, in words that fit after "waiting for".
    pub fn words(self) -> &'static str {
        match self {
            Wait::DeviceRead => "data from the device",
            Wait::DeviceWrite => "a direct write or discard by the device",
            Wait::DataWriteback => "dirty data being written back",
            Wait::CacheFlush => "the flush of the device's cache",
            Wait::Journal => "a commit of the journal",
            Wait::JournalSpace => "room in the journal",
            Wait::DirtyThrottle => "the limit of dirty memory",
            Wait::BlockThrottle => "a limit of the block layer",
            Wait::Reclaim => "free memory",
            Wait::InodeLock => "the lock of a file or directory",
            Wait::MmapLock => "the lock of the address space",
            Wait::FileLock => "a lock on a file",
            Wait::KernelLock => "a kernel lock",
            Wait::Pipe => "a pipe",
            Wait::Socket => "a socket",
            Wait::Timer => "a timer",
            Wait::Signal => "a signal",
            Wait::Futex => "another thread",
            Wait::Child => "a child process",
            Wait::Poll => "an event (poll, select, epoll)",
            Wait::Terminal => "a terminal",
            Wait::Completion => "the completion of asynchronous I/O",
            Wait::Server => "a file server",
            Wait::Unknown => "something unknown",
        }
    }

    /// The wait of an identifier.
    pub fn from_id(id: &str) -> Option<Wait> {
        Self::ALL.iter().copied().find(|w| w.id() == id)
    }

    /// The layer that time in this wait belongs to: that of whoever serves it, not of the call that waits. It is what is
    /// left of a wait where the overlap with block requests is not known. A wait that is not known says nothing about its
    /// layer.
    pub fn layer(self) -> Option<Layer> {
        Some(match self {
            // The request is at the device, or in its queue.
            Wait::DeviceRead | Wait::DeviceWrite => Layer::Device,
            // A flush is a request like any other: the device empties its cache meanwhile.
            Wait::CacheFlush => Layer::Device,
            // What a thread knows of its own asynchronous requests is that they are not back.
            Wait::Completion => Layer::Device,
            // Write-back that somebody else started. What the call itself asked for is the device's: see
            // [`Wait::layer_of_own`].
            Wait::DataWriteback | Wait::DirtyThrottle => Layer::Writeback,
            // The commit has a thread of its own, serves several callers, and orders its writes: more than one request.
            Wait::Journal => Layer::Journal,
            // Room comes when a commit ends or a checkpoint has been written.
            Wait::JournalSpace => Layer::Journal,
            Wait::Server => Layer::Server,
            Wait::BlockThrottle => Layer::Block,
            Wait::Reclaim => Layer::Memory,
            Wait::InodeLock | Wait::MmapLock | Wait::FileLock | Wait::KernelLock => Layer::Lock,
            Wait::Pipe
            | Wait::Socket
            | Wait::Timer
            | Wait::Signal
            | Wait::Futex
            | Wait::Child
            | Wait::Poll
            | Wait::Terminal => Layer::Elsewhere,
            Wait::Unknown => return None,
        })
    }

    /// The same for a call that started the write-back it waits for (fsync, a synchronous write): between its submission
    /// and its end nobody but the device has the data.
    pub(super) fn layer_of_own(self) -> Option<Layer> {
        if self == Wait::DataWriteback { Some(Layer::Device) } else { self.layer() }
    }

    /// Whether it is on the path between the program and the disk.
    pub fn on_path(self) -> bool {
        !matches!(
            self,
            Wait::Pipe
                | Wait::Socket
                | Wait::Timer
                | Wait::Signal
                | Wait::Futex
                | Wait::Child
                | Wait::Poll
                | Wait::Terminal
                | Wait::Unknown
        )
    }
}

/// What a stack stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// What was asked for.
    pub operation: Operation,
    /// Where the time was spent. [`Layer::Unexplained`] when no frame is in the table.
    pub layer: Layer,
    /// What was waited for; `None` for time on a CPU or in its queue.
    pub wait: Option<Wait>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_lead_back() {
        for o in Operation::ALL {
            assert_eq!(Operation::from_id(o.id()), Some(*o));
        }
        for w in Wait::ALL {
            assert_eq!(Wait::from_id(w.id()), Some(*w));
        }
        assert_eq!((Operation::ALL.len(), Wait::ALL.len()), (23, 24));
    }

    #[test]
    fn a_wait_off_the_path_is_elsewhere_and_one_on_it_is_not() {
        for w in Wait::ALL.iter().filter(|w| **w != Wait::Unknown) {
            assert_eq!(w.on_path(), w.layer() != Some(Layer::Elsewhere), "{w:?}");
        }
    }
}
