//! What one thread does with each small file.
//!
//! What may not enter: allocation between the start and the end of the time, and names that were not made ready before.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use iowhy_core::replay::{OnFile, PlanTree};
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, StatxFlags};
use rustix::io::Errno;

use super::small_files::{Names, Ready};
use iowhy_probe::buffer::Buffer;
use iowhy_probe::tree::Spot;

/// Buffer of a listing, as the C library and Rust's have it.
const LISTING_BYTES: usize = 32 << 10;

/// Handles of one thread.
pub(super) struct Handling<'a> {
    tree: &'a PlanTree,
    ready: &'a Ready,
    /// Opened for reading.
    source: Option<OwnedFd>,
    /// Made.
    target: Option<OwnedFd>,
    listing: Vec<MaybeUninit<u8>>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Handled {
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

impl<'a> Handling<'a> {
    pub(super) fn new(tree: &'a PlanTree, ready: &'a Ready) -> Handling<'a> {
        let listing = if tree.does(OnFile::List) { LISTING_BYTES } else { 0 };
        Handling { tree, ready, source: None, target: None, listing: vec![MaybeUninit::uninit(); listing] }
    }

    /// Bytes that a thread needs for what is read and written.
    pub(super) fn buffer_bytes(tree: &PlanTree) -> u64 {
        tree.life.iter().map(|touch| touch.bytes).max().unwrap_or(0)
    }

    /// Does with this file what is done with each.
    pub(super) fn file(&mut self, number: u64, buffer: &mut Buffer) -> Result<Handled, Problem> {
        let mut handled = Handled::default();
        let tree = self.tree;
        for touch in &tree.life {
            for _ in 0..touch.times(number) {
                handled.calls += touch.what.calls();
                match self.touch(touch.what, touch.bytes as usize, number, buffer) {
                    Ok(moved) => handled.bytes += moved as u64,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(self.failed(touch.what, number, errno)),
                }
            }
        }
        // What a program keeps open at the end of a file's life is closed all the same.
        (self.source, self.target) = (None, None);
        Ok(handled)
    }

    #[inline]
    fn touch(
        &mut self,
        what: OnFile,
        bytes: usize,
        number: u64,
        buffer: &mut Buffer,
    ) -> Result<usize, Errno> {
        // Of several folders that are listed, each in turn.
        let none = Errno::NOENT;
        match what {
            OnFile::List => {
                let there =
                    if self.ready.read.folders.is_empty() { &self.ready.made } else { &*self.ready.read };
                let folders = &there.folders;
                let per_folder = (self.tree.files / (folders.len().max(1) as u64)).max(1);
                let at = (number / per_folder) as usize % folders.len().max(1);
                list(there, folders.get(at).ok_or(none)?, &mut self.listing)
            }
            OnFile::Examine => {
                self.examine(&self.ready.read, name(&self.ready.read.files, number).ok_or(none)?)
            }
            OnFile::Miss => {
                let names = if self.tree.is_made() { &self.ready.made } else { &*self.ready.read };
                match self.examine(names, name(&names.missing, number).ok_or(none)?) {
                    Err(Errno::NOENT) => Ok(0),
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            OnFile::Open => {
                let names = &self.ready.read;
                let spot = name(&names.files, number).ok_or(none)?;
                self.source = Some(spot.open(&names.anchors, OFlags::empty())?);
                Ok(0)
            }
            OnFile::Make => {
                let names = &self.ready.made;
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
                // Files are no terminals: that is the answer.
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
                // What is read and what is written count, as with the two calls.
                rustix::fs::copy_file_range(from, None, to, None, bytes).map(|copied| 2 * copied)
            }
            OnFile::Close => {
                if self.target.take().is_none() {
                    self.source = None;
                }
                Ok(0)
            }
            OnFile::Remove => {
                let names = &self.ready.made;
                let spot = name(&names.files, number).ok_or(none)?;
                spot.dir(&names.anchors)?.remove_file(spot.path()).map(|()| 0)
            }
        }
    }

    fn last(&self) -> Option<&OwnedFd> {
        self.target.as_ref().or(self.source.as_ref())
    }

    fn examine(&self, names: &Names, spot: &Spot) -> Result<usize, Errno> {
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
            OnFile::List => "listing the folder of",
            OnFile::Examine | OnFile::ExamineOpen | OnFile::Miss => "examining",
            OnFile::Open => "opening",
            OnFile::Make => "making",
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

/// All entries of a folder.
fn list(names: &Names, folder: &Spot, buffer: &mut [MaybeUninit<u8>]) -> Result<usize, Errno> {
    let folder = folder.open(&names.anchors, OFlags::DIRECTORY)?;
    let mut listing = RawDir::new(&folder, buffer);
    while let Some(entry) = listing.next() {
        entry?;
    }
    Ok(0)
}
