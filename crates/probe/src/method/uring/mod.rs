//! io_uring, buffered and direct: many requests in flight from one thread.
//!
//! Goal: the fastest honest io_uring user on this kernel: registered ring, file and buffers, batches, one system call
//! for submitting a batch and waiting; each refused part is given up alone and said. Non-goal: anything but plain reads
//! and writes.
//!
//! Invariants: [`Access::submit`] only fills the submission queue; all work of the kernel happens inside
//! [`Access::reap`]. A cached read is carried out *while it is submitted*, so a latency must be taken from before
//! `submit`; taken from after the system call that submitted it, it would be 50 ns for a copy of 4 KiB. The slots'
//! memory outlives every request the kernel holds, on every path out.

pub(in crate::method) mod reap;
pub(in crate::method) mod ring;

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::{opcode, squeue, types};
use iowhy_core::problem::Problem;
use iowhy_core::workload::{CacheState, Method, Workload};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use self::reap::Reaps;
use self::ring::{Mode, Ring};
use crate::access::{Access, Completion, Failure, Request};
use crate::buffer::Buffer;
use crate::hot_loop::HotAccess;
use crate::target::{OpenMode, Target};

/// Slots start on pages: every direct read is content with that.
const SLOT_ALIGNMENT_BYTES: usize = 4096;

/// The most that one registered buffer may hold (the kernel's limit).
const MAX_REGISTERED_BYTES: usize = 1 << 30;

/// Opens the target for the workload's method.
///
/// # Errors
/// io_uring is not to be had here, the target refuses to be opened that way, or there is no memory for the buffers.
pub fn open(workload: &Workload, target: &Target) -> Result<Box<dyn HotAccess>, Problem> {
    let plan = Plan::for_workload(workload);
    let how = OpenMode { write: plan.writes, direct: plan.direct, dsync: false };
    Ok(Box::new(Uring::new(target.open(how)?, plan)?))
}

/// How the ring is made for a workload.
#[derive(Clone, Copy, Debug)]
pub(in crate::method) struct Plan {
    pub(in crate::method) mode: Mode,
    pub(in crate::method) direct: bool,
    pub(in crate::method) writes: bool,
    pub(in crate::method) depth: usize,
    pub(in crate::method) block_bytes: usize,
    /// Where a trial read may go.
    pub(in crate::method) first_offset: u64,
    pub(in crate::method) seed: u64,
}

impl Plan {
    pub(in crate::method) fn for_workload(workload: &Workload) -> Plan {
        let mode = match workload.method {
            Method::UringSqpoll => Mode::Sqpoll,
            Method::UringIopoll => Mode::Iopoll,
            _ => Mode::Interrupt,
        };
        Plan {
            mode,
            direct: mode == Mode::Iopoll || workload.state == CacheState::Direct,
            writes: workload.direction.writes(),
            depth: workload.depth,
            block_bytes: workload.block_bytes as usize,
            first_offset: workload.region_offset,
            seed: workload.seed,
        }
    }
}

/// How an entry names its file.
#[derive(Clone, Copy, Debug)]
pub(in crate::method) enum Named {
    /// By its index in the registered table.
    Registered(u32),
    /// By its descriptor.
    Plain(RawFd),
}

/// The submission entry of a read or write of `memory`, which lies in the one registered buffer if `fixed`.
#[inline(always)]
pub(in crate::method) fn entry(file: Named, memory: *mut u8, fixed: bool, request: Request) -> squeue::Entry {
    let bytes = request.bytes as u32;
    macro_rules! build {
        ($fixed:ident, $plain:ident, $file:expr, $pointer:expr) => {
            if fixed {
                opcode::$fixed::new($file, $pointer, bytes, 0).offset(request.offset).build()
            } else {
                opcode::$plain::new($file, $pointer, bytes).offset(request.offset).build()
            }
        };
    }
    match (file, request.write) {
        (Named::Registered(at), false) => build!(ReadFixed, Read, types::Fixed(at), memory),
        (Named::Registered(at), true) => build!(WriteFixed, Write, types::Fixed(at), memory.cast_const()),
        (Named::Plain(fd), false) => build!(ReadFixed, Read, types::Fd(fd), memory),
        (Named::Plain(fd), true) => build!(WriteFixed, Write, types::Fd(fd), memory.cast_const()),
    }
}

/// Registers memory with a ring; why it was refused is added to `dropped`.
///
/// # Safety
/// The memory must not be freed before it is unregistered or the ring is closed with nothing in flight.
pub(in crate::method) unsafe fn register_memory(
    ring: &Ring,
    memory: &mut Buffer,
    dropped: &mut Vec<String>,
) -> bool {
    if memory.len() > MAX_REGISTERED_BYTES {
        dropped.push(format!(
            "registered buffers: {} bytes are more than the kernel registers at once ({MAX_REGISTERED_BYTES})",
            memory.len()
        ));
        return false;
    }
    let region = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
    // SAFETY: the region is all of `memory`, which the caller keeps as long as the kernel may use it.
    match unsafe { ring.submitter().register_buffers(&[region]) } {
        Ok(()) => return true,
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => dropped.push(format!(
            "registered buffers: {} bytes are above the locked-memory limit (ENOMEM; `ulimit -l`: {} KiB)",
            memory.len(),
            getrlimit(Resource::Memlock).current.map_or("unlimited".to_owned(), |b| (b / 1024).to_string())
        )),
        Err(error) => dropped.push(format!("registered buffers: refused ({error})")),
    }
    false
}

/// Memory of `depth` slots of `block_bytes`, each on a page of its own, and the bytes from one slot to the next.
///
/// # Errors
/// When that is more than can be addressed, or there is no memory for it.
pub(in crate::method) fn slots(
    block_bytes: usize,
    depth: usize,
    fill: Option<u64>,
) -> Result<(Buffer, usize), Problem> {
    let too_large = || {
        Problem::refused(format!(
            "--bs {block_bytes} times --iodepth {depth} is more memory than can be addressed"
        ))
        .hint("use a smaller --bs or --iodepth")
    };
    let stride_bytes = block_bytes.checked_next_multiple_of(SLOT_ALIGNMENT_BYTES).ok_or_else(too_large)?;
    // A request carries its length in 32 bits, and the kernel moves at most 2 GiB less a page.
    let memory_bytes =
        stride_bytes.checked_mul(depth).filter(|_| stride_bytes <= 1 << 31).ok_or_else(too_large)?;
    let mut memory = Buffer::new(memory_bytes)?;
    if let Some(seed) = fill {
        memory.fill(seed);
    }
    Ok((memory, stride_bytes))
}

/// The failure of one entry, by the negative number it ended with.
pub(in crate::method) fn ended_badly(write: bool, offset: u64, result: i32) -> Failure {
    let call = if write { "io_uring write" } else { "io_uring read" };
    Failure::Io { call, offset, errno: Errno::from_raw_os_error(result.saturating_neg()) }
}

/// State of the request in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    offset: u64,
    write: bool,
    in_flight: bool,
    /// Bytes the last ended request moved.
    arrived_bytes: usize,
}

/// Requests through one io_uring instance.
struct Uring {
    // Dropped in this order, after `drop` has emptied the ring: it must go before what its requests name.
    ring: Ring,
    file: OwnedFd,
    /// `depth` slots of `stride_bytes`. Freed by `drop` once the kernel holds no request.
    memory: ManuallyDrop<Buffer>,
    stride_bytes: usize,
    block_bytes: usize,
    slots: Vec<Slot>,
    in_flight: usize,
    registered_file: bool,
    registered_memory: bool,
    dropped: Vec<String>,
}

impl Uring {
    fn new(file: OwnedFd, plan: Plan) -> Result<Uring, Problem> {
        let mut dropped = Vec::new();
        if plan.mode != Mode::Iopoll {
            return Uring::with_mode(file, plan, dropped);
        }
        let mut polled = Uring::with_mode(file, plan, Vec::new())?;
        match polled.try_read(plan.first_offset) {
            Err(Failure::Io { errno: Errno::OPNOTSUPP, .. }) => {
                let file = polled.into_file()?;
                dropped.push(
                    "IOPOLL: not supported here (EOPNOTSUPP), measured with interrupts instead: the device has no \
                     poll queues (NVMe: boot with nvme.poll_queues=2, virtio: virtio_blk.poll_queues=2), or the \
                     file system cannot poll"
                        .to_owned(),
                );
                Uring::with_mode(file, Plan { mode: Mode::Interrupt, ..plan }, dropped)
            }
            // Any other failure is the target's, and the measurement will meet it again and report it.
            _ => Ok(polled),
        }
    }

    fn with_mode(file: OwnedFd, plan: Plan, mut dropped: Vec<String>) -> Result<Uring, Problem> {
        let ring = Ring::new(plan.depth, plan.mode, &mut dropped)?;
        let (memory, stride_bytes) = slots(plan.block_bytes, plan.depth, plan.writes.then_some(plan.seed))?;
        let mut uring = Uring {
            ring,
            file,
            memory: ManuallyDrop::new(memory),
            stride_bytes,
            block_bytes: plan.block_bytes,
            slots: vec![Slot::default(); plan.depth],
            in_flight: 0,
            registered_file: false,
            registered_memory: false,
            dropped,
        };
        uring.register_file();
        uring.register_memory();
        Ok(uring)
    }

    fn register_file(&mut self) {
        match self.ring.submitter().register_files(&[self.file.as_raw_fd()]) {
            Ok(()) => self.registered_file = true,
            Err(error) => self.dropped.push(format!("registered file: refused ({error})")),
        }
    }

    fn register_memory(&mut self) {
        // SAFETY: `drop` frees `memory` only after it has unregistered it.
        self.registered_memory = unsafe { register_memory(&self.ring, &mut self.memory, &mut self.dropped) };
    }

    /// One read of a block at the start of the region, to learn whether the mode works at all.
    fn try_read(&mut self, offset: u64) -> Result<usize, Failure> {
        self.perform(Request { offset, bytes: self.block_bytes, write: false })
    }

    /// Gives the ring and the memory back and keeps the target open, by a second descriptor of the same opening.
    fn into_file(self) -> Result<OwnedFd, Problem> {
        self.file
            .try_clone()
            .map_err(|error| Problem::failed(format!("cannot duplicate the target's descriptor: {error}")))
    }

    fn slot_address(&mut self, slot: usize) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(slot * self.stride_bytes)
    }

    /// The submission entry of a request that fits its slot.
    #[inline]
    fn entry(&mut self, slot: usize, request: Request) -> squeue::Entry {
        let memory = self.slot_address(slot);
        let file = match self.registered_file {
            true => Named::Registered(0),
            false => Named::Plain(self.file.as_raw_fd()),
        };
        entry(file, memory, self.registered_memory, request).user_data(slot as u64)
    }
}

impl Reaps for Uring {
    fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    fn held(&self) -> usize {
        self.in_flight
    }

    fn first_offset(&self) -> u64 {
        self.slots.iter().find(|slot| slot.in_flight).map_or(0, |slot| slot.offset)
    }

    #[inline]
    fn drain(&mut self, mut ended: impl FnMut(Completion)) -> Result<(), Failure> {
        let mut failure = None;
        for completion in self.ring.completions() {
            let index = completion.user_data() as usize;
            let Some(slot) = self.slots.get_mut(index) else { continue };
            slot.in_flight = false;
            self.in_flight -= 1;
            match usize::try_from(completion.result()) {
                Ok(bytes) => {
                    slot.arrived_bytes = bytes;
                    ended(Completion { slot: index, bytes });
                }
                Err(_) => {
                    slot.arrived_bytes = 0;
                    let ended = ended_badly(slot.write, slot.offset, completion.result());
                    failure = failure.or(Some(ended));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Access for Uring {
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let refuse = |errno| Failure::Io { call: "io_uring submit", offset: request.offset, errno };
        match self.slots.get(slot) {
            Some(known) if !known.in_flight && request.bytes <= self.block_bytes => {}
            Some(known) if known.in_flight => return Err(refuse(Errno::BUSY)),
            _ => return Err(refuse(Errno::INVAL)),
        }
        let entry = self.entry(slot, request);
        // SAFETY: the entry names the open file and a slot of `memory` that holds `request.bytes`. Both live until
        // `drop`, which first waits for every request in flight; the slot is marked so that nobody borrows it meanwhile.
        unsafe { self.ring.push(&entry) }.map_err(refuse)?;
        self.slots[slot] =
            Slot { offset: request.offset, write: request.write, in_flight: true, arrived_bytes: 0 };
        self.in_flight += 1;
        Ok(())
    }

    fn reap(&mut self, at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        self.collect(at_least.min(self.in_flight), |completion| done.push(completion))
    }

    fn data(&self, slot: usize) -> Option<&[u8]> {
        let known = self.slots.get(slot).filter(|known| !known.in_flight)?;
        let start = self.memory.as_ptr().wrapping_add(slot * self.stride_bytes);
        // SAFETY: the slot lies in `memory`, is initialised, and at least `arrived_bytes` long (the kernel moves no more
        // than the request asked for, which `submit` has checked). Nothing writes to it: it is not in flight, and
        // `submit` needs `&mut self`. The slice covers this slot alone, so requests in the others do not touch it.
        Some(unsafe { std::slice::from_raw_parts(start, known.arrived_bytes.min(self.block_bytes)) })
    }

    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.submit(0, request)?;
        let mut moved = 0;
        self.collect(1, |completion| moved = completion.bytes)?;
        Ok(moved)
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.in_flight -= self.ring.forget_queued() as usize;
        if !self.see_out() {
            // The kernel may still write into the slots: better to lose the memory than to hand it out again.
            return;
        }
        // Closing the ring would do both, but later and in the background: the locked-memory account would still be
        // charged when the next ring opens, and the file's device could not be unmounted.
        if self.registered_memory {
            let _ = self.ring.submitter().unregister_buffers();
        }
        if self.registered_file {
            let _ = self.ring.submitter().unregister_files();
        }
        // SAFETY: dropped once, here, and not used again; no request is in flight.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

#[cfg(test)]
mod tests;
