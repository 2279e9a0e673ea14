//! Opens a trace: finds its format and hands out its requests in batches. It knows no single format.

use std::io::Read;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;

use crate::error::{Position, TraceError};
use crate::format::{Format, Kind};
use crate::input::{Compression, Input, WINDOW};
use crate::losses::Losses;
use crate::names::Names;
use crate::reader::{BlockAction, Options, Reader};
use crate::{binary, detect, fit, text};

/// Default requests per batch: half a megabyte, so that batches stay in the caches of a core.
const BATCH: usize = 8 << 10;

/// An open trace.
pub struct Trace {
    inner: Box<dyn Reader>,
    name: String,
    format: Format,
    compression: Compression,
    action: BlockAction,
    progress: crate::input::Progress,
    losses: Losses,
    last_time_ns: u64,
    backwards: u64,
    beyond: u64,
    requests: u64,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// Reason in [`Trace::losses`]: a request that began before the one in front of it. It is handed on as it is.
pub(crate) const BACKWARDS: &str = "time runs backwards: kept as it is";

/// Reason in [`Trace::losses`]: a compressed file ends in the middle. Requests before it are kept.
pub const CUT_OFF: &str = "the compressed file is cut off: what should follow is missing";

/// Reason in [`Trace::losses`]: offset and size together are beyond 64 bits. It is handed on as it is.
pub(crate) const BEYOND_THE_END: &str =
    "reaches beyond byte 2^64: kept as it is, what lies beyond is not counted";

/// Opens a trace file, or stdin for `-`, and finds out its format unless `options` names it.
///
/// # Errors
/// A refusal when the file cannot be opened, is empty, is of no format that is known, or could be of several; options
/// that do not fit the format; a failure when its first bytes cannot be read.
pub fn open(path: &Path, options: &Options) -> Result<Trace, Problem> {
    let name = if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() };
    let input = Input::open(path).map_err(refusal)?;
    begin(name, input, options)
}

/// As [`open`], from any source of bytes; `name` is for messages.
///
/// # Errors
/// As [`open`].
pub fn from_reader(name: &str, source: Box<dyn Read + Send>, options: &Options) -> Result<Trace, Problem> {
    let input = Input::new(source, None).map_err(|error| refusal(error.in_file(name)))?;
    begin(name.to_owned(), input, options)
}

/// An error before the first request is a refusal: nothing was done yet.
fn refusal(error: TraceError) -> Problem {
    let failed = Problem::from(error);
    Problem { severity: iowhy_core::problem::Severity::Refused, ..failed }
}

fn begin(name: String, mut input: Input, options: &Options) -> Result<Trace, Problem> {
    let refused = |error: TraceError| refusal(error.in_file(&name));
    pass_byte_order_mark(&mut input, options.format).map_err(refused)?;
    let format = match options.format {
        Some(format) => format,
        None => find_out(&mut input, options).map_err(refused)?,
    };
    if options.columns.is_some() && format != Format::Csv {
        return Err(refused(
            TraceError::new(format!("`--columns` is for CSV files, and this is `{}`", format.id()))
                .hint("leave it out, or say `--format csv`"),
        ));
    }
    if options.action.is_some() && !has_steps(format) {
        return Err(refused(
            TraceError::new(format!(
                "`--action` is for blktrace and blkparse, and this is `{}`",
                format.id()
            ))
            .hint("leave it out: the requests of this format have no steps through the block layer"),
        ));
    }
    let compression = input.compression();
    let progress = input.progress();
    let inner = make(format, input, options).map_err(refused)?;
    Ok(Trace {
        inner,
        name,
        format,
        compression,
        action: options.action.unwrap_or_default(),
        progress,
        losses: Losses::default(),
        last_time_ns: 0,
        backwards: 0,
        beyond: 0,
        requests: 0,
    })
}

/// Whether a request of this format has several steps, one of which is taken.
fn has_steps(format: Format) -> bool {
    matches!(format, Format::Blktrace | Format::Blkparse)
}

/// UTF-8's mark, which some programs put before a text. It belongs to no field.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Passes over the mark of a text, so that no format has to know of it. In records the same bytes are a number.
fn pass_byte_order_mark(input: &mut Input, format: Option<Format>) -> Result<(), TraceError> {
    let head = input.want(4 << 10)?;
    if let Some(rest) = head.strip_prefix(BYTE_ORDER_MARK)
        && format.map_or_else(|| fit::is_text(rest), Format::is_text)
    {
        input.pass(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

/// Looks at more and more of the beginning until a format fits.
fn find_out(input: &mut Input, options: &Options) -> Result<Format, TraceError> {
    let mut wanted = 4 << 10;
    loop {
        input.want(wanted)?;
        let complete = input.ended() || input.full() || wanted >= WINDOW;
        match detect::detect(input.bytes(), complete, input.cut_off(), options)? {
            Some(format) => return Ok(format),
            None => wanted = (wanted * 4).min(WINDOW),
        }
    }
}

fn make(format: Format, input: Input, options: &Options) -> Result<Box<dyn Reader>, TraceError> {
    if format.is_text() {
        text::reader(format, input, options)
    } else {
        binary::reader(format, input, options)
    }
}

impl Trace {
    /// Appends at most `most` requests and says how many; 0 is the end.
    ///
    /// # Errors
    /// The trace cannot be read any further; the error names file and position.
    pub fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let begin = into.len();
        let result = self.inner.fill(into, most);
        for request in &into[begin..] {
            self.backwards += u64::from(request.time_ns < self.last_time_ns);
            self.last_time_ns = request.time_ns;
            self.beyond += u64::from(request.offset.checked_add(request.bytes).is_none());
        }
        self.requests += (into.len() - begin) as u64;
        self.losses.clone_from(self.inner.losses());
        self.losses.add_many(BACKWARDS, self.backwards, None);
        self.losses.add_many(BEYOND_THE_END, self.beyond, None);
        if let Some(byte) = self.progress.cut_off() {
            self.losses.add(CUT_OFF, Some(Position::Byte(byte)));
        }
        self.losses.add_many("names without room in the table: requests kept", self.names().refused(), None);
        result.map_err(|error| error.in_file(&self.name))
    }

    /// Replaces the content of `batch` by the next requests. False: there are none.
    ///
    /// # Errors
    /// As [`Trace::fill`].
    pub fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, TraceError> {
        batch.clear();
        Ok(self.fill(batch, BATCH)? > 0)
    }

    /// The file as the user named it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How it was compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Which step through the block layer is the request, where the trace has several.
    pub fn action(&self) -> Option<BlockAction> {
        has_steps(self.format).then_some(self.action)
    }

    /// Its address space. Some files say so at their beginning: valid after the first batch.
    pub fn kind(&self) -> Kind {
        self.inner.kind().unwrap_or(self.format.kind())
    }

    /// Whether it was recorded below a page cache, see [`Kind::below_page_cache`]; `None`: unknown.
    pub fn below_page_cache(&self) -> Option<bool> {
        self.kind().below_page_cache().filter(|_| self.inner.level_known())
    }

    /// Whether its requests have times.
    pub fn has_times(&self) -> bool {
        self.inner.has_times()
    }

    /// Whether its requests have sizes; where not, each counts as one byte.
    pub fn has_sizes(&self) -> bool {
        self.inner.has_sizes()
    }

    /// The names of objects, as far as they have come up.
    pub fn names(&self) -> &Names {
        self.inner.names()
    }

    /// Losses so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Requests handed out so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Share of the file that was read, 0 to 1, where its size is known.
    pub fn share_read(&self) -> Option<f64> {
        self.progress.share()
    }
}
