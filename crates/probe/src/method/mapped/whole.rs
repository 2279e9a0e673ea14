//! One mapping of the whole region, made when the method is opened and unmapped at the end of the timed part (unmapping
//! costs by the page, mapping a microsecond or two): loads and stores.

use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use rustix::io::Errno;
use rustix::mm::Advice;

use super::mapping::{Mapping, Purpose};
use crate::access::{Failure, Perform, Request};
use crate::buffer::Buffer;
use crate::fault;
use crate::sigbus::Guard;

/// A region mapped once and guarded.
#[derive(Debug)]
struct Region {
    // The guard goes first, so that it never covers addresses that are no longer ours.
    guard: Guard,
    mapping: Mapping,
}

impl Region {
    fn new(
        fd: &OwnedFd,
        offset: u64,
        bytes: u64,
        purpose: Purpose,
    ) -> Result<Result<Region, Errno>, Problem> {
        let guard = fault::guard()?;
        Ok(Mapping::new(fd, offset, bytes, purpose).map(|mapping| {
            guard.cover(mapping.start(), mapping.bytes());
            Region { guard, mapping }
        }))
    }
}

/// The failure of a request that is not inside the region.
#[cold]
fn outside(offset: u64) -> Failure {
    Failure::Io { call: "mmap access outside the region", offset, errno: Errno::INVAL }
}

/// Loads one byte of each page of a request.
#[derive(Debug)]
pub struct Whole {
    /// `None` once the slice has ended.
    region: Option<Region>,
    last: Request,
}

impl Whole {
    /// Maps the region and gives the advice, if any.
    ///
    /// # Errors
    /// The outer error when no SIGBUS guard can be had, the inner one when the kernel does not map or advise.
    pub fn new(
        fd: OwnedFd,
        offset: u64,
        bytes: u64,
        advice: Option<Advice>,
    ) -> Result<Result<Whole, Errno>, Problem> {
        Ok(Region::new(&fd, offset, bytes, Purpose::Load)?.and_then(|region| {
            if let Some(advice) = advice {
                let (start, bytes) = (region.mapping.start(), region.mapping.bytes());
                // SAFETY: the range is the mapping; RANDOM and SEQUENTIAL change no content.
                unsafe { rustix::mm::madvise(start.cast(), bytes, advice) }?;
            }
            Ok(Whole { region: Some(region), last: Request { offset, bytes: 0, write: false } })
        }))
    }
}

impl Perform for Whole {
    #[inline]
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let Request { offset, bytes, .. } = request;
        let Some(region) = &self.region else { return Err(outside(offset)) };
        region.mapping.range(offset, bytes).ok_or_else(|| outside(offset))?.load_pages();
        self.last = request;
        if region.guard.vanished() {
            return Err(Failure::Vanished { offset });
        }
        Ok(bytes)
    }

    fn data(&self) -> Option<&[u8]> {
        Some(self.region.as_ref()?.mapping.range(self.last.offset, self.last.bytes)?.as_slice())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.region = None;
        Ok(())
    }
}

/// Stores a request into the mapping and writes its pages to the file (msync(2) MS_SYNC).
#[derive(Debug)]
pub struct Store {
    region: Region,
    source: Buffer,
}

impl Store {
    /// Maps the region for writing and fills a source buffer of one block from the seed.
    ///
    /// # Errors
    /// The outer error when there is no memory or no SIGBUS guard, the inner one when the kernel does not map.
    pub fn new(
        fd: OwnedFd,
        offset: u64,
        bytes: u64,
        block_bytes: u64,
        seed: u64,
    ) -> Result<Result<Store, Errno>, Problem> {
        let mut source = Buffer::new(usize::try_from(block_bytes).unwrap_or(usize::MAX))?;
        source.fill(seed);
        Ok(Region::new(&fd, offset, bytes, Purpose::Store)?.map(|region| Store { region, source }))
    }
}

impl Perform for Store {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let offset = request.offset;
        let source = self.source.front(request.bytes);
        let range = self.region.mapping.range(offset, source.len()).ok_or_else(|| outside(offset))?;
        range.store(source);
        let synced = range.sync();
        if self.region.guard.vanished() {
            return Err(Failure::Vanished { offset });
        }
        synced.map_err(Failure::io("msync", offset))?;
        Ok(source.len())
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const BLOCK: usize = 65_536;
    const BLOCKS: u64 = 4;

    fn file() -> (tempfile::NamedTempFile, Buffer) {
        let mut content = Buffer::new(BLOCK * BLOCKS as usize).unwrap();
        content.fill(31);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content.as_slice()).unwrap();
        (file, content)
    }

    fn open(file: &tempfile::NamedTempFile) -> File {
        File::options().read(true).write(true).open(file.path()).unwrap()
    }

    fn request(block: u64) -> Request {
        Request { offset: block * BLOCK as u64, bytes: BLOCK, write: false }
    }

    fn whole(file: &tempfile::NamedTempFile, advice: Option<Advice>) -> Whole {
        Whole::new(open(file).into(), 0, BLOCK as u64 * BLOCKS, advice).unwrap().unwrap()
    }

    #[test]
    fn loads_show_the_bytes_of_the_last_request() {
        let (file, content) = file();
        for advice in [None, Some(Advice::Random), Some(Advice::Sequential)] {
            let mut whole = whole(&file, advice);
            assert!(whole.data().unwrap().is_empty());
            for block in [0, 3, 1] {
                assert_eq!(whole.perform(request(block)), Ok(BLOCK));
                let start = block as usize * BLOCK;
                assert_eq!(whole.data().unwrap(), &content.as_slice()[start..start + BLOCK]);
            }
            assert!(matches!(whole.perform(request(BLOCKS)), Err(Failure::Io { errno: Errno::INVAL, .. })));
        }
    }

    #[test]
    fn a_file_truncated_under_a_load_fails_the_request_and_not_the_process() {
        let (file, _) = file();
        let mut whole = whole(&file, None);
        assert_eq!(whole.perform(request(3)), Ok(BLOCK));
        open(&file).set_len(BLOCK as u64).unwrap();
        let offset = 3 * BLOCK as u64;
        assert_eq!(whole.perform(request(3)), Err(Failure::Vanished { offset }));
        assert!(whole.data().unwrap().iter().all(|&b| b == 0), "zeros stand where the file was");
        assert_eq!(whole.perform(request(0)), Ok(BLOCK), "what is left can still be read");
        assert_eq!(whole.perform(request(1)), Err(Failure::Vanished { offset: BLOCK as u64 }));
    }

    #[test]
    fn stores_reach_the_file_at_their_offset() {
        let (file, content) = file();
        let mut store =
            Store::new(open(&file).into(), 0, BLOCK as u64 * BLOCKS, BLOCK as u64, 77).unwrap().unwrap();
        assert_eq!(store.perform(request(2)), Ok(BLOCK));
        // Inside a page: msync must find the page's start itself.
        assert_eq!(store.perform(Request { offset: 100, bytes: 50, write: true }), Ok(50));
        let mut written = Buffer::new(BLOCK).unwrap();
        written.fill(77);
        let mut expected = content.as_slice().to_vec();
        expected[2 * BLOCK..3 * BLOCK].copy_from_slice(written.as_slice());
        expected[100..150].copy_from_slice(written.front(50));
        assert!(std::fs::read(file.path()).unwrap() == expected);
    }

    #[test]
    fn a_file_truncated_under_a_store_fails_the_request_and_not_the_process() {
        let (file, _) = file();
        let mut store =
            Store::new(open(&file).into(), 0, BLOCK as u64 * BLOCKS, BLOCK as u64, 77).unwrap().unwrap();
        assert_eq!(store.perform(request(1)), Ok(BLOCK));
        open(&file).set_len(BLOCK as u64).unwrap();
        assert_eq!(store.perform(request(1)), Err(Failure::Vanished { offset: BLOCK as u64 }));
        assert_eq!(store.perform(request(0)), Ok(BLOCK));
        assert_eq!(
            std::fs::metadata(file.path()).unwrap().len(),
            BLOCK as u64,
            "the file did not grow again"
        );
    }

    #[test]
    fn two_threads_lose_their_own_pages_only() {
        let (kept, _) = file();
        let (lost, _) = file();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut whole = whole(&kept, None);
                for _ in 0..200 {
                    assert_eq!(whole.perform(request(3)), Ok(BLOCK));
                }
            });
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut whole = whole(&lost, None);
                    open(&lost).set_len(1).unwrap();
                    assert_eq!(
                        whole.perform(request(3)),
                        Err(Failure::Vanished { offset: 3 * BLOCK as u64 })
                    );
                }
            });
        });
    }
}
