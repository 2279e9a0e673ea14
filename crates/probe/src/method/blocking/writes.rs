//! write, pwrite with and without a sync, and fallocate: bytes from one buffer, or room for them.
//!
//! A [`Writer`] is the same for all of them; a [`WriteCall`] is the system call and what makes it durable.
//! The content is incompressible.

use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{Position, failed, source};
use crate::access::{Failure, Perform, Request};
use crate::buffer::Buffer;

/// A write call. A short count is judged by the caller.
pub trait WriteCall {
    /// Writes the front of `source` as the request asks and returns the bytes that arrived.
    fn write(&mut self, fd: &OwnedFd, source: &Buffer, request: Request) -> Result<usize, Failure>;
    /// See [`Perform::finish`].
    fn finish(&mut self, _fd: &OwnedFd) -> Result<(), Failure> {
        Ok(())
    }
    /// See [`Perform::dropped`].
    fn dropped(&self) -> &[String] {
        &[]
    }
}

/// Writes with one call a request from its own buffer.
#[derive(Debug)]
pub struct Writer<C> {
    fd: OwnedFd,
    source: Buffer,
    call: C,
}

impl<C: WriteCall> Writer<C> {
    /// A writer of requests of up to `bytes` bytes; a longer one is cut to it.
    ///
    /// # Errors
    /// Fails when there is no memory for the buffer.
    pub fn new(fd: OwnedFd, bytes: usize, seed: u64, call: C) -> Result<Self, Problem> {
        Ok(Writer { fd, source: source(bytes, seed)?, call })
    }
}

impl<C: WriteCall> Perform for Writer<C> {
    #[inline]
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.call.write(&self.fd, &self.source, request)
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.call.finish(&self.fd)
    }

    fn dropped(&self) -> &[String] {
        self.call.dropped()
    }
}

/// How each write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Nothing (or O_DSYNC on the descriptor, which is part of the write).
    No,
    /// fsync(2): data and all metadata.
    All,
    /// fdatasync(2): data and the metadata needed to read it.
    Data,
    /// One fdatasync(2) for all writes of a slice, at its end.
    DataAtEnd,
}

/// pwrite(2), and a sync after it if asked.
#[derive(Debug)]
pub struct WritePositioned {
    sync: Durable,
    direct: bool,
}

impl WritePositioned {
    /// With this sync. `direct` explains an EINVAL.
    pub fn new(sync: Durable, direct: bool) -> Self {
        WritePositioned { sync, direct }
    }
}

impl WriteCall for WritePositioned {
    #[inline]
    fn write(&mut self, fd: &OwnedFd, source: &Buffer, request: Request) -> Result<usize, Failure> {
        let Request { offset, bytes, .. } = request;
        let written = retry_on_intr(|| rustix::io::pwrite(fd, source.front(bytes), offset))
            .map_err(|errno| failed("pwrite", self.direct, offset, errno))?;
        match self.sync {
            Durable::No | Durable::DataAtEnd => {}
            Durable::All => retry_on_intr(|| rustix::fs::fsync(fd)).map_err(Failure::io("fsync", offset))?,
            Durable::Data => {
                retry_on_intr(|| rustix::fs::fdatasync(fd)).map_err(Failure::io("fdatasync", offset))?
            }
        }
        Ok(written)
    }

    fn finish(&mut self, fd: &OwnedFd) -> Result<(), Failure> {
        match self.sync {
            Durable::DataAtEnd => {
                retry_on_intr(|| rustix::fs::fdatasync(fd)).map_err(Failure::io("fdatasync", 0))
            }
            Durable::No | Durable::All | Durable::Data => Ok(()),
        }
    }
}

/// write(2) at the file position, after lseek(2) when the request is elsewhere.
#[derive(Debug)]
pub struct WriteAtPosition {
    position: Position,
    direct: bool,
}

impl WriteAtPosition {
    /// At position zero, where a fresh descriptor stands. `direct` explains an EINVAL.
    pub fn new(direct: bool) -> Self {
        WriteAtPosition { position: Position::default(), direct }
    }
}

impl WriteCall for WriteAtPosition {
    #[inline]
    fn write(&mut self, fd: &OwnedFd, source: &Buffer, request: Request) -> Result<usize, Failure> {
        let Request { offset, bytes, .. } = request;
        self.position.seek(fd, offset)?;
        let written = retry_on_intr(|| rustix::io::write(fd, source.front(bytes)))
            .map_err(|errno| failed("write", self.direct, offset, errno))?;
        self.position.advance(written);
        Ok(written)
    }
}

/// fallocate(2): gives the range's blocks back (PUNCH_HOLE) and allocates them again.
///
/// Allocating an allocated range is nothing, so that without the punch only the first pass over a region would
/// measure anything. What is measured is therefore the pair, the same in every pass. The range reads as zeros
/// afterwards and its blocks are unwritten extents: write the file again before reading it from a device.
#[derive(Debug, Default)]
pub struct Allocate {
    dropped: Vec<String>,
}

impl WriteCall for Allocate {
    fn write(&mut self, fd: &OwnedFd, _source: &Buffer, request: Request) -> Result<usize, Failure> {
        let Request { offset, bytes, .. } = request;
        let call = |mode| retry_on_intr(|| rustix::fs::fallocate(fd, mode, offset, bytes as u64));
        if self.dropped.is_empty() {
            match call(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE) {
                Ok(()) => {}
                Err(errno @ (Errno::OPNOTSUPP | Errno::INVAL)) => self.dropped.push(format!(
                    "FALLOC_FL_PUNCH_HOLE: {}; only the first pass over the region allocates",
                    std::io::Error::from(errno)
                )),
                Err(errno) => {
                    return Err(Failure::Io { call: "fallocate (FALLOC_FL_PUNCH_HOLE)", offset, errno });
                }
            }
        }
        call(FallocateFlags::KEEP_SIZE).map_err(Failure::io("fallocate", offset))?;
        Ok(bytes)
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const BLOCK: usize = 4096;

    fn writes_right<C: WriteCall>(call: C) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = File::options().write(true).open(file.path()).unwrap();
        let mut writer = Writer::new(opened.into(), BLOCK, 21, call).unwrap();
        // Elsewhere, back, and on: block 1 stays a hole.
        for block in [2, 0, 3] {
            let request = Request { offset: block * BLOCK as u64, bytes: BLOCK, write: true };
            assert_eq!(writer.perform(request), Ok(BLOCK));
        }
        let expected = source(BLOCK, 21).unwrap();
        let content = std::fs::read(file.path()).unwrap();
        assert_eq!(content.len(), 4 * BLOCK);
        for (block, found) in content.chunks(BLOCK).enumerate() {
            if block == 1 {
                assert!(found.iter().all(|&b| b == 0));
            } else {
                assert_eq!(found, expected.as_slice());
            }
        }
    }

    #[test]
    fn every_call_puts_the_bytes_where_the_request_says() {
        writes_right(WritePositioned::new(Durable::No, false));
        writes_right(WritePositioned::new(Durable::All, false));
        writes_right(WritePositioned::new(Durable::Data, false));
        writes_right(WritePositioned::new(Durable::DataAtEnd, false));
        writes_right(WriteAtPosition::new(false));
    }

    #[test]
    fn a_sync_that_cannot_be_done_fails_under_its_own_name() {
        // A pipe takes neither pwrite nor fsync; /dev/full takes pwrite and answers ENOSPC.
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let mut writer =
            Writer::new(full().into(), 512, 1, WritePositioned::new(Durable::All, false)).unwrap();
        let failure = writer.perform(Request { offset: 0, bytes: 512, write: true }).unwrap_err();
        assert_eq!(failure, Failure::Io { call: "pwrite", offset: 0, errno: Errno::NOSPC });
        // /dev/null takes pwrite and has no fsync.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut writer =
            Writer::new(null.into(), 512, 1, WritePositioned::new(Durable::Data, false)).unwrap();
        let failure = writer.perform(Request { offset: 0, bytes: 512, write: true }).unwrap_err();
        let refused = Failure::Io { call: "fdatasync", offset: 0, errno: Errno::INVAL };
        assert_eq!(failure, refused);
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut writer =
            Writer::new(null.into(), 512, 1, WritePositioned::new(Durable::DataAtEnd, false)).unwrap();
        assert_eq!(writer.perform(Request { offset: 0, bytes: 512, write: true }), Ok(512));
        assert_eq!(writer.finish(), Err(refused));
    }

    #[test]
    fn allocation_makes_room_again_and_again_and_keeps_the_size() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1u8; 4 * BLOCK]).unwrap();
        let opened = File::options().write(true).open(file.path()).unwrap();
        let mut writer = Writer::new(opened.into(), 0, 1, Allocate::default()).unwrap();
        for _ in 0..3 {
            match writer.perform(Request { offset: BLOCK as u64, bytes: 2 * BLOCK, write: true }) {
                Err(Failure::Io { errno: Errno::OPNOTSUPP, .. }) => {
                    return eprintln!("skipped: the temp directory's file system has no fallocate");
                }
                result => assert_eq!(result, Ok(2 * BLOCK)),
            }
        }
        let found = std::fs::metadata(file.path()).unwrap();
        assert_eq!(found.len(), 4 * BLOCK as u64);
        assert!(found.blocks() * 512 >= 2 * BLOCK as u64, "allocated again after the hole");
        if writer.dropped().is_empty() {
            let content = std::fs::read(file.path()).unwrap();
            assert!(content[BLOCK..3 * BLOCK].iter().all(|&b| b == 0), "a hole was punched");
            assert!(content[..BLOCK].iter().all(|&b| b == 1), "and nothing beside it");
        }
    }
}
