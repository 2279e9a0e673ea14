//! libCacheSim's oracleGeneral: `u32 time_s, u64 id, u32 size, i64 next` in 24 bytes, and oracleGeneralOpNS with a
//! `u8` of operation and a `u16` of name space before the next use, in 27. Little-endian, packed, no header. The next
//! use is the number of a request; see [`base`] for where it counts from.

use iowhy_core::request::{Op, Request};

use super::{RecordParser, next_use, seconds, some_records, u8_at, u16_at, u32_at, u64_at};
use crate::fit::Fit;
use crate::op_code;
use crate::reader::Sink;

/// Reason: libCacheSim's own readers skip these too. The next uses in the file count them.
pub(crate) const SIZE_ZERO: &str = "size 0: left out (the file's own next uses count them)";

/// 24 bytes.
pub(super) struct OracleGeneral {
    /// From what the next uses count requests.
    pub(super) base: u64,
}

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
            next_use: next_use(u64_at(record, 16), self.base),
            ..Request::default()
        });
    }
}

/// 27 bytes.
pub(super) struct OracleGeneralOpNs {
    /// From what the next uses count requests.
    pub(super) base: u64,
}

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
            next_use: next_use(u64_at(record, 19), self.base),
            op,
            ..Request::default()
        });
    }
}

/// Whether the next uses in sight count requests from 1 or from 0: libCacheSim's own converters count from 1, others
/// from 0. A next use that is in sight must be of the same object.
pub(super) fn base(head: &[u8], op_and_name_space: bool) -> u64 {
    let (wrong_from_1, wrong_from_0) = wrong_links(head, op_and_name_space);
    u64::from(wrong_from_1 <= wrong_from_0)
}

/// Next uses that lead to another object, if they count from 1 and if from 0.
fn wrong_links(head: &[u8], op_and_name_space: bool) -> (usize, usize) {
    let (size, at) = layout(op_and_name_space);
    let id = |index: u64| {
        let from = usize::try_from(index).ok()?.checked_mul(size)?;
        head.get(from..from.checked_add(size)?).map(|record| u64_at(record, 4))
    };
    let mut wrong = (0, 0);
    for record in head.chunks_exact(size).take(SEEN) {
        let (own, next) = (Some(u64_at(record, 4)), u64_at(record, at));
        let leads_away = |index: u64| id(index).is_some() && id(index) != own;
        wrong.0 += usize::from(next > 0 && leads_away(next - 1));
        wrong.1 += usize::from(leads_away(next));
    }
    wrong
}

/// Bytes of a record, and where the next use is in it.
fn layout(op_and_name_space: bool) -> (usize, usize) {
    if op_and_name_space { (27, 19) } else { (24, 16) }
}

/// Records that are looked at.
const SEEN: usize = 1000;

/// There is no magic number: times must not fall, sizes be below 2^31, and every next use lie ahead or be none. Where
/// a next use is in sight, it must be of the same object, which is no coincidence.
pub(super) fn fits(head: &[u8], complete: bool, op_and_name_space: bool) -> Fit {
    let (size, at) = layout(op_and_name_space);
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
    }
    match wrong_links(head, op_and_name_space) {
        (0, _) | (_, 0) => Fit::Yes,
        _ => Fit::No,
    }
}
