//! fio's iologs, versions 2 and 3. Source: fio's HOWTO ("Trace file format v2/v3") and fio's own output.
//!
//! Version 2 has no times, only waits in microseconds, which are added up. Version 3 begins every line with a time in
//! microseconds. Lines that manage files have two fields (three in version 3), lines that move bytes have four (five).

use iowhy_core::request::{Op, Request};

use super::fields::words;
use super::{LineParser, Refusal, whole_lines};
use crate::fit::Fit;
use crate::number;
use crate::reader::Sink;

/// The first line of a version.
pub(crate) fn first_line(version: u8) -> &'static str {
    if version == 2 { "fio version 2 iolog" } else { "fio version 3 iolog" }
}

/// Whether the first line is that of the version.
pub(super) fn fits(version: u8, head: &[u8], complete: bool) -> Fit {
    match whole_lines(head, complete).next() {
        Some(line) if line == first_line(version).as_bytes() => Fit::Yes,
        None if !complete => Fit::More,
        _ => Fit::No,
    }
}

/// The parser.
pub(super) struct Iolog {
    version: u8,
    begun: bool,
    time_us: u64,
}

impl Iolog {
    pub(super) fn new(version: u8) -> Iolog {
        Iolog { version, begun: false, time_us: 0 }
    }
}

impl LineParser for Iolog {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        const REFUSED: Refusal = "not a line of an iolog: left out";
        if !self.begun {
            self.begun = true;
            return if line == first_line(self.version).as_bytes() {
                Ok(())
            } else {
                Err("no iolog of this version")
            };
        }
        let (fields, count) = words::<5>(line);
        if count == 0 {
            return Ok(());
        }
        let timed = usize::from(self.version == 3);
        if self.version == 3 {
            self.time_us = number::whole(fields[0]).ok_or(REFUSED)?;
        }
        let [name, action, offset, bytes] =
            [fields[timed], fields[timed + 1], fields[(timed + 2).min(4)], fields[(timed + 3).min(4)]];
        let op = match (action, count - timed) {
            (b"add", 2) => {
                sink.names.number(name);
                return Ok(());
            }
            (b"open", 2) => Op::Open,
            (b"close", 2) => Op::Close,
            (b"wait", 4) if self.version == 2 => {
                self.time_us = self.time_us.saturating_add(number::whole(offset).ok_or(REFUSED)?);
                return Ok(());
            }
            (b"read", 4) => Op::Read,
            (b"write", 4) => Op::Write,
            (b"trim", 4) => Op::Discard,
            (b"sync" | b"datasync" | b"sync_file_range", 4) => Op::Sync,
            _ => return Err(REFUSED),
        };
        let moves = count - timed == 4;
        let number = |text| if moves { number::whole(text).ok_or(REFUSED) } else { Ok(0) };
        let object = sink.names.number(name);
        sink.push(Request {
            time_ns: self.time_us.checked_mul(1000).ok_or("time beyond 2^64 ns: left out")?,
            object,
            offset: number(offset)?,
            bytes: number(bytes)?,
            op,
            ..Request::default()
        });
        Ok(())
    }
}
