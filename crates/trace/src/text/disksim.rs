//! DiskSim's ASCII format: `time_ms device block blocks flags`, blocks of 512 bytes, flags in hexadecimal (bit 0: read).
//! Source: manual of DiskSim 4.0, section 4.1.1.

use iowhy_core::request::{Op, Request};

use super::block_csv::SIZE_ZERO;
use super::fields::words;
use super::{LineParser, Refusal};
use crate::number;
use crate::reader::Sink;

/// The parser.
pub(super) struct DiskSim;

impl LineParser for DiskSim {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of a DiskSim trace: left out";
        const BEYOND: Refusal = "address beyond 2^64: left out";
        let (fields, count) = words::<5>(line);
        if count == 0 {
            return Ok(());
        }
        if count != 5 {
            return Err(REFUSED);
        }
        let [time, device, block, blocks, flags] = fields;
        let number = |text| number::whole(text).ok_or(REFUSED);
        let flags = number::hexadecimal(flags).ok_or(REFUSED)?;
        let request = Request {
            // Milliseconds with six decimals are nanoseconds.
            time_ns: number::scaled(time, 6).ok_or(REFUSED)?,
            object: number(device)?,
            offset: number(block)?.checked_mul(512).ok_or(BEYOND)?,
            bytes: number(blocks)?.checked_mul(512).ok_or(BEYOND)?,
            op: if flags & 1 == 1 { Op::Read } else { Op::Write },
            ..Request::default()
        };
        if flags > 1 {
            sink.lose("flags other than read and write: not kept");
        }
        if request.bytes == 0 {
            sink.lose(SIZE_ZERO)
        } else {
            sink.push(request)
        }
        Ok(())
    }
}
