//! Formats made of lines. One loop finds the lines; each format reads one.
//!
//! Invariant: a line that is none of the format is counted and left out; a file of which nothing fits is an error. Lines
//! longer than the window of the input are left out, so that a file without line ends costs no memory.

mod blk;
mod blkparse;
mod block_csv;
mod csv;
mod disksim;
mod fields;
mod fio;
mod fiu;
mod plain;
mod strace;
mod twitter;

use iowhy_core::request::Request;
use memchr::memchr_iter;

use crate::error::{Position, TraceError};
use crate::fit::Fit;
use crate::format::{Format, Kind};
use crate::input::Input;
use crate::losses::Losses;
use crate::names::Names;
use crate::ordered::Ordered;
use crate::reader::{Options, Reader, Sink};

pub(crate) use blk::{Assembler, Event, Step};
pub(crate) use csv::{KIND_COMMENT, OWN_HEADER, looks_like_csv};
pub(crate) use fio::first_line;
pub(crate) use strace::RECORD as RECORD_STRACE;

/// Why a line is none of the format.
pub(crate) type Refusal = &'static str;

/// Reads one line.
pub(crate) trait LineParser: Send {
    /// Takes a line without its end. A line that is neither request nor refused is known to be harmless, or was counted.
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal>;

    /// After the last line.
    fn end(&mut self, _sink: &mut Sink<'_>) {}

    /// A remedy for files without a line of this format, beside naming another format.
    fn remedy(&self) -> Option<&'static str> {
        None
    }

    /// Address space, where the file says so.
    fn kind(&self) -> Option<Kind> {
        None
    }

    /// Whether the kind says if requests were recorded above or below a page cache.
    fn level_known(&self) -> bool {
        true
    }

    /// Whether requests have times.
    fn has_times(&self) -> bool {
        true
    }

    /// Whether requests have sizes.
    fn has_sizes(&self) -> bool {
        true
    }
}

/// A reader for a format of lines.
pub(crate) fn reader(format: Format, input: Input, options: &Options) -> Result<Box<dyn Reader>, TraceError> {
    Ok(match format {
        Format::Msr => Box::new(Lines::new(input, block_csv::Msr)),
        Format::Alibaba => Box::new(Lines::new(input, block_csv::Alibaba)),
        Format::Tencent => Box::new(Lines::new(input, block_csv::Tencent)),
        Format::Systor17 => Box::new(Lines::new(input, block_csv::Systor17)),
        Format::Twitter => Box::new(Lines::new(input, twitter::Twitter)),
        Format::FioIolog2 => Box::new(Lines::new(input, fio::Iolog::new(2))),
        Format::FioIolog3 => Box::new(Lines::new(input, fio::Iolog::new(3))),
        Format::Blkparse => Box::new(Ordered::new(Lines::new(
            input,
            blkparse::Blkparse::new(options.action.unwrap_or_default()),
        ))),
        Format::DiskSim => Box::new(Lines::new(input, disksim::DiskSim)),
        Format::Strace => Box::new(Ordered::new(Lines::new(input, strace::Strace::default()))),
        Format::Fiu => Box::new(Lines::new(input, fiu::Fiu)),
        Format::Txt => Box::new(Lines::new(input, plain::Ids)),
        _ => Box::new(Lines::new(input, csv::Csv::new(options.columns.as_ref()))),
    })
}

/// Whether the beginning of a file is of a format of lines. `head` ends anywhere; `complete`: nothing follows it.
pub(crate) fn fits(
    format: Format,
    head: &[u8],
    complete: bool,
    options: &Options,
) -> Result<Fit, TraceError> {
    Ok(match format {
        Format::Msr => try_lines(block_csv::Msr, head, complete),
        Format::Alibaba => try_lines(block_csv::Alibaba, head, complete),
        Format::Tencent => try_lines(block_csv::Tencent, head, complete),
        Format::Systor17 => try_lines(block_csv::Systor17, head, complete),
        Format::Twitter => try_lines(twitter::Twitter, head, complete),
        Format::FioIolog2 => fio::fits(2, head, complete),
        Format::FioIolog3 => fio::fits(3, head, complete),
        Format::Blkparse => {
            try_lines(blkparse::Blkparse::new(options.action.unwrap_or_default()), head, complete)
        }
        Format::DiskSim => try_lines(disksim::DiskSim, head, complete),
        Format::Strace => try_lines(strace::Strace::default(), head, complete),
        Format::Fiu => try_lines(fiu::Fiu, head, complete),
        Format::Txt => plain::fits(head, complete),
        Format::Csv => csv::fits(head, complete, options.columns.as_ref())?,
        _ => Fit::No,
    })
}

/// Whether a file without any format is output of strace without the times that requests need, for the hint.
pub(crate) fn is_strace_without_times(head: &[u8]) -> bool {
    strace::lacks_times(whole_lines(head, true).take(TRIED))
}

/// Lines that are tried to tell a format.
const TRIED: usize = 64;

/// Fits if at least one of the first lines is taken and at most one in four is refused.
fn try_lines(mut parser: impl LineParser, head: &[u8], complete: bool) -> Fit {
    let (mut requests, mut losses, mut names) = (Vec::new(), Losses::default(), Names::default());
    let (mut good, mut bad) = (0, 0);
    for line in whole_lines(head, complete).take(TRIED) {
        let mut sink =
            Sink { into: &mut requests, losses: &mut losses, names: &mut names, place: Position::Line(0) };
        match parser.line(line, &mut sink) {
            Ok(()) => good += usize::from(!line.is_empty()),
            Err(_) => bad += 1,
        }
    }
    match (good, bad) {
        (0, 0) if !complete => Fit::More,
        (0, _) => Fit::No,
        (good, bad) if bad * 4 <= good => Fit::Yes,
        _ => Fit::No,
    }
}

/// The lines of a beginning; the last one only if nothing follows it.
pub(crate) fn whole_lines(head: &[u8], complete: bool) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', head) {
        _ if complete => head,
        Some(end) => &head[..=end],
        None => &[],
    };
    whole.split_inclusive(|byte| *byte == b'\n').map(without_end)
}

/// A line without `\n` or `\r\n`.
#[inline]
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Refused lines in a row from the beginning after which a file is none of the format.
const HOPELESS: u64 = 10_000;

/// Reads a format of lines.
pub(crate) struct Lines<P> {
    input: Input,
    parser: P,
    losses: Losses,
    names: Names,
    line: u64,
    /// Lines that were taken, and the first that was refused.
    taken: u64,
    refused: u64,
    first_refused: Option<(u64, Refusal)>,
    /// Inside a line that is longer than the window.
    skipping: bool,
    ended: bool,
}

impl<P: LineParser> Lines<P> {
    fn new(input: Input, parser: P) -> Self {
        Lines {
            input,
            parser,
            losses: Losses::default(),
            names: Names::default(),
            line: 0,
            taken: 0,
            refused: 0,
            first_refused: None,
            skipping: false,
            ended: false,
        }
    }

    /// Takes the whole lines in the window, until there are enough requests. False: there was none.
    fn window(&mut self, into: &mut Vec<Request>, enough: usize) -> bool {
        let window = self.input.bytes();
        let mut at = 0;
        for end in memchr_iter(b'\n', window) {
            let line = &window[at..end];
            at = end + 1;
            self.line += 1;
            if self.skipping {
                self.skipping = false;
                continue;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let place = Position::Line(self.line);
            let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
            match self.parser.line(line, &mut sink) {
                Ok(()) => self.taken += 1,
                Err(why) => {
                    self.losses.add(why, Some(place));
                    self.refused += 1;
                    self.first_refused.get_or_insert((self.line, why));
                }
            }
            if into.len() >= enough {
                break;
            }
        }
        self.input.pass(at);
        at > 0
    }

    /// The window holds no line end: more is read, or the last line is taken.
    fn beyond_window(&mut self, into: &mut Vec<Request>) -> Result<(), TraceError> {
        if self.input.more()? {
            return Ok(());
        }
        if self.input.full() {
            if !self.skipping {
                self.losses.add("line longer than 256 KiB: left out", Some(Position::Line(self.line + 1)));
            }
            self.skipping = true;
            let bytes = self.input.bytes().len();
            self.input.pass(bytes);
            return Ok(());
        }
        self.ended = true;
        let mut line = without_end(self.input.bytes());
        self.line += u64::from(!line.is_empty());
        if self.input.cut_off() && !line.is_empty() {
            // The first digits of a number are a number too, but not the one that was meant.
            self.losses
                .add("line cut in two by the end of the file: left out", Some(Position::Line(self.line)));
            line = b"";
        }
        let place = Position::Line(self.line);
        let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
        if !line.is_empty() && !self.skipping {
            match self.parser.line(line, &mut sink) {
                Ok(()) => self.taken += 1,
                Err(why) => {
                    sink.losses.add(why, Some(place));
                    self.refused += 1;
                    self.first_refused.get_or_insert((self.line, why));
                }
            }
        }
        let mut sink = Sink { into, losses: &mut self.losses, names: &mut self.names, place };
        self.parser.end(&mut sink);
        Ok(())
    }

    /// A file of which nothing fits is not of this format.
    fn hopeless(&self) -> Result<(), TraceError> {
        match self.first_refused {
            Some((line, why)) if self.taken == 0 && (self.ended || self.refused >= HOPELESS) => {
                let formats = "`iowhy trace formats` lists the formats; name the right one with `--format` (or `--from`)";
                let remedy = self.parser.remedy();
                Err(TraceError::new(format!("no line of it is of this format; the first: {why}"))
                    .at(Position::Line(line))
                    .hint(remedy.map_or(formats.to_owned(), |remedy| format!("{remedy}; {formats}"))))
            }
            _ => Ok(()),
        }
    }
}

impl<P: LineParser> Reader for Lines<P> {
    /// A line that holds two requests may put one more than `most` into the batch.
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let begin = into.len();
        let enough = begin.saturating_add(most);
        into.reserve(most.min(1 << 16));
        while into.len() < enough && !self.ended {
            if !self.window(into, enough) {
                self.beyond_window(into)?;
            }
            self.hopeless()?;
        }
        Ok(into.len() - begin)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn kind(&self) -> Option<Kind> {
        self.parser.kind()
    }

    fn level_known(&self) -> bool {
        self.parser.level_known()
    }

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }

    fn has_sizes(&self) -> bool {
        self.parser.has_sizes()
    }
}
