//! VMware vscsi traces: SCSI commands of one virtual disk, with addresses in sectors of 512 bytes.
//!
//! Version 1, 32 bytes: `u32 serial, u32 bytes, u32 segments, u16 command, u16 version, u64 sector, u64 time_us`.
//! Version 2, 40 bytes: `u16 command, u16 version, u32 serial, u32 bytes, u32 segments, u64 sector, u64 time_us, u64
//! response_us`. The version is in the upper byte of its field.

use iowhy_core::request::{Op, Request};

use super::{RecordParser, some_records, u16_at, u32_at, u64_at};
use crate::fit::Fit;
use crate::reader::Sink;

/// The parser.
pub(super) struct Vscsi {
    pub(super) version: u8,
}

/// SCSI operation codes that move bytes or make them durable (SPC, SBC).
fn op(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        0x42 => Some(Op::Discard),
        0x35 | 0x91 => Some(Op::Sync),
        _ => None,
    }
}

impl RecordParser for Vscsi {
    fn size(&self) -> usize {
        if self.version == 1 { 32 } else { 40 }
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>) {
        let (command, bytes, response_us) = if self.version == 1 {
            (u16_at(record, 12), u32_at(record, 4), 0)
        } else {
            (u16_at(record, 0), u32_at(record, 8), u64_at(record, 32))
        };
        let op = op(command).unwrap_or_else(|| {
            sink.lose("SCSI command that is neither read, write, unmap nor flush: kept as `other`");
            Op::Other
        });
        let Some(time_ns) = u64_at(record, 24).checked_mul(1000) else {
            return sink.lose("time beyond 2^64 ns: left out");
        };
        let Some(offset) = u64_at(record, 16).checked_mul(512) else {
            return sink.lose("sector beyond 2^55: left out");
        };
        if bytes == 0 && matches!(op, Op::Read | Op::Write) {
            return sink.lose("size 0: left out");
        }
        sink.push(Request {
            time_ns,
            offset,
            bytes: u64::from(bytes),
            latency_ns: response_us.saturating_mul(1000),
            op,
            ..Request::default()
        });
    }
}

/// Every record has the version, and commands are one byte.
pub(super) fn fits(head: &[u8], complete: bool, version: u8) -> Fit {
    let (size, command, at) = if version == 1 { (32, 12, 14) } else { (40, 0, 2) };
    let Some(mut records) = some_records(head, size) else {
        return if complete { Fit::No } else { Fit::More };
    };
    let fits = records
        .all(|record| u16_at(record, at) >> 8 == u16::from(version) && u16_at(record, command) < 0x100);
    if fits { Fit::Yes } else { Fit::No }
}
