//! Whether files that were seen once are still there, whatever their names: by the handles that NFS servers give to files,
//! open_by_handle_at(2).
//!
//! Invariant: nothing is opened but the folder; a file is only looked up (O_PATH). Where the kernel might mean another file by a handle, nothing
//! is said.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use crate::file_facts::FileFacts;
use crate::names::Dir;

/// What tells a file from all others of its machine, and from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its number.
    pub number: u64,
    /// `i_generation`.
    pub generation: u32,
}

impl Inode {
    /// That of an open file; `None` where its file system does not tell the generation.
    pub fn of(file: impl AsFd) -> Option<Inode> {
        Some(Inode { generation: generation(file.as_fd())?, ..Inode::without_generation(file)? })
    }

    #[allow(clippy::useless_conversion)] // The width of the fields differs between machines.
    fn without_generation(file: impl AsFd) -> Option<Inode> {
        let status = rustix::fs::fstat(file).ok()?;
        let device = u64::from(status.st_dev);
        let device = (rustix::fs::major(device), rustix::fs::minor(device));
        Some(Inode { device, number: u64::from(status.st_ino), generation: 0 })
    }
}

/// `struct file_handle` of include/linux/fs.h, with room for what is made here.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    words: [u32; 3],
}

/// Which of these files, whose paths were in `folder`, are gone for good, in their order; not those of other devices. `facts`: what is known of the
/// folder. `None`: it is not that folder any more, its file system has no handles that are known here, or we may not use them, which
/// CAP_DAC_READ_SEARCH allows.
pub fn gone(folder: &Path, facts: &FileFacts, files: &[Inode]) -> Option<Vec<bool>> {
    let file_system = facts.file_system.as_deref()?;
    handle(file_system, Inode { device: (0, 0), number: 0, generation: 0 })?;
    let folder = Dir::open_real(folder).ok()?;
    // What the path leads to may have changed into a file system whose server never answers.
    let found = Inode::without_generation(&folder)?;
    if (rustix::fs::makedev(found.device.0, found.device.1), found.number) != facts.identity {
        return None;
    }
    // A file that is there: handles are made as this kernel makes them.
    let there = Inode::of(&folder)?;
    if is_gone(folder.as_fd(), file_system, there)? {
        return None;
    }
    let asked = |file: &Inode| {
        if file.device == there.device { is_gone(folder.as_fd(), file_system, *file) } else { Some(false) }
    };
    files.iter().map(asked).collect()
}

fn is_gone(folder: BorrowedFd<'_>, file_system: &str, file: Inode) -> Option<bool> {
    let mut handle = handle(file_system, file)?;
    // SAFETY: `handle` has the layout of `struct file_handle`, is as long as its `bytes` say, and outlives the call.
    let fd = unsafe {
        libc::open_by_handle_at(folder.as_raw_fd(), (&raw mut handle).cast(), libc::O_PATH | libc::O_CLOEXEC)
    };
    if fd >= 0 {
        // SAFETY: the call just gave this descriptor, and nobody else has it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Some(false);
    }
    (Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::STALE)).then_some(true)
}

/// The handle of a file: `FILEID_INO32_GEN` of include/linux/exportfs.h, and that of fs/xfs/xfs_export.h with 64 bits.
fn handle(file_system: &str, file: Inode) -> Option<Handle> {
    let (low, high) = (file.number as u32, (file.number >> 32) as u32);
    let of = |bytes, kind, words| Some(Handle { bytes, kind, words });
    match file_system {
        "ext2" | "ext3" | "ext4" if high == 0 => of(8, 1, [low, file.generation, 0]),
        "xfs" if cfg!(target_endian = "little") => of(12, 0x81, [low, high, file.generation]),
        _ => None,
    }
}

/// `i_generation` of an open file.
fn generation(file: BorrowedFd<'_>) -> Option<u32> {
    let mut value: libc::c_long = 0;
    // SAFETY: FS_IOC_GETVERSION writes an int or a long there, and nothing else.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETVERSION, &raw mut value) };
    (result == 0).then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// As if its folder were on ext4.
    fn facts(folder: &Path, file_system: &str) -> FileFacts {
        let status = rustix::fs::stat(folder).unwrap();
        let identity = (status.st_dev, status.st_ino);
        FileFacts { file_system: Some(file_system.to_owned()), identity, ..FileFacts::default() }
    }

    #[test]
    fn files_that_were_replaced_are_gone_and_moved_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let at = |name: &str| path.join(name);
        let mut files = Vec::new();
        let mut make = |name: &str, to: &str| {
            let file = File::create(at(name)).unwrap();
            files.extend(Inode::of(&file));
            std::fs::rename(at(name), at(to)).unwrap();
        };
        for n in 0..5 {
            make("state.new", "state");
            make("log", &format!("log.{n}"));
        }
        std::fs::remove_file(at("log.3")).unwrap();
        let Some(gone) = gone(&path, &facts(&path, "ext4"), &files) else {
            eprintln!("skipped: files cannot be asked for by handles here");
            return;
        };
        // state, log, state, log, ...: of the states the last one is there, and one log was removed.
        let expected = [true, false, true, false, true, false, true, true, false, false];
        assert_eq!(gone, expected);
    }

    #[test]
    fn of_other_file_systems_and_places_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        assert_eq!(gone(&path, &facts(&path, "fuse"), &[]), None);
        assert_eq!(gone(&path.join("none"), &facts(&path, "ext4"), &[]), None);
        // Another folder than the one that was looked at, and one behind a link.
        assert_eq!(gone(&path, &FileFacts { identity: (1, 1), ..facts(&path, "ext4") }, &[]), None);
        std::os::unix::fs::symlink(&path, path.join("link")).unwrap();
        assert_eq!(gone(&path.join("link"), &facts(&path, "ext4"), &[]), None);
        // Those of another device are not asked for.
        let other = Inode { device: (9999, 9), number: 2, generation: 0 };
        let seen = gone(&path, &facts(&path, "ext4"), &[other]);
        assert!(seen.is_none_or(|seen| seen == [false]));
    }
}
