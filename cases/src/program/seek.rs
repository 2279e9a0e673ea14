//! A buffered reader that skips: `seek` throws the buffer away, `seek_relative` keeps it.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::{Outcome, failed};

/// Bytes of the reader's buffer.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of one field.
const FIELD_BYTES: usize = 16;

/// Reads a field of 16 bytes at every `step` bytes.
pub(super) fn skip(path: &str, step: i64, relative: bool) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    let size = file.metadata().map_err(failed("examine the file"))?.len() as i64;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut field = [0u8; FIELD_BYTES];
    let (mut place, mut sum) = (0, 0);
    while place + FIELD_BYTES as i64 <= size {
        if place > 0 {
            let ahead = step - FIELD_BYTES as i64;
            if relative {
                reader.seek_relative(ahead).map_err(failed("skip"))?;
            } else {
                reader.seek(SeekFrom::Start(place as u64)).map_err(failed("seek"))?;
            }
        }
        reader.read_exact(&mut field).map_err(failed("read"))?;
        sum += u64::from(field[0]);
        place += step.max(FIELD_BYTES as i64);
    }
    Ok(sum)
}
