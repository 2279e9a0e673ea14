//! Looking at the page cache without disturbing it. Goal: never believe an answer that the kernel gives to those it
//! does not want to tell. Non-goal: caches below the page cache (a disk's, a hypervisor's, a file server's).

use std::os::fd::{AsRawFd, BorrowedFd};

use iowhy_linux::identity;
use iowhy_linux::page_cache::cachestat;
use rustix::fs::{Access, AtFlags, FileType, StatFs};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::CapabilitySet;

use super::{Residency, aligned, page_bytes};

/// Looks at a byte range, rounded outwards to whole pages and cut at the end of a regular file. Pages that read-ahead
/// has asked for and that have not arrived yet count as resident with cachestat, and do not with mincore.
///
/// # Errors
/// In words why it cannot be seen, with the remedy: neither owner nor allowed to write, a file system with a cache of
/// its own, something that has no page cache.
pub fn look(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Residency, String> {
    // While files are made as another user, root still sees the cache of files that are not that user's.
    let _root = identity::as_self();
    let told = |what: &str, errno: Errno| {
        format!("{what} of `{}` failed: {}", name(file), std::io::Error::from(errno))
    };
    let stat = rustix::fs::fstat(file).map_err(|errno| told("fstat", errno))?;
    let size = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => u64::try_from(stat.st_size).unwrap_or(0),
        FileType::BlockDevice => u64::MAX,
        _ => {
            return Err(format!(
                "`{}` is neither a file nor a block device: it has no page cache",
                name(file)
            ));
        }
    };
    let end = offset.saturating_add(bytes).min(size);
    if end <= offset {
        let (dirty, recently_evicted) = (Some(0), Some(0));
        return Ok(Residency { pages: 0, resident: 0, dirty, recently_evicted, source: "cachestat" });
    }
    let (start, length) = aligned(offset, end - offset, page_bytes());
    if file_system(file).is_some_and(|fs| magic(&fs) == ZFS) {
        return Err("ZFS keeps file data in a cache of its own (ARC) that cannot be looked into".into());
    }
    // cachestat looks at the overlay's own inode, which never holds a page: it called a file cold that was wholly
    // cached. A mapping leads to the real file.
    if on_overlay(file) {
        return with_mincore(file, &stat, start, length);
    }
    match cachestat(file, start, length) {
        Ok(seen) => Ok(Residency {
            pages: length / page_bytes(),
            resident: seen.cache,
            dirty: Some(seen.dirty),
            recently_evicted: Some(seen.recently_evicted),
            source: "cachestat",
        }),
        // Container filters answer EPERM for system calls newer than they are: mincore has its own check.
        Err(Errno::NOSYS | Errno::PERM) => with_mincore(file, &stat, start, length),
        Err(Errno::OPNOTSUPP) => {
            Err(format!("`{}` lies on huge pages, which cachestat does not count", name(file)))
        }
        Err(errno) => Err(told("cachestat", errno)),
    }
}

/// Whether the file system keeps its files in memory only, so that nothing can be evicted.
pub(super) fn only_in_memory(file: BorrowedFd<'_>) -> bool {
    file_system(file).is_some_and(|fs| matches!(magic(&fs), TMPFS | RAMFS | HUGETLBFS))
}

/// Whether the file lies on an overlay, whose lower file systems do the caching.
pub(super) fn on_overlay(file: BorrowedFd<'_>) -> bool {
    file_system(file).is_some_and(|fs| magic(&fs) == OVERLAY)
}

/// The file system that holds the bytes. A device's node lies in one too (mostly in memory), but its bytes do not.
fn file_system(file: BorrowedFd<'_>) -> Option<StatFs> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file).ok()?.st_mode);
    if matches!(kind, FileType::BlockDevice | FileType::CharacterDevice) {
        return None;
    }
    rustix::fs::fstatfs(file).ok()
}

/// The path of a descriptor, for messages.
pub(super) fn name(file: BorrowedFd<'_>) -> String {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .map_or_else(|_| "the target".into(), |path| path.display().to_string())
}

// include/uapi/linux/magic.h; ZFS from OpenZFS.
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;
const HUGETLBFS: u32 = 0x9584_58f6;
const OVERLAY: u32 = 0x794c_7630;
const ZFS: u32 = 0x2fc1_2fc1;

/// The type of a file system: 32 bits, in a field whose width and sign differ between machines.
#[allow(clippy::unnecessary_cast)]
fn magic(fs: &StatFs) -> u32 {
    fs.f_type as u32
}

/// The fall-back. For a file that the caller neither owns nor may write, mincore reports every page as resident
/// (`can_do_mincore` in mm/mincore.c), so it is only believed where that rule lets us see.
fn with_mincore(
    file: BorrowedFd<'_>,
    stat: &rustix::fs::Stat,
    start: u64,
    length: u64,
) -> Result<Residency, String> {
    if !may_see(file, stat) {
        return Err(format!(
            "the kernel shows the page cache of `{}` only to its owner and to those who may write it: run as the \
             owner or as root",
            name(file)
        ));
    }
    let resident = mincore(file, start, length)
        .map_err(|errno| format!("mincore of `{}` failed: {}", name(file), std::io::Error::from(errno)))?;
    Ok(Residency {
        pages: length / page_bytes(),
        resident,
        dirty: None,
        recently_evicted: None,
        source: "mincore",
    })
}

/// The kernel's own rule for cachestat and mincore: owner, CAP_FOWNER, or allowed to write.
fn may_see(file: BorrowedFd<'_>, stat: &rustix::fs::Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
        || rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::FOWNER))
        || rustix::fs::accessat(
            rustix::fs::CWD,
            format!("/proc/self/fd/{}", file.as_raw_fd()),
            Access::WRITE_OK,
            AtFlags::EACCESS,
        )
        .is_ok()
}

/// Resident pages of a page-aligned range, counted through temporary mappings that are never touched.
fn mincore(file: BorrowedFd<'_>, start: u64, length: u64) -> Result<u64, Errno> {
    /// Bytes mapped at a time: 16384 pages of 4 KiB.
    const WINDOW: u64 = 64 << 20;
    let mut flags = vec![0u8; (WINDOW.min(length) / page_bytes()) as usize];
    let mut resident = 0;
    let mut at = start;
    while at < start + length {
        let bytes = (start + length - at).min(WINDOW) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice, never dereferenced; `flags` has one byte for
        // each of its pages; it is unmapped before anything else can learn its address.
        let result = unsafe {
            let pages =
                rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, at)?;
            let result =
                if libc::mincore(pages, bytes, flags.as_mut_ptr()) == 0 { Ok(()) } else { Err(last_errno()) };
            rustix::mm::munmap(pages, bytes)?;
            result
        };
        result?;
        let pages = bytes / page_bytes() as usize;
        resident += flags[..pages].iter().filter(|&&flag| flag & 1 == 1).count() as u64;
        at += bytes as u64;
    }
    Ok(resident)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn mincore_and_cachestat_agree_on_a_sparse_file() {
        let file = tempfile::tempfile().unwrap();
        let page = page_bytes();
        // Longer than one window of mincore, with pages only where they are written.
        file.set_len(100 << 20).unwrap();
        for at in [0, 5 * page, (64 << 20) - page, 64 << 20, (100 << 20) - page] {
            file.write_all_at(&[1], at).unwrap();
        }
        let stat = rustix::fs::fstat(&file).unwrap();
        let fallback = with_mincore(file.as_fd(), &stat, 0, 100 << 20).unwrap();
        assert!(fallback.resident >= 5 && fallback.resident < fallback.pages, "{fallback:?}");
        match cachestat(file.as_fd(), 0, 100 << 20) {
            Ok(_) if on_overlay(file.as_fd()) => {
                eprintln!("skipped: cachestat sees nothing through an overlay")
            }
            Ok(seen) => assert_eq!(seen.cache, fallback.resident),
            Err(errno) => eprintln!("skipped: no cachestat here ({errno})"),
        }
    }

    /// `/dev` is in memory, and was taken for the place of a disk's bytes: nothing was ever evicted of one.
    #[test]
    fn the_bytes_of_a_block_device_are_not_where_its_node_is() {
        let names = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let nodes = names.map(|entry| Path::new("/dev").join(entry.file_name()));
        // A handle needs no rights on the device.
        let open = |path: PathBuf| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
        let Some(device) = nodes.filter_map(open).next() else {
            return eprintln!("skipped: no block device has a node here");
        };
        assert!(!only_in_memory(device.as_fd()) && !on_overlay(device.as_fd()));
    }

    #[test]
    fn what_has_no_page_cache_is_not_called_cold() {
        for path in ["/dev/zero", "/"] {
            let file = File::open(path).unwrap();
            assert!(look(file.as_fd(), 0, 4096).unwrap_err().contains("no page cache"));
        }
    }

    /// mincore says "all resident" to a thread that makes files as somebody else, and its effective user is root still.
    #[test]
    fn the_cache_is_seen_while_files_are_made_as_another_user() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(1 << 20).unwrap();
        // Through a descriptor that may write, everybody sees.
        let ours = File::open(named.path()).unwrap();
        let nobody = identity::FileOwner { uid: 65_534, gid: 65_534, groups: vec![65_534] };
        let Ok(_files) = nobody.enter() else {
            return eprintln!("skipped: only root can act as another user");
        };
        assert_eq!(look(ours.as_fd(), 0, 1 << 20).map(|seen| seen.resident), Ok(0), "no page was ever there");
    }

    /// mincore says "all resident" about a file of somebody else's; we must say that we cannot see.
    #[test]
    fn a_file_of_somebody_elses_is_not_believed() {
        const NOBODY: u32 = 65534;
        let seen = std::thread::spawn(|| {
            if rustix::process::geteuid().is_root() {
                // The raw system call: it changes this thread alone, and takes its capabilities with it.
                let nobody = rustix::process::Uid::from_raw(NOBODY);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let theirs = File::open("/etc/passwd").unwrap();
            let stat = rustix::fs::fstat(&theirs).unwrap();
            (look(theirs.as_fd(), 0, 1), with_mincore(theirs.as_fd(), &stat, 0, page_bytes()))
        })
        .join()
        .unwrap();
        assert!(seen.0.unwrap_err().contains("run as the owner or as root"));
        assert!(seen.1.unwrap_err().contains("run as the owner or as root"));
    }
}
