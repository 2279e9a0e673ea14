//! Who may change what is in a directory: the user as whom this thread makes files, and others.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Stat, Uid};

/// The user as whom this thread makes files: the file system user id (credentials(7)).
pub fn owner() -> Uid {
    // SAFETY: setfsuid(2) with an id that cannot exist changes nothing and returns the present one.
    let present = unsafe { libc::setfsuid(libc::uid_t::MAX) };
    Uid::from_raw(present as u32)
}

/// Whether other users than us could exchange what we make in this directory: it belongs to another, or others may write
/// to it and it is not sticky.
///
/// # Errors
/// What fstat(2) says.
pub(super) fn others_may_exchange(dir: BorrowedFd<'_>) -> io::Result<bool> {
    let stat = rustix::fs::fstat(dir)?;
    let sticky = stat.st_mode & 0o1000 != 0;
    Ok(stat.st_uid != owner().as_raw() || (stat.st_mode & 0o022 != 0 && !sticky))
}

/// Whether a file or directory belongs to us and only we may write to it.
pub(super) fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == owner().as_raw() && stat.st_mode & 0o022 == 0
}
