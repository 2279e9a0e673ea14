//! Scratch files: unnamed, filled with incompressible data, freed with the last descriptor.
//!
//! Invariants: nothing is left behind however the process ends (SIGKILL included, but for the instant between
//! creating and unlinking on file systems without O_TMPFILE); when [`make`] returns, every byte was written and
//! synced, so that no hole and no unwritten extent remains. Nothing beyond RLIMIT_FSIZE is ever written, so SIGXFSZ
//! cannot strike.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::units::{Bytes, typed_size};
use iowhy_linux::names::unnamed;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Resource;

use super::refusal;
use crate::interrupt;

/// Size of one write while filling.
const CHUNK_BYTES: usize = 1 << 20;
/// Scratch sizes are rounded up to this, so that every block of theirs can be read directly.
const GRAIN_BYTES: u64 = 4096;
/// Seed of the contents: the same bytes in every run.
const CONTENT_SEED: u64 = 0x0069_6f77_6879;

/// Makes, fills and syncs a nameless file in a directory. `progress` is told bytes done and bytes in all.
///
/// # Errors
/// When the directory cannot be written, has no space for the file and 5 % more, a limit or quota is in the way,
/// or a signal asked to stop. Nothing is left behind.
pub(super) fn make(dir: &Path, bytes: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<OwnedFd, Problem> {
    let bytes = whole_grains(bytes)?;
    let place = format!("`{}`", dir.display());
    check_file_limit(&place, bytes)?;
    let handle = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| refusal::cannot_open(dir, refusal::DIRECTORY, errno))?;
    check_space(&place, handle.as_fd(), bytes)?;
    let file = create(dir, handle.as_fd())?;
    if super::status::on_memory(file.as_fd()) {
        check_memory(&format!("{place} lives in memory"), bytes)?;
    }
    fill(&place, file.as_fd(), bytes, progress)?;
    Ok(file)
}

/// Makes a nameless file with nothing in it.
///
/// # Errors
/// When the directory cannot be written.
pub(super) fn empty(dir: &Path) -> Result<OwnedFd, Problem> {
    let handle = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| refusal::cannot_open(dir, refusal::DIRECTORY, errno))?;
    create(dir, handle.as_fd())
}

/// Makes and fills an anonymous memory file.
///
/// # Errors
/// When there is not enough memory for it, or a signal asked to stop.
pub(super) fn memory(bytes: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<OwnedFd, Problem> {
    let bytes = whole_grains(bytes)?;
    check_file_limit("memory", bytes)?;
    check_memory("not enough memory", bytes)?;
    let file = rustix::fs::memfd_create("iowhy-memory", MemfdFlags::CLOEXEC)
        .map_err(|errno| Problem::refused(format!("cannot make a memory file: {}", refusal::words(errno))))?;
    fill("memory", file.as_fd(), bytes, progress)?;
    Ok(file)
}

fn whole_grains(bytes: u64) -> Result<u64, Problem> {
    let rounded = bytes.checked_next_multiple_of(GRAIN_BYTES).filter(|&b| b > 0 && b <= i64::MAX as u64);
    rounded.ok_or_else(|| {
        Problem::refused(format!("`--size {bytes}` is no size for a scratch file"))
            .hint("give a size such as `--size 1g`")
    })
}

fn check_file_limit(place: &str, bytes: u64) -> Result<(), Problem> {
    match rustix::process::getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(Problem::refused(format!(
            "the scratch file in {place} needs {}, but this shell limits files to {} (RLIMIT_FSIZE)",
            Bytes(bytes),
            Bytes(limit)
        ))
        .hint(format!(
            "lift the limit with `ulimit -f unlimited`, or use `--size {}`",
            typed_size(round_down(limit))
        ))),
        _ => Ok(()),
    }
}

fn check_space(place: &str, dir: BorrowedFd<'_>, bytes: u64) -> Result<(), Problem> {
    let Ok(space) = rustix::fs::fstatvfs(dir) else { return Ok(()) };
    if space.f_blocks == 0 {
        return Ok(()); // ramfs and unlimited tmpfs report nothing at all
    }
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let needed = bytes.saturating_add(bytes / 20);
    if free >= needed {
        return Ok(());
    }
    Err(no_room(
        format!(
            "not enough space in {place}: {} free, {} needed (the scratch file and 5 %)",
            Bytes(free),
            Bytes(needed)
        ),
        free,
    ))
}

fn check_memory(cause: &str, bytes: u64) -> Result<(), Problem> {
    let Some(available) = crate::machine::memory_available_bytes() else { return Ok(()) };
    let usable = available / 5 * 4;
    if bytes <= usable {
        return Ok(());
    }
    Err(no_room(
        format!(
            "{cause}: {} are available, and 4/5 of that may be filled, not {}",
            Bytes(available),
            Bytes(bytes)
        ),
        usable,
    ))
}

/// A refusal for lack of room, with the largest size that would fit.
fn no_room(message: String, usable_bytes: u64) -> Problem {
    let fits = round_down(usable_bytes / 21 * 20);
    let problem = Problem::refused(message);
    if fits == 0 {
        problem.hint("free some space, or name another directory or a readable file")
    } else {
        problem.hint(format!(
            "use `--size {}` or less, or name another directory or a readable file",
            typed_size(fits)
        ))
    }
}

fn round_down(bytes: u64) -> u64 {
    bytes / GRAIN_BYTES * GRAIN_BYTES
}

fn create(dir: &Path, handle: BorrowedFd<'_>) -> Result<OwnedFd, Problem> {
    unnamed(handle, Mode::RUSR | Mode::WUSR).map_err(|errno| cannot_create(dir, errno))
}

fn cannot_create(dir: &Path, errno: Errno) -> Problem {
    let cause = match errno {
        Errno::ROFS => "the file system is mounted read-only".to_owned(),
        Errno::DQUOT => "the disk quota is used up".to_owned(),
        other => refusal::words(other),
    };
    Problem::refused(format!("cannot make a scratch file in `{}`: {cause}", dir.display()))
        .hint("name a file there that you may read, as in `iowhy FILE`, or a directory that you may write to")
}

/// Writes `bytes` of seeded noise, directly where the file system allows it, and syncs.
fn fill(
    place: &str,
    file: BorrowedFd<'_>,
    bytes: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Problem> {
    // Allocating first keeps the file in few extents and finds a full disk early; where it is not supported the
    // writes allocate.
    let on_memory = super::status::on_memory(file);
    if !on_memory
        && let Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) =
            rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)
    {
        return Err(cannot_fill(place, 0, bytes, errno));
    }
    let direct = super::reopen(file, OFlags::RDWR | OFlags::DIRECT).ok().filter(|_| !on_memory);
    let mut noise = Noise::new();
    let (mut done, mut use_direct) = (0u64, direct.is_some());
    while done < bytes {
        if interrupt::requested() {
            return Err(Problem::failed(format!("interrupted while filling the scratch file in {place}")));
        }
        let chunk = noise.next((bytes - done).min(CHUNK_BYTES as u64) as usize);
        let mut written = 0;
        while written < chunk.len() {
            let target = direct.as_ref().filter(|_| use_direct).map_or(file, AsFd::as_fd);
            match rustix::io::pwrite(target, &chunk[written..], done + written as u64) {
                Ok(0) => return Err(cannot_fill(place, done, bytes, Errno::NOSPC)),
                // A short direct write may end off its alignment; the page cache takes the rest.
                Ok(n) => {
                    written += n;
                    use_direct &= written == chunk.len();
                }
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) if use_direct => use_direct = false,
                Err(errno) => return Err(cannot_fill(place, done, bytes, errno)),
            }
        }
        done += chunk.len() as u64;
        progress(done, bytes);
    }
    sync(file).map_err(|errno| cannot_fill(place, done, bytes, errno))
}

fn sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
    loop {
        match rustix::fs::fsync(file) {
            Err(Errno::INTR) => {}
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(()), // nothing to sync on this file system
            other => return other,
        }
    }
}

fn cannot_fill(place: &str, done: u64, bytes: u64, errno: Errno) -> Problem {
    let after = format!("after {done} of {bytes} bytes");
    match errno {
        Errno::NOSPC => no_room(format!("no space left in {place} {after} of the scratch file"), done),
        Errno::DQUOT => {
            no_room(format!("the disk quota in {place} was used up {after} of the scratch file"), done)
        }
        Errno::FBIG => no_room(format!("{place} does not take a file of {bytes} bytes"), 0)
            .hint("use a smaller `--size`, or name another directory"),
        other => Problem::failed(format!(
            "writing the scratch file in {place} failed {after}: {}",
            refusal::words(other)
        ))
        .hint("look at `dmesg` for the device's errors, or name another directory"),
    }
}

/// Seeded, incompressible, page-aligned bytes; every chunk is a new one, so that nothing can be deduplicated.
struct Noise {
    rng: Rng,
    memory: Vec<u8>,
    start: usize,
}

impl Noise {
    fn new() -> Self {
        let memory = vec![0; CHUNK_BYTES + GRAIN_BYTES as usize];
        // `align_offset` may decline to answer (usize::MAX); unaligned memory only costs the direct path.
        let start = memory.as_ptr().align_offset(GRAIN_BYTES as usize).min(GRAIN_BYTES as usize);
        Noise { rng: Rng::new(CONTENT_SEED), memory, start }
    }

    fn next(&mut self, bytes: usize) -> &[u8] {
        let chunk = &mut self.memory[self.start..self.start + bytes];
        for word in chunk.chunks_mut(8) {
            word.copy_from_slice(&self.rng.next_u64().to_le_bytes()[..word.len()]);
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_scratch_file_is_full_written_and_nameless() {
        let dir = tempfile::tempdir().unwrap();
        let (mut last, mut calls) = ((0, 0), 0);
        let file = make(dir.path(), (3 << 20) + 1, &mut |done, total| {
            assert!(done > last.0, "progress only grows");
            last = (done, total);
            calls += 1;
        })
        .unwrap();
        let size = (3 << 20) + GRAIN_BYTES;
        assert_eq!((last, calls), ((size, size), 4));
        let stat = rustix::fs::fstat(&file).unwrap();
        assert_eq!((stat.st_size as u64, stat.st_nlink), (size, 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no name is left");
        let layout = crate::target::extents::layout(file.as_fd(), size, stat.st_blocks as u64 * 512);
        assert_eq!(layout.hole_bytes, Some(0));
        assert_eq!(layout.unwritten_bytes.unwrap_or(0), 0);
    }

    #[test]
    fn contents_do_not_repeat_and_are_the_same_in_every_run() {
        let mut pages = HashSet::new();
        let (mut a, mut b) = (Noise::new(), Noise::new());
        for _ in 0..2 {
            let chunk = a.next(CHUNK_BYTES).to_vec();
            assert_eq!(chunk, b.next(CHUNK_BYTES));
            for page in chunk.chunks(4096) {
                assert!(pages.insert(page.to_vec()), "no page occurs twice");
            }
        }
        assert_eq!(pages.len(), 2 * CHUNK_BYTES / 4096);
    }

    #[test]
    fn a_size_that_cannot_fit_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let huge = make(dir.path(), 1 << 60, &mut |_, _| panic!("nothing may be written")).unwrap_err();
        assert!(
            huge.message.contains("1152921504606846976") || huge.message.contains("not enough space"),
            "{huge}"
        );
        assert!(huge.hint.unwrap().contains("--size"));
        assert!(make(dir.path(), 0, &mut |_, _| {}).unwrap_err().message.contains("--size 0"));
        assert!(make(dir.path(), u64::MAX, &mut |_, _| {}).is_err());
    }
}
