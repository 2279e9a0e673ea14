//! Direct reads in flight on an io_uring, each with a slot of the buffer.
//!
//! Invariant: no buffer is freed while the kernel may write to it; dropping a ring waits for reads in flight.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{IoUring, opcode, types};
use iowhy_core::problem::Problem;
use rustix::io::Errno;

use iowhy_probe::buffer::Buffer;

pub(super) struct ReadRing {
    ring: IoUring,
    free: Vec<usize>,
    slot_bytes: usize,
    in_flight: usize,
    depth: usize,
    queued: usize,
}

impl ReadRing {
    pub(super) fn new(depth: u32, slot_bytes: usize) -> Result<ReadRing, Problem> {
        let ring = IoUring::new(depth.next_power_of_two()).map_err(|error| {
            Problem::failed(format!("cannot create an io_uring for {depth} requests: {error}"))
                .hint("io_uring may be disabled: `sysctl kernel.io_uring_disabled`")
        })?;
        let depth = depth as usize;
        Ok(ReadRing { ring, free: (0..depth).collect(), slot_bytes, in_flight: 0, depth, queued: 0 })
    }

    /// Queues a read, after waiting for a free slot. Returns the bytes of completed reads.
    pub(super) fn read(
        &mut self,
        fd: &OwnedFd,
        buffer: &mut Buffer,
        bytes: usize,
        offset: u64,
    ) -> Result<usize, Errno> {
        let mut moved = 0;
        if self.free.is_empty() {
            moved += self.wait()?;
        }
        let Some(slot) = self.free.pop() else { return Err(Errno::AGAIN) };
        let memory = &mut buffer.as_mut_slice()[slot * self.slot_bytes..][..bytes.min(self.slot_bytes)];
        let read = opcode::Read::new(types::Fd(fd.as_raw_fd()), memory.as_mut_ptr(), memory.len() as u32)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: the file and the buffer of this slot outlive the request: the thread drains the ring before it ends,
        // and a ring that is dropped waits first.
        if unsafe { self.ring.submission().push(&read) }.is_err() {
            self.free.push(slot);
            return Err(Errno::AGAIN);
        }
        self.queued += 1;
        self.in_flight += 1;
        // Submitted when all slots are taken, so that the device gets them at once.
        if self.in_flight == self.depth {
            moved += self.wait()?;
        }
        Ok(moved)
    }

    /// Submits queued reads, waits for one completion, and reaps all. Returns their bytes.
    fn wait(&mut self) -> Result<usize, Errno> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => self.queued = 0,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        let mut moved = 0;
        let mut failed = None;
        let ReadRing { ring, free, in_flight, .. } = self;
        for done in ring.completion() {
            *in_flight -= 1;
            free.push(done.user_data() as usize);
            match done.result() {
                n if n >= 0 => moved += n as usize,
                n => failed = Some(Errno::from_raw_os_error(-n)),
            }
        }
        failed.map_or(Ok(moved), Err)
    }

    /// Waits for all reads.
    pub(super) fn drain(&mut self) -> Result<u64, Problem> {
        let mut moved = 0;
        while self.in_flight > 0 {
            moved += self.wait().map_err(|errno| {
                Problem::failed(format!("a read through io_uring failed: {}", std::io::Error::from(errno)))
            })? as u64;
        }
        Ok(moved)
    }
}

impl Drop for ReadRing {
    fn drop(&mut self) {
        // Failed reads count as done. If waiting fails, the kernel cancels them when it closes the ring.
        for _ in 0..2 * self.depth {
            if self.in_flight == 0 {
                return;
            }
            let _ = self.wait();
        }
    }
}
