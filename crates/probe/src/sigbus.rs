//! A file truncated under a mapping must fail the cell, not kill the process.
//!
//! The fault handler looks up each address in a fixed table of guarded ranges. In a guarded range it maps a page of
//! zeros, and the method reports [`crate::access::Failure::Vanished`]. Other faults belong to `fault`. Invariant: the
//! handler uses only atomics and raw system calls, which are async-signal-safe.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use iowhy_core::problem::Problem;
use rustix::mm::{MapFlags, ProtFlags};

/// Ranges that can be guarded at once: one for each measuring thread, with room to spare.
const SLOTS: usize = 1024;

/// A guarded range of addresses.
#[derive(Debug)]
struct Slot {
    taken: AtomicBool,
    /// First address; zero when nothing is covered.
    start: AtomicUsize,
    /// First address behind it.
    end: AtomicUsize,
    /// Whether a page of it vanished.
    hit: AtomicBool,
}

impl Slot {
    const fn free() -> Slot {
        Slot {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    }
}

static TABLE: [Slot; SLOTS] = [const { Slot::free() }; SLOTS];

/// The page size, known before a range is guarded.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Protection of one range at a time against vanishing pages.
#[derive(Debug)]
pub struct Guard {
    slot: &'static Slot,
}

impl Guard {
    /// A guard that covers nothing yet. Needs the handler of `fault`.
    ///
    /// # Errors
    /// Fails when more guards are alive than there is room for.
    pub(crate) fn new() -> Result<Guard, Problem> {
        PAGE_BYTES.store(rustix::param::page_size(), Ordering::Release);
        Guard::claim(&TABLE)
    }

    /// Takes the first free slot.
    fn claim(table: &'static [Slot]) -> Result<Guard, Problem> {
        match table.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel)) {
            Some(slot) => Ok(Guard { slot }),
            None => Err(Problem::failed(format!("more than {} mappings at once", table.len()))
                .hint("use fewer `--threads` with the mmap methods")),
        }
    }

    /// Covers this range, and no longer the one before.
    pub fn cover(&self, start: *const u8, bytes: usize) {
        self.uncover();
        self.slot.end.store(start.addr() + bytes, Ordering::Release);
        self.slot.start.store(start.addr(), Ordering::Release);
    }

    /// Covers nothing. To be called before the range is unmapped.
    pub fn uncover(&self) {
        self.slot.start.store(0, Ordering::Release);
        self.slot.hit.store(false, Ordering::Release);
    }

    /// Whether a page of the covered range vanished since the last call.
    #[inline]
    pub fn vanished(&self) -> bool {
        // The accesses that may have faulted are ordered before this look by the compiler; the signal arrives on
        // this very thread.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.slot.hit.load(Ordering::Relaxed) && self.slot.hit.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.uncover();
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Repairs a fault at this address if it is guarded; whether it was. Async-signal-safe.
pub(crate) fn repaired(address: usize) -> bool {
    let guarding = TABLE.iter().find(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        start != 0 && start <= address && address < slot.end.load(Ordering::Acquire)
    });
    let Some(slot) = guarding else { return false };
    let repaired = put_zeros(address, PAGE_BYTES.load(Ordering::Acquire));
    if repaired {
        slot.hit.store(true, Ordering::Release);
    }
    repaired
}

/// Puts a private page of zeros where a guarded mapping lost its page.
fn put_zeros(address: usize, page_bytes: usize) -> bool {
    let page = std::ptr::without_provenance_mut(address & !(page_bytes - 1));
    // SAFETY: the page lies inside a range that its owner guards, mapped and page-aligned, and has no content left
    // that could be lost. The owner's accesses stay valid, and its munmap covers the new page too.
    unsafe {
        rustix::mm::mmap_anonymous(
            page,
            page_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED,
        )
    }
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_given_back_and_the_table_says_when_it_is_full() {
        static TWO: [Slot; 2] = [const { Slot::free() }; 2];
        let first = Guard::claim(&TWO).unwrap();
        let _second = Guard::claim(&TWO).unwrap();
        assert!(Guard::claim(&TWO).is_err_and(|problem| problem.hint.unwrap().contains("--threads")));
        drop(first);
        assert!(Guard::claim(&TWO).is_ok());
    }
}
