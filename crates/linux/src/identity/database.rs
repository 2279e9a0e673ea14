//! The database of users and groups, as the C library reads it: files, and whatever `nsswitch.conf` adds.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use iowhy_core::problem::Problem;

/// An entry of passwd(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Login name.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Home directory.
    pub home: PathBuf,
    /// Login shell.
    pub shell: PathBuf,
}

/// Where users are looked up.
pub trait Users {
    /// The entry of a name.
    ///
    /// # Errors
    /// The database cannot be read.
    fn by_name(&self, name: &str) -> Result<Option<Entry>, Problem>;

    /// The entry of a number.
    ///
    /// # Errors
    /// The database cannot be read.
    fn by_uid(&self, uid: u32) -> Result<Option<Entry>, Problem>;

    /// All groups of a user, `gid` among them.
    fn groups(&self, name: &str, gid: u32) -> Vec<u32>;
}

/// The database of this system.
#[derive(Clone, Copy, Debug)]
pub struct SystemUsers;

/// Longest entry that is read.
const MAX_ENTRY_BYTES: usize = 1 << 20;
/// NGROUPS_MAX of Linux.
const MAX_GROUPS: usize = 65_536;

type Buffer = Vec<libc::c_char>;

impl Users for SystemUsers {
    fn by_name(&self, name: &str) -> Result<Option<Entry>, Problem> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        look_up(|entry, buffer: &mut Buffer, found| {
            // SAFETY: the name ends in a zero byte; entry, buffer (with its length) and result are the caller's own.
            unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found) }
        })
    }

    fn by_uid(&self, uid: u32) -> Result<Option<Entry>, Problem> {
        look_up(|entry, buffer: &mut Buffer, found| {
            // SAFETY: entry, buffer (with its length) and result are the caller's own.
            unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), found) }
        })
    }

    fn groups(&self, name: &str, gid: u32) -> Vec<u32> {
        let Ok(name) = CString::new(name) else { return vec![gid] };
        let mut groups: Vec<libc::gid_t> = vec![0; 64];
        loop {
            let mut count = libc::c_int::try_from(groups.len()).unwrap_or(libc::c_int::MAX);
            // SAFETY: the name ends in a zero byte, and the array has room for `count` groups.
            let rc = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
            if rc >= 0 {
                groups.truncate(usize::try_from(count).unwrap_or(0));
                return groups;
            }
            if groups.len() >= MAX_GROUPS {
                return vec![gid];
            }
            groups.resize(groups.len() * 4, 0);
        }
    }
}

/// Calls a function of the getpwnam_r(3) family with a buffer that grows until the entry fits.
fn look_up(
    call: impl Fn(*mut libc::passwd, &mut Buffer, *mut *mut libc::passwd) -> libc::c_int,
) -> Result<Option<Entry>, Problem> {
    let mut buffer: Buffer = vec![0; 4096];
    loop {
        // SAFETY: of a structure of numbers and pointers all zeros is a value.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        match call(&mut entry, &mut buffer, &mut found) {
            0 if found.is_null() => return Ok(None),
            // SAFETY: the call succeeded: the strings of the entry end in zero bytes and lie in `buffer`, which is alive.
            0 => return Ok(Some(unsafe { copied(&entry) })),
            libc::EINTR => {}
            libc::ERANGE if buffer.len() < MAX_ENTRY_BYTES => buffer.resize(buffer.len() * 4, 0),
            // What systems answer for "no such user" (getpwnam(3)).
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            errno => {
                let error = std::io::Error::from_raw_os_error(errno);
                return Err(Problem::refused(format!("the database of users cannot be read: {error}"))
                    .hint("see whether `getent passwd` works; or keep root with `--as-root`"));
            }
        }
    }
}

/// # Safety
/// Each pointer of the entry is null or leads to a string that ends in a zero byte.
unsafe fn copied(entry: &libc::passwd) -> Entry {
    let bytes = |pointer: *const libc::c_char| match pointer.is_null() {
        true => &[][..],
        // SAFETY: promised by the caller.
        false => unsafe { CStr::from_ptr(pointer) }.to_bytes(),
    };
    Entry {
        name: String::from_utf8_lossy(bytes(entry.pw_name)).into_owned(),
        uid: entry.pw_uid,
        gid: entry.pw_gid,
        home: PathBuf::from(OsStr::from_bytes(bytes(entry.pw_dir))),
        shell: PathBuf::from(OsStr::from_bytes(bytes(entry.pw_shell))),
    }
}
