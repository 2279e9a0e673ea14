//! Requests into trace files of other tools. Losses of a format are counted and reported.
//!
//! [`Writer`] streams; memory is bounded. Formats that hold the next use of each object get it in a second pass over the
//! file that was written, backwards, see `next_use`; so they need a file, and stdout gets it from a temporary one.

mod binary;
mod carry;
mod next_use;
mod text;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;
use iowhy_linux::names::{Destination, Placed, temporary};

use crate::error::TraceError;
use crate::format::{Format, Kind};
use crate::losses::Losses;
use crate::names::Names;

/// Bytes that are collected before they are written.
const CHUNK: usize = 256 << 10;

/// One format: bytes for requests.
trait Encoder {
    /// Bytes before the first request.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// One request. True: it is in the file.
    fn request(&mut self, request: &Request, names: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool;

    /// Bytes after the last request.
    fn end(&mut self, _out: &mut Vec<u8>) {}

    /// Where the ids and next uses are, if the format has them.
    fn next_uses(&self) -> Option<next_use::Layout> {
        None
    }

    /// The header once all is known, written over the first one.
    fn header(&self, _distinct: next_use::Distinct) -> Option<Vec<u8>> {
        None
    }
}

fn encoder(format: Format, kind: Kind) -> Option<Box<dyn Encoder>> {
    Some(match format {
        Format::Csv => Box::new(text::Csv::new(kind)),
        Format::OracleGeneral => Box::new(binary::OracleGeneral::new(kind)),
        Format::Lcs => Box::new(binary::Lcs::new(kind)),
        Format::Vscsi2 => Box::new(binary::Vscsi::default()),
        Format::FioIolog2 => Box::new(text::Iolog::new(2)),
        Format::FioIolog3 => Box::new(text::Iolog::new(3)),
        Format::DiskSim => Box::new(text::DiskSim),
        Format::Txt => Box::new(text::Ids::new(kind)),
        _ => return None,
    })
}

/// Where the bytes go.
enum Target {
    /// A file that the user named; it gets its name when it is complete.
    Named(Option<Destination>),
    /// An open file of the caller, written at its position.
    Given(File),
    /// Stdout as the bytes come.
    Stdout(io::Stdout),
    /// Stdout at the end.
    Spooled(File),
}

impl Target {
    fn file(&mut self) -> Option<&mut File> {
        match self {
            Target::Named(place) => place.as_mut()?.file().ok(),
            Target::Given(file) | Target::Spooled(file) => Some(file),
            Target::Stdout(_) => None,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Target::Stdout(stdout) => stdout.write_all(bytes),
            _ => self.file().ok_or(io::ErrorKind::NotConnected)?.write_all(bytes),
        }
    }
}

/// Writes a trace.
pub struct Writer {
    encoder: Box<dyn Encoder>,
    target: Target,
    name: String,
    out: Vec<u8>,
    losses: Losses,
    requests: u64,
    bytes: u64,
    /// The reader of stdout closed the pipe.
    abandoned: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// Result of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Requests in the file.
    pub requests: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Losses of the format.
    pub losses: Losses,
}

/// Begins a trace file, or stdout for `-`. `kind`: address space of the requests. `overwrite`: replace a file that is there.
///
/// # Errors
/// A refusal when the format cannot be written, the file exists and may not be replaced, is `input` itself or is no file
/// that can be written.
pub fn create(
    path: &Path,
    format: Format,
    kind: Kind,
    overwrite: bool,
    input: &Path,
) -> Result<Writer, Problem> {
    let encoder = encoder(format, kind).ok_or_else(|| not_writable(format))?;
    if path.as_os_str() == "-" {
        let spooled = encoder.next_uses().is_some();
        let target = match spooled {
            true => Target::Spooled(temporary().map_err(|error| {
                Problem::refused(format!("cannot make a temporary file for `{}`: {error}", format.id()))
                    .hint("name an output file, or set TMPDIR to a directory that you may write to")
            })?),
            false => Target::Stdout(io::stdout()),
        };
        return Ok(Writer::new(encoder, target, "stdout".to_owned()));
    }
    let name = path.display().to_string();
    if let (Ok(own), Ok(source)) = (std::fs::metadata(path), std::fs::metadata(input)) {
        if (own.dev(), own.ino()) == (source.dev(), source.ino()) {
            return Err(Problem::refused(format!("`{name}` is the input itself: writing would destroy it"))
                .hint("name another file"));
        }
        if !own.is_file() {
            return Err(Problem::refused(format!("`{name}` is not an ordinary file"))
                .hint("name a file, or `-` for stdout"));
        }
    }
    let mut place =
        Destination::open(&name, path, overwrite).map_err(|problem| match path.symlink_metadata() {
            Ok(there) if !overwrite && there.is_file() => {
                problem.hint("name another file, or say `--force` to replace it")
            }
            _ => problem,
        })?;
    place.begin().map_err(|error| Problem::refused(format!("cannot write `{name}`: {error}")))?;
    Ok(Writer::new(encoder, Target::Named(Some(place)), name))
}

/// Begins a trace in a file of the caller's, which must be open for reading and writing and is written from the
/// beginning.
///
/// # Errors
/// A refusal when the format cannot be written.
pub fn into_file(file: File, format: Format, kind: Kind) -> Result<Writer, Problem> {
    let encoder = encoder(format, kind).ok_or_else(|| not_writable(format))?;
    Ok(Writer::new(encoder, Target::Given(file), "the output".to_owned()))
}

fn not_writable(format: Format) -> Problem {
    let list: Vec<&str> = Format::all().filter(|format| format.writable()).map(Format::id).collect();
    Problem::refused(format!("`{}` can be read, but not written", format.id()))
        .hint(format!("formats that can be written: {}", list.join(", ")))
}

impl Writer {
    fn new(mut encoder: Box<dyn Encoder>, target: Target, name: String) -> Writer {
        let mut out = Vec::with_capacity(CHUNK + 4096);
        encoder.begin(&mut out);
        Writer {
            encoder,
            target,
            name,
            out,
            losses: Losses::default(),
            requests: 0,
            bytes: 0,
            abandoned: false,
        }
    }

    /// Writes requests; `names` are those of their trace.
    ///
    /// # Errors
    /// The output cannot be written, e.g. on a full disk.
    pub fn write(&mut self, batch: &[Request], names: &Names) -> Result<(), TraceError> {
        for request in batch {
            let written = self.encoder.request(request, names, &mut self.out, &mut self.losses);
            self.requests += u64::from(written);
            if self.out.len() >= CHUNK {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let result = self.target.write(&self.out);
        self.bytes += self.out.len() as u64;
        self.out.clear();
        self.settle(result)
    }

    /// A closed stdout is no error: its reader has enough.
    fn settle(&mut self, result: io::Result<()>) -> Result<(), TraceError> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.abandoned = true;
                Ok(())
            }
            other => other.map_err(|error| self.failed(&error)),
        }
    }

    /// Whether the reader of stdout closed the pipe, so that nothing more needs to be written.
    pub fn abandoned(&self) -> bool {
        self.abandoned
    }

    fn failed(&self, error: &io::Error) -> TraceError {
        TraceError::new(format!("cannot write it: {error}")).in_file(&self.name)
    }

    /// Completes the file. Without this a file that was made is removed again.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<Written, TraceError> {
        self.encoder.end(&mut self.out);
        self.flush()?;
        let completed = self.complete();
        self.settle(completed)?;
        Ok(Written { requests: self.requests, bytes: self.bytes, losses: std::mem::take(&mut self.losses) })
    }

    fn complete(&mut self) -> io::Result<()> {
        if let (Some(layout), Some(file)) = (self.encoder.next_uses(), self.target.file()) {
            let distinct = next_use::fill(file, layout, self.requests)?;
            if let Some(header) = self.encoder.header(distinct) {
                file.rewind()?;
                file.write_all(&header)?;
            }
        }
        match &mut self.target {
            Target::Named(place) => {
                if let Some(place) = place.take() {
                    return name(place);
                }
            }
            Target::Given(_) => {}
            Target::Stdout(stdout) => stdout.flush()?,
            Target::Spooled(file) => {
                file.rewind()?;
                let mut stdout = io::stdout();
                io::copy(file, &mut stdout)?;
                stdout.flush()?;
            }
        }
        Ok(())
    }
}

/// Gives a complete trace its name.
fn name(place: Destination) -> io::Result<()> {
    match place.finish() {
        Ok(Placed::Named) => Ok(()),
        Ok(Placed::Beside(path)) => Err(io::Error::other(format!(
            "something else was written there meanwhile, and stays; the trace is in `{}`",
            path.display()
        ))),
        Err(problem) => Err(io::Error::other(problem.message)),
    }
}
