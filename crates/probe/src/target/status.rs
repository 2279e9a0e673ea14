//! Facts from stat, statx and statfs about an open file or a path: identity, kind, mount, alignment.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use iowhy_linux::served;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatxFlags, major, minor};
use rustix::io::Errno;

/// Identity of the bytes: targets with the same identity share bytes and page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device number of the file system, or of the device itself when the target is one.
    pub device: u64,
    /// Inode number; 0 for a device, which may have many nodes.
    pub inode: u64,
}

/// Facts about one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// Size of a regular file.
    pub(crate) size_bytes: u64,
    /// Bytes allocated to it.
    pub(crate) allocated_bytes: u64,
    /// See [`Identity::inode`].
    pub(crate) inode: u64,
    /// See [`Identity::device`].
    pub(crate) raw_device: u64,
    /// Major and minor number of the file system's device; major 0 is anonymous.
    pub(crate) device: (u32, u32),
    /// Major and minor number, when it is a block device itself.
    pub(crate) block_device: Option<(u32, u32)>,
    /// Whether it is a character device.
    pub(crate) char_device: bool,
    /// The identifier of its mount in mountinfo (Linux 5.8).
    pub(crate) mount_id: Option<u64>,
    /// Whether its file system keeps the bytes in memory only.
    pub(crate) memory_backed: bool,
    /// Who serves the bytes where no block device of this machine does.
    pub(crate) served_by: Option<&'static str>,
    /// Alignment of direct requests by statx (Linux 6.1); 0 when the file system says that there are none.
    pub(crate) direct_alignment_bytes: Option<u64>,
}

impl Status {
    /// From an open file.
    pub(crate) fn from_fd(file: BorrowedFd<'_>) -> Result<Status, Errno> {
        let mut status = Status::from_stat(&rustix::fs::fstat(file)?);
        status.add_file_system(file);
        status.add_statx(file, Path::new(""), AtFlags::EMPTY_PATH);
        Ok(status)
    }

    /// From a path, without opening it for reading.
    pub(crate) fn from_path(path: &Path) -> Option<Status> {
        let mut status = Status::from_stat(&rustix::fs::stat(path).ok()?);
        let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        status.add_file_system(handle.as_fd());
        status.add_statx(CWD, path, AtFlags::empty());
        Some(status)
    }

    /// Whether its bytes are in a file system (a device node is in one too, but its bytes are not).
    pub(crate) fn holds_files(&self) -> bool {
        self.block_device.is_none() && !self.char_device
    }

    /// Identity of the bytes.
    pub(crate) fn identity(&self) -> Identity {
        Identity { device: self.raw_device, inode: self.inode }
    }

    fn from_stat(stat: &Stat) -> Status {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
        Status {
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            allocated_bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            inode: if is_device { 0 } else { stat.st_ino },
            raw_device: if is_device { stat.st_rdev } else { stat.st_dev },
            device: (major(stat.st_dev), minor(stat.st_dev)),
            block_device: (kind == FileType::BlockDevice).then(|| (major(stat.st_rdev), minor(stat.st_rdev))),
            char_device: kind == FileType::CharacterDevice,
            ..Status::default()
        }
    }

    /// Adds where its file system keeps the bytes.
    fn add_file_system(&mut self, file: BorrowedFd<'_>) {
        if self.holds_files() {
            self.memory_backed = on_memory(file);
            self.served_by = magic(file).and_then(|magic| served::by_magic(magic, self.device.0));
        }
    }

    /// Adds facts that only newer kernels report.
    fn add_statx(&mut self, at: BorrowedFd<'_>, path: &Path, flags: AtFlags) {
        let wanted = StatxFlags::MNT_ID | StatxFlags::DIOALIGN;
        let Ok(answer) = rustix::fs::statx(at, path, flags, wanted) else { return };
        let told = StatxFlags::from_bits_retain(answer.stx_mask);
        self.mount_id = told.contains(StatxFlags::MNT_ID).then_some(answer.stx_mnt_id);
        self.direct_alignment_bytes = told
            .contains(StatxFlags::DIOALIGN)
            .then(|| u64::from(answer.stx_dio_offset_align.max(answer.stx_dio_mem_align)));
    }
}

/// Whether the file system keeps the bytes in memory only: tmpfs (which memfds are on), ramfs, hugetlbfs.
pub(super) fn on_memory(file: BorrowedFd<'_>) -> bool {
    // Magic numbers of linux/magic.h.
    const MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    magic(file).is_some_and(|magic| MEMORY.contains(&magic))
}

/// The number of a kind of file system, of linux/magic.h.
fn magic(file: BorrowedFd<'_>) -> Option<u64> {
    rustix::fs::fstatfs(file).ok().map(|s| s.f_type as u64 & 0xffff_ffff)
}

/// Who serves the bytes of a file system of this number whose device has this major number. One that stands on a block
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_descriptor_agree_and_devices_are_known_by_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (a, b) = (Status::from_fd(file.as_fd()).unwrap(), Status::from_path(file.path()).unwrap());
        assert_eq!((a.identity(), a.mount_id), (b.identity(), b.mount_id));
        let null = Status::from_path(Path::new("/dev/null")).unwrap();
        assert!(null.char_device && null.identity().inode == 0);
    }

    #[test]
    fn a_memfd_is_memory() {
        let memory = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(Status::from_fd(memory.as_fd()).unwrap().memory_backed);
    }

    #[test]
    fn the_temporary_directory_is_on_a_mount_that_is_listed() {
        let file = tempfile::tempfile().unwrap();
        let status = Status::from_fd(file.as_fd()).unwrap();
        let table = iowhy_linux::mounts::read();
        if table.is_empty() || status.mount_id.is_none() {
            eprintln!("skipped: no mount table or no mount identifiers");
            return;
        }
        assert!(iowhy_linux::mounts::find(&table, status.mount_id, None).is_some());
    }
}
