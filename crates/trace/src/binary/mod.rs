//! Formats made of records. One loop finds the records of a fixed size; each format reads one.
//!
//! Invariant: a record that is cut off at the end is counted and left out; everything in a record is checked.

mod blktrace;
pub(crate) mod lcs;
mod oracle_general;
mod twr;
mod vscsi;

use iowhy_core::request::{NEVER, Request};

use crate::error::{Position, TraceError};
use crate::fit::Fit;
use crate::format::Format;
use crate::input::{Input, WINDOW};
use crate::losses::Losses;
use crate::names::Names;
use crate::ordered::Ordered;
use crate::reader::{Options, Reader, Sink};

/// A number at an offset; 0 where the record is too short, which callers rule out by the size of their records.
macro_rules! little_endian {
    ($name:ident, $type:ty, $size:literal) => {
        #[inline]
        pub(crate) fn $name(record: &[u8], at: usize) -> $type {
            match record.get(at..).and_then(|rest| rest.first_chunk::<$size>()) {
                Some(bytes) => <$type>::from_le_bytes(*bytes),
                None => 0,
            }
        }
    };
}
little_endian!(u8_at, u8, 1);
little_endian!(u16_at, u16, 2);
little_endian!(u32_at, u32, 4);
little_endian!(u64_at, u64, 8);

/// The next use as libCacheSim writes it: the number of a request, counted from 1 (or, by other tools, from `base` 0);
/// -1 or the largest number for never. In iowhy it counts from 0, where 0 means unknown.
#[inline]
pub(crate) fn next_use(value: u64, base: u64) -> u64 {
    if value >= i64::MAX as u64 { NEVER } else { value.saturating_sub(base) }
}

/// Nanoseconds of whole seconds; 2^32 seconds fit.
#[inline]
pub(crate) fn seconds(seconds: u32) -> u64 {
    u64::from(seconds) * 1_000_000_000
}

/// Reads one record.
pub(crate) trait RecordParser: Send {
    /// Bytes of a record; never 0.
    fn size(&self) -> usize;

    /// Takes a record of this size.
    fn record(&mut self, record: &[u8], sink: &mut Sink<'_>);
}

/// A reader for a format of records.
pub(crate) fn reader(
    format: Format,
    mut input: Input,
    options: &Options,
) -> Result<Box<dyn Reader>, TraceError> {
    Ok(match format {
        Format::OracleGeneral => {
            let base = oracle_general::base(input.want(WINDOW)?, false);
            Box::new(Records::new(input, oracle_general::OracleGeneral { base }))
        }
        Format::OracleGeneralOpNs => {
            let base = oracle_general::base(input.want(WINDOW)?, true);
            Box::new(Records::new(input, oracle_general::OracleGeneralOpNs { base }))
        }
        Format::Twr => Box::new(Records::new(input, twr::Twr { with_name_space: false })),
        Format::TwrNs => Box::new(Records::new(input, twr::Twr { with_name_space: true })),
        Format::Vscsi1 => Box::new(Records::new(input, vscsi::Vscsi { version: 1 })),
        Format::Vscsi2 => Box::new(Records::new(input, vscsi::Vscsi { version: 2 })),
        Format::Blktrace => {
            Box::new(Ordered::new(blktrace::Blktrace::new(input, options.action.unwrap_or_default())))
        }
        _ => {
            let (layout, header_bytes) = lcs::header(input.want(lcs::MAX_HEADER_BYTES)?)?;
            input.pass(header_bytes);
            Box::new(Records::new(input, layout))
        }
    })
}

/// Whole records that must be in sight of a file that ends inside one, before it is taken for cut off: its length is no
/// evidence then.
const MIN_OF_CUT: usize = 4;

/// Whether the beginning of a file is of a format of records. `cut`: it may end inside a record.
pub(crate) fn fits(format: Format, head: &[u8], complete: bool, cut: bool) -> Fit {
    let size = match format {
        Format::OracleGeneral => 24,
        Format::OracleGeneralOpNs => 27,
        Format::Twr => 20,
        Format::TwrNs => 22,
        Format::Vscsi1 => 32,
        Format::Vscsi2 => 40,
        _ => 1,
    };
    // Only where all of it is in sight: a head of the largest size may go on.
    let ends_inside = complete && head.len() < WINDOW && !head.len().is_multiple_of(size);
    if ends_inside && !(cut && head.len() >= MIN_OF_CUT * size) {
        return Fit::No;
    }
    match format {
        Format::OracleGeneral => oracle_general::fits(head, complete, false),
        Format::OracleGeneralOpNs => oracle_general::fits(head, complete, true),
        Format::Twr => twr::fits(head, complete, false),
        Format::TwrNs => twr::fits(head, complete, true),
        Format::Vscsi1 => vscsi::fits(head, complete, 1),
        Format::Vscsi2 => vscsi::fits(head, complete, 2),
        Format::Blktrace => blktrace::fits(head, complete),
        Format::Lcs => lcs::fits(head, complete),
        _ => Fit::No,
    }
}

/// The whole records in a beginning, at most 1000; `None`: there is none yet.
pub(crate) fn some_records(head: &[u8], size: usize) -> Option<impl Iterator<Item = &[u8]> + Clone> {
    (head.len() >= size).then(|| head.chunks_exact(size).take(1000))
}

/// Reads records of one size.
pub(crate) struct Records<P> {
    input: Input,
    parser: P,
    losses: Losses,
    names: Names,
    ended: bool,
}

impl<P: RecordParser> Records<P> {
    pub(crate) fn new(input: Input, parser: P) -> Self {
        Records { input, parser, losses: Losses::default(), names: Names::default(), ended: false }
    }
}

impl<P: RecordParser> Reader for Records<P> {
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let begin = into.len();
        let enough = begin.saturating_add(most);
        let size = self.parser.size().max(1);
        into.reserve(most.min(1 << 16));
        while into.len() < enough && !self.ended {
            let window = self.input.bytes();
            let base = self.input.position();
            let whole = (window.len() / size).min(enough - into.len());
            for (i, record) in window.chunks_exact(size).take(whole).enumerate() {
                let place = Position::Byte(base + (i * size) as u64);
                let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
                self.parser.record(record, &mut sink);
            }
            self.input.pass(whole * size);
            if whole == 0 && !self.input.more()? {
                self.ended = true;
                if !self.input.bytes().is_empty() {
                    self.losses.add(CUT_OFF, Some(Position::Byte(self.input.position())));
                }
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

/// Reason: the file ends inside a record.
pub(crate) const CUT_OFF: &str = "the file ends inside a record: the rest of it left out";
