//! read, pread, preadv and preadv2: bytes from the descriptor into one buffer.
//!
//! A [`Reader`] is the same for all of them; a [`ReadCall`] is the system call. Both are monomorphised into one loop
//! body, so that a `pread` here is a bare `pread`.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::{Position, failed};
use crate::access::{Failure, Perform, Request};
use crate::buffer::Buffer;

/// A read call at an offset. A short count is judged by the caller.
pub trait ReadCall {
    /// Reads up to `into.len()` bytes at `offset`.
    fn read(&mut self, fd: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Failure>;
    /// See [`Perform::dropped`].
    fn dropped(&self) -> &[String] {
        &[]
    }
    /// See [`Perform::refused`].
    fn refused(&self) -> u64 {
        0
    }
}

/// Reads with one call a request into its own buffer.
#[derive(Debug)]
pub struct Reader<C> {
    fd: OwnedFd,
    buffer: Buffer,
    arrived: usize,
    call: C,
}

impl<C: ReadCall> Reader<C> {
    /// A reader of requests of up to `bytes` bytes; a longer one is cut to it.
    ///
    /// # Errors
    /// Fails when there is no memory for the buffer.
    pub fn new(fd: OwnedFd, bytes: usize, call: C) -> Result<Self, Problem> {
        Ok(Reader { fd, buffer: Buffer::new(bytes)?, arrived: 0, call })
    }
}

impl<C: ReadCall> Perform for Reader<C> {
    #[inline]
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let into = self.buffer.front_mut(request.bytes);
        self.arrived = self.call.read(&self.fd, into, request.offset)?;
        Ok(self.arrived)
    }

    fn data(&self) -> Option<&[u8]> {
        Some(self.buffer.front(self.arrived))
    }

    fn dropped(&self) -> &[String] {
        self.call.dropped()
    }

    fn refused(&self) -> u64 {
        self.call.refused()
    }
}

/// pread(2).
#[derive(Debug)]
pub struct Positioned {
    /// Whether the descriptor is O_DIRECT: explains an EINVAL.
    pub direct: bool,
}

impl ReadCall for Positioned {
    #[inline]
    fn read(&mut self, fd: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Failure> {
        retry_on_intr(|| rustix::io::pread(fd, &mut *into, offset))
            .map_err(|errno| failed("pread", self.direct, offset, errno))
    }
}

/// read(2) at the file position, after lseek(2) when the request is elsewhere.
#[derive(Debug)]
pub struct AtPosition {
    position: Position,
    direct: bool,
}

impl AtPosition {
    /// At position zero, where a fresh descriptor stands. `direct` explains an EINVAL.
    pub fn new(direct: bool) -> Self {
        AtPosition { position: Position::default(), direct }
    }
}

impl ReadCall for AtPosition {
    #[inline]
    fn read(&mut self, fd: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Failure> {
        self.position.seek(fd, offset)?;
        let bytes = retry_on_intr(|| rustix::io::read(fd, &mut *into))
            .map_err(|errno| failed("read", self.direct, offset, errno))?;
        self.position.advance(bytes);
        Ok(bytes)
    }
}

/// preadv(2) into four equal parts of the buffer (the last one takes the remainder).
#[derive(Debug)]
pub struct InFour {
    /// Whether the descriptor is O_DIRECT: explains an EINVAL.
    pub direct: bool,
}

impl ReadCall for InFour {
    #[inline]
    fn read(&mut self, fd: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Failure> {
        let quarter = into.len() / 4;
        let (first, rest) = into.split_at_mut(quarter);
        let (second, rest) = rest.split_at_mut(quarter);
        let (third, fourth) = rest.split_at_mut(quarter);
        let mut parts = [first, second, third, fourth].map(IoSliceMut::new);
        retry_on_intr(|| rustix::io::preadv(fd, &mut parts, offset))
            .map_err(|errno| failed("preadv", self.direct, offset, errno))
    }
}

/// RWF_DONTCACHE (Linux 6.14), which rustix does not name yet.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// preadv2(2) with a flag. A flag that kernel or file system refuses is dropped for good and reported.
#[derive(Debug)]
pub struct Flagged {
    flags: ReadWriteFlags,
    name: &'static str,
    direct: bool,
    dropped: Vec<String>,
    refused: u64,
}

impl Flagged {
    /// Without flags. `direct` explains an EINVAL.
    pub fn plain(direct: bool) -> Self {
        Flagged { flags: ReadWriteFlags::empty(), name: "", direct, dropped: Vec::new(), refused: 0 }
    }

    /// RWF_NOWAIT: what is not in the cache counts as refused and is then read blocking.
    pub fn nowait(direct: bool) -> Self {
        Flagged { flags: ReadWriteFlags::NOWAIT, name: "RWF_NOWAIT", ..Flagged::plain(direct) }
    }

    /// RWF_DONTCACHE: read through the cache and drop behind.
    pub fn dontcache(direct: bool) -> Self {
        Flagged { flags: DONTCACHE, name: "RWF_DONTCACHE", ..Flagged::plain(direct) }
    }

    #[cold]
    fn drop_flag(&mut self, errno: Errno) {
        self.dropped.push(format!("{}: {}", self.name, std::io::Error::from(errno)));
        self.flags = ReadWriteFlags::empty();
    }

    /// Reads blocking what a RWF_NOWAIT call left out. A request that ends at the end of the file was not refused.
    fn finish(
        &mut self,
        fd: &OwnedFd,
        rest: &mut [u8],
        offset: u64,
        refused: bool,
    ) -> Result<usize, Failure> {
        let bytes = retry_on_intr(|| rustix::io::pread(fd, &mut *rest, offset))
            .map_err(|errno| failed("pread", self.direct, offset, errno))?;
        self.refused += u64::from(refused || bytes > 0);
        Ok(bytes)
    }
}

impl ReadCall for Flagged {
    #[inline]
    fn read(&mut self, fd: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Failure> {
        loop {
            match rustix::io::preadv2(fd, &mut [IoSliceMut::new(into)], offset, self.flags) {
                Ok(bytes) if bytes < into.len() && self.flags == ReadWriteFlags::NOWAIT => {
                    let rest = self.finish(fd, &mut into[bytes..], offset + bytes as u64, false)?;
                    return Ok(bytes + rest);
                }
                Ok(bytes) => return Ok(bytes),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.flags == ReadWriteFlags::NOWAIT => {
                    return self.finish(fd, into, offset, true);
                }
                Err(errno @ (Errno::OPNOTSUPP | Errno::INVAL)) if !self.flags.is_empty() => {
                    self.drop_flag(errno)
                }
                Err(errno) => return Err(failed("preadv2", self.direct, offset, errno)),
            }
        }
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    use iowhy_core::rng::Rng;

    use super::*;

    /// An odd length, so that the last request of every size is short.
    const LENGTH: usize = 300_001;

    fn file() -> (tempfile::NamedTempFile, Vec<u8>) {
        let mut content = Buffer::new(LENGTH).unwrap();
        content.fill(11);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_slice()).unwrap();
        file.as_file().sync_all().unwrap();
        (file, content.as_slice().to_vec())
    }

    fn reads_right<C: ReadCall>(fd: OwnedFd, content: &[u8], call: C) -> Reader<C> {
        const BLOCK: usize = 4096;
        let mut reader = Reader::new(fd, BLOCK, call).unwrap();
        let mut rng = Rng::new(5);
        let anywhere = (0..200).map(|_| rng.below((LENGTH / BLOCK + 2) as u64) * BLOCK as u64);
        let sequential = (0..10).map(|block| block * BLOCK as u64);
        for offset in sequential.chain(anywhere.collect::<Vec<_>>()) {
            let start = (offset as usize).min(LENGTH);
            let expected = &content[start..(start + BLOCK).min(LENGTH)];
            assert_eq!(reader.perform(Request { offset, bytes: BLOCK, write: false }), Ok(expected.len()));
            assert_eq!(reader.data().unwrap(), expected);
        }
        reader
    }

    #[test]
    fn every_call_brings_the_bytes_of_its_offset_and_is_short_at_the_end() {
        let (file, content) = file();
        let open = || OwnedFd::from(File::open(file.path()).unwrap());
        reads_right(open(), &content, Positioned { direct: false });
        reads_right(open(), &content, AtPosition::new(false));
        reads_right(open(), &content, InFour { direct: false });
        reads_right(open(), &content, Flagged::plain(false));
        reads_right(open(), &content, Flagged::dontcache(false));
        reads_right(open(), &content, Flagged::nowait(false));
    }

    #[test]
    fn direct_reads_bring_the_same_bytes() {
        let (file, content) = file();
        let opened = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
            .open(file.path());
        match opened {
            Ok(opened) => drop(reads_right(opened.into(), &content, Positioned { direct: true })),
            Err(error) => eprintln!("skipped: O_DIRECT cannot be opened in the temp directory: {error}"),
        }
    }

    #[test]
    fn a_sequential_run_never_seeks() {
        // A pipe cannot seek: any lseek would fail.
        let (read_end, write_end) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&write_end, &[9; 3000]).unwrap();
        let mut reader = Reader::new(read_end, 1000, AtPosition::new(false)).unwrap();
        for offset in [0, 1000, 2000] {
            assert_eq!(reader.perform(Request { offset, bytes: 1000, write: false }), Ok(1000));
        }
        let failure = reader.perform(Request { offset: 0, bytes: 1000, write: false }).unwrap_err();
        assert_eq!(failure, Failure::Io { call: "lseek", offset: 0, errno: Errno::SPIPE });
    }

    #[test]
    fn nowait_counts_what_was_not_cached_and_still_brings_it() {
        let (file, content) = file();
        let fd = OwnedFd::from(File::open(file.path()).unwrap());
        rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut reader = Reader::new(fd, 4096, Flagged::nowait(false)).unwrap();
        assert_eq!(reader.perform(Request { offset: 0, bytes: 4096, write: false }), Ok(4096));
        assert_eq!(reader.data().unwrap(), &content[..4096]);
        match (reader.refused(), reader.dropped()) {
            (0, []) => eprintln!("skipped: the file stayed in the cache (memory-backed temp directory)"),
            (refused, dropped) => {
                assert_eq!((refused == 1) as usize + dropped.len(), 1, "refused or dropped")
            }
        }
        // What was just read is cached; neither a second time nor the end of the file is a refusal.
        for (offset, expected) in [(0, 4096), (LENGTH - 1, 1), (LENGTH, 0)] {
            let request = Request { offset: offset as u64, bytes: 4096, write: false };
            assert_eq!(reader.perform(request), Ok(expected));
            let refused = reader.refused();
            assert_eq!(reader.perform(request), Ok(expected));
            assert_eq!(reader.refused(), refused, "offset {offset}");
        }
    }

    #[test]
    fn a_refused_flag_is_dropped_once_and_reported() {
        let (file, content) = file();
        let fd = OwnedFd::from(File::open(file.path()).unwrap());
        // No kernel knows this flag, so that every kernel refuses it as an old one refuses RWF_DONTCACHE.
        let unknown = Flagged {
            flags: ReadWriteFlags::from_bits_retain(1 << 30),
            name: "RWF_X",
            ..Flagged::plain(false)
        };
        let reader = reads_right(fd, &content, unknown);
        assert!(matches!(reader.dropped(), [one] if one.starts_with("RWF_X: ")), "{:?}", reader.dropped());
        assert_eq!(reader.refused(), 0);
    }

    #[test]
    fn a_closed_door_is_a_failure_with_its_call_and_offset() {
        let (file, _) = file();
        let write_only = File::options().write(true).open(file.path()).unwrap();
        let mut reader = Reader::new(write_only.into(), 512, Positioned { direct: false }).unwrap();
        let failure = reader.perform(Request { offset: 1024, bytes: 512, write: false }).unwrap_err();
        assert_eq!(failure, Failure::Io { call: "pread", offset: 1024, errno: Errno::BADF });
    }
}
