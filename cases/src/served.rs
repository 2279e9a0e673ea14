//! A file system that a thread of this program serves through `/dev/fuse`: one folder with one file. No library and no helper
//! program; root mounts it. Answers can be delayed by known times. May not enter: what is checked on it.
//!
//! Format: `include/uapi/linux/fuse.h` of the kernel, interface 7.31. What is not answered here is refused as unknown, which
//! the kernel takes as "not supported".
//!
//! Invariant: the mount is taken away when the value is dropped, and one that a killed run has left, before the next.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags};

/// The name that the kernel lists it under: `fuse.` and this.
const SUBTYPE: &str = "iowhylab";
/// Its one file.
pub const FILE: &str = "file";
const FILE_BYTES: u64 = 4 << 20;
/// The kernel asks for no more at once; and it wants room for this and a page.
const MAX_BYTES: usize = 128 << 10;

const FOLDER_NODE: u64 = 1;
const FILE_NODE: u64 = 2;
const HEADER_BYTES: usize = 40;
const NO_SUCH_FILE: i32 = 2;
const NOT_SUPPORTED: i32 = 38;
/// What was read stays in the page cache when the file is opened again.
const KEEP_CACHE: u32 = 1 << 1;
/// The kernel may have several requests of read-ahead under way and does not wait within the request.
const ASYNC_READ: u32 = 1;
/// How long the kernel may keep facts, where asking for them takes no time.
const VALID_S: u64 = 60;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

/// How the server behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// An answer to a read comes after this time.
    pub read: Duration,
    /// An answer about a name or its attributes comes after this time, and the kernel may not keep it.
    pub names: Duration,
    /// The kernel need not wait for a read within the request (most servers).
    pub async_reads: bool,
}

/// The file system, mounted and served.
pub struct Served {
    /// Where.
    pub at: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Mounts it in a folder that is made for it.
    ///
    /// # Errors
    /// Why there is none here, in words.
    pub fn mount(at: &Path, manner: Manner) -> Result<Served, String> {
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|e| format!("cannot open /dev/fuse: {e}"))?;
        // Left by a run that was killed: its server is gone, and whoever looks inside gets an error.
        let _ = rustix::mount::unmount(at, UnmountFlags::DETACH);
        std::fs::create_dir_all(at).map_err(|e| format!("cannot make {}: {e}", at.display()))?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = CString::new(options).map_err(|_| "an option holds a zero byte".to_owned())?;
        let kind = format!("fuse.{SUBTYPE}");
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
        rustix::mount::mount(SUBTYPE, at, kind, flags, &*options)
            .map_err(|e| format!("cannot mount at {}: {e}", at.display()))?;
        Ok(Served { at: at.to_owned(), thread: Some(std::thread::spawn(move || serve(device, manner))) })
    }

    /// Its file.
    pub fn file(&self) -> String {
        self.at.join(FILE).display().to_string()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Detached: it is gone from the tree at once, whoever still has a file open, and the server ends with the last.
        if let Err(error) = rustix::mount::unmount(&self.at, UnmountFlags::DETACH) {
            eprintln!("cannot unmount {}: {error}", self.at.display());
            return;
        }
        // It ends when the kernel closes the connection.
        let _ = self.thread.take().map(JoinHandle::join);
        // Only ever an empty folder.
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// Answers until the kernel closes the connection.
fn serve(mut device: File, manner: Manner) {
    let mut request = vec![0; MAX_BYTES + 4096];
    // An error of reading is the end of the mount; an answer nobody waits for any more is none of our business.
    while let Ok(got) = device.read(&mut request) {
        let Some(answer) = request.get(..got).and_then(|request| reply(request, manner)) else { continue };
        std::thread::sleep(delay(&request, manner));
        let _ = device.write_all(&answer);
    }
}

/// How long the answer to a request takes.
fn delay(request: &[u8], manner: Manner) -> Duration {
    match request.get(4..8).and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?))) {
        Some(READ) => manner.read,
        Some(LOOKUP | GETATTR | OPEN) => manner.names,
        _ => Duration::ZERO,
    }
}

/// The answer to a request, with its header; `None` where none is wanted.
fn reply(request: &[u8], manner: Manner) -> Option<Vec<u8>> {
    let valid_s = if manner.names.is_zero() { VALID_S } else { 0 };
    let word = |at: usize| Some(u32::from_le_bytes(request.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(request.get(at..at + 8)?.try_into().ok()?));
    let (operation, unique, node) = (word(4)?, long(8)?, long(16)?);
    let said = match operation {
        FORGET | BATCH_FORGET | INTERRUPT => return None,
        INIT => Ok(init(word(HEADER_BYTES + 8)?, manner)),
        GETATTR => Ok([long_bytes(&[valid_s]), word_bytes(&[0, 0]), attributes(node)].concat()),
        LOOKUP if request.get(HEADER_BYTES..)?.starts_with(b"file\0") => {
            let entry = long_bytes(&[FILE_NODE, 0, valid_s, valid_s]);
            Ok([entry, word_bytes(&[0, 0]), attributes(FILE_NODE)].concat())
        }
        LOOKUP => Err(NO_SUCH_FILE),
        OPEN => Ok([long_bytes(&[0]), word_bytes(&[KEEP_CACHE, 0])].concat()),
        OPENDIR => Ok(vec![0; 16]),
        READ => Ok(content(long(HEADER_BYTES + 8)?, word(HEADER_BYTES + 16)?)),
        STATFS => Ok(vec![0; 80]),
        READDIR | RELEASE | RELEASEDIR | FLUSH | DESTROY => Ok(Vec::new()),
        _ => Err(NOT_SUPPORTED),
    };
    let (error, data) = match said {
        Ok(data) => (0, data),
        Err(number) => (-number, Vec::new()),
    };
    let mut answer = word_bytes(&[(16 + data.len()) as u32, error as u32]);
    answer.extend_from_slice(&unique.to_le_bytes());
    answer.extend_from_slice(&data);
    Some(answer)
}

/// `fuse_init_out`.
fn init(read_ahead: u32, manner: Manner) -> Vec<u8> {
    let flags = if manner.async_reads { ASYNC_READ } else { 0 };
    let mut out = word_bytes(&[7, 31, read_ahead, flags]);
    // Requests under way, and from when on the kernel slows down: its own choice.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&word_bytes(&[MAX_BYTES as u32, 1]));
    out.resize(64, 0);
    out
}

/// `fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    const FOLDER: u32 = 0o040_755;
    const REGULAR: u32 = 0o100_444;
    let (mode, bytes) = if node == FOLDER_NODE { (FOLDER, 0) } else { (REGULAR, FILE_BYTES) };
    let mut out = long_bytes(&[node, bytes, bytes.div_ceil(512), 0, 0, 0]);
    // Parts of times, mode, links, owner, group, device, block size, flags.
    out.extend_from_slice(&word_bytes(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
    out
}

/// A part of the file: every word holds its own place.
fn content(at: u64, bytes: u32) -> Vec<u8> {
    let end = at.saturating_add(u64::from(bytes)).min(FILE_BYTES);
    let first = at.min(end);
    let words: Vec<u8> = (first / 8..end.div_ceil(8)).flat_map(|word| (word * 8).to_le_bytes()).collect();
    let skip = (first % 8) as usize;
    words.get(skip..skip + (end - first) as usize).unwrap_or(&[]).to_vec()
}

fn word_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn long_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut request = word_bytes(&[(HEADER_BYTES + body.len()) as u32, operation]);
        request.extend_from_slice(&long_bytes(&[77, node, 0, 0]));
        request.extend_from_slice(body);
        request
    }

    fn error(answer: &[u8]) -> i32 {
        i32::from_le_bytes(answer[4..8].try_into().unwrap())
    }

    #[test]
    fn answers_have_the_sizes_that_the_kernel_expects() {
        let sizes = [
            (INIT, long_bytes(&[0; 8]), 64),
            (LOOKUP, b"file\0".to_vec(), 128),
            (GETATTR, vec![0; 16], 104),
            (OPEN, vec![0; 8], 16),
            (STATFS, Vec::new(), 80),
            (FLUSH, vec![0; 24], 0),
        ];
        for (operation, body, bytes) in sizes {
            let answer = reply(&request(operation, FILE_NODE, &body), Manner::default()).unwrap();
            assert_eq!((answer.len(), error(&answer)), (16 + bytes, 0), "operation {operation}");
            assert_eq!(answer[..4], ((16 + bytes) as u32).to_le_bytes());
            assert_eq!(answer[8..16], 77u64.to_le_bytes());
        }
    }

    #[test]
    fn what_is_not_there_and_what_is_not_known_is_refused() {
        let reply = |request: &[u8]| reply(request, Manner::default());
        assert_eq!(error(&reply(&request(LOOKUP, 1, b"files\0")).unwrap()), -NO_SUCH_FILE);
        assert_eq!(error(&reply(&request(9999, 1, &[])).unwrap()), -NOT_SUPPORTED);
        assert_eq!(reply(&request(FORGET, 1, &[0; 8])), None);
        assert_eq!(reply(&[1, 2, 3]), None);
    }

    #[test]
    fn each_kind_of_request_has_its_delay() {
        let of_ms = Duration::from_millis;
        let manner = Manner { read: of_ms(2), names: of_ms(3), async_reads: true };
        for (operation, time) in
            [(READ, of_ms(2)), (LOOKUP, of_ms(3)), (GETATTR, of_ms(3)), (FLUSH, of_ms(0))]
        {
            assert_eq!(
                delay(&request(operation, FILE_NODE, &[0; 24]), manner),
                time,
                "operation {operation}"
            );
        }
    }

    #[test]
    fn the_file_reads_the_same_in_any_pieces_and_ends() {
        let whole = content(0, 100);
        assert_eq!(whole.len(), 100);
        assert_eq!([content(0, 13), content(13, 87)].concat(), whole);
        assert_eq!(content(FILE_BYTES - 3, 4096).len(), 3);
        assert!(content(FILE_BYTES + 10, 4096).is_empty());
    }
}
