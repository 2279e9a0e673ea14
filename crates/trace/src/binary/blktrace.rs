//! Output of `blktrace`: records of 48 bytes, each followed by `pdu_len` bytes of its own. Source: `blktrace_api.h`.
//!
//! `u32 magic (0x656174 and a version), u32 sequence, u64 time_ns, u64 sector, u32 bytes, u32 action, u32 pid, u32
//! device, u32 cpu, u16 error, u16 pdu_len`. The low half of the action is the step, the high half says what kind of
//! request it is.

use iowhy_core::request::{Marks, Op, Request};

use super::{CUT_OFF, u16_at, u32_at, u64_at};
use crate::error::{Position, TraceError};
use crate::fit::Fit;
use crate::input::Input;
use crate::losses::Losses;
use crate::names::Names;
use crate::reader::{BlockAction, Reader, Sink};
use crate::text::{Assembler, Event, Step};

/// Bytes of a record without what follows it.
const HEADER: usize = 48;

/// Magic number without the version in its lowest byte.
const MAGIC: u32 = 0x6561_7400;

/// The one version there is.
const VERSION: u32 = 7;

/// Categories: bits in the high half of the action.
mod category {
    pub(super) const WRITE: u32 = 1 << 1;
    pub(super) const FLUSH: u32 = 1 << 2;
    pub(super) const SYNC: u32 = 1 << 3;
    pub(super) const PC: u32 = 1 << 9;
    pub(super) const NOTIFY: u32 = 1 << 10;
    pub(super) const AHEAD: u32 = 1 << 11;
    pub(super) const META: u32 = 1 << 12;
    pub(super) const DISCARD: u32 = 1 << 13;
    pub(super) const FUA: u32 = 1 << 15;
}

/// The reader.
pub(super) struct Blktrace {
    input: Input,
    assembler: Assembler,
    losses: Losses,
    names: Names,
    /// Bytes of the last record that are still to be skipped.
    skip: usize,
    ended: bool,
}

impl Blktrace {
    pub(super) fn new(input: Input, action: BlockAction) -> Blktrace {
        Blktrace {
            input,
            assembler: Assembler::new(action),
            losses: Losses::default(),
            names: Names::default(),
            skip: 0,
            ended: false,
        }
    }

    /// Skips the bytes after a record. False: the trace ends in them.
    fn skip(&mut self) -> Result<bool, TraceError> {
        while self.skip > 0 {
            let here = self.input.bytes().len().min(self.skip);
            self.input.pass(here);
            self.skip -= here;
            if self.skip > 0 && !self.input.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self, into: &mut Vec<Request>, inside: bool) {
        self.ended = true;
        let place = Position::Byte(self.input.position());
        if inside {
            self.losses.add(CUT_OFF, Some(place));
        }
        let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
        self.assembler.end(&mut sink);
    }
}

/// The event of a record; `None` for messages, which are no requests.
fn event(record: &[u8]) -> Option<Event> {
    let action = u32_at(record, 28);
    let is = |bit: u32| action >> 16 & bit != 0;
    // Before the step is looked at: messages use its numbers for something else.
    if is(category::NOTIFY) {
        return None;
    }
    let step = match action & 0xffff {
        1 => Step::Queue,
        7 => Step::Issue,
        8 => Step::Complete,
        _ => Step::Other,
    };
    let bytes = u64::from(u32_at(record, 24));
    let op = if is(category::DISCARD) {
        Op::Discard
    } else if is(category::PC) {
        Op::Other
    } else if is(category::FLUSH) && bytes == 0 {
        Op::Sync
    } else if is(category::WRITE) {
        Op::Write
    } else if bytes > 0 {
        Op::Read
    } else {
        Op::Other
    };
    let mut marks = Marks::default();
    for (bit, mark) in [
        (category::AHEAD, Marks::READ_AHEAD),
        (category::META, Marks::METADATA),
        (category::SYNC, Marks::SYNC),
        (category::FUA, Marks::FUA),
    ] {
        if is(bit) {
            marks = marks.with(mark);
        }
    }
    if step == Step::Complete && u16_at(record, 44) != 0 {
        marks = marks.with(Marks::FAILED);
    }
    Some(Event {
        step,
        time_ns: u64_at(record, 8),
        device: u32_at(record, 36),
        sector: u64_at(record, 16),
        bytes,
        op,
        marks,
        pid: u32_at(record, 32),
    })
}

impl Reader for Blktrace {
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let begin = into.len();
        while into.len() - begin < most && !self.ended {
            if !self.skip()? {
                self.finish(into, true);
                break;
            }
            let place = Position::Byte(self.input.position());
            let window = self.input.want(HEADER)?;
            let Some(record) = window.get(..HEADER) else {
                let inside = !window.is_empty();
                self.finish(into, inside);
                break;
            };
            let magic = u32_at(record, 0);
            if magic & 0xffff_ff00 != MAGIC || magic & 0xff != VERSION {
                self.ended = true;
                return Err(TraceError::new(format!(
                    "no record of blktrace begins here (magic number {magic:#010x})"
                ))
                .at(place)
                .hint("the file is damaged or of another format; records before this place can be read"));
            }
            let event = event(record);
            self.skip = usize::from(u16_at(record, 46));
            self.input.pass(HEADER);
            if let Some(event) = event {
                let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
                self.assembler.event(event, &mut sink);
            }
        }
        Ok(into.len() - begin)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// Whether the file begins with the magic number.
pub(super) fn fits(head: &[u8], complete: bool) -> Fit {
    match head.get(..4) {
        Some(magic) if u32_at(magic, 0) == MAGIC | VERSION => Fit::Yes,
        None if !complete => Fit::More,
        _ => Fit::No,
    }
}
