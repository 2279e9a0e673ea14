//! libCacheSim's LCS: a header, then records of one size. Three generations of headers are about:
//!
//! - with a text of field types (1024 bytes): magic, `char types[240]` as of Python's struct, nine numbers of fields
//!   from 1
//!   (id, size, time, last and next use, operation, ttl, tenant, content), counts, size of a record, version, magic;
//! - with a version and statistics, 1024 bytes, versions 1 and 2;
//! - with a version and more statistics, 8192 bytes, versions 1 to 8.
//!
//! Records: version 1 as oracleGeneral; version 2 `u32 time_s, u64 id, u32 size, u8 op, u24 tenant, i64 next`; version 3
//! `u32 time_s, u64 id, i64 size, u8 op, u24 tenant, u32 ttl, i64 next`; from version 4 on with 1, 2, 4, 8, 16
//! features of 4 bytes behind it. All little-endian and packed. Source: libCacheSim's `lcs.h` of 2023 and of 2024.

use iowhy_core::request::{Op, Request};

use super::oracle_general::SIZE_ZERO;
use super::{RecordParser, next_use, seconds, u8_at, u16_at, u32_at, u64_at};
use crate::error::{Position, TraceError};
use crate::fit::Fit;
use crate::op_code;
use crate::reader::Sink;

/// First and last number of a header.
pub(crate) const MAGIC: u64 = 0x1234_5678_9abc_def0;

/// Bytes of the headers of old and of today.
const OLD_HEADER_BYTES: usize = 1024;
pub(crate) const MAX_HEADER_BYTES: usize = 8192;

/// Offset and type of a number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: usize,
    signed: bool,
}

impl Field {
    #[inline]
    fn get(self, record: &[u8]) -> i128 {
        match (self.bytes, self.signed) {
            (1, false) => i128::from(u8_at(record, self.at)),
            (1, true) => i128::from(u8_at(record, self.at) as i8),
            (2, false) => i128::from(u16_at(record, self.at)),
            (2, true) => i128::from(u16_at(record, self.at) as i16),
            (3, _) => i128::from(u32_at(record, self.at.saturating_sub(1)) >> 8),
            (4, false) => i128::from(u32_at(record, self.at)),
            (4, true) => i128::from(u32_at(record, self.at) as i32),
            (_, false) => i128::from(u64_at(record, self.at)),
            (_, true) => i128::from(u64_at(record, self.at) as i64),
        }
    }
}

/// Layout of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    size: usize,
    id: Field,
    bytes: Option<Field>,
    time: Option<Field>,
    next: Option<Field>,
    op: Option<Field>,
    tenant: Option<Field>,
    ttl: Option<Field>,
    features: bool,
}

const fn unsigned(at: usize, bytes: usize) -> Field {
    Field { at, bytes, signed: false }
}

impl Layout {
    fn of_version(version: u64) -> Option<Layout> {
        let base = |size, next| Layout {
            size,
            id: unsigned(4, 8),
            bytes: Some(unsigned(12, 4)),
            time: Some(unsigned(0, 4)),
            next: Some(unsigned(next, 8)),
            op: None,
            tenant: None,
            ttl: None,
            features: false,
        };
        Some(match version {
            1 => base(24, 16),
            2 => Layout { op: Some(unsigned(16, 1)), tenant: Some(unsigned(17, 3)), ..base(28, 20) },
            3..=8 => {
                let features = if version == 3 { 0 } else { 1 << (version - 4) };
                Layout {
                    bytes: Some(Field { at: 12, bytes: 8, signed: true }),
                    op: Some(unsigned(20, 1)),
                    tenant: Some(unsigned(21, 3)),
                    ttl: Some(unsigned(24, 4)),
                    features: features > 0,
                    ..base(36 + 4 * features, 28)
                }
            }
            _ => return None,
        })
    }

    /// From a text of types and the numbers of fields.
    fn of_types(types: &[u8], numbers: &[u8], item_size: u32) -> Result<Layout, String> {
        let mut fields = Vec::new();
        let mut at = 0;
        for letter in types {
            let (bytes, signed, number) = match letter {
                b'b' | b'c' => (1, true, true),
                b'B' => (1, false, true),
                b'h' => (2, true, true),
                b'H' => (2, false, true),
                b'i' | b'l' => (4, true, true),
                b'I' | b'L' => (4, false, true),
                b'q' => (8, true, true),
                b'Q' => (8, false, true),
                b'f' => (4, false, false),
                b'd' => (8, false, false),
                other => {
                    return Err(format!("its header has a field of unknown type `{}`", other.escape_ascii()));
                }
            };
            fields.push(number.then_some(Field { at, bytes, signed }));
            at += bytes;
        }
        if at != item_size as usize || at == 0 {
            return Err(format!("its header says {item_size} bytes a record, and its fields have {at}"));
        }
        let field = |index: usize| match numbers.get(index).copied().unwrap_or(0) {
            0 => Ok(None),
            number => match fields.get(usize::from(number) - 1) {
                Some(Some(field)) => Ok(Some(*field)),
                Some(None) => {
                    Err(format!("field {number} of its header is a fraction where a whole number belongs"))
                }
                None => Err(format!("its header names field {number} of {}", fields.len())),
            },
        };
        Ok(Layout {
            size: at,
            id: field(0)?.ok_or("its header names no field for the id")?,
            bytes: field(1)?,
            time: field(2)?,
            next: field(4)?,
            op: field(5)?,
            ttl: field(6)?,
            tenant: field(7)?,
            features: field(8)?.is_some(),
        })
    }
}

/// The layout of records, and the bytes of the header in front of them.
pub(crate) fn header(head: &[u8]) -> Result<(Layout, usize), TraceError> {
    let bad = |what: String| {
        TraceError::new(what).at(Position::Byte(0)).hint("the file is damaged, or no LCS trace")
    };
    if u64_at(head, 0) != MAGIC {
        return Err(bad("it does not begin with the magic number of LCS".to_owned()));
    }
    let ends_at = |bytes: usize| head.len() >= bytes && u64_at(head, bytes - 8) == MAGIC;
    let old = ends_at(OLD_HEADER_BYTES);
    if old && head.get(8) == Some(&b'<') {
        let types: Vec<u8> = head[9..248].iter().copied().take_while(|byte| *byte != 0).collect();
        let layout = Layout::of_types(&types, &head[248..257], u32_at(head, 1004)).map_err(bad)?;
        return Ok((layout, OLD_HEADER_BYTES));
    }
    let bytes = if old {
        OLD_HEADER_BYTES
    } else if ends_at(MAX_HEADER_BYTES) {
        MAX_HEADER_BYTES
    } else {
        return Err(bad("its header is cut off, or does not end with the magic number of LCS".to_owned()));
    };
    let version = u64_at(head, 8);
    let layout = Layout::of_version(version)
        .ok_or_else(|| bad(format!("LCS version {version} is not known (1 to 8 are)")))?;
    Ok((layout, bytes))
}

/// Whether the file begins with the magic number.
pub(super) fn fits(head: &[u8], complete: bool) -> Fit {
    match head.get(..8) {
        Some(magic) if u64_at(magic, 0) == MAGIC => Fit::Yes,
        None if !complete => Fit::More,
        _ => Fit::No,
    }
}

impl RecordParser for Layout {
    fn size(&self) -> usize {
        self.size
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>) {
        let bytes = self.bytes.map_or(1, |field| field.get(record));
        let Ok(bytes) = u64::try_from(bytes) else { return sink.lose("negative size: left out") };
        if bytes == 0 {
            return sink.lose(SIZE_ZERO);
        }
        let time = self.time.map_or(0, |field| field.get(record));
        let Ok(time_s) = u32::try_from(time) else {
            return sink.lose("time that does not fit 32 bits of seconds: left out");
        };
        let op = match self.op {
            None => Op::Read,
            Some(field) => {
                u8::try_from(field.get(record)).ok().and_then(op_code::from_code).unwrap_or_else(|| {
                    sink.lose("unknown operation: kept as `other`");
                    Op::Other
                })
            }
        };
        if self.ttl.is_some_and(|field| field.get(record) > 0) {
            sink.lose("time to live: not kept");
        }
        if self.features {
            sink.lose("features: not kept");
        }
        let next = self.next.map_or(0, |field| next_use(field.get(record) as u64, 1));
        sink.push(Request {
            time_ns: seconds(time_s),
            object: self.id.get(record) as u64,
            bytes,
            next_use: next,
            stream: self.tenant.map_or(0, |field| field.get(record) as u32),
            op,
            ..Request::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_the_published_sizes() {
        let sizes: Vec<usize> = (1..=8).map(|v| Layout::of_version(v).unwrap().size).collect();
        assert_eq!(sizes, [24, 28, 36, 40, 44, 52, 68, 100]);
        assert_eq!((Layout::of_version(0), Layout::of_version(9)), (None, None));
    }

    #[test]
    fn a_text_of_types_is_checked() {
        // time, id, size, next use: fields 1 to 4; no last use.
        let numbers = [2, 3, 1, 0, 4, 0, 0, 0, 0];
        let layout = Layout::of_types(b"IQIq", &numbers, 24).unwrap();
        assert_eq!(Layout { next: Some(unsigned(16, 8)), ..layout }, Layout::of_version(1).unwrap());
        for (types, numbers, size) in [
            (&b"IQIq"[..], numbers, 23),
            (b"IQ?q", numbers, 24),
            (b"IQI", numbers, 16),
            (b"Idfq", [2, 3, 1, 0, 4, 0, 0, 0, 0], 24),
            (b"IQIq", [0; 9], 24),
            (b"", [1, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        ] {
            assert!(Layout::of_types(types, &numbers, size).is_err(), "{}", types.escape_ascii());
        }
    }

    #[test]
    fn numbers_of_every_width() {
        let record = [0xff, 1, 2, 3, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let get = |at, bytes, signed| Field { at, bytes, signed }.get(&record);
        assert_eq!((get(0, 1, false), get(0, 1, true)), (255, -1));
        assert_eq!((get(1, 3, false), get(1, 2, false)), (0x03_02_01, 0x201));
        assert_eq!((get(4, 8, true), get(4, 4, true)), (-2, -2));
        assert_eq!(get(20, 8, false), 0);
    }
}
