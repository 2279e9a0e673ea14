//! Opens regular files and nothing else: opening a device, a FIFO or a socket can act, wait, or make a terminal ours.
//!
//! Non-goal: making names. Invariant: the file whose type was examined is the file that is opened, whatever happens to its
//! name meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A regular file that was found by name and is not open yet. A program that holds a lease on it notices nothing.
#[derive(Debug)]
pub struct Regular {
    /// A descriptor with O_PATH: it holds the file, and opens nothing.
    handle: OwnedFd,
    status: Stat,
}

impl Regular {
    /// The regular file that a path leads to, over symbolic links too; `OFlags::NOFOLLOW` in `flags` refuses a link as the
    /// last component.
    ///
    /// # Errors
    /// The path leads nowhere or may not be searched; what it leads to is no regular file (`InvalidInput`).
    pub fn find(path: &Path, flags: OFlags) -> io::Result<Regular> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | (flags & OFlags::NOFOLLOW);
        let handle = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&handle)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Regular { handle, status })
    }

    /// Device and inode number.
    #[allow(clippy::useless_conversion)] // The width of the fields differs between machines.
    pub fn identity(&self) -> (u64, u64) {
        (u64::from(self.status.st_dev), u64::from(self.status.st_ino))
    }

    /// Whose it is: number of the user.
    pub fn owner(&self) -> u32 {
        self.status.st_uid
    }

    /// Whether nobody but we and root may write it.
    pub fn is_written_by_us_alone(&self) -> bool {
        let ours = [0, rustix::process::geteuid().as_raw()].contains(&self.owner());
        ours && !Mode::from_raw_mode(self.status.st_mode).intersects(Mode::WGRP | Mode::WOTH)
    }

    /// Size in bytes when it was found.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
    }

    /// Opens it. O_CLOEXEC and O_NOCTTY are added. A lease of another program fails the call (`WouldBlock`) instead of holding
    /// it up for the lease-break time.
    ///
    /// # Errors
    /// As open(2); `NotFound` also where `/proc` is not mounted.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        debug_assert!(!flags.intersects(OFlags::CREATE | OFlags::EXCL), "the file is there already");
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        // A link of /proc stands there, so O_NOFOLLOW would refuse it.
        let wanted = flags.difference(OFlags::NOFOLLOW);
        let added = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = rustix::fs::openat(CWD, path.as_str(), wanted | added, Mode::empty())?;
        if !flags.contains(OFlags::NONBLOCK) {
            // io_uring answers EAGAIN for reads of such a file that would have to wait.
            let now = rustix::fs::fcntl_getfl(&opened)?;
            rustix::fs::fcntl_setfl(&opened, now.difference(OFlags::NONBLOCK))?;
        }
        Ok(File::from(opened))
    }

    /// Opens it to be read, without a change of its access time where that is allowed.
    ///
    /// # Errors
    /// As [`Regular::open`].
    pub fn open_quietly(&self) -> io::Result<File> {
        match self.open(OFlags::RDONLY | OFlags::NOATIME) {
            // Only the owner may ask for it.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => self.open(OFlags::RDONLY),
            opened => opened,
        }
    }
}

/// Opens the regular file that a path leads to; see [`Regular::find`] and [`Regular::open`].
///
/// # Errors
/// What the path leads to is no regular file, and is not opened (`InvalidInput`); otherwise as open(2).
pub fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    Regular::find(path, flags)?.open(flags)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::inotify;

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "content").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink("fifo", at("link-to-fifo")).unwrap();

        let mut content = String::new();
        let mut file = open_regular(&at("link"), OFlags::RDONLY).unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "io_uring would not wait for its reads");
        open_regular(&at("file"), OFlags::RDWR).unwrap().write_all(b"C").unwrap();
        assert_eq!(std::fs::read(at("file")).unwrap(), b"Content");
        open_regular(&at("file"), OFlags::RDONLY | OFlags::NOFOLLOW).unwrap();

        // Opening a FIFO to write without a reader would fail, to read without a writer would wait.
        for name in ["fifo", "link-to-fifo", "."] {
            let error = open_regular(&at(name), OFlags::RDONLY).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        let link = open_regular(&at("link"), OFlags::RDONLY | OFlags::NOFOLLOW).unwrap_err();
        assert_eq!(link.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(open_regular(&at("none"), OFlags::RDONLY).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(open_regular(Path::new("/dev/null"), OFlags::RDONLY).is_err());
    }

    /// A name that changes between a file and a FIFO: the FIFO is never opened, which its other end would notice.
    #[test]
    fn a_fifo_in_the_place_of_the_file_is_never_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("name"), "content").unwrap();
        rustix::fs::mknodat(CWD, at("other"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let opens = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&opens, at("other"), inotify::WatchFlags::OPEN).unwrap();
        let seen = || rustix::io::read(&opens, &mut [0u8; 4096]).is_ok();
        rustix::fs::openat(CWD, at("other"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        assert!(seen(), "to open the FIFO is seen");
        let exchange = || {
            let how = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(CWD, at("name"), CWD, at("other"), how)
        };
        if let Err(error) = exchange() {
            eprintln!("skipped: names cannot be exchanged here: {error}");
            return;
        }
        let over = AtomicBool::new(false);
        let (opened, refused) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    exchange().unwrap();
                }
            });
            let (mut opened, mut refused) = (0, 0);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while (opened < 2000 || refused < 2000) && std::time::Instant::now() < until {
                match open_regular(&at("name"), OFlags::RDONLY) {
                    Ok(file) => {
                        assert!(file.metadata().unwrap().is_file());
                        opened += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
                        refused += 1;
                    }
                }
            }
            over.store(true, Ordering::Relaxed);
            (opened, refused)
        });
        assert!(opened > 0 && refused > 0, "both were met: {opened}, {refused}");
        assert!(!seen(), "the FIFO was opened");
    }
}
