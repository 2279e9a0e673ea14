//! Requests of the block layer, one event for each step, as the observer tells of them; and the buffer for all that it tells.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{MapData, RingBuf};

use super::{InKernel, attach, chain, switches};
use crate::event::{BlockRequest, Event, Kind, Operation, Step};
use crate::records::{Feed, Source, bytes, text};

/// Words (of 8 bytes) of `struct request_event` of `bpf/observer.bpf.c`, and where each part begins.
const EVENT: usize = 11;
/// Why a request reads: `bpf/observer.bpf.c`.
const AHEAD: u8 = 1;
const METADATA: u8 = 2;
/// Upper half of the identity of an event, and the lower half of a switch's.
const IDENTITIES: u64 = 0xffff_ffff << 32;
const SWITCHED: u64 = 7;
/// What a request does: `enum req_op` of `include/linux/blk_types.h`.
const READ: u8 = 0;
const WRITE: u8 = 1;
const FLUSH: u8 = 2;
const DISCARD: u8 = 3;
const SECURE_ERASE: u8 = 5;
const WRITE_ZEROES: u8 = 9;

/// Tracepoints that have one or two arguments, by the kernel's age, and the programs for either.
const STEPS: [(&str, [&str; 2]); 2] = [
    ("block_rq_insert", ["on_inserted", "on_inserted_of_queue"]),
    ("block_rq_issue", ["on_issued", "on_issued_of_queue"]),
];
const DONE: (&str, [&str; 1]) = ("block_rq_complete", ["on_done"]);
/// Linux 5.12 and later. Without it a merged request is missed until its memory is used again.
const MERGED: (&str, [&str; 2]) = ("block_rq_merge", ["on_merged", "on_merged_of_queue"]);

/// The buffer that the events wait in.
struct RequestRing(RingBuf<MapData>);

impl InKernel {
    /// Tells of requests from now on, of the whole machine.
    ///
    /// # Errors
    /// Why the kernel refuses that.
    pub(crate) fn requests(&mut self) -> Result<(), String> {
        for (tracepoint, programs) in STEPS {
            attach(&mut self.object, tracepoint, &programs)?;
        }
        attach(&mut self.object, DONE.0, &DONE.1)?;
        // What it is good for is told where it is named.
        let _ = attach(&mut self.object, MERGED.0, &MERGED.1);
        Ok(())
    }

    /// The buffer in which requests, switches and the state of rings are told. There is one.
    ///
    /// # Errors
    /// It is given away, or cannot be mapped.
    pub(crate) fn feed(&mut self) -> Result<Feed, String> {
        let events = self.object.take_map("requests").ok_or("the object has no map requests")?;
        let ring = RequestRing(RingBuf::try_from(events).map_err(|e| chain(&e))?);
        Ok(Feed { source: Box::new(ring), read })
    }
}

impl Source for RequestRing {
    fn take(&mut self, out: &mut Vec<u64>) {
        while let Some(item) = self.0.next() {
            let words =
                item.chunks_exact(8).filter_map(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
            out.extend(words);
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

fn read<'a>(record: &'a [u64], time_ns: u64, take: &mut dyn FnMut(&Event<'a>)) -> bool {
    let [_, identity, task, _, cpu, ..] = record else { return false };
    if identity & IDENTITIES != IDENTITIES {
        return false;
    }
    if identity & !IDENTITIES == SWITCHED {
        return switches::read(record, time_ns, take).is_some();
    }
    let Some(kind) = request(record) else { return false };
    let ([pid, tid], [cpu, _]) = (super::facts::words(*task), super::facts::words(*cpu));
    take(&Event { time_ns, cpu, pid, tid, kind });
    true
}

/// What a step of a request tells.
pub(super) fn request(record: &[u64]) -> Option<Kind<'_>> {
    let [_, identity, _, _, cpu_and_lost, address, device, sector, length_and_flags, name @ ..] = record
    else {
        return None;
    };
    if record.len() != EVENT {
        return None;
    }
    let step = match identity & !IDENTITIES {
        1 => Step::Inserted,
        2 => Step::Issued,
        3 => Step::Done,
        4 => Step::Merged,
        5 => return Some(Kind::RingFiles { busy: true }),
        6 => return Some(Kind::RingFiles { busy: false }),
        _ => return None,
    };
    let halves = |word: &u64| super::facts::words(*word);
    let ([_, lost], [major, minor], [length, flags]) =
        (halves(cpu_and_lost), halves(device), halves(length_and_flags));
    let [operation, purpose, by_kernel, _] = flags.to_ne_bytes();
    Some(Kind::Request(BlockRequest {
        step,
        address: *address,
        device: (major, minor),
        // A request without a place on the device has the greatest number.
        sector: if *sector == u64::MAX { 0 } else { *sector },
        bytes: u64::from(length),
        operation: match operation {
            READ => Operation::Read { ahead: purpose & AHEAD != 0 },
            WRITE => Operation::Write,
            FLUSH => Operation::Flush,
            DISCARD | SECURE_ERASE | WRITE_ZEROES => Operation::Discard,
            _ => Operation::Other,
        },
        by_kernel: by_kernel != 0,
        metadata: purpose & METADATA != 0,
        task: text(bytes(name)),
        lost,
    }))
}
