//! The files that a process has open: paths, flags, positions.
//!
//! They are those of the process's first thread; a thread that has unshared its table, and a process whose first
//! thread has ended while others live, are not seen. Sockets and pipes are listed too.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::mounts::Mount;

use crate::block::devices::BlockTree;
use crate::file_facts::{self, FileFacts};
use crate::reader::Reader;

/// One open file descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number.
    pub descriptor: u32,
    /// The path in the process's own name space at this moment, or the kernel's word for what has none
    /// (`pipe:[123]`). A deleted file has its last path and ` (deleted)`.
    pub path: PathBuf,
    /// How it was opened.
    pub flags: OpenFlags,
    /// Where the next read or write goes.
    pub position: u64,
    /// Of a ring of io_uring: requests that the kernel has taken and not completed; absent while it is being filled.
    pub in_flight: Option<u32>,
    /// The mount it was opened through, as in `/proc/PID/mountinfo`; absent before Linux 3.15.
    pub mount_id: Option<u64>,
}

/// Flags of open(2) as the kernel holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    /// O_DIRECT: past the page cache.
    pub fn direct(self) -> bool {
        self.has(libc::O_DIRECT)
    }

    /// O_DSYNC, or O_SYNC, of which it is a part: each write waits until it is durable.
    pub fn synchronous(self) -> bool {
        self.has(libc::O_DSYNC)
    }

    /// O_APPEND.
    pub fn append(self) -> bool {
        self.has(libc::O_APPEND)
    }

    /// Whether it may be written through.
    pub fn writable(self) -> bool {
        matches!(self.0 as i32 & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
    }

    fn has(self, flag: i32) -> bool {
        self.0 as i32 & flag == flag
    }
}

/// A ring has no more entries (io_uring_setup(2)); where more complete than were taken (several answers to one request),
/// the difference says nothing.
const MOST_IN_FLIGHT: u32 = 32_768;

/// All open files, by number; empty when the process is gone or not ours to look into.
pub fn open_files(reader: &mut Reader, pid: u32) -> Vec<OpenFile> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut files: Vec<OpenFile> = numbers.filter_map(|number| open_file(reader, pid, number)).collect();
    files.sort_by_key(|file| file.descriptor);
    files
}

/// One open file; `None` when it is closed.
pub fn open_file(reader: &mut Reader, pid: u32, descriptor: u32) -> Option<OpenFile> {
    let path = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let text = reader.read(format_args!("/proc/{pid}/fdinfo/{descriptor}"))?;
    let mut file = parse_info(&String::from_utf8_lossy(text))?;
    (file.descriptor, file.path) = (descriptor, path);
    Some(file)
}

/// The first lines of `fdinfo` (proc_pid_fdinfo(5)); what follows belongs to special files.
fn parse_info(text: &str) -> Option<OpenFile> {
    let value = |key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
    let ring = |key: &str| value(key)?.parse::<u32>().ok();
    // Both count all requests since the ring was made, and begin anew behind the greatest number.
    let in_flight = ring("SqHead:").zip(ring("CqTail:")).map(|(taken, done)| taken.wrapping_sub(done));
    Some(OpenFile {
        in_flight: in_flight.filter(|n| *n <= MOST_IN_FLIGHT),
        // A position that the kernel prints as negative is of a device that lets it be.
        position: value("pos:")?.parse::<i64>().ok()?.max(0) as u64,
        flags: OpenFlags(u32::from_str_radix(value("flags:")?, 8).ok()?),
        mount_id: value("mnt_id:").and_then(|id| id.parse().ok()),
        ..OpenFile::default()
    })
}

/// Device and inode of the files that this process has open and passes on at exec: those that it was given itself, as
/// everything that it opens is closed then.
pub fn given() -> HashSet<(u64, u64)> {
    let mut reader = Reader::new();
    let passed_on = |file: &OpenFile| !file.flags.has(libc::O_CLOEXEC);
    let ours = open_files(&mut reader, std::process::id());
    let identity = |file: OpenFile| {
        let found = rustix::fs::stat(path_to(std::process::id(), file.descriptor)).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    ours.into_iter().filter(passed_on).filter_map(identity).collect()
}

/// Facts about the file behind a descriptor. `mounts` are those of the process (see [`file_facts::mounts_of`]).
pub fn facts(pid: u32, file: &OpenFile, mounts: &[Mount], tree: &BlockTree) -> Option<FileFacts> {
    let mount = mounts.iter().find(|mount| Some(mount.id) == file.mount_id);
    file_facts::facts(&path_to(pid, file.descriptor), Some(&file.path), mount, tree)
}

/// A path that leads to the very file, whatever its name space, and even if it is deleted.
pub fn path_to(pid: u32, descriptor: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/fd/{descriptor}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn real_text_is_read() {
        let file = parse_info("pos:\t2542\nflags:\t0100001\nmnt_id:\t27\nino:\t9986119\n").unwrap();
        assert_eq!((file.position, file.mount_id, file.flags.writable()), (2542, Some(27), true));
        let old = parse_info("pos:\t0\nflags:\t02\n").unwrap();
        assert_eq!((old.mount_id, old.flags.direct()), (None, false));
        assert_eq!(parse_info("pos:\t-1\nflags:\t0\n").unwrap().position, 0);
        let ring = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t2061\nSqMask:\t0xf\nSqHead:\t4294967290\nSqTail:\t3\n\
                    CachedSqHead:\t4294967290\nCqMask:\t0x1f\nCqHead:\t4294967270\nCqTail:\t4294967274\n";
        assert_eq!(parse_info(ring).unwrap().in_flight, Some(16));
        let more_answers = ring.replace("CqTail:\t4294967274", "CqTail:\t1");
        assert_eq!((parse_info(&more_answers).unwrap().in_flight, file.in_flight), (None, None));
        for broken in ["", "pos:\t1\n", "flags:\t0\n", "pos:\tx\nflags:\t0\n", "pos:\t1\nflags:\t9\n"] {
            assert_eq!(parse_info(broken), None, "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(pos:|flags:|mnt_id:|\t|\n|[-0-9a-z]|.){0,40}") {
            let _ = parse_info(&text);
        }
    }

    #[test]
    fn files_of_this_process_show_flags_and_position() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd name\n(deleted)");
        std::fs::write(&path, "hello").unwrap();
        let plain = File::open(&path).unwrap();
        rustix::fs::seek(&plain, rustix::fs::SeekFrom::Start(3)).unwrap();
        let synchronous = OpenOptions::new().append(true).custom_flags(libc::O_DSYNC).open(&path).unwrap();
        let mut reader = Reader::new();
        let files = open_files(&mut reader, std::process::id());
        let of = |file: &File| files.iter().find(|f| f.descriptor == file.as_raw_fd() as u32).unwrap();
        let seen = of(&plain);
        assert_eq!((seen.position, seen.path.file_name()), (3, path.file_name()));
        assert!(!seen.flags.synchronous() && !seen.flags.writable());
        let flags = of(&synchronous).flags;
        assert!(flags.synchronous() && flags.append() && flags.writable() && !flags.direct());
        assert!(open_files(&mut reader, u32::MAX).is_empty());
        assert_eq!(open_file(&mut reader, std::process::id(), u32::MAX), None);
    }
}
