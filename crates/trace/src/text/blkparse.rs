//! Output of `blkparse` in its default format: `maj,min cpu seq sec.nsec pid action RWBS sector + blocks [program]`.
//! Source: blkparse(1) and its output. Reading stops at the summary that begins with `CPU0 (dev):` or `Total (dev):`.

use iowhy_core::request::Marks;

use super::blk::{Assembler, Event, Step, letters};
use super::fields::{word, words};
use super::{LineParser, Refusal};
use crate::number;
use crate::reader::{BlockAction, Sink};

/// The parser.
pub(super) struct Blkparse {
    assembler: Assembler,
    summary: bool,
}

impl Blkparse {
    pub(super) fn new(action: BlockAction) -> Blkparse {
        Blkparse { assembler: Assembler::new(action), summary: false }
    }
}

const REFUSED: Refusal = "not a line of blkparse: left out";

impl LineParser for Blkparse {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        let (fields, count) = words::<10>(line);
        if self.summary || count == 0 {
            return Ok(());
        }
        let [device, cpu, seq, time, pid, action, rwbs, sector, plus, blocks] = fields;
        if (device.starts_with(b"CPU") || device == b"Total") && cpu.starts_with(b"(") {
            self.summary = true;
            return Ok(());
        }
        let device = device_number(device).ok_or(REFUSED)?;
        let time_ns = number::scaled(time, 9).ok_or(REFUSED)?;
        let pid = number::whole(pid).ok_or(REFUSED)?;
        number::whole(cpu).and(number::whole(seq)).ok_or(REFUSED)?;
        let step = match action {
            b"Q" => Step::Queue,
            b"D" => Step::Issue,
            b"C" => Step::Complete,
            [b'A'..=b'Z' | b'm', ..] => Step::Other,
            _ => return Err(REFUSED),
        };
        if step == Step::Other {
            return Ok(());
        }
        let (op, mut marks) = letters(rwbs).ok_or(REFUSED)?;
        // Without `+ blocks` it is a flush or a command of another kind, which has no length.
        let (sector, blocks) = match (number::whole(sector), plus) {
            (Some(sector), b"+") => (sector, number::whole(blocks).ok_or(REFUSED)?),
            (Some(sector), _) => (sector, 0),
            (None, _) => (0, 0),
        };
        if step == Step::Complete && failed(line) {
            marks = marks.with(Marks::FAILED);
        }
        let event = Event {
            step,
            time_ns,
            device,
            sector,
            bytes: blocks.checked_mul(512).ok_or("size beyond 2^64: left out")?,
            op,
            marks,
            pid: u32::try_from(pid).map_err(|_| REFUSED)?,
        };
        self.assembler.event(event, sink);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        self.assembler.end(sink);
    }
}

/// `8,0` as major times 2^20 and minor.
fn device_number(text: &[u8]) -> Option<u32> {
    let (major, rest) = number::leading(text)?;
    let minor = number::whole(rest.strip_prefix(b",")?)?;
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20 | minor) as u32)
}

/// The number in brackets at the end of a completion is its error.
fn failed(line: &[u8]) -> bool {
    let inside = line.trim_ascii_end().strip_suffix(b"]").and_then(|line| line.rsplit(|b| *b == b'[').next());
    inside
        .and_then(word)
        .is_some_and(|(error, _)| error != b"0" && error.iter().all(|b| b.is_ascii_digit() || *b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_errors() {
        assert_eq!(device_number(b"8,0"), Some(8 << 20));
        assert_eq!(
            (device_number(b"8"), device_number(b"9999,1"), device_number(b"8,x")),
            (None, None, None)
        );
        assert!(failed(b"8,0 3 1 0.1 0 C R 5 + 8 [-5]") && failed(b"x [65531]"));
        assert!(!failed(b"8,0 3 1 0.1 0 C R 5 + 8 [0]") && !failed(b"x [kjournald]") && !failed(b"x"));
    }
}
