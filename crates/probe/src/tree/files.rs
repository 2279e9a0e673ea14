//! What is in a tree: files with their sizes and inodes, and the lists that threads take them from.
//!
//! What may not enter: timing. Invariant: a walk stays on one file system, follows no symbolic link and opens no file.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_linux::names::Dir;
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::mark::{MARK, MOVED};
use crate::interrupt;

/// In which order a thread takes its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One directory after the other, as the directory itself lists them.
    Directory,
    /// By inode number, which on many file systems is the order on the disk.
    Inode,
    /// Random, from a seed.
    Random,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 3] = [Order::Directory, Order::Inode, Order::Random];

    /// The name in options and records.
    pub fn id(self) -> &'static str {
        match self {
            Order::Directory => "directory",
            Order::Inode => "inode",
            Order::Random => "random",
        }
    }
}

/// What a walk left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Symbolic links, devices, pipes and sockets.
    pub not_regular: u64,
    /// Files and directories that may not be looked at.
    pub forbidden: u64,
    /// Directories where another file system is mounted.
    pub other_file_system: u64,
    /// Whether the walk ended at the number of files that was asked for.
    pub cut: bool,
}

/// Files of a tree.
#[derive(Debug, Default)]
pub struct Files {
    anchors: Arc<Vec<Dir>>,
    directories: Vec<Folder>,
    entries: Vec<Entry>,
    /// Whether the files bear their second name.
    moved: bool,
    /// What a walk left out.
    pub passed_over: PassedOver,
}

/// A directory: an anchor, and the way down from it, empty where the anchor is the directory itself.
#[derive(Debug)]
struct Folder {
    anchor: u32,
    below: PathBuf,
}

/// A file or directory, as system calls name it: a directory that is held open, and a path from there without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    anchor: u32,
    path: CString,
}

#[derive(Debug)]
struct Entry {
    directory: u32,
    name: Box<OsStr>,
    bytes: u64,
    inode: u64,
}

/// How often an interrupt is looked for.
const LOOK_EVERY: usize = 256;

impl Files {
    /// Files that will be made: directories, and for each file its directory, name and size.
    pub(super) fn planned(anchors: Arc<Vec<Dir>>, files: impl Iterator<Item = (u32, String, u64)>) -> Files {
        let directories =
            (0..anchors.len() as u32).map(|anchor| Folder { anchor, below: PathBuf::new() }).collect();
        let entries = files
            .map(|(directory, name, bytes)| Entry {
                directory,
                name: OsString::from(name).into_boxed_os_str(),
                bytes,
                inode: 0,
            })
            .collect();
        Files { anchors, directories, entries, ..Files::default() }
    }

    /// The files that are in these directories, as they list them; not what lies deeper.
    pub(super) fn listed(anchors: Arc<Vec<Dir>>) -> Result<Files, Problem> {
        let mut files = Files::planned(Arc::clone(&anchors), std::iter::empty());
        for (number, dir) in anchors.iter().enumerate() {
            let held = |errno: Errno| cannot_list(dir.path(), &errno.into());
            let listing = files.directory(number as u32)?.open(&anchors, OFlags::DIRECTORY).map_err(held)?;
            let device = rustix::fs::fstat(dir).map_err(held)?.st_dev;
            files.list(number as u32, &listing, device, u64::MAX, &mut Vec::new(), &mut |_| {})?;
        }
        files.forget_empty_directories();
        Ok(files)
    }

    /// All regular files below `root`, `most` of them at most. `progress` is told how many there are so far.
    ///
    /// # Errors
    /// `root` itself cannot be listed; an interrupt.
    pub fn walk(root: &Path, most: u64, progress: &mut dyn FnMut(u64)) -> Result<Files, Problem> {
        let root = Dir::open(root).map_err(|error| cannot_list(root, &error))?;
        let refused = |errno: Errno| cannot_list(root.path(), &errno.into());
        let device = rustix::fs::fstat(root.as_fd()).map_err(refused)?.st_dev;
        root.entries().map_err(refused)?;
        let mut files = Files { anchors: Arc::new(vec![root]), ..Files::default() };
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let number = files.directories.len() as u32;
            files.directories.push(Folder { anchor: 0, below });
            let listing = files
                .directory(number)
                .and_then(|spot| files.open(&spot, OFlags::DIRECTORY).map_err(|_| Problem::failed("")));
            let Ok(listing) = listing else {
                files.directories.pop();
                files.passed_over.forbidden += 1;
                continue;
            };
            if files.list(number, &listing, device, most, &mut open, progress)? {
                break;
            }
        }
        Ok(files)
    }

    /// Takes in what stands in one directory. Whether there are as many files by now as were asked for.
    fn list(
        &mut self,
        number: u32,
        listing: &OwnedFd,
        device: u64,
        most: u64,
        open: &mut Vec<PathBuf>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<bool, Problem> {
        for entry in rustix::fs::Dir::read_from(listing).into_iter().flatten() {
            let name = entry.as_ref().map(|entry| entry.file_name().to_owned());
            if name.as_ref().is_ok_and(|name| name.as_c_str() == c"." || name.as_c_str() == c"..") {
                continue;
            }
            // Of the entry itself: a symbolic link is neither file nor directory here.
            let stat = |name: &CStr| rustix::fs::statat(listing, name, AtFlags::SYMLINK_NOFOLLOW).ok();
            let Some((name, stat)) =
                name.ok().and_then(|name| Some((stat(&name)?, name))).map(|(s, n)| (n, s))
            else {
                self.passed_over.forbidden += 1;
                continue;
            };
            let name = OsStr::from_bytes(name.to_bytes());
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if stat.st_dev == device => {
                    let below = self.directories.get(number as usize).map(|folder| folder.below.join(name));
                    open.extend(below);
                }
                FileType::Directory => self.passed_over.other_file_system += 1,
                FileType::RegularFile if name == MARK => {}
                FileType::RegularFile => {
                    if self.entries.len() as u64 >= most {
                        self.passed_over.cut = true;
                        return Ok(true);
                    }
                    self.entries.push(Entry {
                        directory: number,
                        name: name.to_owned().into_boxed_os_str(),
                        bytes: u64::try_from(stat.st_size).unwrap_or(0),
                        inode: stat.st_ino,
                    });
                    self.told(progress)?;
                }
                _ => self.passed_over.not_regular += 1,
            }
        }
        Ok(false)
    }

    fn told(&self, progress: &mut dyn FnMut(u64)) -> Result<(), Problem> {
        if !self.entries.len().is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        progress(self.entries.len() as u64);
        if interrupt::requested() {
            let root = self.anchors.first().map_or(Path::new("."), Dir::path);
            return Err(Problem::failed(format!("interrupted while listing `{}`", root.display())));
        }
        Ok(())
    }

    /// Forgets directories without a file of their own, such as the one above those of a scratch tree.
    fn forget_empty_directories(&mut self) {
        let mut used = vec![false; self.directories.len()];
        for entry in &self.entries {
            if let Some(used) = used.get_mut(entry.directory as usize) {
                *used = true;
            }
        }
        let mut number = 0;
        let numbers: Vec<u32> = used
            .iter()
            .map(|used| {
                number += u32::from(*used);
                number.saturating_sub(1)
            })
            .collect();
        for entry in &mut self.entries {
            entry.directory = numbers.get(entry.directory as usize).copied().unwrap_or(0);
        }
        let mut used = used.into_iter();
        self.directories.retain(|_| used.next().unwrap_or(false));
    }

    /// How many files.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many directories.
    pub fn directories(&self) -> u64 {
        self.directories.len() as u64
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.bytes))
    }

    /// Size of a file; 0 for a number that is none.
    pub fn size(&self, file: u32) -> u64 {
        self.entries.get(file as usize).map_or(0, |entry| entry.bytes)
    }

    /// Sizes at the given shares of the files, from the smallest to the largest. Empty without files.
    pub fn quantiles(&self, shares: &[f64]) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.entries.iter().map(|entry| entry.bytes).collect();
        sizes.sort_unstable();
        let Some(last) = sizes.len().checked_sub(1) else { return Vec::new() };
        shares.iter().map(|share| sizes[((share.clamp(0.0, 1.0) * last as f64).round()) as usize]).collect()
    }

    /// The path of the largest file that is not empty: what facts about the device are asked of.
    pub fn largest(&self) -> Option<PathBuf> {
        let entry = self.entries.iter().filter(|entry| entry.bytes > 0).max_by_key(|entry| entry.bytes)?;
        let folder = self.directories.get(entry.directory as usize)?;
        Some(self.anchors.get(folder.anchor as usize)?.path().join(&folder.below).join(&*entry.name))
    }

    /// Says that the files bear their second name from now on, or the first again.
    pub fn set_moved(&mut self, moved: bool) {
        self.moved = moved;
    }

    /// Whether the files bear their second name.
    pub(super) fn moved(&self) -> bool {
        self.moved
    }

    /// A file under its first or second name.
    pub fn spot(&self, file: u32, moved: bool) -> Result<Spot, Problem> {
        let found = self.entries.get(file as usize).and_then(|entry| {
            let folder = self.directories.get(entry.directory as usize)?;
            let mut path = folder.below.join(&*entry.name).into_os_string();
            if moved {
                path.push(MOVED);
            }
            Some(Spot { anchor: folder.anchor, path: CString::new(path.as_bytes()).ok()? })
        });
        found.ok_or_else(|| Problem::failed(format!("there is no file {file} in the tree")))
    }

    /// A directory.
    pub fn directory(&self, directory: u32) -> Result<Spot, Problem> {
        let found = self.directories.get(directory as usize).and_then(|folder| {
            let path = match folder.below.as_os_str().as_bytes() {
                b"" => c".".to_owned(),
                path => CString::new(path).ok()?,
            };
            Some(Spot { anchor: folder.anchor, path })
        });
        found.ok_or_else(|| Problem::failed(format!("there is no directory {directory} in the tree")))
    }

    /// The directories that are held open.
    pub fn anchors(&self) -> Arc<Vec<Dir>> {
        Arc::clone(&self.anchors)
    }

    fn open(&self, spot: &Spot, flags: OFlags) -> Result<OwnedFd, Errno> {
        spot.open(&self.anchors, flags)
    }

    /// A list of files for each of `readers`: disjoint, as even as may be, and the same for the same seed. With `each` only so
    /// many for each reader, chosen at random from all; without it, all.
    pub fn lists(&self, readers: usize, each: Option<u64>, order: Order, seed: u64) -> Vec<Vec<u32>> {
        let readers = readers.max(1);
        let mut all: Vec<u32> = (0..self.entries.len() as u32).collect();
        let wanted = each.map_or(u64::MAX, |each| each.saturating_mul(readers as u64));
        if order == Order::Random || wanted < all.len() as u64 {
            Rng::new(seed).shuffle(&mut all);
            all.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        }
        match order {
            Order::Random => {}
            // Numbers follow the directories' own lists.
            Order::Directory => all.sort_unstable(),
            Order::Inode => all.sort_by_key(|file| self.entries[*file as usize].inode),
        }
        split(&all, readers)
    }

    /// The directories, shared out among the readers.
    pub fn directory_lists(&self, readers: usize) -> Vec<Vec<u32>> {
        let all: Vec<u32> = (0..self.directories.len() as u32).collect();
        split(&all, readers.max(1))
    }
}

impl Spot {
    /// The directory that the path begins at.
    ///
    /// # Errors
    /// EBADF where it is of another tree.
    #[inline]
    pub fn dir<'d>(&self, anchors: &'d [Dir]) -> Result<&'d Dir, Errno> {
        anchors.get(self.anchor as usize).ok_or(Errno::BADF)
    }

    /// The path from there.
    #[inline]
    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// The same path with something behind it.
    pub fn with(&self, end: &str) -> Option<Spot> {
        let path = CString::new([self.path.to_bytes(), end.as_bytes()].concat()).ok()?;
        Some(Spot { anchor: self.anchor, path })
    }

    /// Opens it for reading; never through a link, and without waiting for a pipe.
    ///
    /// # Errors
    /// What openat2(2) says.
    #[inline]
    pub fn open(&self, anchors: &[Dir], flags: OFlags) -> Result<OwnedFd, Errno> {
        self.dir(anchors)?.open_below(&self.path, flags)
    }

    /// For messages.
    pub fn shown(&self, anchors: &[Dir]) -> PathBuf {
        let anchor = anchors.get(self.anchor as usize).map_or(Path::new(""), Dir::path);
        anchor.join(OsStr::from_bytes(self.path.to_bytes()))
    }
}

fn cannot_list(root: &Path, error: &std::io::Error) -> Problem {
    Problem::refused(format!("cannot list `{}`: {error}", root.display()))
        .hint("name a directory that you may read")
}

/// Parts that differ by one in length at most.
fn split(all: &[u32], parts: usize) -> Vec<Vec<u32>> {
    let (each, more) = (all.len() / parts, all.len() % parts);
    let mut at = 0;
    (0..parts)
        .map(|part| {
            let length = each + usize::from(part < more);
            at += length;
            all[at - length..at].to_vec()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn found() -> (tempfile::TempDir, Files) {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in [("a/1", 10), ("a/2", 20), ("b/c/3", 30), ("4", 0), (MARK, 5)] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![1u8; bytes]).unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("a"), dir.path().join("link")).unwrap();
        let files = Files::walk(dir.path(), u64::MAX, &mut |_| {}).unwrap();
        (dir, files)
    }

    #[test]
    fn a_walk_finds_regular_files_and_says_what_it_left_out() {
        let (dir, files) = found();
        assert_eq!((files.len(), files.bytes(), files.directories()), (4, 60, 4));
        assert_eq!(files.passed_over, PassedOver { not_regular: 1, ..PassedOver::default() });
        assert_eq!(files.quantiles(&[0.0, 1.0]), [0, 30]);
        assert!(files.largest().unwrap().ends_with("b/c/3"));
        let few = Files::walk(dir.path(), 2, &mut |_| {}).unwrap();
        assert_eq!((few.len(), few.passed_over.cut), (2, true));
        assert!(Files::walk(&dir.path().join("none"), 9, &mut |_| {}).unwrap_err().message.contains("none"));
    }

    #[test]
    fn lists_share_every_file_out_once_and_follow_their_order() {
        let (_dir, files) = found();
        for order in Order::ALL {
            for readers in [1, 3, 7] {
                let lists = files.lists(readers, None, order, 5);
                assert_eq!(lists.len(), readers);
                assert_eq!(lists, files.lists(readers, None, order, 5), "the same for the same seed");
                let mut all: Vec<u32> = lists.concat();
                if order == Order::Inode {
                    let inodes: Vec<u64> = all.iter().map(|f| files.entries[*f as usize].inode).collect();
                    assert!(inodes.is_sorted(), "{inodes:?}");
                }
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2, 3]);
            }
        }
        let some = files.lists(2, Some(1), Order::Directory, 3).concat();
        assert!(some.len() == 2 && some[0] < some[1]);
        assert_eq!(files.directory_lists(3).concat(), [0, 1, 2, 3]);
    }

    #[test]
    fn directories_without_files_are_forgotten_and_paths_stay() {
        let (_dir, mut files) = found();
        let before: Vec<_> = (0..4).map(|file| files.spot(file, false).unwrap()).collect();
        files.forget_empty_directories();
        assert_eq!(files.directories(), 3, "`b` has only a directory in it");
        assert_eq!((0..4).map(|file| files.spot(file, false).unwrap()).collect::<Vec<_>>(), before);
        let mut none = Files::default();
        none.forget_empty_directories();
        assert!(none.is_empty());
    }

    #[test]
    fn an_empty_tree_has_empty_lists() {
        let files = Files::default();
        assert!(files.is_empty() && files.largest().is_none() && files.quantiles(&[0.5]).is_empty());
        assert_eq!(files.lists(2, None, Order::Random, 1), [Vec::<u32>::new(), Vec::new()]);
        assert!(files.spot(0, false).is_err() && files.directory(0).is_err());
    }
}
