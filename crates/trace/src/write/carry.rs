//! Attributes of a request that a format cannot carry, counted alike for all formats; addresses as one number.

use iowhy_core::request::{Marks, Op, Request};

use crate::format::Kind;
use crate::losses::Losses;

/// Attributes that a format carries besides object, size and time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carries {
    pub(super) latency: bool,
    pub(super) stream: bool,
    pub(super) object: bool,
}

/// Counts the dropped attributes of a request.
#[inline]
pub(super) fn count(request: &Request, carries: Carries, losses: &mut Losses) {
    if request.latency_ns > 0 && !carries.latency {
        losses.add("latency: dropped", None);
    }
    if request.stream > 0 && !carries.stream {
        losses.add("process, thread or client: dropped", None);
    }
    if request.marks != Marks::default() {
        losses.add("marks (read-ahead, metadata, hit, failed, ...): dropped", None);
    }
    if request.object > 0 && !carries.object {
        losses.add("device or file: dropped, all requests become those of one", None);
    }
}

/// Whether a request moves bytes; one that does not is counted as left out if the format cannot express it.
pub(super) fn moves_bytes(request: &Request, losses: &mut Losses) -> bool {
    match request.op {
        Op::Read | Op::Write if request.bytes > 0 => true,
        Op::Read | Op::Write => {
            losses.add("size 0: left out", None);
            false
        }
        Op::Discard => {
            losses.add("discards: no equivalent, left out", None);
            false
        }
        _ => {
            losses.add("opens, closes, syncs and others: no equivalent, left out", None);
            false
        }
    }
}

/// Bits of a sector in an id that holds an address; the device is above them.
const SECTOR_BITS: u32 = 48;

/// The address of a request as one number. Keys are unchanged. An address becomes its sector of 512 bytes, with the
/// device or file times 2^48 added, as other tools do; where that does not hold (an offset within a
/// sector), a hash of object and offset.
#[inline]
pub(super) fn id(request: &Request, kind: Kind, losses: &mut Losses) -> u64 {
    if kind == Kind::Keys && request.offset == 0 {
        return request.object;
    }
    let sector = request.offset / 512;
    if request.offset.is_multiple_of(512)
        && sector < 1 << SECTOR_BITS
        && request.object < 1 << (64 - SECTOR_BITS)
    {
        losses.add("address: its sector (plus 2^48 times the device or file) becomes the id", None);
        return request.object << SECTOR_BITS | sector;
    }
    losses.add("address that is no sector: a hash of it becomes the id", None);
    request.key()
}

/// Microseconds, and a count where that cuts.
pub(super) fn microseconds(ns: u64, losses: &mut Losses) -> u64 {
    if !ns.is_multiple_of(1000) {
        losses.add("times cut to microseconds", None);
    }
    ns / 1000
}

/// The sector of an offset and the sectors of a size, and a count where they do not come out even.
pub(super) fn sectors(request: &Request, losses: &mut Losses) -> (u64, u64) {
    let first = request.offset / 512;
    let end = request.offset.saturating_add(request.bytes).div_ceil(512);
    if !request.offset.is_multiple_of(512) || !request.bytes.is_multiple_of(512) {
        losses.add("address or size within a sector: widened to whole sectors", None);
    }
    (first, end - first)
}
