//! Reads small files of `/proc` again and again without allocating.

use std::fmt::{Arguments, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// Buffers for paths and texts that grow to the longest seen and are then reused.
#[derive(Debug, Default)]
pub struct Reader {
    path: String,
    text: Vec<u8>,
}

/// First size of the buffer for texts: most files of `/proc` are shorter.
const FIRST_BYTES: usize = 4096;
/// A text longer than this is cut: `mountinfo` of a machine with many containers is some hundred KiB.
const MAX_BYTES: usize = 16 << 20;

impl Reader {
    /// Empty buffers.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// The bytes of the file; `None` when it cannot be read (the process is gone, or the kernel forbids it).
    pub fn read(&mut self, path: Arguments<'_>) -> Option<&[u8]> {
        let file = self.open(path)?;
        self.read_from(&file, false)
    }

    /// As [`Reader::read`], for texts that are ASCII by their nature; `None` also when they are not.
    pub fn text(&mut self, path: Arguments<'_>) -> Option<&str> {
        std::str::from_utf8(self.read(path)?).ok()
    }

    /// Opens a file of `/proc` or `/sys` to read it repeatedly with [`Reader::read_held`]. The descriptor belongs to the
    /// process that it was opened for: when that has ended, reading fails, even if its number is in use again.
    pub fn open(&mut self, path: Arguments<'_>) -> Option<OwnedFd> {
        self.path.clear();
        self.path.write_fmt(path).ok()?;
        rustix::fs::openat(CWD, self.path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
    }

    /// Reads a held file that the kernel writes in one piece (`stat`, `schedstat`, `stack`, `wchan`, `syscall` of a task)
    /// from its start. A list, such as `mountinfo`, may come in several pieces: see [`Reader::read_held_list`].
    pub fn read_held(&mut self, file: &OwnedFd) -> Option<&[u8]> {
        self.read_from(file, true)
    }

    /// Reads a held file that may come in several pieces, from its start.
    pub fn read_held_list(&mut self, file: &OwnedFd) -> Option<&[u8]> {
        self.read_from(file, false)
    }

    /// `one_piece`: a read that leaves room in the buffer was the last one, and a second one is saved.
    fn read_from(&mut self, file: &OwnedFd, one_piece: bool) -> Option<&[u8]> {
        if self.text.is_empty() {
            self.text.resize(FIRST_BYTES, 0);
        }
        let mut filled = 0;
        loop {
            match rustix::io::pread(file, &mut self.text[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            }
            if filled < self.text.len() {
                if one_piece {
                    break;
                }
            } else {
                if filled >= MAX_BYTES {
                    break;
                }
                self.text.resize(filled * 2, 0);
            }
        }
        Some(&self.text[..filled])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_read_whole_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = Reader::new();
        for length in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, 3 * FIRST_BYTES + 1, 5] {
            let path = folder.path().join("text");
            let text: Vec<u8> = (0..length).map(|i| i as u8).collect();
            std::fs::write(&path, &text).unwrap();
            let held = reader.open(format_args!("{}", path.display())).unwrap();
            assert_eq!(reader.read_held(&held), Some(&text[..]));
            assert_eq!(reader.read_held(&held), Some(&text[..]));
            assert_eq!(reader.read_held_list(&held), Some(&text[..]));
        }
        assert_eq!(reader.read(format_args!("{}/none", folder.path().display())), None);
        assert_eq!(reader.read(format_args!("{}", folder.path().display())), None, "a directory");
    }

    #[test]
    fn a_held_file_of_a_process_that_is_gone_reads_nothing() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut reader = Reader::new();
        let held = reader.open(format_args!("/proc/{}/stat", child.id())).unwrap();
        assert!(reader.read_held(&held).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(reader.read_held(&held), None);
    }
}
