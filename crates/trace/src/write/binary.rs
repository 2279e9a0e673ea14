//! Formats made of records: oracleGeneral, LCS version 3, vscsi version 2. Their fields are described where they are
//! read.

use iowhy_core::request::{Op, Request};

use super::Encoder;
use super::carry::{self, Carries};
use super::next_use::{Distinct, Layout};
use crate::binary::lcs::{MAGIC, MAX_HEADER_BYTES};
use crate::format::Kind;
use crate::losses::Losses;
use crate::names::Names;
use crate::op_code;

/// Seconds in 32 bits. Times that do not fit (file times since 1601) count from the first request.
#[derive(Debug, Default)]
struct Clock {
    origin_ns: Option<u64>,
}

impl Clock {
    fn seconds(&mut self, time_ns: u64, losses: &mut Losses) -> u32 {
        const UNIT: u64 = 1_000_000_000;
        let origin = *self.origin_ns.get_or_insert_with(|| {
            if time_ns / UNIT <= u64::from(u32::MAX) {
                return 0;
            }
            losses.add("times beyond 32 bits of seconds: they count from the first request", None);
            time_ns
        });
        let since = time_ns.saturating_sub(origin);
        if !since.is_multiple_of(UNIT) {
            losses.add("times cut to seconds", None);
        }
        u32::try_from(since / UNIT).unwrap_or_else(|_| {
            losses.add("time beyond 32 bits of seconds: kept at the largest", None);
            u32::MAX
        })
    }
}

/// oracleGeneral, 24 bytes a request.
pub(super) struct OracleGeneral {
    kind: Kind,
    clock: Clock,
}

impl OracleGeneral {
    pub(super) fn new(kind: Kind) -> Self {
        OracleGeneral { kind, clock: Clock::default() }
    }
}

impl Encoder for OracleGeneral {
    fn request(&mut self, request: &Request, _: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        if !carry::moves_bytes(request, losses) {
            return false;
        }
        if request.op != Op::Read {
            losses.add("writes: kept as accesses, the format has no operations", None);
        }
        carry::count(request, Carries { object: true, ..Carries::default() }, losses);
        let size = u32::try_from(request.bytes).unwrap_or_else(|_| {
            losses.add("size beyond 32 bits: kept at the largest", None);
            u32::MAX
        });
        out.extend_from_slice(&self.clock.seconds(request.time_ns, losses).to_le_bytes());
        out.extend_from_slice(&carry::id(request, self.kind, losses).to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&(-1i64).to_le_bytes());
        true
    }

    fn next_uses(&self) -> Option<Layout> {
        Some(Layout { header: 0, size: 24, id_at: 4, next_at: 16, bytes_at: (12, 4) })
    }
}

/// LCS version 3, 36 bytes a request behind a header of 8192.
pub(super) struct Lcs {
    kind: Kind,
    clock: Clock,
    requests: u64,
    bytes: u64,
    reads: u64,
    writes: u64,
    deletes: u64,
    first_s: Option<u32>,
    last_s: u32,
}

impl Lcs {
    pub(super) fn new(kind: Kind) -> Self {
        Lcs {
            kind,
            clock: Clock::default(),
            requests: 0,
            bytes: 0,
            reads: 0,
            writes: 0,
            deletes: 0,
            first_s: None,
            last_s: 0,
        }
    }
}

impl Encoder for Lcs {
    fn begin(&mut self, out: &mut Vec<u8>) {
        // Reserved; its value is known at the end.
        out.resize(out.len() + MAX_HEADER_BYTES, 0);
    }

    fn request(&mut self, request: &Request, _: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        let code = op_code::to_code(request.op, self.kind == Kind::Keys);
        let (Some(code), true) = (code, request.bytes > 0) else {
            match request.op {
                Op::Read | Op::Write | Op::Discard => losses.add("size 0: left out", None),
                _ => losses.add("opens, closes, syncs and others: no equivalent, left out", None),
            }
            return false;
        };
        carry::count(request, Carries { stream: true, object: true, ..Carries::default() }, losses);
        let tenant = request.stream & 0xff_ffff;
        if tenant != request.stream {
            losses.add("process, thread or client beyond 24 bits: cut", None);
        }
        let size = i64::try_from(request.bytes).unwrap_or_else(|_| {
            losses.add("size beyond 63 bits: kept at the largest", None);
            i64::MAX
        });
        let seconds = self.clock.seconds(request.time_ns, losses);
        out.extend_from_slice(&seconds.to_le_bytes());
        out.extend_from_slice(&carry::id(request, self.kind, losses).to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&(u32::from(code) | tenant << 8).to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&(-1i64).to_le_bytes());
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(request.bytes);
        match request.op {
            Op::Read => self.reads += 1,
            Op::Write => self.writes += 1,
            _ => self.deletes += 1,
        }
        self.first_s.get_or_insert(seconds);
        self.last_s = seconds;
        true
    }

    fn next_uses(&self) -> Option<Layout> {
        Some(Layout { header: MAX_HEADER_BYTES as u64, size: 36, id_at: 4, next_at: 28, bytes_at: (12, 8) })
    }

    /// Magic, version of the records, version of the statistics, counts; unknown counts are 0.
    fn header(&self, distinct: Distinct) -> Option<Vec<u8>> {
        let mut header = Vec::with_capacity(MAX_HEADER_BYTES);
        for number in [
            MAGIC,
            3,
            1,
            self.requests,
            distinct.objects,
            self.bytes,
            distinct.bytes,
            u64::from(self.first_s.unwrap_or(0)),
            u64::from(self.last_s),
            self.reads,
            self.writes,
            self.deletes,
        ] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.resize(MAX_HEADER_BYTES - 8, 0);
        header.extend_from_slice(&MAGIC.to_le_bytes());
        Some(header)
    }
}

/// vscsi version 2, 40 bytes a request.
#[derive(Default)]
pub(super) struct Vscsi {
    serial: u32,
}

impl Encoder for Vscsi {
    fn request(&mut self, request: &Request, _: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        let command: u16 = match request.op {
            Op::Read => 0x28,
            Op::Write => 0x2a,
            Op::Discard => 0x42,
            Op::Sync => 0x35,
            Op::Open | Op::Close | Op::Other => {
                losses.add("opens, closes and others: no equivalent, left out", None);
                return false;
            }
        };
        if request.bytes == 0 && matches!(request.op, Op::Read | Op::Write) {
            losses.add("size 0: left out", None);
            return false;
        }
        carry::count(request, Carries { latency: true, ..Carries::default() }, losses);
        let bytes = u32::try_from(request.bytes).unwrap_or_else(|_| {
            losses.add("size beyond 32 bits: kept at the largest", None);
            u32::MAX
        });
        if !request.offset.is_multiple_of(512) {
            losses.add("address within a sector: the sector is kept", None);
        }
        out.extend_from_slice(&command.to_le_bytes());
        out.extend_from_slice(&0x0200u16.to_le_bytes());
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(&1u32.to_le_bytes());
        out.extend_from_slice(&(request.offset / 512).to_le_bytes());
        out.extend_from_slice(&carry::microseconds(request.time_ns, losses).to_le_bytes());
        out.extend_from_slice(&carry::microseconds(request.latency_ns, losses).to_le_bytes());
        self.serial = self.serial.wrapping_add(1);
        true
    }
}
