//! io_uring on a stripe: one ring over all members, each request as many entries as it has parts.
//!
//! The bytes of a request that was split lie part behind part in its slot, not in the order of the stripe: each part is one
//! run of memory, and so one entry. Whoever touches every byte touches each once all the same.
//!
//! Invariants as in `uring`: the slots' memory outlives every entry that the kernel holds; a slot is done when its last part
//! is.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::stripe::{Part, Stripe};
use iowhy_core::workload::Workload;
use rustix::io::Errno;

use super::{at_member, count};
use crate::access::{Access, Completion, Failure, Request, Sent};
use crate::buffer::Buffer;
use crate::hot_loop::HotAccess;
use crate::method::uring::reap::Reaps;
use crate::method::uring::ring::{Mode, Ring};
use crate::method::uring::{Named, Plan, ended_badly, entry, register_memory, slots};
use crate::target::OpenMode;
use crate::target::stripe;

/// Opens every member and one ring over them.
///
/// # Errors
/// As for one target.
pub(super) fn open(
    workload: &Workload,
    stripe: &Arc<stripe::Striped>,
) -> Result<Box<dyn HotAccess>, Problem> {
    let plan = Plan::for_workload(workload);
    if plan.mode != Mode::Iopoll {
        return Ok(Box::new(Striped::new(stripe, plan, Vec::new())?));
    }
    let mut polled = Striped::new(stripe, plan, Vec::new())?;
    let trial = Request { offset: plan.first_offset, bytes: plan.block_bytes, write: false };
    match polled.perform(trial) {
        Err(Failure::Member { failure, .. })
            if matches!(*failure, Failure::Io { errno: Errno::OPNOTSUPP, .. }) =>
        {
            drop(polled);
            let note = "IOPOLL: not supported by every member (EOPNOTSUPP), measured with interrupts instead"
                .to_owned();
            Ok(Box::new(Striped::new(stripe, Plan { mode: Mode::Interrupt, ..plan }, vec![note])?))
        }
        // Any other failure is a member's, and the measurement will meet it again and report it.
        _ => Ok(Box::new(polled)),
    }
}

/// State of the request in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Where the request begins on the stripe.
    offset: u64,
    /// Parts that have not ended.
    pending: usize,
    arrived_bytes: usize,
}

/// Slot and member of an entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    offset: u64,
    bytes: u64,
    write: bool,
}

/// Requests to all members through one io_uring instance.
struct Striped {
    // Dropped in this order, after `drop` has emptied the ring: it must go before what its entries name.
    ring: Ring,
    files: Vec<OwnedFd>,
    /// Freed by `drop` once the kernel holds no entry.
    memory: ManuallyDrop<Buffer>,
    stride_bytes: usize,
    block_bytes: usize,
    stripe: Arc<stripe::Striped>,
    map: Stripe,
    slots: Vec<Slot>,
    /// `members` for each slot.
    entries: Vec<Entry>,
    parts: Vec<Part>,
    /// Entries that the kernel or the queue holds.
    entries_in_flight: usize,
    requests_in_flight: usize,
    registered_files: bool,
    registered_memory: bool,
    sent: Vec<Sent>,
    dropped: Vec<String>,
}

impl Striped {
    fn new(stripe: &Arc<stripe::Striped>, plan: Plan, mut dropped: Vec<String>) -> Result<Striped, Problem> {
        let map = stripe.map();
        let how = OpenMode { write: plan.writes, direct: plan.direct, dsync: false };
        let files: Vec<OwnedFd> =
            stripe.members().iter().map(|member| member.open(how)).collect::<Result<_, Problem>>()?;
        let most = plan.depth.saturating_mul(map.members());
        let ring = Ring::new(most, plan.mode, &mut dropped).map_err(|problem| match plan.depth {
            depth if depth > 1 => problem.hint(format!(
                "each of {depth} requests may have {} parts; use a smaller --iodepth",
                map.members()
            )),
            _ => problem,
        })?;
        let (memory, stride_bytes) = slots(plan.block_bytes, plan.depth, plan.writes.then_some(plan.seed))?;
        let mut striped = Striped {
            ring,
            memory: ManuallyDrop::new(memory),
            stride_bytes,
            block_bytes: plan.block_bytes,
            stripe: Arc::clone(stripe),
            map,
            slots: vec![Slot::default(); plan.depth],
            entries: vec![Entry::default(); most],
            parts: Vec::with_capacity(map.members()),
            entries_in_flight: 0,
            requests_in_flight: 0,
            registered_files: false,
            registered_memory: false,
            sent: vec![Sent::default(); files.len()],
            files,
            dropped,
        };
        let numbers: Vec<RawFd> = striped.files.iter().map(AsRawFd::as_raw_fd).collect();
        match striped.ring.submitter().register_files(&numbers) {
            Ok(()) => striped.registered_files = true,
            Err(error) => striped.dropped.push(format!("registered files: refused ({error})")),
        }
        // SAFETY: `drop` frees `memory` only after it has unregistered it.
        striped.registered_memory =
            unsafe { register_memory(&striped.ring, &mut striped.memory, &mut striped.dropped) };
        Ok(striped)
    }
}

impl Reaps for Striped {
    fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    fn held(&self) -> usize {
        self.entries_in_flight
    }

    fn first_offset(&self) -> u64 {
        self.slots.iter().find(|slot| slot.pending > 0).map_or(0, |slot| slot.offset)
    }

    fn drain(&mut self, mut ended: impl FnMut(Completion)) -> Result<(), Failure> {
        let members = self.map.members();
        let mut failure = None;
        for completion in self.ring.completions() {
            let index = completion.user_data() as usize;
            let (number, member) = (index / members, index % members);
            let (Some(slot), Some(entry)) = (self.slots.get_mut(number), self.entries.get(index)) else {
                continue;
            };
            self.entries_in_flight = self.entries_in_flight.saturating_sub(1);
            slot.pending = slot.pending.saturating_sub(1);
            let wrong = match usize::try_from(completion.result()) {
                Ok(0) if entry.bytes > 0 => Some(Failure::Ended { offset: entry.offset }),
                Ok(bytes) => {
                    slot.arrived_bytes += bytes;
                    None
                }
                Err(_) => Some(ended_badly(entry.write, entry.offset, completion.result())),
            };
            if let Some(wrong) = wrong {
                failure = failure.or_else(|| Some(at_member(&self.stripe, member)(wrong)));
            }
            if slot.pending == 0 {
                self.requests_in_flight = self.requests_in_flight.saturating_sub(1);
                ended(Completion { slot: number, bytes: slot.arrived_bytes });
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Access for Striped {
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let refuse = |errno| Failure::Io { call: "io_uring submit", offset: request.offset, errno };
        match self.slots.get(slot) {
            Some(known) if known.pending == 0 && request.bytes <= self.block_bytes => {}
            Some(known) if known.pending > 0 => return Err(refuse(Errno::BUSY)),
            _ => return Err(refuse(Errno::INVAL)),
        }
        self.parts.clear();
        self.parts.extend(self.map.parts(request.offset, request.bytes as u64));
        if self.parts.is_empty() {
            return Err(refuse(Errno::INVAL));
        }
        self.slots[slot] = Slot { offset: request.offset, ..Slot::default() };
        self.requests_in_flight += 1;
        let mut memory = self.memory.as_mut_ptr().wrapping_add(slot * self.stride_bytes);
        for part in &self.parts {
            let bytes = part.bytes as usize;
            let file = match (self.registered_files, self.files.get(part.member)) {
                (true, _) => Named::Registered(part.member as u32),
                (false, Some(file)) => Named::Plain(file.as_raw_fd()),
                (false, None) => return Err(refuse(Errno::BADF)),
            };
            let index = slot * self.map.members() + part.member;
            let request = Request { offset: part.offset, bytes, write: request.write };
            let entry = entry(file, memory, self.registered_memory, request).user_data(index as u64);
            // SAFETY: the entry names an open file and a run of its slot in `memory` that no other entry has: the parts of
            // a request sum to its bytes, which fit the slot. Both live until `drop`, which first waits for every entry.
            unsafe { self.ring.push(&entry) }.map_err(refuse)?;
            self.entries[index] = Entry { offset: part.offset, bytes: part.bytes, write: request.write };
            self.slots[slot].pending += 1;
            self.entries_in_flight += 1;
            count(&mut self.sent, part.member, part.bytes);
            memory = memory.wrapping_add(bytes);
        }
        Ok(())
    }

    fn reap(&mut self, at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        self.collect(at_least.min(self.requests_in_flight), |completion| done.push(completion))
    }

    fn data(&self, slot: usize) -> Option<&[u8]> {
        let known = self.slots.get(slot).filter(|known| known.pending == 0)?;
        let start = self.memory.as_ptr().wrapping_add(slot * self.stride_bytes);
        // SAFETY: the slot lies in `memory`, which is initialised, and `block_bytes` fit it. Nothing writes to it: none of
        // its parts is in flight, and `submit` needs `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(start, known.arrived_bytes.min(self.block_bytes)) })
    }

    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.submit(0, request)?;
        let mut moved = 0;
        let ended = self.collect(1, |completion| moved = completion.bytes);
        // One part has failed: the others are seen out, so that the next request finds its slot free.
        while ended.is_err() && self.slots.first().is_some_and(|slot| slot.pending > 0) {
            if self.ring.enter(1).is_err() {
                break;
            }
            let _ = self.drain(|_| {});
        }
        ended.map(|()| moved)
    }

    fn begin(&mut self) {
        self.sent.fill(Sent::default());
    }

    fn sent(&self) -> &[Sent] {
        &self.sent
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

impl Drop for Striped {
    fn drop(&mut self) {
        self.entries_in_flight -= (self.ring.forget_queued() as usize).min(self.entries_in_flight);
        if !self.see_out() {
            // The kernel may still write into the slots: better to lose the memory than to hand it out again.
            return;
        }
        if self.registered_memory {
            let _ = self.ring.submitter().unregister_buffers();
        }
        if self.registered_files {
            let _ = self.ring.submitter().unregister_files();
        }
        // SAFETY: dropped once, here, and not used again; no entry is in flight.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}
