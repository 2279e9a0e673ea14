//! The file-system identity of a thread: whose permissions count where it opens, makes and removes names.
//!
//! While it is not root's, the kernel also takes CAP_DAC_OVERRIDE and its kin from the thread (capabilities(7)). Invariant:
//! only the calling thread changes, by plain system calls: the C library's setgroups would change all threads.

use std::io;
use std::marker::PhantomData;

/// No user and no group: setfsuid(2) changes nothing and answers with what is.
const ASK: u32 = u32::MAX;

// On these machines the calls without a suffix take numbers of 16 bits.
#[cfg(any(target_arch = "x86", target_arch = "arm"))]
mod numbers {
    pub(super) use libc::{
        SYS_getgroups32 as GETGROUPS, SYS_setfsgid32 as SETFSGID, SYS_setfsuid32 as SETFSUID,
        SYS_setgroups32 as SETGROUPS, SYS_setresgid32 as SETRESGID, SYS_setresuid32 as SETRESUID,
    };
}
#[cfg(not(any(target_arch = "x86", target_arch = "arm")))]
mod numbers {
    pub(super) use libc::{
        SYS_getgroups as GETGROUPS, SYS_setfsgid as SETFSGID, SYS_setfsuid as SETFSUID,
        SYS_setgroups as SETGROUPS, SYS_setresgid as SETRESGID, SYS_setresuid as SETRESUID,
    };
}

pub(super) const SETRESGID: libc::c_long = numbers::SETRESGID;
pub(super) const SETRESUID: libc::c_long = numbers::SETRESUID;

/// To whom files belong that a thread makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOwner {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Further groups whose permissions count.
    pub groups: Vec<u32>,
}

/// The thread's file-system identity is another while this lives; the one before comes back when it is dropped. Bound to
/// its thread. Guards nest.
#[derive(Debug)]
#[must_use = "the identity before comes back when this is dropped"]
pub struct FilesAs {
    before: Option<Before>,
    _of_this_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Before {
    uid: u32,
    gid: u32,
    groups: Option<Vec<u32>>,
}

impl FileOwner {
    /// That of the calling thread, where it is not its effective user.
    pub fn of_thread() -> Option<FileOwner> {
        let uid = fs_uid(ASK);
        (uid != effective().0).then(|| FileOwner { uid, gid: fs_gid(ASK), groups: groups() })
    }

    /// Makes it that of the calling thread.
    ///
    /// # Errors
    /// The process may not become that user; then nothing has changed.
    pub fn enter(&self) -> io::Result<FilesAs> {
        let before = Before { uid: fs_uid(ASK), gid: fs_gid(ASK), groups: Some(groups()) };
        if (before.uid, before.gid, before.groups.as_ref()) == (self.uid, self.gid, Some(&self.groups)) {
            return Ok(FilesAs::unchanged());
        }
        if set_groups(&self.groups) != 0 {
            return Err(io::Error::last_os_error());
        }
        // From here on dropping it restores all.
        let guard = FilesAs { before: Some(before), _of_this_thread: PhantomData };
        set_ids(self.uid, self.gid);
        // A refused change is not told by the call, but by what is afterwards.
        if (fs_uid(ASK), fs_gid(ASK)) != (self.uid, self.gid) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(guard)
    }
}

impl FilesAs {
    /// Changes nothing, now or when it is dropped.
    pub fn unchanged() -> FilesAs {
        FilesAs { before: None, _of_this_thread: PhantomData }
    }
}

impl Drop for FilesAs {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        // Neither can fail: both are effective identities of the process, or were allowed before.
        set_ids(before.uid, before.gid);
        if let Some(groups) = before.groups {
            set_groups(&groups);
        }
    }
}

/// Within a guard of [`FileOwner::enter`]: the rights of this process's effective user, for what takes root (control
/// groups, settings, looks into the page cache).
pub fn as_self() -> FilesAs {
    let (uid, gid) = effective();
    let before = Before { uid: fs_uid(ASK), gid: fs_gid(ASK), groups: None };
    if (before.uid, before.gid) == (uid, gid) {
        return FilesAs::unchanged();
    }
    set_ids(uid, gid);
    FilesAs { before: Some(before), _of_this_thread: PhantomData }
}

/// Sets both. The signal that a helper process gets when its parent dies stays: the kernel drops it on such a change
/// (prctl(2), PR_SET_PDEATHSIG).
fn set_ids(uid: u32, gid: u32) {
    let mut signal: libc::c_int = 0;
    // SAFETY: the kernel writes one int to the address.
    let known = unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal, 0, 0, 0) } == 0;
    fs_gid(gid);
    fs_uid(uid);
    if known && signal != 0 {
        // SAFETY: takes plain numbers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::c_ulong::from(signal.unsigned_abs()), 0, 0, 0) };
    }
}

/// Effective user and group.
fn effective() -> (u32, u32) {
    // SAFETY: both calls take nothing and return plain numbers.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

fn fs_uid(uid: u32) -> u32 {
    // SAFETY: takes and returns plain numbers.
    unsafe { libc::syscall(numbers::SETFSUID, uid) as u32 }
}

fn fs_gid(gid: u32) -> u32 {
    // SAFETY: takes and returns plain numbers.
    unsafe { libc::syscall(numbers::SETFSGID, gid) as u32 }
}

/// Supplementary groups of the calling thread.
fn groups() -> Vec<u32> {
    // SAFETY: with a length of 0 nothing is written.
    let count = unsafe { libc::syscall(numbers::GETGROUPS, 0, std::ptr::null_mut::<u32>()) };
    let mut groups = vec![0u32; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the array has room for as many as are announced.
    let count = unsafe { libc::syscall(numbers::GETGROUPS, groups.len(), groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).unwrap_or(0));
    groups
}

/// Sets those of the calling thread; 0, or -1 with errno. Async-signal-safe.
pub(super) fn set_groups(groups: &[u32]) -> libc::c_long {
    // SAFETY: the pointer leads to as many numbers as are announced.
    unsafe { libc::syscall(numbers::SETGROUPS, groups.len(), groups.as_ptr()) }
}
