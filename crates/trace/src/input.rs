//! Bytes of a trace: a file or stdin, decompressed by its magic number, behind one window that is refilled in place.
//!
//! Invariant: memory is the window ([`WINDOW`]) and the decompressor's (at most 128 MiB for a zstd frame; a frame
//! that needs more is refused), for any size of the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{Position, TraceError};

/// Bytes that are looked at together; also the longest line and the most that detection sees.
pub(crate) const WINDOW: usize = 256 << 10;

/// Bytes of the longest magic number.
const MAGIC: usize = 10;

/// Bytes that a decompressor is fed with at a time.
const CHUNK: usize = 64 << 10;

/// How a file was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one member or more.
    Gzip,
    /// Zstandard, one frame or more.
    Zstd,
}

impl Compression {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// A window over the bytes of a trace.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes before `start`, since the beginning of the trace.
    passed: u64,
    ended: bool,
    compression: Compression,
    progress: Progress,
}

/// How far a file was read.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
    /// Where a compressed file was cut off, in bytes of the trace; `u64::MAX`: nowhere.
    cut_off: Arc<AtomicU64>,
}

impl Progress {
    /// The byte of the trace at which its compressed file was cut off.
    pub(crate) fn cut_off(&self) -> Option<u64> {
        Some(self.cut_off.load(Ordering::Relaxed)).filter(|byte| *byte != u64::MAX)
    }

    /// Share of the file that was read, 0 to 1, where its size is known.
    pub(crate) fn share(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.read.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("passed", &self.passed)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

/// Counts the bytes read of the file itself, for progress.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Input {
    /// Opens a file, or stdin for `-`.
    ///
    /// # Errors
    /// A file that cannot be opened, is a directory, or whose compression is broken from the start.
    pub(crate) fn open(path: &Path) -> Result<Input, TraceError> {
        let name = path.display().to_string();
        if path.as_os_str() == "-" {
            return Input::new(Box::new(io::stdin()), None).map_err(|error| error.in_file("-"));
        }
        let cannot = |error: io::Error| {
            TraceError::new(format!("cannot open it: {error}"))
                .hint("name a trace file, or `-` for stdin")
                .in_file(&name)
        };
        let file = File::open(path).map_err(cannot)?;
        let about = file.metadata().map_err(cannot)?;
        if about.is_dir() {
            return Err(TraceError::new("it is a directory").hint("name a trace file in it").in_file(&name));
        }
        let total = about.is_file().then_some(about.len());
        Input::new(Box::new(file), total).map_err(|error| error.in_file(&name))
    }

    /// Looks at the first bytes and puts the fitting decompressor in between. `total`: bytes that will come, if known.
    ///
    /// # Errors
    /// Reading fails, or the compression is broken from the start.
    pub(crate) fn new(source: Box<dyn Read + Send>, total: Option<u64>) -> Result<Input, TraceError> {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: source, read: Arc::clone(&read) };
        let mut head = Vec::with_capacity(MAGIC);
        let mut counted: Box<dyn Read + Send> = Box::new(counted);
        counted
            .by_ref()
            .take(MAGIC as u64)
            .read_to_end(&mut head)
            .map_err(|error| TraceError::new(format!("cannot read it: {error}")))?;
        let compression = match head.as_slice() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame may come first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return Err(not_read("xz", "xz -dc")),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59] => {
                return Err(not_read("bzip2", "bzip2 -dc"));
            }
            [0x04, 0x22, 0x4d, 0x18, ..] => return Err(not_read("lz4", "lz4 -dc")),
            _ => Compression::None,
        };
        let whole = io::Cursor::new(head).chain(counted);
        let source: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole))),
            Compression::Zstd => Box::new(Zstd::new(BufReader::with_capacity(CHUNK, whole))),
        };
        Ok(Input {
            source,
            window: vec![0; WINDOW],
            start: 0,
            end: 0,
            passed: 0,
            ended: false,
            compression,
            progress: Progress { read, total, cut_off: Arc::new(AtomicU64::new(u64::MAX)) },
        })
    }

    /// How the file was compressed.
    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// Progress, readable from other threads.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Content of the window.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.window[self.start..self.end]
    }

    /// Where the window begins, in bytes of the decompressed trace.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.passed
    }

    /// Whether nothing will come behind the window.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Whether the window can take no more.
    pub(crate) fn full(&self) -> bool {
        self.end - self.start == self.window.len()
    }

    /// Moves the beginning of the window on.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.passed += bytes as u64;
    }

    /// Reads more into the window. False: nothing came, because the trace has ended or the window is full.
    ///
    /// # Errors
    /// Reading or decompressing fails; the error has the byte position.
    pub(crate) fn more(&mut self) -> Result<bool, TraceError> {
        if self.ended || self.full() {
            return Ok(false);
        }
        if self.start > 0 {
            self.window.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.source.read(&mut self.window[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(n) => {
                    self.end += n;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return self.broken(&error);
                }
            }
        }
    }

    /// A premature end of the file ends a text or records and is reported. Everything else
    /// is an error in iowhy's words: those of the decompressors are for programmers.
    fn broken(&mut self, error: &io::Error) -> Result<bool, TraceError> {
        let byte = self.passed + (self.end - self.start) as u64;
        let what = match self.compression {
            Compression::None => format!("cannot read it: {error}"),
            _ if byte > 0 && ends_early(error) => {
                self.progress.cut_off.store(byte, Ordering::Relaxed);
                return Ok(false);
            }
            other if ends_early(error) => format!("its {} compression is cut off at once", other.id()),
            other => format!("its {} compression is damaged here", other.id()),
        };
        let error = TraceError::new(what).at(Position::Byte(byte));
        Err(match self.compression {
            Compression::None => error,
            Compression::Gzip => error.hint("`gzip -t FILE` checks it; copy or download it again"),
            Compression::Zstd => error.hint("`zstd -t FILE` checks it; copy or download it again"),
        })
    }

    /// Whether the compressed file was cut off: then the last line or record may be a part of one.
    pub(crate) fn cut_off(&self) -> bool {
        self.progress.cut_off().is_some()
    }

    /// Has at least `bytes` in the window, if the trace holds them.
    ///
    /// # Errors
    /// As [`Input::more`].
    pub(crate) fn want(&mut self, bytes: usize) -> Result<&[u8], TraceError> {
        while self.end - self.start < bytes && self.more()? {}
        Ok(self.bytes())
    }
}

/// A compression that is known by its magic number, and not read.
fn not_read(name: &str, command: &str) -> TraceError {
    TraceError::new(format!("it is compressed with {name}, which is not read here"))
        .hint(format!("decompress it first, as in `{command} FILE | iowhy trace stat -`"))
}

/// Whether an error means that the file ended too early, by any of its causes.
fn ends_early(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(io) = one.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::UnexpectedEof {
                return true;
            }
            // An I/O error keeps the wrapped error as its inner value, not as its source.
            if let Some(inside) = io.get_ref() {
                cause = Some(inside);
                continue;
            }
        }
        cause = one.source();
    }
    false
}

/// Zstandard frames one after the other, skippable ones skipped.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        Zstd { source, decoder: FrameDecoder::new(), inside: false }
    }

    /// Begins the next frame. False: there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.source.by_ref().take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, step).map_err(io::Error::other)?;
            }
            let n = self.decoder.read(into)?;
            if n > 0 || into.is_empty() {
                return Ok(n);
            }
            if self.decoder.is_finished() {
                let (stored, computed) =
                    (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
                if stored.is_some() && computed.is_some() && stored != computed {
                    return Err(io::Error::other("the checksum of a frame is wrong"));
                }
                self.inside = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn all(bytes: Vec<u8>) -> Result<Vec<u8>, TraceError> {
        let mut input = Input::new(Box::new(io::Cursor::new(bytes)), None)?;
        let mut out = Vec::new();
        loop {
            let n = input.want(1)?.len();
            out.extend_from_slice(input.bytes());
            input.pass(n);
            if n == 0 {
                assert_eq!(input.position(), out.len() as u64);
                return Ok(out);
            }
        }
    }

    fn text() -> Vec<u8> {
        (0..200_000u32).flat_map(|i| format!("{}\n", i % 977).into_bytes()).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn compression_is_seen_by_its_magic_number() {
        let text = text();
        assert_eq!(all(text.clone()).unwrap(), text);
        assert_eq!(all(gzip(&text)).unwrap(), text);
        assert_eq!(all(zstd(&text)).unwrap(), text);
        assert_eq!(all(Vec::new()).unwrap(), b"");
        assert_eq!(all(b"a".to_vec()).unwrap(), b"a");
    }

    #[test]
    fn several_members_and_frames_follow_each_other() {
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(all(two).unwrap(), b"one two");
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'x', b'y', b'z'];
        let frames = [&skippable[..], &zstd(b"one "), &skippable, &zstd(b"two"), &skippable].concat();
        assert_eq!(all(frames).unwrap(), b"one two");
    }

    #[test]
    fn what_is_cut_off_is_read_so_far_and_marked() {
        for packed in [gzip(&text()), zstd(&text())] {
            let half = packed[..packed.len() / 2].to_vec();
            let mut input = Input::new(Box::new(io::Cursor::new(half)), None).unwrap();
            let mut out = Vec::new();
            loop {
                let n = input.want(1).unwrap().len();
                out.extend_from_slice(input.bytes());
                input.pass(n);
                if n == 0 {
                    break;
                }
            }
            assert!(!out.is_empty() && text().starts_with(&out));
            assert_eq!((input.cut_off(), input.progress().cut_off()), (true, Some(out.len() as u64)));
        }
        // Of this nothing can be read.
        assert!(all(vec![0x28, 0xb5, 0x2f, 0xfd]).unwrap_err().what.contains("cut off"));
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let mut packed = gzip(&text());
        let end = packed.len();
        // The checksum at the end.
        packed[end - 6] ^= 0xff;
        let error = all(packed).unwrap_err();
        assert!(error.what.contains("damaged") && error.hint.is_some(), "{error}");
        assert!(matches!(error.place, Some(Position::Byte(_))));
    }

    #[test]
    fn other_compressions_are_named() {
        for (magic, name) in [
            (&b"\xfd7zXZ\0\0\x04\xe6\xd6"[..], "xz"),
            (b"BZh91AY&SY\x01", "bzip2"),
            (b"\x04\x22\x4d\x18\x64\x40", "lz4"),
        ] {
            let error = all(magic.to_vec()).unwrap_err();
            assert!(error.what.contains(name) && error.hint.is_some(), "{error}");
        }
        assert_eq!(all(b"BZh9".to_vec()).unwrap(), b"BZh9");
    }
}
