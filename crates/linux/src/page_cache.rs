//! How much of a file is in the page cache, and how much was evicted lately: cachestat(2), since Linux 6.5.
//!
//! mincore(2) is not used: of a file that is not ours it says that everything is resident. Where cachestat would lie,
//! block, or be refused, nothing is said.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use crate::names::Regular;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::file_facts::FileFacts;

/// What was seen of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSight {
    /// Pages of the file.
    pub pages: u64,
    /// Of which in the cache. Pages that read-ahead has asked for and that have not arrived yet are among them.
    pub cached: u64,
    /// Of which not yet written back.
    pub dirty: u64,
    /// Pages that are not there, but were not long ago: more memory would have kept them.
    pub recently_evicted: u64,
}

impl CacheSight {
    /// Part of the file that is in the cache, 0 to 1; `None` for an empty file.
    pub fn share(&self) -> Option<f64> {
        (self.pages > 0).then(|| (self.cached as f64 / self.pages as f64).min(1.0))
    }
}

/// Counts the pages of the file that `at` leads to (see [`crate::process::open_files::path_to`]). It is opened for reading for
/// an instant, without touching its access time where that is allowed. `None`: it is no regular file with a page cache
/// that can be trusted ([`FileFacts::cache_visible`]), we may not read it, or the kernel does not tell.
///
/// Its cost grows with what is cached: 0.8 ms for 256 MiB in single pages (2 virtual CPUs, Linux 6.18).
pub fn look(at: &Path, facts: &FileFacts) -> Option<CacheSight> {
    if !facts.cache_visible {
        return None;
    }
    // What `at` leads to may have changed into a device or a pipe, whose opening acts.
    let found = Regular::find(at, OFlags::empty()).ok()?;
    if found.identity() != facts.identity {
        return None;
    }
    let file = found.open_quietly().ok()?;
    let seen = cachestat(file.as_fd(), 0, 0).ok()?;
    Some(CacheSight {
        pages: found.bytes().div_ceil(rustix::param::page_size() as u64),
        cached: seen.cache,
        dirty: seen.dirty,
        recently_evicted: seen.recently_evicted,
    })
}

/// `struct cachestat_range` of include/uapi/linux/mman.h.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of include/uapi/linux/mman.h: numbers of pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cachestat {
    /// In the cache, those that read-ahead has asked for and that have not arrived yet among them.
    pub cache: u64,
    /// Not yet written back.
    pub dirty: u64,
    /// Being written back.
    pub writeback: u64,
    /// Evicted since they were read.
    pub evicted: u64,
    /// Evicted so lately that more memory would have kept them.
    pub recently_evicted: u64,
}

/// cachestat(2); libc does not name it for every machine.
#[cfg(target_arch = "mips64")]
const SYS_CACHESTAT: libc::c_long = 5451;
#[cfg(target_arch = "mips")]
const SYS_CACHESTAT: libc::c_long = 4451;
#[cfg(not(any(target_arch = "mips64", target_arch = "mips")))]
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts the pages of a byte range; a length of 0 means "to the end".
///
/// # Errors
/// Those of the kernel: ENOSYS before Linux 6.5, EPERM behind some container filters, EOPNOTSUPP on huge pages.
pub fn cachestat(file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<Cachestat, Errno> {
    let range = Range { offset, length };
    let mut seen = Cachestat::default();
    // SAFETY: both structs have the kernel's layout and outlive the call, which only reads `range` and writes `seen`.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut seen, 0u32) };
    if result == 0 {
        Ok(seen)
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;
    use crate::block::devices::BlockTree;
    use crate::file_facts::{facts_of_path, mounts_of};
    use crate::reader::Reader;

    fn facts_of(path: &Path) -> Option<FileFacts> {
        let mounts = mounts_of(&mut Reader::new(), std::process::id());
        facts_of_path(&path.canonicalize().ok()?, &mounts, &BlockTree::new(mounts.clone()))
    }

    #[test]
    fn written_pages_are_in_the_cache_and_holes_are_not() {
        const PAGES: u64 = 64;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let page = rustix::param::page_size();
        file.write_all(&vec![7; page * PAGES as usize]).unwrap();
        let facts = facts_of(file.path()).unwrap();
        if !facts.cache_visible || cachestat(file.as_file().as_fd(), 0, 0).is_err() {
            eprintln!("skipped: no cachestat, or a file system ({:?}) where it lies", facts.file_system);
            return;
        }
        let full = look(file.path(), &facts).unwrap();
        assert_eq!((full.pages, full.cached, full.share()), (PAGES, PAGES, Some(1.0)));
        file.as_file().set_len(4 * PAGES * page as u64).unwrap();
        let sparse = look(file.path(), &facts).unwrap();
        assert_eq!((sparse.pages, sparse.share()), (4 * PAGES, Some(0.25)));
        file.as_file().set_len(0).unwrap();
        assert_eq!(look(file.path(), &facts).unwrap().share(), None);
    }

    /// Opening a pipe without a writer would wait for ever; a device may act when it is opened.
    #[test]
    fn nothing_but_the_same_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (path, pipe) = (folder.path().join("f"), folder.path().join("pipe"));
        std::fs::write(&path, "x").unwrap();
        let facts = FileFacts { cache_visible: true, ..facts_of(&path).unwrap() };
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(!facts_of(&pipe).unwrap().cache_visible);
        assert_eq!(look(&pipe, &facts), None);
        assert_eq!(look(Path::new("/dev/null"), &facts), None);
        std::fs::rename(&pipe, &path).unwrap();
        assert_eq!(look(&path, &facts), None, "another file has taken its name");
        assert_eq!(look(&folder.path().join("none"), &facts), None);
    }
}
