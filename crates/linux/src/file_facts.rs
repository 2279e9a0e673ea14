//! What a file is: kind, size, file system, and the block devices under it.
//!
//! Invariant: nothing is opened, nothing is mounted by looking, and a server is not asked where the kernel has an
//! answer of its own. What cannot be known so is `None`.

use std::path::Path;

use crate::mounts::{self, Mount, above};
use iowhy_core::profile::FileIdentity;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, StatxTimestamp};

use crate::block::devices::{BlockTree, Devices};
use crate::reader::Reader;
use crate::served;

/// What `stx_blocks` counts, whatever the block size of the file system (statx(2)).
const BLOCK_BYTES: u64 = 512;

/// Facts about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// `regular`, `directory`, `block-device`, `character-device`, `pipe`, `socket`, `symbolic-link`, `anonymous`.
    pub kind: &'static str,
    /// File-system type; `None` where its mount is not listed. Pipes, sockets and anonymous files are in none.
    pub file_system: Option<String>,
    /// Size of a regular file.
    pub size_bytes: Option<u64>,
    /// What its file system has allocated to a regular file: fewer bytes than its size where it has holes, or is compressed.
    pub allocated_bytes: Option<u64>,
    /// When it was written or changed last (`ctime`), in nanoseconds since 1970.
    pub changed_ns: i64,
    /// Block devices under it.
    pub devices: Devices,
    /// Device and inode number: two descriptors with the same identity are one file (of a device: one node).
    pub identity: (u64, u64),
    /// Whether its pages may be counted without harm and with a true answer: see [`crate::page_cache::look`].
    pub cache_visible: bool,
}

/// The mounts that a process sees; those of this process for one that is gone or hidden.
pub fn mounts_of(reader: &mut Reader, pid: u32) -> Vec<Mount> {
    let parse = |text: &[u8]| mounts::parse(&String::from_utf8_lossy(text));
    if let Some(text) = reader.read(format_args!("/proc/{pid}/mountinfo")) {
        return parse(text);
    }
    reader.read(format_args!("/proc/self/mountinfo")).map(parse).unwrap_or_default()
}

/// Facts about a file that is named by its path in a name space with these mounts, which must be our own. `None`: it is
/// not there, or is on a file system where asking could hang.
pub fn facts_of_path(path: &Path, mounts: &[Mount], tree: &BlockTree) -> Option<FileFacts> {
    let mount = above(mounts, path)?;
    if served::by_type(&mount.file_system).is_some() {
        return None;
    }
    facts(path, Some(path), Some(mount), tree)
}

/// Facts about the file that `at` leads to. `name` is its path for people, `mount` its mount where that is known.
pub fn facts(at: &Path, name: Option<&Path>, mount: Option<&Mount>, tree: &BlockTree) -> Option<FileFacts> {
    // Without AT_STATX_DONT_SYNC a network file system asks its server, which may never answer.
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let status = rustix::fs::statx(CWD, at, flags, StatxFlags::BASIC_STATS).ok()?;
    let kind = kind(u32::from(status.stx_mode));
    let number = (status.stx_dev_major, status.stx_dev_minor);
    let in_file_system = matches!(kind, "regular" | "directory" | "symbolic-link");
    let mount = mount.filter(|_| in_file_system);
    let devices = match kind {
        "block-device" => tree.under_device((status.stx_rdev_major, status.stx_rdev_minor)),
        _ if in_file_system => tree.under_file(number, mount, name),
        _ => Devices::default(),
    };
    Some(FileFacts {
        kind,
        file_system: mount.map(|mount| mount.file_system.clone()),
        size_bytes: (kind == "regular").then_some(status.stx_size),
        allocated_bytes: (kind == "regular").then(|| status.stx_blocks.saturating_mul(BLOCK_BYTES)),
        changed_ns: nanoseconds(status.stx_ctime),
        devices,
        identity: (rustix::fs::makedev(number.0, number.1), status.stx_ino),
        cache_visible: kind == "regular" && has_honest_cache(number, mount),
    })
}

/// Whether cachestat on this file system tells the truth and cannot hang: file systems on block devices, and btrfs.
/// An overlay's own inode never holds a page, ZFS has a cache of its own, and what lives in memory is always there.
fn has_honest_cache(number: (u32, u32), mount: Option<&Mount>) -> bool {
    match mount.map(|mount| mount.file_system.as_str()) {
        Some("btrfs" | "bcachefs") => true,
        Some(kind) if served::by_type(kind).is_some() => false,
        Some(_) => number.0 != 0,
        // Its mount is not listed: what answers for it is not known.
        None => false,
    }
}

fn kind(mode: u32) -> &'static str {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => "regular",
        FileType::Directory => "directory",
        FileType::BlockDevice => "block-device",
        FileType::CharacterDevice => "character-device",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::Symlink => "symbolic-link",
        // eventfd, epoll, rings: files without a kind.
        _ => "anonymous",
    }
}

fn nanoseconds(time: StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec))
}

/// What a path leads to now, if that is a regular file: which file, how large, and when it was changed; and when it was made, in nanoseconds
/// since 1970, where its file system keeps that. A server is not asked.
pub fn identity(path: &Path) -> Option<(FileIdentity, Option<i64>)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME).ok()?;
    let identity = FileIdentity {
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        size_bytes: found.stx_size,
        modified_ns: nanoseconds(found.stx_mtime),
    };
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let regular = FileType::from_raw_mode(found.stx_mode.into()).is_file();
    regular.then(|| (identity, has_birth.then(|| nanoseconds(found.stx_btime))))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;
    use crate::process::open_files::{OpenFile, facts, open_file};

    fn here() -> (Vec<Mount>, BlockTree) {
        let mounts = mounts_of(&mut Reader::new(), std::process::id());
        (mounts.clone(), BlockTree::new(mounts))
    }

    fn facts_of(file: &impl AsRawFd) -> (OpenFile, FileFacts) {
        let (mounts, tree) = here();
        let descriptor = file.as_raw_fd() as u32;
        let open = open_file(&mut Reader::new(), std::process::id(), descriptor).unwrap();
        let facts = facts(std::process::id(), &open, &mounts, &tree).unwrap();
        (open, facts)
    }

    #[test]
    fn a_deleted_file_still_has_its_facts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(12345).unwrap();
        let file = file.into_temp_path();
        let open = File::open(&file).unwrap();
        drop(file);
        let (seen, facts) = facts_of(&open);
        assert!(seen.path.to_string_lossy().ends_with(" (deleted)"));
        assert_eq!((facts.kind, facts.size_bytes), ("regular", Some(12345)));
        assert!(facts.file_system.is_some());
        let again = facts_of(&open.try_clone().unwrap()).1;
        assert_eq!(again.identity, facts.identity);
    }

    #[test]
    fn what_is_no_file_has_its_kind_and_no_device() {
        let (read, _write) = std::io::pipe().unwrap();
        assert_eq!(facts_of(&read).1.kind, "pipe");
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(facts_of(&socket).1.kind, "socket");
        assert_eq!(facts_of(&File::open("/dev/null").unwrap()).1.kind, "character-device");
        assert_eq!(facts_of(&File::open("/").unwrap()).1.kind, "directory");
        // SAFETY: eventfd takes two numbers and returns a new descriptor or -1, which is checked before it is owned.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        assert!(event >= 0);
        // SAFETY: a new descriptor that nobody else owns.
        let event = unsafe { File::from_raw_fd(event) };
        let (_, facts) = facts_of(&event);
        assert_eq!(
            (facts.kind, facts.devices, facts.cache_visible),
            ("anonymous", Devices::default(), false)
        );
    }

    #[test]
    fn only_caches_that_tell_the_truth_are_looked_into() {
        let of = |line: &str| {
            let mount = mounts::parse(line).remove(0);
            has_honest_cache(mount.device, Some(&mount))
        };
        assert!(of("1 0 8:1 / / rw - ext4 /dev/sda1 rw") && of("1 0 0:40 / / rw - btrfs /dev/sda1 rw"));
        for line in [
            "1 0 0:40 / / rw - overlay overlay rw",
            "1 0 0:40 / / rw - nfs4 host:/x rw",
            "1 0 8:1 / / rw - fuseblk /dev/sda1 rw",
            "1 0 0:40 / / rw - tmpfs tmpfs rw",
            "1 0 0:40 / / rw - zfs pool rw",
        ] {
            assert!(!of(line), "{line}");
        }
        assert!(!has_honest_cache((8, 1), None));
    }

    #[test]
    fn a_path_that_is_not_there_or_is_served_has_no_facts() {
        let (mounts, tree) = here();
        assert_eq!(facts_of_path(Path::new("/no/such/file"), &mounts, &tree), None);
        let served = mounts::parse("1 0 0:40 / / rw - nfs4 host:/x rw");
        assert_eq!(facts_of_path(Path::new("/"), &served, &tree), None);
        assert_eq!(facts_of_path(Path::new("/"), &mounts, &tree).unwrap().kind, "directory");
    }
}
