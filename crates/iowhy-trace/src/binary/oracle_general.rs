//! libCacheSim's oracleGeneral: `u32 time_s, u64 id, u32 size, i64 next` in 24 bytes, and oracleGeneralOpNS with a `u8` of
//! operation and a `u16` of name space before the next use, in 27. Little-endian, packed, no header.

use iowhy_core::request::{Op, Request};

use super::{RecordParser, cannot_be, next_use, seconds, some_records, u8_at, u16_at, u32_at, u64_at};
use crate::detect::Fit;
use crate::op_code;
use crate::reader::Sink;

/// Reason: libCacheSim's own readers skip these too. The next uses in the file count them.
pub(crate) const SIZE_ZERO: &str = "size 0: left out (the file's own next uses count them)";

/// 24 bytes.
pub(super) struct OracleGeneral;

impl RecordParser for OracleGeneral {
    fn size(&self) -> usize {
        24
    }

    #[inline]
    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>) {
        let bytes = u64::from(u32_at(record, 12));
        if bytes == 0 {
            return sink.lose(SIZE_ZERO);
        }
        sink.push(Request {
            time_ns: seconds(u32_at(record, 0)),
            object: u64_at(record, 4),
            bytes,
            next_use: next_use(u64_at(record, 16)),
            ..Request::default()
        });
    }
}

/// 27 bytes.
pub(super) struct OracleGeneralOpNs;

impl RecordParser for OracleGeneralOpNs {
    fn size(&self) -> usize {
        27
    }

    #[inline]
    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>) {
        let bytes = u64::from(u32_at(record, 12));
        if bytes == 0 {
            return sink.lose(SIZE_ZERO);
        }
        let op = op_code::from_code(u8_at(record, 16)).unwrap_or_else(|| {
            sink.lose("unknown operation: kept as `other`");
            Op::Other
        });
        sink.push(Request {
            time_ns: seconds(u32_at(record, 0)),
            object: u64_at(record, 4),
            bytes,
            stream: u32::from(u16_at(record, 17)),
            next_use: next_use(u64_at(record, 19)),
            op,
            ..Request::default()
        });
    }
}

/// There is no magic number: times must not fall, sizes be below 2^31, and every next use lie ahead or be none. Where a next use is in
/// sight, it must be of the same object: chance does not do that.
pub(super) fn fits(head: &[u8], complete: bool, op_and_name_space: bool) -> Fit {
    let (size, at) = if op_and_name_space { (27, 19) } else { (24, 16) };
    if cannot_be(head, complete, size) {
        return Fit::No;
    }
    let Some(records) = some_records(head, size) else { return if complete { Fit::No } else { Fit::More } };
    let mut last = 0;
    for (index, record) in records.enumerate() {
        let (time, bytes, next) = (u32_at(record, 0), u32_at(record, 12), u64_at(record, at) as i64);
        let ahead = next == -1 || next == i64::MAX || next > index as i64 && next < 1 << 40;
        let op = !op_and_name_space || u8_at(record, 16) <= op_code::LAST_CODE;
        if time < last || bytes >= 1 << 31 || !ahead || !op {
            return Fit::No;
        }
        last = time;
        let linked = usize::try_from(next)
            .ok()
            .and_then(|next| next.checked_mul(size))
            .and_then(|to| head.get(to..to.checked_add(size)?));
        if linked.is_some_and(|linked| u64_at(linked, 4) != u64_at(record, 4)) {
            return Fit::No;
        }
    }
    Fit::Yes
}
