//! twr, Twitter's cache traces in binary: `u32 time_s, u64 id, u32 sizes, u32 op and ttl` in 20 bytes; twrNS appends a
//! `u16` of name space. The sizes are those of key (upper 10 bits) and value (lower 22), the operation is in the upper
//! 8 bits.

use iowhy_core::request::{Op, Request};

use super::{RecordParser, seconds, some_records, u16_at, u32_at, u64_at};
use crate::fit::Fit;
use crate::op_code;
use crate::reader::Sink;

/// The parser.
pub(super) struct Twr {
    pub(super) with_name_space: bool,
}

impl RecordParser for Twr {
    fn size(&self) -> usize {
        if self.with_name_space { 22 } else { 20 }
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>) {
        let sizes = u32_at(record, 12);
        let last = u32_at(record, 16);
        let op = op_code::from_code((last >> 24) as u8).unwrap_or_else(|| {
            sink.lose("unknown operation: kept as `other`");
            Op::Other
        });
        if last & 0xff_ffff != 0 {
            sink.lose("time to live: not kept");
        }
        let bytes = u64::from(sizes >> 22) + u64::from(sizes & 0x3f_ffff);
        if bytes == 0 {
            return sink.lose(super::oracle_general::SIZE_ZERO);
        }
        sink.push(Request {
            time_ns: seconds(u32_at(record, 0)),
            object: u64_at(record, 4),
            bytes,
            stream: if self.with_name_space { u32::from(u16_at(record, 20)) } else { 0 },
            op,
            ..Request::default()
        });
    }
}

/// There is no magic number: times must not fall, keys have a size, operations a meaning.
pub(super) fn fits(head: &[u8], complete: bool, with_name_space: bool) -> Fit {
    let size = if with_name_space { 22 } else { 20 };
    let Some(records) = some_records(head, size) else { return if complete { Fit::No } else { Fit::More } };
    let mut last = 0;
    for record in records {
        let time = u32_at(record, 0);
        let op = u32_at(record, 16) >> 24;
        let key_size = u32_at(record, 12) >> 22;
        if time < last || key_size == 0 || op == 0 || op > u32::from(op_code::LAST_CODE) {
            return Fit::No;
        }
        last = time;
    }
    Fit::Yes
}
