//! Direct reads in flight on a ring: as many at a time as the plan says, one buffer for each.
//!
//! Invariant: no buffer is given back while the kernel may write to it: dropping a ring waits for what is in flight.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{IoUring, opcode, types};
use iowhy_core::problem::Problem;
use rustix::io::Errno;

use iowhy_probe::buffer::Buffer;

/// The ring.
pub(super) struct Ring {
    ring: IoUring,
    free: Vec<usize>,
    slot_bytes: usize,
    in_flight: usize,
    depth: usize,
    queued: usize,
}

impl Ring {
    pub(super) fn new(depth: u32, slot_bytes: usize) -> Result<Ring, Problem> {
        let ring = IoUring::new(depth.next_power_of_two()).map_err(|error| {
            Problem::failed(format!("cannot make a ring for {depth} requests: {error}"))
                .hint("io_uring may be switched off: `sysctl kernel.io_uring_disabled`")
        })?;
        let depth = depth as usize;
        Ok(Ring { ring, free: (0..depth).collect(), slot_bytes, in_flight: 0, depth, queued: 0 })
    }

    /// Puts a read in flight, after waiting for another where there is no room. Returns bytes of those that completed.
    pub(super) fn read(
        &mut self,
        fd: &OwnedFd,
        buffer: &mut Buffer,
        bytes: usize,
        place: u64,
    ) -> Result<usize, Errno> {
        let mut moved = 0;
        if self.free.is_empty() {
            moved += self.wait()?;
        }
        let Some(slot) = self.free.pop() else { return Err(Errno::AGAIN) };
        let memory = &mut buffer.as_mut_slice()[slot * self.slot_bytes..][..bytes.min(self.slot_bytes)];
        let read = opcode::Read::new(types::Fd(fd.as_raw_fd()), memory.as_mut_ptr(), memory.len() as u32)
            .offset(place)
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
        // Handed over when all slots are taken: by then each of them is a new request of the device.
        if self.in_flight == self.depth {
            moved += self.wait()?;
        }
        Ok(moved)
    }

    /// Hands over what is queued, waits for at least one to complete, and takes all that have.
    fn wait(&mut self) -> Result<usize, Errno> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => self.queued = 0,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        let mut moved = 0;
        let mut failed = None;
        let Ring { ring, free, in_flight, .. } = self;
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

    /// Waits for all.
    pub(super) fn drain(&mut self) -> Result<u64, Problem> {
        let mut moved = 0;
        while self.in_flight > 0 {
            moved += self.wait().map_err(|errno| {
                Problem::failed(format!("a read on a ring failed: {}", std::io::Error::from(errno)))
            })? as u64;
        }
        Ok(moved)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Requests that failed count as done; a ring that cannot even wait is closed by the kernel, which cancels them.
        for _ in 0..2 * self.depth {
            if self.in_flight == 0 {
                return;
            }
            let _ = self.wait();
        }
    }
}
