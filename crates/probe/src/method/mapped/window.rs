//! A mapping of its own for each request.
//!
//! The window of a request stays mapped until the next one, so that its bytes can be looked at; its unmapping (and
//! unlocking) is then the first part of the next request. Every request but the first pays for exactly one of each.

use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::mapping::{Mapping, Purpose};
use crate::access::{Failure, Perform, Request};
use crate::fault;
use crate::sigbus::Guard;

/// The mapping of the last request.
#[derive(Debug)]
struct Window {
    // The guard goes first, so that it never covers addresses that are no longer ours.
    guard: Guard,
    fd: OwnedFd,
    mapping: Option<Mapping>,
    last: Request,
}

impl Window {
    fn new(fd: OwnedFd) -> Result<Window, Problem> {
        let last = Request { offset: 0, bytes: 0, write: false };
        Ok(Window { guard: fault::guard()?, fd, mapping: None, last })
    }

    /// Unmaps the window before and maps the one of this request.
    fn replace(&mut self, request: Request, purpose: Purpose) -> Result<&Mapping, Failure> {
        self.guard.uncover();
        self.mapping = None;
        self.last = request;
        let mapping = Mapping::new(&self.fd, request.offset, request.bytes as u64, purpose)
            .map_err(Failure::io("mmap", request.offset))?;
        self.guard.cover(mapping.start(), mapping.bytes());
        Ok(self.mapping.insert(mapping))
    }

    /// Loads one byte of each page of the request; says whether one of them was gone.
    fn load(&self) -> Result<usize, Failure> {
        let Request { offset, bytes, .. } = self.last;
        if let Some(range) = self.mapping.as_ref().and_then(|mapping| mapping.range(offset, bytes)) {
            range.load_pages();
        }
        if self.guard.vanished() { Err(Failure::Vanished { offset }) } else { Ok(bytes) }
    }

    fn data(&self) -> Option<&[u8]> {
        Some(self.mapping.as_ref()?.range(self.last.offset, self.last.bytes)?.as_slice())
    }
}

/// mmap(2) with MAP_POPULATE, load, munmap(2).
#[derive(Debug)]
pub struct Populated(Window);

impl Populated {
    /// Maps nothing yet.
    ///
    /// # Errors
    /// Fails when no SIGBUS guard can be had.
    pub fn new(fd: OwnedFd) -> Result<Self, Problem> {
        Ok(Populated(Window::new(fd)?))
    }
}

impl Perform for Populated {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.0.replace(request, Purpose::Populate)?;
        self.0.load()
    }

    fn data(&self) -> Option<&[u8]> {
        self.0.data()
    }
}

/// mmap(2), mlock(2), load, munlock(2), munmap(2): the mmap side of the comparison of 1999.
#[derive(Debug)]
pub struct Locked(Window);

impl Locked {
    /// Tries to lock as much memory as one request of `block_bytes` will, without touching the target.
    ///
    /// # Errors
    /// Refuses when the limit on locked memory is too small; fails when no SIGBUS guard can be had.
    pub fn new(fd: OwnedFd, block_bytes: u64) -> Result<Self, Problem> {
        try_lock(block_bytes).map_err(|errno| cannot_lock(block_bytes, errno))?;
        Ok(Locked(Window::new(fd)?))
    }

    /// Unlocks the window before, if it is still there.
    fn unlock(&self) -> Result<(), Failure> {
        let Some(mapping) = &self.0.mapping else { return Ok(()) };
        // SAFETY: the range is a live mapping; munlock changes no content.
        unsafe { rustix::mm::munlock(mapping.start().cast(), mapping.bytes()) }
            .map_err(Failure::io("munlock", self.0.last.offset))
    }
}

impl Perform for Locked {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.unlock()?;
        let mapping = self.0.replace(request, Purpose::Load)?;
        // SAFETY: the range is a live mapping; mlock changes no content.
        let locked = unsafe { rustix::mm::mlock(mapping.start().cast(), mapping.bytes()) };
        // mlock answers ENOMEM both to a limit and to a page that is gone: loading tells which.
        let bytes = self.0.load()?;
        locked.map_err(Failure::io("mlock (is `ulimit -l` enough for all threads?)", request.offset))?;
        Ok(bytes)
    }

    fn data(&self) -> Option<&[u8]> {
        self.0.data()
    }
}

/// Locks and unlocks anonymous memory of this size.
fn try_lock(bytes: u64) -> Result<(), Errno> {
    let bytes = usize::try_from(bytes).map_err(|_| Errno::OVERFLOW)?.max(1);
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh anonymous mapping that nothing else knows of is locked and unmapped again.
    unsafe {
        let start = rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)?;
        let locked = rustix::mm::mlock(start, bytes);
        rustix::mm::munmap(start, bytes)?;
        locked
    }
}

fn cannot_lock(bytes: u64, errno: Errno) -> Problem {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let limit = limit.map_or("unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    Problem::refused(format!(
        "method `mmap-lock` cannot lock windows of {bytes} bytes: {} (limit on locked memory: {limit})",
        std::io::Error::from(errno)
    ))
    .hint(format!(
        "raise the limit, `ulimit -l {}` (in KiB, times the number of threads; beyond the hard limit it needs \
         root), or choose a smaller `--bs`",
        bytes.div_ceil(1024)
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const BYTES: usize = 8192;

    fn file() -> (tempfile::NamedTempFile, Vec<u8>) {
        let content: Vec<u8> = (0..5 * BYTES).map(|i| (i * 7 % 253) as u8).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &content).unwrap();
        (file, content)
    }

    fn shows_windows_and_survives_truncation(
        file: &tempfile::NamedTempFile,
        content: &[u8],
        mut method: impl Perform,
    ) {
        assert!(method.data().is_none());
        for offset in [0, 3 * BYTES, 100, BYTES + 4000] {
            assert_eq!(
                method.perform(Request { offset: offset as u64, bytes: BYTES, write: false }),
                Ok(BYTES)
            );
            assert_eq!(method.data().unwrap(), &content[offset..offset + BYTES]);
        }
        File::options().write(true).open(file.path()).unwrap().set_len(BYTES as u64).unwrap();
        let offset = 2 * BYTES as u64;
        let gone = Request { offset, bytes: BYTES, write: false };
        assert_eq!(method.perform(gone), Err(Failure::Vanished { offset }));
        assert_eq!(method.perform(gone), Err(Failure::Vanished { offset }));
        assert_eq!(method.perform(Request { offset: 0, bytes: BYTES, write: false }), Ok(BYTES));
        assert_eq!(method.data().unwrap(), &content[..BYTES]);
    }

    #[test]
    fn populated_windows_show_their_bytes_and_survive_truncation() {
        let (file, content) = file();
        let method = Populated::new(File::open(file.path()).unwrap().into()).unwrap();
        shows_windows_and_survives_truncation(&file, &content, method);
    }

    #[test]
    fn locked_windows_show_their_bytes_and_survive_truncation() {
        let (file, content) = file();
        match Locked::new(File::open(file.path()).unwrap().into(), 2 * BYTES as u64) {
            Ok(method) => shows_windows_and_survives_truncation(&file, &content, method),
            Err(problem) => eprintln!("skipped: {problem}"),
        }
    }

    #[test]
    fn a_limit_on_locked_memory_is_named_with_the_command_that_raises_it() {
        let problem = cannot_lock(1 << 20, Errno::NOMEM);
        assert!(problem.message.contains("1048576 bytes"));
        assert!(problem.hint.unwrap().contains("`ulimit -l 1024`"));
        // No machine has room for this.
        assert!(Locked::new(tempfile::tempfile().unwrap().into(), u64::MAX / 2).is_err());
    }

    #[test]
    fn what_cannot_be_mapped_fails_under_its_own_name() {
        let mut method = Populated::new(File::open("/dev/null").unwrap().into()).unwrap();
        let failure = method.perform(Request { offset: 4096, bytes: 4096, write: false }).unwrap_err();
        assert_eq!(failure, Failure::Io { call: "mmap", offset: 4096, errno: Errno::NODEV });
    }
}
