//! The page cache of a file: seen with cachestat(2) (mincore as fall-back), emptied and filled without root.
//! Invariant: nothing here claims a state; it reports what was seen, or says that it could not see.

mod sight;

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use rustix::fs::{Advice, OFlags};
use rustix::io::Errno;

use crate::interrupt;

pub use sight::look;

/// What was seen of a byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages in the range.
    pub pages: u64,
    /// Of which in the cache.
    pub resident: u64,
    /// Of which dirty; `None` with mincore.
    pub dirty: Option<u64>,
    /// Pages evicted recently (they would have been hits with more memory); `None` with mincore.
    pub recently_evicted: Option<u64>,
    /// `cachestat` or `mincore`.
    pub source: &'static str,
}

impl Residency {
    /// Share in the cache, 0 to 1; 0 for an empty range.
    pub fn share(&self) -> f64 {
        if self.pages == 0 { 0.0 } else { self.resident as f64 / self.pages as f64 }
    }
}

// What posix_fadvise(2) does on ext4 (measured with Linux 6.18, read-ahead window 8 MiB), and so why evict and fetch loop:
// - DONTNEED does not drop a large folio (up to 2 MiB) that only partly lies in the range: of a warm 64 MiB file, a
//   DONTNEED of an aligned 1 MiB dropped nothing.
// - DONTNEED passes over pages that are dirty, mapped by somebody, or still in flight from read-ahead. 2 ms after a
//   sequential read of 2 MiB, 1024 of the 1536 pages that read-ahead had asked for were still there; 4 ms after, none.
// - WILLNEED of 64 MiB returns after 1 ms and never brings in more than one read-ahead window: 8 MiB of the 64.

/// Attempts of [`evict`]; the pauses between them double from 1 ms, 127 ms in all.
const EVICT_ATTEMPTS: u32 = 8;
/// The attempt from which the range is widened to whole folios: those before give read-ahead in flight time to land.
const WIDEN_FROM: u32 = 3;
/// Attempts where nothing can be seen between them.
const BLIND_ATTEMPTS: u32 = 4;
/// Pages of the largest folio of the page cache (2 MiB with 4 KiB pages).
const FOLIO_PAGES: u64 = 512;
/// One read of [`fetch`].
const FETCH_BYTES: usize = 1 << 20;
/// Passes of [`fetch`] over what is missing.
const FETCH_PASSES: u32 = 3;

/// Asks the kernel to drop a range from the cache, repeatedly, looking in between. Dirty pages are written first.
/// Whether it worked is for [`look`] to say: pages that another process maps stay, and so does everything on tmpfs.
///
/// Up to one large folio (2 MiB) of neighbouring pages on each side may go too when the range ends inside one.
///
/// # Errors
/// The descriptor does not take the advice (a pipe), or writing its dirty pages failed.
pub fn evict(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<(), Problem> {
    // A length of 0 means "to the end" to the kernel.
    if bytes == 0 || sight::only_in_memory(file) {
        return Ok(());
    }
    let (exact, whole_folios) =
        (aligned(offset, bytes, page_bytes()), aligned(offset, bytes, FOLIO_PAGES * page_bytes()));
    let writable =
        rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR));
    for attempt in 0..EVICT_ATTEMPTS {
        let seen = look(file, offset, bytes);
        let dirty = match &seen {
            Ok(Residency { resident: 0, .. }) => return Ok(()),
            Ok(Residency { dirty: Some(dirty), .. }) => *dirty > 0,
            _ => writable && attempt == 0,
        };
        if seen.is_err() && attempt == BLIND_ATTEMPTS {
            return Ok(());
        }
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1 << (attempt - 1)));
        }
        if dirty {
            rustix::fs::fdatasync(file)
                .map_err(|errno| failed(file, "cannot write the dirty pages of", errno))?;
        }
        let (start, length) = if attempt < WIDEN_FROM { exact } else { whole_folios };
        rustix::fs::fadvise(file, start, NonZeroU64::new(length), Advice::DontNeed)
            .map_err(|errno| failed(file, "cannot drop from the page cache:", errno))?;
    }
    Ok(())
}

/// As [`evict`] for the first `bytes` of a file, again and again for up to a second while more than one page in `part` is
/// there: what a limit holds back is still being read ahead when its reader has ended. Returns what is there at the end, or
/// why it cannot be seen.
///
/// # Errors
/// As [`evict`].
pub fn evict_patiently(
    file: BorrowedFd<'_>,
    bytes: u64,
    part: u64,
) -> Result<Result<Residency, String>, Problem> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    loop {
        evict(file, 0, bytes)?;
        let seen = look(file, 0, bytes);
        let stays = seen.as_ref().is_ok_and(|seen| seen.resident.saturating_mul(part) > seen.pages);
        let over = begun.elapsed() > PATIENCE || interrupt::requested();
        if !stays || over || sight::only_in_memory(file) {
            return Ok(seen);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Brings a range into the cache by reading it in chunks of 1 MiB through `file` (which must be readable and not
/// O_DIRECT), until it is all there or a further pass over what is missing changed nothing. Stops early when the
/// user interrupts. Returns what is there at the end; `None` when it cannot be seen.
///
/// # Errors
/// A read failed.
pub fn fetch(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Option<Residency>, Problem> {
    fetch_unless(file, offset, bytes, &interrupt::requested)
}

/// Reads a range once from its front to its end, as [`fetch`] does, whether it is there or not.
///
/// # Errors
/// A read failed.
pub fn pass(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<(), Problem> {
    let end = offset.saturating_add(bytes);
    let mut buffer = vec![0u8; FETCH_BYTES.min(usize::try_from(bytes).unwrap_or(FETCH_BYTES))];
    let mut at = offset;
    while at < end && !interrupt::requested() {
        let length = (end - at).min(FETCH_BYTES as u64);
        if !read_exactly(file, at, &mut buffer[..length as usize])? {
            break;
        }
        at += length;
    }
    Ok(())
}

fn fetch_unless(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Residency>, Problem> {
    let end = offset.saturating_add(bytes);
    let mut buffer = vec![0u8; FETCH_BYTES.min(usize::try_from(bytes).unwrap_or(FETCH_BYTES))];
    let mut before = None;
    for pass in 0..FETCH_PASSES {
        let mut at = offset;
        while at < end && !stop() {
            let length = (end - at).min(FETCH_BYTES as u64);
            // The first pass reads everything: it also fills pages that only read-ahead has asked for so far.
            let there = pass > 0 && look(file, at, length).is_ok_and(|seen| seen.resident == seen.pages);
            if !there && !read_exactly(file, at, &mut buffer[..length as usize])? {
                break;
            }
            at += length;
        }
        match look(file, offset, bytes).ok() {
            Some(seen) if seen.resident < seen.pages && before != Some(seen.resident) && !stop() => {
                before = Some(seen.resident);
            }
            seen => return Ok(seen),
        }
    }
    Ok(look(file, offset, bytes).ok())
}

/// Fills the buffer from the file; `false` when the file ends first.
fn read_exactly(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> Result<bool, Problem> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => return Ok(false),
            Ok(n) => filled += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(file, "cannot read into the page cache:", errno)),
        }
    }
    Ok(true)
}

/// The smallest range of whole units around a byte range, as (offset, bytes).
fn aligned(offset: u64, bytes: u64, unit: u64) -> (u64, u64) {
    // Lengths beyond what the kernel's signed offsets hold are refused by it.
    let end =
        offset.saturating_add(bytes).checked_next_multiple_of(unit).unwrap_or(u64::MAX).min(i64::MAX as u64);
    let start = offset - offset % unit;
    (start, end.saturating_sub(start))
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn failed(file: BorrowedFd<'_>, what: &str, errno: Errno) -> Problem {
    Problem::failed(format!("{what} `{}`: {}", sight::name(file), std::io::Error::from(errno)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A file with `mib` MiB of written and synced bytes, or `None` (said aloud) where nothing can be evicted.
    fn evictable(mib: u64) -> Option<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0]).unwrap();
        if sight::only_in_memory(file.as_fd()) {
            eprintln!("skipped: the temporary directory is in memory, where nothing can be evicted");
            return None;
        }
        if sight::on_overlay(file.as_fd()) {
            eprintln!("skipped: the temporary directory is an overlay, which may lie in memory");
            return None;
        }
        if let Err(reason) = look(file.as_fd(), 0, 1) {
            eprintln!("skipped: {reason}");
            return None;
        }
        file.rewind().unwrap();
        for i in 0..mib {
            file.write_all(&vec![i as u8 + 1; MIB as usize]).unwrap();
        }
        file.sync_all().unwrap();
        Some(file)
    }

    fn share(file: &File, offset: u64, bytes: u64) -> f64 {
        look(file.as_fd(), offset, bytes).unwrap().share()
    }

    #[test]
    fn fetch_makes_it_resident_and_evict_makes_it_cold() {
        let Some(file) = evictable(8) else { return };
        for _ in 0..2 {
            evict(file.as_fd(), 0, 8 * MIB).unwrap();
            assert_eq!(share(&file, 0, 8 * MIB), 0.0);
            let there = fetch_unless(file.as_fd(), 0, 8 * MIB, &|| false).unwrap().unwrap();
            assert_eq!((there.share(), there.pages), (1.0, 8 * MIB / page_bytes()));
            assert_eq!(share(&file, 0, 8 * MIB), 1.0);
        }
    }

    #[test]
    fn what_others_keep_in_the_cache_is_told_and_goes_when_they_let_go() {
        let Some(file) = evictable(1) else { return };
        // SAFETY: no address is asked for, and the mapping is given back below.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                MIB as usize,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::POPULATE,
                &file,
                0,
            )
        }
        .unwrap();
        let seen = evict_patiently(file.as_fd(), MIB, 50).unwrap().unwrap();
        assert!(seen.resident * 50 > seen.pages, "{seen:?}");
        // SAFETY: the range is that mapping, which nobody else knows.
        unsafe { rustix::mm::munmap(mapped, MIB as usize) }.unwrap();
        assert_eq!(evict_patiently(file.as_fd(), MIB, 50).unwrap().unwrap().resident, 0);
    }

    #[test]
    fn dirty_pages_are_written_and_dropped() {
        let Some(mut file) = evictable(1) else { return };
        file.write_all(&vec![7; MIB as usize]).unwrap();
        assert_eq!(share(&file, MIB, MIB), 1.0);
        evict(file.as_fd(), 0, 2 * MIB).unwrap();
        assert_eq!(share(&file, 0, 2 * MIB), 0.0);
        let mut byte = [0];
        rustix::io::pread(&file, &mut byte, MIB).unwrap();
        assert_eq!(byte, [7], "what was written survives");
    }

    #[test]
    fn evicting_a_range_leaves_what_is_more_than_a_folio_away() {
        let Some(file) = evictable(16) else { return };
        fetch_unless(file.as_fd(), 0, 16 * MIB, &|| false).unwrap();
        // Neither end falls on a folio's: this is what a single DONTNEED does not drop.
        let (offset, bytes) = (7 * MIB + page_bytes(), 2 * MIB + 100);
        evict(file.as_fd(), offset, bytes).unwrap();
        assert_eq!(share(&file, offset, bytes), 0.0);
        let folio = FOLIO_PAGES * page_bytes();
        if folio > 2 * MIB {
            eprintln!("skipped: folios of {folio} bytes leave no neighbour in this file");
            return;
        }
        assert_eq!(share(&file, 0, 4 * MIB), 1.0);
        assert_eq!(share(&file, 12 * MIB, 4 * MIB), 1.0);
    }

    #[test]
    fn fetch_stops_when_asked_to() {
        let Some(file) = evictable(8) else { return };
        evict(file.as_fd(), 0, 8 * MIB).unwrap();
        let there = fetch_unless(file.as_fd(), 0, 8 * MIB, &|| true).unwrap().unwrap();
        assert_eq!(there.resident, 0);
    }

    #[test]
    fn a_range_past_the_end_and_an_empty_one_are_nothing() {
        let Some(file) = evictable(1) else { return };
        assert_eq!(look(file.as_fd(), 0, 0).unwrap().pages, 0);
        assert_eq!(look(file.as_fd(), 5 * MIB, MIB).unwrap().pages, 0);
        assert_eq!(
            fetch_unless(file.as_fd(), 0, 9 * MIB, &|| false).unwrap().unwrap().pages,
            MIB / page_bytes()
        );
        evict(file.as_fd(), 0, 0).unwrap();
        assert_eq!(share(&file, 0, MIB), 1.0, "length 0 drops nothing");
        evict(file.as_fd(), 3 * MIB, u64::MAX).unwrap();
        assert_eq!(share(&file, 0, MIB), 1.0);
    }

    #[test]
    fn ranges_are_widened_to_whole_units() {
        assert_eq!(aligned(100, 1, 4096), (0, 4096));
        assert_eq!(aligned(4095, 2, 4096), (0, 8192));
        assert_eq!(aligned(4096, 4096, 4096), (4096, 4096));
        assert_eq!(aligned(8192, u64::MAX, 4096), (8192, i64::MAX as u64 - 8192));
    }

    #[test]
    fn an_unreadable_descriptor_is_an_error_that_names_it() {
        let directory = File::open("/").unwrap();
        let problem = fetch_unless(directory.as_fd(), 0, 10, &|| false).unwrap_err();
        assert!(problem.message.contains("`/`"), "{problem}");
    }
}
