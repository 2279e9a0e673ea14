//! Messages as files in the directory of a rendezvous: each is created exclusively under a name of its own, and read only if it is
//! ours and complete.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use iowhy_linux::file_size;
use iowhy_linux::names::Dir;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The file of the first rank. It is locked as long as that process lives.
pub(super) const RUN: &CStr = c"run";
/// Why the run ended early.
pub(super) const END: &CStr = c"end";

/// Bytes of a message at most: the slices of a rank with thousands of cells.
const MAX_BYTES: u64 = 64 << 20;

/// The name by which a process asks to be let in.
pub(super) fn join(nonce: &str) -> CString {
    name(format!("join-{nonce}"))
}

/// The answer.
pub(super) fn welcome(nonce: &str) -> CString {
    name(format!("welcome-{nonce}"))
}

/// A rank has come to a meeting.
pub(super) fn ready(meeting: u64, rank: u64) -> CString {
    name(format!("ready-{meeting}-{rank}"))
}

/// All ranks have.
pub(super) fn go(meeting: u64) -> CString {
    name(format!("go-{meeting}"))
}

/// The nonce in the name of a request to be let in.
pub(super) fn nonce(name: &CStr) -> Option<&str> {
    name.to_str().ok()?.strip_prefix("join-")
}

fn name(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Whether iowhy makes files of this name.
fn is_known(name: &CStr) -> bool {
    let prefixes: [&[u8]; 4] = [b"join-", b"welcome-", b"ready-", b"go-"];
    name == RUN || name == END || prefixes.iter().any(|prefix| name.to_bytes().starts_with(prefix))
}

/// Writes a message, and locks it where the file system has locks, until the descriptor is closed.
///
/// # Errors
/// `EXIST` where the name is taken; what the system says. The name is gone then.
pub(super) fn write(dir: &Dir, name: &CStr, message: &impl Serialize) -> Result<OwnedFd, Errno> {
    let file = dir.create_new(name, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?;
    // First the lock: who reads a complete message may rely on it. Without locks nobody can see that this process lives.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let mut text = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    text.push(b'\n');
    let mut file = File::from(file);
    match file.write_all(&text) {
        Ok(()) => Ok(file.into()),
        Err(error) => {
            let _ = dir.remove_file(name);
            Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
    }
}

/// A message, once it is complete.
pub(super) fn read<T: DeserializeOwned>(dir: &Dir, name: &CStr) -> Option<T> {
    read_open(dir.open_ours(name, OFlags::RDONLY)?)
}

/// The message in an open file.
pub(super) fn read_open<T: DeserializeOwned>(file: OwnedFd) -> Option<T> {
    let mut text = Vec::new();
    File::from(file).take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(text.strip_suffix(b"\n")?).ok()
}

/// Removes what iowhy made in the directory. Other names stay.
pub(super) fn clear(dir: &Dir) {
    for entry in dir.entries().unwrap_or_default() {
        let regular = || {
            dir.stat(&entry.name)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
        };
        if is_known(&entry.name) && regular() {
            let _ = dir.remove_file(&entry.name);
        }
    }
}

/// The problem of a name that cannot be made.
pub(super) fn cannot_write(dir: &Dir, name: &CStr, errno: Errno) -> Problem {
    let (path, error) = (dir.path_of(name), std::io::Error::from(errno));
    let problem =
        Problem::failed(format!("cannot write `{}`, by which the ranks meet: {error}", path.display()));
    let problem = match errno {
        Errno::NOSPC | Errno::DQUOT => problem.hint(format!(
            "free space there (`df {}`): each rank needs its scratch file (`--size`) and a few blocks",
            dir.path().display()
        )),
        _ => problem.hint("name a directory that all ranks may write to"),
    };
    file_size::explained(problem, &error)
}
