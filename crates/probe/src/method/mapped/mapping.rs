//! One shared mapping of a byte range of a file, and loads from it.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reading, pages faulted in as they are loaded.
    Load,
    /// Reading, all pages faulted in by the call (MAP_POPULATE).
    Populate,
    /// Writing.
    Store,
}

/// A shared mapping of a byte range of a file. It starts at the page that holds the first byte.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// Offset in the file of the first mapped byte.
    offset: u64,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes from `offset`, both rounded out to whole pages. Beyond the end of the file there are
    /// addresses and no pages.
    ///
    /// # Errors
    /// What mmap(2) says; EINVAL for an empty range, EOVERFLOW for one that no address space holds.
    pub fn new(fd: &OwnedFd, offset: u64, bytes: u64, purpose: Purpose) -> Result<Mapping, Errno> {
        let page = rustix::param::page_size() as u64;
        let lead = offset % page;
        let bytes = (bytes.checked_add(lead))
            .and_then(|bytes| bytes.checked_next_multiple_of(page))
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or(Errno::OVERFLOW)?;
        let (protection, flags) = match purpose {
            Purpose::Load => (ProtFlags::READ, MapFlags::SHARED),
            Purpose::Populate => (ProtFlags::READ, MapFlags::SHARED | MapFlags::POPULATE),
            Purpose::Store => (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED),
        };
        let offset = offset - lead;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Mapping { start, bytes, offset })
    }

    /// The first mapped byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The mapped length: whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where a byte range of the file is mapped; `None` when it is not, or not whole.
    #[inline]
    pub fn range(&self, offset: u64, bytes: usize) -> Option<Range<'_>> {
        let from = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        if from.checked_add(bytes)? > self.bytes {
            return None;
        }
        // SAFETY: `from` is within the mapping, as was just checked.
        let start = unsafe { self.start.add(from) };
        Some(Range { start, bytes, _mapping: self })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and every `Range` borrows `self`. A failure would leak addresses
        // and nothing else.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A mapped byte range. Its bytes may change or vanish under it, as the file's do.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    start: NonNull<u8>,
    bytes: usize,
    _mapping: &'a Mapping,
}

impl<'a> Range<'a> {
    /// Loads one byte of each page.
    #[inline]
    pub fn load_pages(self) {
        self.load_each(rustix::param::page_size());
    }

    /// Loads one byte of each line of a CPU cache, taken as 64 bytes.
    #[inline]
    pub fn load_lines(self) {
        self.load_each(64);
    }

    /// Loads its first byte, and each that begins a piece of `step` bytes.
    #[inline]
    fn load_each(self, step: usize) {
        let to_next = step - self.start.as_ptr().addr() % step;
        let mut at = 0;
        while at < self.bytes {
            // SAFETY: `at` is within the range, which is mapped readable; a page that vanished is replaced by the
            // SIGBUS guard that its method holds over the mapping.
            unsafe { self.start.add(at).read_volatile() };
            at += if at == 0 { to_next } else { step };
        }
    }

    /// Copies `source` over it, which must be mapped for [`Purpose::Store`]; what does not fit is left out.
    pub fn store(self, source: &[u8]) {
        let bytes = source.len().min(self.bytes);
        // SAFETY: both sides hold `bytes` bytes and cannot overlap, since `source` is a Rust slice and the mapping
        // is not lent out as one while a store runs (`Store` has no `data`).
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.start.as_ptr(), bytes) };
    }

    /// Writes its pages to the file and waits (msync(2) MS_SYNC).
    pub fn sync(self) -> Result<(), Errno> {
        let lead = self.start.as_ptr().addr() % rustix::param::page_size();
        // SAFETY: the range, begun at its page, is mapped; msync changes no memory.
        unsafe {
            let page = self.start.as_ptr().sub(lead);
            rustix::mm::msync(page.cast(), self.bytes + lead, rustix::mm::MsyncFlags::SYNC)
        }
    }

    /// Its bytes.
    pub fn as_slice(self) -> &'a [u8] {
        // SAFETY: mapped readable while the mapping is borrowed. Another program may change the file's bytes; we
        // only load and sum them, so that a torn value harms nothing. A vanished page is replaced by the guard.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_by_file_offset_and_never_outside() {
        let page = rustix::param::page_size();
        let content: Vec<u8> = (0..5 * page).map(|i| (i % 251) as u8).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &content).unwrap();
        let fd = std::fs::File::open(file.path()).unwrap().into();
        let first = page + 100;
        let mapping = Mapping::new(&fd, first as u64, 2 * page as u64, Purpose::Load).unwrap();
        assert_eq!(mapping.bytes(), 3 * page, "rounded out at both ends");
        for (offset, bytes) in [(first, 2 * page), (first, 0), (page, 1), (4 * page - 1, 1)] {
            let range = mapping.range(offset as u64, bytes).unwrap();
            range.load_pages();
            assert_eq!(range.as_slice(), &content[offset..offset + bytes]);
        }
        for (offset, bytes) in [(page - 1, 1), (4 * page, 1), (page, 3 * page + 1), (first, usize::MAX)] {
            assert!(mapping.range(offset as u64, bytes).is_none());
        }
        assert!(mapping.range(u64::MAX, 1).is_none());
    }

    #[test]
    fn impossible_ranges_are_refused_by_name() {
        let fd: OwnedFd = tempfile::tempfile().unwrap().into();
        assert_eq!(Mapping::new(&fd, 0, 0, Purpose::Load).unwrap_err(), Errno::INVAL);
        assert_eq!(Mapping::new(&fd, 0, u64::MAX, Purpose::Load).unwrap_err(), Errno::OVERFLOW);
        let null = std::fs::File::open("/dev/null").unwrap().into();
        assert_eq!(Mapping::new(&null, 0, 4096, Purpose::Load).unwrap_err(), Errno::NODEV);
    }
}
