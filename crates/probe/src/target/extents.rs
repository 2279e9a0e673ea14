//! Physical extents of a file: FIEMAP, and SEEK_DATA/SEEK_HOLE where a file system has no FIEMAP.
//!
//! Invariant: a map that was not read to its end is not reported at all; the effort is bounded.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, opcode};

/// Extents after which a map is given up.
const MAX_EXTENTS: u64 = 1 << 18;
/// Time after which a map is given up.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Extents asked for in one call.
const BATCH: usize = 256;

/// Totals over the extents below the end of the file. `None`: unknown to the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes with nothing behind them.
    pub(super) hole_bytes: Option<u64>,
    /// Bytes allocated but never written.
    pub(super) unwritten_bytes: Option<u64>,
    /// Bytes shared with other files.
    pub(super) shared_bytes: Option<u64>,
    /// Bytes stored compressed or encrypted.
    pub(super) encoded_bytes: Option<u64>,
    /// Number of extents.
    pub(super) extents: Option<u64>,
}

/// Maps a regular file of this size.
pub(super) fn layout(file: BorrowedFd<'_>, size_bytes: u64, allocated_bytes: u64) -> Layout {
    match from_fiemap(file, size_bytes) {
        Ok(layout) => layout,
        Err(_) => Layout { hole_bytes: seek_holes(file, size_bytes, allocated_bytes), ..Layout::default() },
    }
}

/// The header of `struct fiemap` (linux/fiemap.h). The opcode counts its size alone.
#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent` (linux/fiemap.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    header: Header,
    extents: [Extent; BATCH],
}

const FS_IOC_FIEMAP: Opcode = opcode::read_write::<Header>(b'f', 11);
/// Writes dirty pages first, as a direct read of the range does: the map is what such a read would see.
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
/// FIEMAP_EXTENT_UNKNOWN, _DELALLOC, _DATA_INLINE.
const EXTENT_NO_PLACE: u32 = 0x2 | 0x4 | 0x200;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENT_SHARED: u32 = 0x2000;

/// Fills one batch of extents from `start` on.
fn fiemap(file: BorrowedFd<'_>, start: u64, map: &mut Fiemap) -> Result<(), Errno> {
    map.header = Header {
        start,
        length: u64::MAX - start,
        flags: FLAG_SYNC,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
    };
    // SAFETY: FS_IOC_FIEMAP reads the header and writes the header and at most `extent_count` extents behind it;
    // `Fiemap` has exactly that layout and room for `BATCH` of them.
    unsafe { rustix::ioctl::ioctl(file, Updater::<FS_IOC_FIEMAP, Fiemap>::new(map)) }
}

/// Hands every extent below `size_bytes` to `see`; false when the map was given up before its end.
fn walk(file: BorrowedFd<'_>, size_bytes: u64, mut see: impl FnMut(&Extent)) -> Result<bool, Errno> {
    let began = Instant::now();
    let mut map = Box::new(Fiemap {
        header: Header { start: 0, length: 0, flags: 0, mapped_extents: 0, extent_count: 0, reserved: 0 },
        extents: [Extent::default(); BATCH],
    });
    let (mut start, mut seen) = (0, 0u64);
    while start < size_bytes {
        fiemap(file, start, &mut map)?;
        let mapped = (map.header.mapped_extents as usize).min(BATCH);
        let batch = &map.extents[..mapped];
        batch.iter().for_each(&mut see);
        seen += batch.len() as u64;
        match batch.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => {
                start = last.logical.saturating_add(last.length.max(1))
            }
            _ => break,
        }
        if seen > MAX_EXTENTS || began.elapsed() > MAX_TIME {
            return Ok(false);
        }
    }
    Ok(true)
}

fn from_fiemap(file: BorrowedFd<'_>, size_bytes: u64) -> Result<Layout, Errno> {
    let mut sum = Sum::default();
    let whole = walk(file, size_bytes, |extent| sum.add(extent, size_bytes))?;
    Ok(if whole { sum.layout(size_bytes) } else { Layout::default() })
}

/// Where the bytes of a file lie by the file system's own addresses, each with a length; without what has no address of its
/// own (in an inode, not yet allocated, encoded).
///
/// # Errors
/// When the file system has no such map, or it is too long.
pub(crate) fn pieces(file: BorrowedFd<'_>, size_bytes: u64) -> Result<Vec<(u64, u64)>, Errno> {
    let mut pieces = Vec::new();
    let whole = walk(file, size_bytes, |extent| {
        let bytes = extent.length.min(size_bytes.saturating_sub(extent.logical));
        if extent.flags & (EXTENT_NO_PLACE | EXTENT_ENCODED) == 0 && bytes > 0 {
            pieces.push((extent.physical, bytes));
        }
    })?;
    if whole { Ok(pieces) } else { Err(Errno::TOOBIG) }
}

#[derive(Default)]
struct Sum {
    covered: u64,
    unwritten: u64,
    shared: u64,
    encoded: u64,
    extents: u64,
}

impl Sum {
    /// Books the part of an extent that lies below the end of the file (preallocation may lie beyond it).
    fn add(&mut self, extent: &Extent, size_bytes: u64) {
        let end = extent.logical.saturating_add(extent.length).min(size_bytes);
        let bytes = end.saturating_sub(extent.logical);
        if bytes == 0 {
            return;
        }
        self.extents += 1;
        self.covered += bytes;
        for (flag, total) in [
            (EXTENT_UNWRITTEN, &mut self.unwritten),
            (EXTENT_SHARED, &mut self.shared),
            (EXTENT_ENCODED, &mut self.encoded),
        ] {
            if extent.flags & flag != 0 {
                *total += bytes;
            }
        }
    }

    fn layout(&self, size_bytes: u64) -> Layout {
        Layout {
            hole_bytes: Some(size_bytes.saturating_sub(self.covered)),
            unwritten_bytes: Some(self.unwritten),
            shared_bytes: Some(self.shared),
            encoded_bytes: Some(self.encoded),
            extents: Some(self.extents),
        }
    }
}

/// Bytes in holes by SEEK_DATA/SEEK_HOLE. A file system without real support calls everything data; that is
/// believed only when the allocated size does not contradict it.
fn seek_holes(file: BorrowedFd<'_>, size_bytes: u64, allocated_bytes: u64) -> Option<u64> {
    let began = Instant::now();
    let fd = file.as_fd();
    let (mut at, mut data, mut runs) = (0u64, 0u64, 0u64);
    while at < size_bytes {
        let start = match rustix::fs::seek(fd, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(_) => return None,
        };
        let end = rustix::fs::seek(fd, SeekFrom::Hole(start)).ok()?.min(size_bytes);
        data += end.saturating_sub(start);
        at = end.max(start + 1);
        runs += 1;
        if runs > MAX_EXTENTS || began.elapsed() > MAX_TIME {
            return None;
        }
    }
    let holes = size_bytes.saturating_sub(data);
    (holes > 0 || allocated_bytes >= size_bytes).then_some(holes)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;

    use rustix::fs::FallocateFlags;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(logical: u64, length: u64, flags: u32) -> Extent {
        Extent { logical, length, flags, ..Extent::default() }
    }

    #[test]
    fn extents_are_clipped_at_the_end_of_the_file_and_booked_by_flag() {
        let mut sum = Sum::default();
        sum.add(&extent(0, 4096, 0), 20_000);
        sum.add(&extent(8192, 4096, EXTENT_UNWRITTEN | EXTENT_SHARED), 20_000);
        sum.add(&extent(16_384, 8192, EXTENT_ENCODED), 20_000);
        sum.add(&extent(65_536, 8192, EXTENT_UNWRITTEN), 20_000);
        let expected = Layout {
            hole_bytes: Some(20_000 - 8192 - 3616),
            unwritten_bytes: Some(4096),
            shared_bytes: Some(4096),
            encoded_bytes: Some(3616),
            extents: Some(3),
        };
        assert_eq!(sum.layout(20_000), expected);
    }

    #[test]
    fn holes_are_counted_by_either_source() {
        let mut file = tempfile::tempfile().unwrap();
        file.seek(std::io::SeekFrom::Start(3 * MIB)).unwrap();
        file.write_all(&vec![7; MIB as usize]).unwrap();
        file.sync_all().unwrap();
        assert_eq!(layout(file.as_fd(), 4 * MIB, MIB).hole_bytes, Some(3 * MIB));
        assert_eq!(seek_holes(file.as_fd(), 4 * MIB, MIB), Some(3 * MIB));
    }

    #[test]
    fn a_file_that_claims_no_holes_but_has_too_few_blocks_is_unknown() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; MIB as usize]).unwrap();
        file.sync_all().unwrap();
        assert_eq!(seek_holes(file.as_fd(), MIB, MIB), Some(0));
        assert_eq!(seek_holes(file.as_fd(), MIB, MIB / 2), None);
    }

    #[test]
    fn what_fallocate_left_is_unwritten_until_it_is_written() {
        let mut file = tempfile::tempfile().unwrap();
        if let Err(errno) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4 * MIB) {
            eprintln!("skipped: fallocate: {errno}");
            return;
        }
        file.write_all(&vec![7; MIB as usize]).unwrap();
        match from_fiemap(file.as_fd(), 4 * MIB) {
            Ok(layout) => {
                assert_eq!(layout.unwritten_bytes, Some(3 * MIB));
                assert_eq!(layout.hole_bytes, Some(0));
            }
            Err(errno) => eprintln!("skipped: no FIEMAP here: {errno}"),
        }
    }
}
