//! Files without a name: gone with their last descriptor, whatever ends the process.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Opens a file without a name in a directory, for reading and writing: O_TMPFILE, else a new name that is removed at once.
///
/// # Errors
/// What openat(2) says.
pub fn unnamed(dir: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
    match tmpfile(dir, mode) {
        Err(errno) if is_unsupported(errno) => {
            let (file, name) = named(dir, ".iowhy-scratch", mode)?;
            rustix::fs::unlinkat(dir, &name, AtFlags::empty())?;
            Ok(file)
        }
        other => other,
    }
}

/// A file without a name in the directory for temporary files, for reading and writing.
///
/// # Errors
/// What open(2) says of that directory.
pub fn temporary() -> io::Result<File> {
    let dir = super::Dir::open(&std::env::temp_dir())?;
    Ok(File::from(unnamed(dir.as_fd(), Mode::RUSR | Mode::WUSR)?))
}

pub(super) fn tmpfile(dir: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, ".", OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE, mode)
}

/// Whether a kernel or file system without O_TMPFILE says this.
pub(super) fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS)
}

/// Makes a file under a new name that begins with `prefix`.
pub(super) fn named(dir: BorrowedFd<'_>, prefix: &str, mode: Mode) -> Result<(OwnedFd, CString), Errno> {
    /// Names that may be taken, by processes with our number in other PID namespaces.
    const ATTEMPTS: u32 = 1000;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name =
            CString::new(format!("{prefix}-{}-{number}", std::process::id())).map_err(|_| Errno::INVAL)?;
        match rustix::fs::openat(dir, &name, flags, mode) {
            Ok(file) => return Ok((file, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Dir;

    const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

    #[test]
    fn a_file_without_a_name_has_none_either_way() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let file = unnamed(held.as_fd(), MODE).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_nlink, 0);
        let (file, name) = named(held.as_fd(), ".iowhy-scratch", MODE).unwrap();
        assert_eq!(held.entries().unwrap().len(), 1);
        held.remove_file(&name).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_nlink, 0);
        assert_eq!(held.entries().unwrap(), []);
    }
}
