//! What a system call does to descriptors and bytes, by its number: which arguments hold them. Source: the prototypes in the
//! manual (section 2) and, for numbers, the C library's table of this architecture.

/// Which way bytes go, seen from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Where a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the descriptor's position, which moves on.
    Position,
    /// At the offset in this argument.
    Argument(usize),
    /// As [`Place::Argument`], but -1 means [`Place::Position`].
    ArgumentOrPosition(usize),
    /// At the position when the pointer in this argument is null; else the offset is in memory that we do not see.
    Pointer(usize),
}

/// One end of a transfer: the argument with the descriptor, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) descriptor: usize,
    pub(crate) place: Place,
}

/// The arguments with a path, and with the directory that it begins at where it is relative (`None`: the working directory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathAt {
    pub(crate) path: usize,
    pub(crate) directory: Option<usize>,
}

impl PathAt {
    const FIRST: PathAt = PathAt { path: 0, directory: None };
    const SECOND: PathAt = PathAt { path: 1, directory: Some(0) };
}

/// The shape of a system call. Numbers are argument indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Moves bytes between memory and a descriptor (argument 0); it returns how many.
    Move { direction: Direction, place: Place, asked: Option<usize> },
    /// Moves bytes from one descriptor to another without the program touching them; it returns how many.
    Relay { source: End, target: End, asked: usize },
    /// Sets the position of argument 0; it returns the new one.
    Seek,
    /// Makes a file (argument 0) durable.
    Sync,
    /// mmap: descriptor in 4, protection in 2, flags in 3.
    Map,
    /// munmap: address in 0, length in 1.
    Unmap,
    /// posix_fadvise: descriptor in 0, offset in 1, length in 2, advice in 3.
    Advise,
    /// madvise: address in 0, length in 1, advice in 2.
    AdviseMap,
    /// fallocate: descriptor in 0, mode in 1, offset in 2, length in 3.
    Allocate,
    /// Opens a path; it returns a descriptor.
    Open { path: Option<PathAt> },
    /// Looks a path up, and opens nothing.
    LookUp { path: PathAt },
    /// Takes a connection from a client; it returns a descriptor.
    Accept,
    /// fcntl: it may change flags.
    Control,
    /// Nothing that concerns us beyond its count and time. io_uring_enter is here: what it submits is in memory.
    Other,
}

impl Shape {
    /// The shape of the call with this number on this architecture.
    pub(crate) fn from_number(number: i64) -> Shape {
        use Direction::{Read, Write};
        use Place::{Argument, ArgumentOrPosition, Pointer, Position};
        let moves = |direction, place, asked| Shape::Move { direction, place, asked };
        let end = |descriptor, place| End { descriptor, place };
        if is_old_open(number) {
            return Shape::Open { path: Some(PathAt::FIRST) };
        }
        if is_old_look(number) {
            return Shape::LookUp { path: PathAt::FIRST };
        }
        match number as libc::c_long {
            libc::SYS_read => moves(Read, Position, Some(2)),
            libc::SYS_write => moves(Write, Position, Some(2)),
            libc::SYS_pread64 => moves(Read, Argument(3), Some(2)),
            libc::SYS_pwrite64 => moves(Write, Argument(3), Some(2)),
            libc::SYS_readv => moves(Read, Position, None),
            libc::SYS_writev => moves(Write, Position, None),
            libc::SYS_preadv => moves(Read, Argument(3), None),
            libc::SYS_pwritev => moves(Write, Argument(3), None),
            libc::SYS_preadv2 => moves(Read, ArgumentOrPosition(3), None),
            libc::SYS_pwritev2 => moves(Write, ArgumentOrPosition(3), None),
            libc::SYS_recvfrom => moves(Read, Position, Some(2)),
            libc::SYS_sendto => moves(Write, Position, Some(2)),
            libc::SYS_recvmsg => moves(Read, Position, None),
            libc::SYS_sendmsg => moves(Write, Position, None),
            libc::SYS_sendfile => {
                Shape::Relay { source: end(1, Pointer(2)), target: end(0, Position), asked: 3 }
            }
            libc::SYS_copy_file_range | libc::SYS_splice => {
                Shape::Relay { source: end(0, Pointer(1)), target: end(2, Pointer(3)), asked: 4 }
            }
            libc::SYS_lseek => Shape::Seek,
            // sync_file_range(2) writes back and makes nothing durable.
            libc::SYS_fsync | libc::SYS_fdatasync => Shape::Sync,
            libc::SYS_mmap => Shape::Map,
            libc::SYS_munmap => Shape::Unmap,
            libc::SYS_fadvise64 => Shape::Advise,
            libc::SYS_madvise => Shape::AdviseMap,
            libc::SYS_fallocate => Shape::Allocate,
            libc::SYS_openat | libc::SYS_openat2 => Shape::Open { path: Some(PathAt::SECOND) },
            libc::SYS_open_by_handle_at => Shape::Open { path: None },
            libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_readlinkat => Shape::LookUp { path: PathAt::SECOND },
            libc::SYS_fcntl => Shape::Control,
            libc::SYS_accept | libc::SYS_accept4 => Shape::Accept,
            _ => Shape::Other,
        }
    }

    /// Whether a transfer names the memory itself: its size then stands beside it.
    pub(crate) fn has_buffer(self) -> bool {
        matches!(self, Shape::Move { asked: Some(_), .. })
    }
}

/// The argument that holds the descriptor of the file which a call works on, where a call that succeeds needs one that is open. `None`: its
/// file is closed when it returns, or it works on none (a mapping without a file).
pub(crate) fn file_argument(number: i64) -> Option<usize> {
    match Shape::from_number(number) {
        Shape::Move { .. } | Shape::Seek | Shape::Sync | Shape::Advise | Shape::Allocate | Shape::Control => {
            return Some(0);
        }
        Shape::Relay { source, .. } => return Some(source.descriptor),
        _ => {}
    }
    match number as libc::c_long {
        libc::SYS_fstat
        | libc::SYS_fstatfs
        | libc::SYS_ftruncate
        | libc::SYS_getdents64
        | libc::SYS_fchmod
        | libc::SYS_fchown
        | libc::SYS_fgetxattr
        | libc::SYS_flistxattr
        | libc::SYS_fsetxattr
        | libc::SYS_fremovexattr
        | libc::SYS_syncfs
        | libc::SYS_sync_file_range
        | libc::SYS_readahead
        | libc::SYS_flock
        | libc::SYS_ioctl => Some(0),
        _ => None,
    }
}

/// The flags that a call which opens a path asks for, as in open(2); the kernel forgets some of them. Those of openat2(2) are in
/// memory: 0.
pub(crate) fn open_flags(number: i64, arguments: &[u64; 6]) -> u32 {
    match number as libc::c_long {
        libc::SYS_openat => arguments[2] as u32,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => arguments[1] as u32,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u32,
        _ => 0,
    }
}

/// The flags of an open file with the numbers that open(2) has on x86-64, so that a record means the same wherever it is read: ARM
/// has O_DIRECTORY, O_NOFOLLOW, O_DIRECT and O_LARGEFILE elsewhere (`arch/arm64/include/uapi/asm/fcntl.h`).
#[cfg(target_arch = "aarch64")]
pub(crate) fn portable_flags(flags: u32) -> u32 {
    flags & !0o740_000 | (flags & 0o140_000) << 2 | (flags & 0o600_000) >> 2
}

/// The flags of an open file with the numbers that open(2) has on x86-64.
#[cfg(not(target_arch = "aarch64"))]
pub(crate) fn portable_flags(flags: u32) -> u32 {
    flags
}

/// Calls that newer architectures left out.
#[cfg(target_arch = "x86_64")]
fn is_old_open(number: i64) -> bool {
    matches!(number, libc::SYS_open | libc::SYS_creat)
}

/// Calls that newer architectures left out.
#[cfg(not(target_arch = "x86_64"))]
fn is_old_open(_number: i64) -> bool {
    false
}

/// Calls that newer architectures left out.
#[cfg(target_arch = "x86_64")]
fn is_old_look(number: i64) -> bool {
    matches!(number, libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink)
}

/// Calls that newer architectures left out.
#[cfg(not(target_arch = "x86_64"))]
fn is_old_look(_number: i64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::portable_flags;

    #[test]
    fn flags_of_open_files_are_those_of_one_architecture() {
        for (flag, portable) in [
            (libc::O_DIRECT, 0o40_000),
            (libc::O_DIRECTORY, 0o200_000),
            (libc::O_NOFOLLOW, 0o400_000),
            (libc::O_APPEND, 0o2000),
            (libc::O_DSYNC, 0o10_000),
        ] {
            assert_eq!(portable_flags(flag as u32), portable);
        }
    }
}
