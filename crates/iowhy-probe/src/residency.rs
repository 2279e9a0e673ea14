//! The page cache of a file: seen with cachestat(2) (mincore as fall-back), emptied and filled without root.
//!
//! Invariant: nothing here claims a state; it reports what was seen, or says that it could not see.

use std::os::fd::BorrowedFd;

use iowhy_core::problem::Problem;

/// What was seen of a byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages in the range.
    pub pages: u64,
    /// Of which in the cache.
    pub resident: u64,
    /// Of which dirty; `None` with mincore.
    pub dirty: Option<u64>,
    /// Pages evicted recently (they would have been hits with more memory); `None` with mincore.
    pub recently_evicted: Option<u64>,
    /// `cachestat` or `mincore`.
    pub source: &'static str,
}

impl Residency {
    /// Share in the cache, 0 to 1; 0 for an empty range.
    pub fn share(&self) -> f64 {
        if self.pages == 0 { 0.0 } else { self.resident as f64 / self.pages as f64 }
    }
}

/// Looks at a byte range; `Err` says in words why it cannot be seen (not the owner, kernel too old, ...).
pub fn look(_file: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> Result<Residency, String> {
    unimplemented!("helper: residency")
}

/// Asks the kernel to drop a range from the cache (dirty pages are written first if the file is ours to write).
/// Whether it did is for [`look`] to say.
pub fn evict(_file: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> Result<(), Problem> {
    unimplemented!("helper: residency")
}

/// Brings a range into the cache by reading it in chunks, until it is all there or a second pass changed nothing.
pub fn fetch(_file: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> Result<(), Problem> {
    unimplemented!("helper: residency")
}
