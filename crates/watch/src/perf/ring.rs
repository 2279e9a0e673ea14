//! The ring that the kernel writes records into: mapping it and copying out what is new. Nothing is understood here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapped ring, with the event that leads it.
#[derive(Debug)]
pub(crate) struct Ring {
    leader: OwnedFd,
    base: NonNull<u8>,
    /// Bytes of the data area, a power of two.
    size: usize,
    page: usize,
}

// SAFETY: the mapping belongs to this value alone; the kernel is the only other party, and it is spoken to through
// the atomic positions.
unsafe impl Send for Ring {}

/// A ring could not be mapped. The event comes back, so that a smaller one can be tried.
pub(crate) struct NotMapped {
    pub(crate) leader: OwnedFd,
    pub(crate) error: io::Error,
}

impl Ring {
    /// Maps a ring of `size` bytes (a power of two, at least a page) on an event that is bound to one CPU.
    ///
    /// # Errors
    /// EPERM where the limit for locked memory is lower, ENOMEM, EINVAL for another size.
    pub(crate) fn map(leader: OwnedFd, size: usize) -> Result<Self, NotMapped> {
        let page = rustix::param::page_size();
        // SAFETY: a new mapping at an address that the kernel chooses; it touches no memory that is in use.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                page.saturating_add(size),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &leader,
                0,
            )
        };
        match mapped.map(|base| NonNull::new(base.cast::<u8>())) {
            Ok(Some(base)) => Ok(Ring { leader, base, size, page }),
            Ok(None) => Err(NotMapped { leader, error: io::ErrorKind::OutOfMemory.into() }),
            Err(errno) => Err(NotMapped { leader, error: errno.into() }),
        }
    }

    /// Takes the mapping away and gives the event back.
    pub(crate) fn unmap(self) -> io::Result<OwnedFd> {
        self.leader.try_clone()
    }

    /// The event to wait on with poll(2).
    pub(crate) fn leader(&self) -> BorrowedFd<'_> {
        self.leader.as_fd()
    }

    /// Size of the data area in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Appends all new records, unread, and gives their room back to the kernel.
    pub(crate) fn take(&mut self, out: &mut Vec<u64>) {
        let control = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the first page of the mapping is this structure, aligned to a page. Both positions are shared with
        // the kernel, so they are only touched atomically. Acquire: the records before `head` are seen whole.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        };
        let (end, start) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        // SAFETY: the data area begins after the first page and has `size` bytes; the kernel does not write between
        // `tail` and `head` until `tail` moves.
        unsafe { copy_out(self.base.as_ptr().add(self.page).cast::<u64>(), self.size / 8, start, end, out) };
        // Release: the copy is done before the kernel may write there again.
        tail.store(end, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `map` made, and no reference into it is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

/// Copies the words between the byte positions `start` and `end` out of a ring of `words` words (a power of two).
/// Positions only ever grow; their place in the ring is what is left of them by the mask.
///
/// # Safety
/// `data` points to `words` readable words that nobody writes between the two positions.
unsafe fn copy_out(data: *const u64, words: usize, start: u64, end: u64, out: &mut Vec<u64>) {
    let count = (end.wrapping_sub(start) / 8) as usize;
    if count == 0 || count > words {
        // More than the ring holds cannot be: positions that make no sense are passed over.
        return;
    }
    let first = (start / 8) as usize & (words - 1);
    let before_wrap = count.min(words - first);
    out.reserve(count);
    let length = out.len();
    // SAFETY: `first + before_wrap <= words` and `count - before_wrap <= first`, so both reads stay in the ring;
    // `count` words were reserved, and all of them are written before the length says so.
    unsafe {
        let to = out.as_mut_ptr().add(length);
        std::ptr::copy_nonoverlapping(data.add(first), to, before_wrap);
        std::ptr::copy_nonoverlapping(data, to.add(before_wrap), count - before_wrap);
        out.set_len(length + count);
    }
}

/// The greatest sum of all rings that are mapped together, in bytes.
const TOGETHER: usize = 128 << 20;

/// Maps one ring for each leader, all of one size: the greatest that is allowed, halved from `wanted` (or less, on
/// many CPUs) down to one page. The memory that an unprivileged user may lock is one pot for all CPUs, so a size is right only when every
/// CPU has it.
///
/// # Errors
/// Not even one page for each CPU.
pub(crate) fn map_all(mut leaders: Vec<OwnedFd>, wanted: usize) -> io::Result<Vec<Ring>> {
    let page = rustix::param::page_size();
    let share = wanted.min(TOGETHER / leaders.len().max(1)).max(page);
    let mut size = 1usize << share.ilog2();
    loop {
        let mut rings = Vec::with_capacity(leaders.len());
        let mut back = Vec::new();
        let mut refused = None;
        for leader in leaders {
            if refused.is_some() {
                back.push(leader);
                continue;
            }
            match Ring::map(leader, size) {
                Ok(ring) => rings.push(ring),
                Err(failed) => {
                    refused = Some(failed.error);
                    back.push(failed.leader);
                }
            }
        }
        let Some(error) = refused else { return Ok(rings) };
        if size <= page {
            return Err(error);
        }
        leaders = rings.into_iter().map(Ring::unmap).collect::<io::Result<Vec<_>>>()?;
        leaders.extend(back);
        size /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn copied(data: &[u64], start: u64, end: u64) -> Vec<u64> {
        let mut out = vec![7];
        // SAFETY: the slice is whole and is not written to.
        unsafe { copy_out(data.as_ptr(), data.len(), start, end, &mut out) };
        out
    }

    #[test]
    fn what_wraps_around_comes_out_in_one_piece() {
        let data = [10, 11, 12, 13, 14, 15, 16, 17];
        assert_eq!(copied(&data, 8 * 6, 8 * 10), [7, 16, 17, 10, 11]);
        assert_eq!(copied(&data, 8 * 8, 8 * 16), [7, 10, 11, 12, 13, 14, 15, 16, 17]);
        assert_eq!(copied(&data, 16, 16), [7]);
        assert_eq!(copied(&data, 0, 8 * 9), [7], "more than the ring holds");
        assert_eq!(copied(&data, 16, 8), [7], "an end before its start");
    }

    proptest! {
        #[test]
        fn every_position_gives_the_words_of_an_endless_tape(start in 0u64..1000, count in 0u64..=16) {
            // Word number n of the tape is n; the ring keeps the last 16.
            let mut data = [0u64; 16];
            for n in start..start + 16 {
                data[(n % 16) as usize] = n;
            }
            let out = copied(&data, start * 8, (start + count) * 8);
            prop_assert_eq!(&out[1..], (start..start + count).collect::<Vec<_>>());
        }
    }
}
