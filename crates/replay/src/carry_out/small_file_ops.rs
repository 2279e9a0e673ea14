//! The calls of one thread on each small file. It allocates nothing while it is timed, and uses prepared names only.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use iowhy_core::replay::{OnFile, PlanTree};
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, StatxFlags};
use rustix::io::Errno;

use super::scratch_trees::{Names, RunNames};
use iowhy_probe::buffer::Buffer;
use iowhy_probe::tree::Spot;

/// Buffer of a directory listing, as in the C library and in Rust's.
const LISTING_BYTES: usize = 32 << 10;

pub(super) struct SmallFileOps<'a> {
    tree: &'a PlanTree,
    names: &'a RunNames,
    /// Open for reading.
    source: Option<OwnedFd>,
    /// Created.
    target: Option<OwnedFd>,
    listing: Vec<MaybeUninit<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

impl<'a> SmallFileOps<'a> {
    pub(super) fn new(tree: &'a PlanTree, names: &'a RunNames) -> SmallFileOps<'a> {
        let listing = if tree.does(OnFile::List) { LISTING_BYTES } else { 0 };
        SmallFileOps {
            tree,
            names,
            source: None,
            target: None,
            listing: vec![MaybeUninit::uninit(); listing],
        }
    }

    /// Size of the buffer that a thread needs.
    pub(super) fn buffer_bytes(tree: &PlanTree) -> u64 {
        tree.life.iter().map(|touch| touch.bytes).max().unwrap_or(0)
    }

    /// All calls on one file.
    pub(super) fn file(&mut self, number: u64, buffer: &mut Buffer) -> Result<Counts, Problem> {
        let mut counts = Counts::default();
        let tree = self.tree;
        for touch in &tree.life {
            for _ in 0..touch.times(number) {
                counts.calls += touch.what.calls();
                match self.call(touch.what, touch.bytes as usize, number, buffer) {
                    Ok(moved) => counts.bytes += moved as u64,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(self.failed(touch.what, number, errno)),
                }
            }
        }
        // Also closes what the program kept open.
        (self.source, self.target) = (None, None);
        Ok(counts)
    }

    #[inline]
    fn call(&mut self, what: OnFile, bytes: usize, number: u64, buffer: &mut Buffer) -> Result<usize, Errno> {
        let none = Errno::NOENT;
        match what {
            OnFile::List => self.list_folder(number),
            OnFile::Examine => self.stat(&self.names.read, name(&self.names.read.files, number).ok_or(none)?),
            OnFile::Miss => self.miss(number),
            OnFile::Open => {
                let names = &self.names.read;
                let spot = name(&names.files, number).ok_or(none)?;
                self.source = Some(spot.open(&names.anchors, OFlags::empty())?);
                Ok(0)
            }
            OnFile::Make => {
                let names = &self.names.made;
                let spot = name(&names.files, number).ok_or(none)?;
                let dir = spot.dir(&names.anchors)?;
                let mode = Mode::from_raw_mode(0o644);
                self.target = Some(dir.create_new(spot.path(), OFlags::WRONLY, mode)?);
                Ok(0)
            }
            OnFile::ExamineOpen => match (self.last(), self.tree.statx) {
                (Some(fd), true) => {
                    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::ALL).map(|_| 0)
                }
                (Some(fd), false) => rustix::fs::fstat(fd).map(|_| 0),
                (None, _) => Err(Errno::BADF),
            },
            OnFile::Advise => {
                let fd = self.last().ok_or(Errno::BADF)?;
                rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::Sequential).map(|()| 0)
            }
            OnFile::Ask => {
                let fd = self.last().ok_or(Errno::BADF)?;
                // Fails with ENOTTY, as for the program.
                let _ = rustix::termios::tcgetattr(fd);
                Ok(0)
            }
            OnFile::Seek => {
                let fd = self.last().ok_or(Errno::BADF)?;
                rustix::fs::seek(fd, rustix::fs::SeekFrom::Current(0)).map(|_| 0)
            }
            OnFile::Read => {
                let fd = self.source.as_ref().ok_or(Errno::BADF)?;
                rustix::io::read(fd, buffer.front_mut(bytes))
            }
            OnFile::Write => {
                let fd = self.target.as_ref().ok_or(Errno::BADF)?;
                rustix::io::write(fd, buffer.front(bytes))
            }
            OnFile::Copy => {
                let (from, to) = self.source.as_ref().zip(self.target.as_ref()).ok_or(Errno::BADF)?;
                // Bytes read and bytes written, as with two calls.
                rustix::fs::copy_file_range(from, None, to, None, bytes).map(|copied| 2 * copied)
            }
            OnFile::Close => {
                if self.target.take().is_none() {
                    self.source = None;
                }
                Ok(0)
            }
            OnFile::Remove => {
                let names = &self.names.made;
                let spot = name(&names.files, number).ok_or(none)?;
                spot.dir(&names.anchors)?.remove_file(spot.path()).map(|()| 0)
            }
        }
    }

    fn list_folder(&mut self, number: u64) -> Result<usize, Errno> {
        let there = if self.names.read.folders.is_empty() { &self.names.made } else { &*self.names.read };
        let folders = &there.folders;
        let per_folder = (self.tree.files / (folders.len().max(1) as u64)).max(1);
        let at = (number / per_folder) as usize % folders.len().max(1);
        list(there, folders.get(at).ok_or(Errno::NOENT)?, &mut self.listing)
    }

    fn miss(&self, number: u64) -> Result<usize, Errno> {
        let names = if self.tree.is_made() { &self.names.made } else { &*self.names.read };
        match self.stat(names, name(&names.missing, number).ok_or(Errno::NOENT)?) {
            Err(Errno::NOENT) => Ok(0),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        }
    }

    fn last(&self) -> Option<&OwnedFd> {
        self.target.as_ref().or(self.source.as_ref())
    }

    fn stat(&self, names: &Names, spot: &Spot) -> Result<usize, Errno> {
        let dir = spot.dir(&names.anchors)?;
        if self.tree.statx {
            rustix::fs::statx(dir, spot.path(), AtFlags::empty(), StatxFlags::ALL).map(|_| 0)
        } else {
            rustix::fs::statat(dir, spot.path(), AtFlags::empty()).map(|_| 0)
        }
    }

    #[cold]
    fn failed(&self, what: OnFile, number: u64, errno: Errno) -> Problem {
        let doing = match what {
            OnFile::List => "listing the directory of",
            OnFile::Examine | OnFile::ExamineOpen | OnFile::Miss => "examining",
            OnFile::Open => "opening",
            OnFile::Make => "creating",
            OnFile::Remove => "removing",
            OnFile::Write | OnFile::Copy => "writing",
            _ => "reading",
        };
        let error = std::io::Error::from(errno);
        let parent = &self.tree.parent;
        let problem =
            Problem::failed(format!("{doing} file {number} of a scratch tree in `{parent}` failed: {error}"));
        match errno {
            Errno::NOSPC | Errno::DQUOT => {
                problem.hint("make room on that file system; nothing was left on it")
            }
            _ => problem,
        }
    }
}

fn name(names: &[Spot], number: u64) -> Option<&Spot> {
    names.get(usize::try_from(number).ok()?)
}

/// Reads all entries of a directory.
fn list(names: &Names, folder: &Spot, buffer: &mut [MaybeUninit<u8>]) -> Result<usize, Errno> {
    let folder = folder.open(&names.anchors, OFlags::DIRECTORY)?;
    let mut listing = RawDir::new(&folder, buffer);
    while let Some(entry) = listing.next() {
        entry?;
    }
    Ok(0)
}
