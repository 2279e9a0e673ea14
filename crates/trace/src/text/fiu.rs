//! FIU's system-call traces ("nbw"): `seq ts_ns op inode inode_size offset size HIT|MISS|APPEND`, and without the last
//! three for opens, closes and syncs. HIT and MISS of the traced system's page cache become marks.

use iowhy_core::request::{Marks, Op, Request};

use super::fields::words;
use super::{LineParser, Refusal};
use crate::number;
use crate::reader::Sink;

/// The parser.
pub(super) struct Fiu;

impl LineParser for Fiu {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of an FIU trace: left out";
        let (fields, count) = words::<8>(line);
        let [seq, time, word, inode, size, offset, bytes, label] = fields;
        let number = |text| number::whole(text).ok_or(REFUSED);
        let op = match word.to_ascii_uppercase().as_slice() {
            _ if count == 0 => return Ok(()),
            b"READ" => Op::Read,
            b"WRITE" => Op::Write,
            b"OPEN" => Op::Open,
            b"CLOSE" => Op::Close,
            b"FSYNC" | b"FDATASYNC" => Op::Sync,
            _ => return Err(REFUSED),
        };
        number(seq)?;
        number(size)?;
        let mut request =
            Request { time_ns: number(time)?, object: number(inode)?, op, ..Request::default() };
        match (op, count) {
            (Op::Read | Op::Write, 7 | 8) => {
                request.offset = number(offset)?;
                request.bytes = number(bytes)?;
            }
            (Op::Open | Op::Close | Op::Sync, 5) => {}
            _ => return Err(REFUSED),
        }
        request.marks = match label {
            // No label: ZFS, where the tracer could not tell.
            b"" => Marks::default(),
            b"HIT" => Marks::HIT,
            b"MISS" => Marks::MISS,
            b"APPEND" => {
                sink.lose("label APPEND (the file grew): not kept");
                Marks::default()
            }
            _ => return Err(REFUSED),
        };
        sink.push(request);
        Ok(())
    }
}
