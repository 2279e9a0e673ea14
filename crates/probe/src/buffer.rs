//! Page-aligned memory that requests read into and write from.
//!
//! Goal: memory that costs nothing at the first request: aligned for O_DIRECT, faulted in before it is handed out.
//! Non-goal: sharing between threads. Invariant: the mapping lives exactly as long as the [`Buffer`].

use std::ptr::NonNull;
use std::{fmt, slice};

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use rustix::mm::{MapFlags, ProtFlags};

/// Page-aligned, owned, pre-faulted memory, zeroed at first.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    mapped_bytes: usize,
}

// SAFETY: a `Buffer` owns its mapping alone, as a `Box<[u8]>` would; nothing about it is tied to a thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Memory for `bytes` bytes; the mapping behind it is rounded up to whole pages.
    ///
    /// # Errors
    /// Fails when the kernel has no memory, or no address space, for it.
    pub fn new(bytes: usize) -> Result<Buffer, Problem> {
        let mapped_bytes = bytes
            .max(1)
            .checked_next_multiple_of(rustix::param::page_size())
            .ok_or_else(|| out_of_memory(bytes, rustix::io::Errno::NOMEM))?;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        }
        .map_err(|errno| out_of_memory(bytes, errno))?;
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Buffer { start, bytes, mapped_bytes }),
            None => Err(out_of_memory(bytes, rustix::io::Errno::NOMEM)),
        }
    }

    /// Fills it with bytes that no compressor can shorten; the same seed gives the same bytes.
    pub fn fill(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        let (words, rest) = self.as_mut_slice().as_chunks_mut::<8>();
        for word in words {
            *word = rng.next_u64().to_le_bytes();
        }
        let last = rng.next_u64().to_le_bytes();
        for (byte, random) in rest.iter_mut().zip(last) {
            *byte = random;
        }
    }

    /// Length in bytes, as requested.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the requested length was zero.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Its first byte, to write through.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All of it.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `bytes` initialised bytes (the kernel zeroes anonymous pages) are mapped at `start` while `self` lives.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// All of it, to write into.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the borrow the only one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The first `bytes` bytes, or all of it when it is shorter.
    #[inline]
    pub fn front(&self, bytes: usize) -> &[u8] {
        &self.as_slice()[..bytes.min(self.bytes)]
    }

    /// The first `bytes` bytes to write into, or all of it when it is shorter.
    #[inline]
    pub fn front_mut(&mut self, bytes: usize) -> &mut [u8] {
        let bytes = bytes.min(self.bytes);
        &mut self.as_mut_slice()[..bytes]
    }

    /// At most `bytes` bytes from `from` on.
    #[inline]
    pub fn part(&self, from: usize, bytes: usize) -> &[u8] {
        let from = from.min(self.bytes);
        &self.as_slice()[from..][..bytes.min(self.bytes - from)]
    }

    /// As [`Buffer::part`], to write into.
    #[inline]
    pub fn part_mut(&mut self, from: usize, bytes: usize) -> &mut [u8] {
        let from = from.min(self.bytes);
        let bytes = bytes.min(self.bytes - from);
        &mut self.as_mut_slice()[from..][..bytes]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and no borrow of it outlives `self`. A failure to unmap would leak
        // memory and nothing else.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn out_of_memory(bytes: usize, errno: rustix::io::Errno) -> Problem {
    Problem::failed(format!(
        "no memory for a request buffer of {bytes} bytes: {}",
        std::io::Error::from(errno)
    ))
    .hint("use a smaller block size, fewer threads or a smaller depth")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_as_long_as_asked() {
        for bytes in [0, 1, 512, 4096, 4097, 1 << 20] {
            let buffer = Buffer::new(bytes).unwrap();
            assert_eq!(buffer.as_ptr().align_offset(rustix::param::page_size()), 0);
            assert_eq!((buffer.len(), buffer.is_empty()), (bytes, bytes == 0));
            assert!(buffer.as_slice().iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn fills_every_byte_from_the_seed_and_evenly() {
        let mut a = Buffer::new(65_539).unwrap();
        let mut b = Buffer::new(65_539).unwrap();
        a.fill(7);
        b.fill(7);
        assert_eq!(a.as_slice(), b.as_slice());
        assert_ne!(a.as_slice()[65_536..], [0, 0, 0], "the odd rest is filled too");
        b.fill(8);
        assert_ne!(a.as_slice(), b.as_slice());
        // 256 values, 256 expected of each, standard deviation 16: ten deviations off means structure.
        let mut seen = [0u32; 256];
        a.as_slice().iter().for_each(|&byte| seen[usize::from(byte)] += 1);
        assert!(seen.iter().all(|&n| (96..=416).contains(&n)), "{seen:?}");
    }

    #[test]
    fn refuses_what_no_machine_has() {
        let problem = Buffer::new(usize::MAX / 2).unwrap_err();
        assert!(problem.hint.is_some());
        assert!(Buffer::new(usize::MAX).is_err());
    }

    #[test]
    fn a_front_longer_than_the_buffer_is_all_of_it() {
        let mut buffer = Buffer::new(100).unwrap();
        assert_eq!((buffer.front(10).len(), buffer.front(1000).len()), (10, 100));
        assert_eq!(buffer.front_mut(1000).len(), 100);
        assert_eq!(
            (buffer.part(60, 10).len(), buffer.part(60, 1000).len(), buffer.part(101, 5).len()),
            (10, 40, 0)
        );
        assert_eq!((buffer.part_mut(60, 1000).len(), buffer.part_mut(usize::MAX, 5).len()), (40, 0));
        let first = buffer.as_ptr();
        assert_eq!(buffer.part_mut(16, 20).as_ptr(), first.wrapping_add(16));
    }
}
