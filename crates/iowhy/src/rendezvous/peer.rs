//! Another process of a run, and whether it lives.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use iowhy_linux::names::Dir;
use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;

use super::message::Member;
use super::offset::Offset;
use crate::record::rank::RankRecord;

/// Another rank, as the first one knows it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) member: Member,
    /// Its request, whose lock shows that it lives.
    pub(super) name: CString,
    pub(super) file: OwnedFd,
    pub(super) same_kernel: bool,
    pub(super) offset: Offset,
    /// When the last message to it was written.
    pub(super) told_unix_ns: i64,
}

/// What is known of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Lives,
    Ended,
    /// Another kernel, or no locks.
    Unknown,
}

/// Whether two processes run on one kernel, and so share locks and clock.
pub(super) fn is_same_kernel(one: &RankRecord, other: &RankRecord) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether the process that made a file still has it locked.
pub(super) fn life_by_lock(file: &OwnedFd) -> Life {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = flock(file, FlockOperation::Unlock);
            Life::Ended
        }
        Err(Errno::WOULDBLOCK) => Life::Lives,
        Err(_) => Life::Unknown,
    }
}

/// Whether a name still leads to an open file.
pub(super) fn is_there(dir: &Dir, name: &CStr, file: &OwnedFd) -> bool {
    match (dir.stat(name), fstat(file)) {
        (Ok(named), Ok(held)) => (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino),
        _ => false,
    }
}
