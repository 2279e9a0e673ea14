//! Memory for a key: it is kept out of swap and of core files as far as the kernel permits, and is zero afterwards.

use std::io;

/// The memory.
pub(super) struct Secret {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory, which is plain bytes.
unsafe impl Send for Secret {}

impl Secret {
    /// Of this size, zeroed.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(bytes: usize) -> io::Result<Secret> {
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Refused where memory may not be locked: then it is still wiped.
        // SAFETY: the mapping was just made and is as long as is said.
        unsafe {
            libc::mlock(memory, bytes);
            libc::madvise(memory, bytes, libc::MADV_DONTDUMP);
            libc::madvise(memory, bytes, libc::MADV_DONTFORK);
        }
        Ok(Secret { memory: memory.cast(), bytes })
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping lives as long as this value, and is initialised by the kernel.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.bytes) }
    }

    /// Makes all of it zero, also where the compiler sees nobody who reads it afterwards. Async-signal-safe.
    pub(super) fn wipe(&mut self) {
        for byte in self.bytes_mut() {
            // SAFETY: a byte of the mapping, borrowed alone.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.wipe();
        // SAFETY: the mapping is this value's own, and nobody uses it after.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_at_first_and_after_it_is_wiped() {
        let mut secret = Secret::new(100).unwrap();
        assert!(secret.bytes().len() == 100 && secret.bytes().iter().all(|byte| *byte == 0));
        secret.bytes_mut().fill(7);
        secret.wipe();
        assert!(secret.bytes().iter().all(|byte| *byte == 0));
    }
}
