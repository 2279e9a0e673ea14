//! Whether files that were seen once are still there, whatever their names: by the handles that NFS servers give to files,
//! open_by_handle_at(2).
//!
//! Invariant: nothing is opened but the folder; a file is only looked up (O_PATH). Where the kernel might mean another file by a handle, nothing
//! is said.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

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
    pub fn of(file: &File) -> Option<Inode> {
        let status = file.metadata().ok()?;
        let device = (rustix::fs::major(status.dev()), rustix::fs::minor(status.dev()));
        Some(Inode { device, number: status.ino(), generation: generation(file)? })
    }
}

/// `struct file_handle` of include/linux/fs.h, with room for what is made here.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    words: [u32; 5],
}

/// How many of these files, whose paths were in `folder`, are gone for good. `None`: its file system has no handles that are known here, or we may not use
/// them, which CAP_DAC_READ_SEARCH allows.
pub fn gone(folder: &Path, file_system: &str, files: &[Inode]) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = File::from(rustix::fs::openat(CWD, folder, flags, Mode::empty()).ok()?);
    // A file that is there: handles are made as this kernel makes them.
    let there = Inode::of(&folder)?;
    if is_gone(&folder, file_system, there)? {
        return None;
    }
    let on_device = files.iter().filter(|file| file.device == there.device);
    on_device.map(|file| is_gone(&folder, file_system, *file).map(u64::from)).sum()
}

fn is_gone(folder: &File, file_system: &str, file: Inode) -> Option<bool> {
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
        "ext2" | "ext3" | "ext4" | "f2fs" if high == 0 => of(8, 1, [low, file.generation, 0, 0, 0]),
        "xfs" if cfg!(target_endian = "little") => of(12, 0x81, [low, high, file.generation, 0, 0]),
        _ => None,
    }
}

/// `i_generation` of an open file.
fn generation(file: &File) -> Option<u32> {
    let mut value: libc::c_long = 0;
    // SAFETY: FS_IOC_GETVERSION writes an int or a long there, and nothing else.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETVERSION, &raw mut value) };
    (result == 0).then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_replaced_are_gone_and_moved_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
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
        let Some(number) = gone(folder.path(), "ext4", &files) else {
            eprintln!("skipped: files cannot be asked for by handles here");
            return;
        };
        assert_eq!((files.len(), number), (10, 5));
    }

    #[test]
    fn of_other_file_systems_and_places_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(gone(folder.path(), "fuse", &[]), None);
        assert_eq!(gone(&folder.path().join("none"), "ext4", &[]), None);
        // Those of another device are not asked for.
        let other = Inode { device: (9999, 9), number: 2, generation: 0 };
        assert!(matches!(gone(folder.path(), "ext4", &[other]), None | Some(0)));
    }
}
