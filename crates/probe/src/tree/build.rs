//! A tree of small files that iowhy makes: room for it looked at first, made fast, taken up again where it was left, removed.
//!
//! Invariants: every name is made and removed below a directory that is held open, never through a link; only names that we
//! made are written or removed; a tree that is not kept is removed when it is dropped, also after an interrupt; a directory
//! with other things in it is refused. Every tree has a mark, locked as long as its run lives; see `removal` for those that
//! killed runs left behind.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::units::Bytes;
use iowhy_linux::names::{Dir, allow_descriptors, owner};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::files::Files;
use super::mark::{MARK, MARK_NAME, NOT_KEPT, cannot, mark_of};
use super::removal::{empty, remove_left};
use crate::interrupt;

/// What a tree is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Files in all.
    pub files: u64,
    /// Directories that they are spread over evenly.
    pub directories: u64,
    /// Sizes in bytes, mixed evenly within each directory.
    pub sizes: Vec<u64>,
}

impl Shape {
    /// Directories that get a file.
    fn used(&self) -> u64 {
        self.directories.max(1).min(self.files.max(1))
    }

    /// Size of a file.
    fn size(&self, file: u64) -> u64 {
        let directories = self.used();
        // The turn of the directory is added, so that every directory begins with another size.
        let turn = (file / directories).wrapping_add(file % directories);
        self.sizes.get((turn % self.sizes.len().max(1) as u64) as usize).copied().unwrap_or(0)
    }

    /// Bytes of all files, rounded up to blocks of 4 KiB, and of their inodes: what the tree takes on most file systems.
    pub fn room_bytes(&self) -> u64 {
        let blocks = |size: &u64| size.checked_next_multiple_of(4096).unwrap_or(u64::MAX);
        let all = self.sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(blocks(size)));
        (all / self.sizes.len().max(1) as u64).saturating_add(512).saturating_mul(self.files)
    }
}

/// A tree on a file system.
#[derive(Debug)]
pub struct Tree {
    /// The directory that it is in, and its name there. `None` for a kept tree: it is not removed.
    place: Option<(Dir, CString)>,
    dir: Dir,
    /// Its directories `d0`, `d1`, ... in this order.
    folders: Arc<Vec<Dir>>,
    shape: Shape,
    /// Whether there may be files in it already.
    taken_up: bool,
    made: u64,
    /// The mark of a new tree, locked as long as we live.
    pub(super) lock: Option<File>,
}

/// How often an interrupt is looked for.
const LOOK_EVERY: u64 = 64;
/// Trees that one process has in one directory.
const MAX_TREES: u32 = 1000;
/// Of a file in a tree.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

impl Tree {
    /// Makes the directories of a tree below `parent`, or takes up the tree in `keep`, which stays.
    ///
    /// # Errors
    /// Too little room or too few inodes, looked at before anything is written; a directory with other things in it; as root, a
    /// directory in which another user could exchange names; what the system refuses. What was made is removed again, unless it
    /// is to be kept.
    pub fn lay_out(parent: &Path, keep: Option<&Path>, shape: Shape) -> Result<Tree, Problem> {
        let parent = match keep {
            Some(kept) => match Dir::open(kept) {
                Ok(dir) => return Tree::take_up(dir, shape),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => parent_of(kept),
                Err(error) => return Err(cannot("open", kept, &error)),
            },
            None => parent,
        };
        let parent = Dir::open(parent).map_err(|error| cannot("open", parent, &error))?;
        refuse_where_others_may_exchange(&parent)?;
        match keep {
            Some(kept) => Tree::keep(&parent, kept, shape),
            None => Tree::lay_out_in(parent, shape),
        }
    }

    /// A tree that goes with this run.
    pub(super) fn lay_out_in(parent: Dir, shape: Shape) -> Result<Tree, Problem> {
        remove_left(&parent);
        check_room(&parent, &shape)?;
        let (dir, name) = new_root(&parent)?;
        let mut tree = Tree {
            place: Some((parent, name)),
            dir,
            folders: Arc::default(),
            shape,
            taken_up: false,
            made: 0,
            lock: None,
        };
        tree.lock = Some(tree.mark(NOT_KEPT)?);
        tree.folders = Arc::new(tree.folders()?);
        Ok(tree)
    }

    /// A new tree that stays.
    fn keep(parent: &Dir, kept: &Path, shape: Shape) -> Result<Tree, Problem> {
        let name = kept.file_name().and_then(|name| CString::new(name.as_bytes()).ok());
        let name = name.ok_or_else(|| cannot("make", kept, &Errno::INVAL.into()))?;
        check_room(parent, &shape)?;
        let dir = parent.make_dir(&name).map_err(|error| cannot("make", kept, &error))?;
        Tree::take_up(dir, shape)
    }

    /// The tree that is there, if it has the same shape, or a new one in an empty directory.
    fn take_up(dir: Dir, shape: Shape) -> Result<Tree, Problem> {
        let path = dir.path().to_owned();
        if !dir.is_private().map_err(|error| cannot("look at", &path, &error))? {
            return Err(Problem::refused(format!(
                "`{}` belongs to another user, or others may write to it",
                path.display()
            ))
            .hint("name a directory that is not there yet"));
        }
        let mut tree =
            Tree { place: None, dir, folders: Arc::default(), shape, taken_up: false, made: 0, lock: None };
        match mark_of(&tree.dir) {
            Some(mark) if mark == tree.mark_text("") => tree.taken_up = true,
            Some(mark) => {
                let path = path.display();
                return Err(Problem::refused(format!("`{path}` holds another tree: {}", mark.trim_end()))
                    .hint("give the same files, directories and sizes, or another directory"));
            }
            None => {
                let entries = tree.dir.entries().map_err(|errno| cannot("read", &path, &errno.into()))?;
                if !entries.is_empty() {
                    let path = path.display();
                    return Err(Problem::refused(format!("`{path}` is not empty, and no tree of iowhy's"))
                        .hint("name a new or an empty directory"));
                }
                check_room(&tree.dir, &tree.shape)?;
                tree.lock = Some(tree.mark("")?);
            }
        }
        tree.folders = Arc::new(tree.folders()?);
        Ok(tree)
    }

    fn mark_text(&self, end: &str) -> String {
        let Shape { files, directories, sizes } = &self.shape;
        format!("{files} files, {directories} directories, sizes {sizes:?}\n{end}")
    }

    /// Marks a new directory as a tree; the mark, locked.
    fn mark(&self, end: &str) -> Result<File, Problem> {
        let made = self.dir.create_new(MARK_NAME, OFlags::RDWR, FILE_MODE).map_err(std::io::Error::from);
        let marked = made.and_then(|mark| {
            let mut mark = File::from(mark);
            // Where the file system knows no locks nobody takes it for left behind.
            let _ = flock(&mark, FlockOperation::NonBlockingLockExclusive);
            mark.write_all(self.mark_text(end).as_bytes())?;
            Ok(mark)
        });
        marked.map_err(|error| cannot("write", &self.dir.path_of(MARK_NAME), &error))
    }

    /// Makes the directories, or opens those that are there; all of them are held.
    fn folders(&self) -> Result<Vec<Dir>, Problem> {
        let needed = self.shape.used();
        allow_descriptors(needed).map_err(|most| {
            Problem::refused(format!(
                "a tree of {needed} directories holds as many open, and {most} open files are allowed"
            ))
            .hint("use fewer `--dirs`, or raise the limit: `ulimit -Hn`")
        })?;
        (0..needed).map(|number| self.folder(&folder_name(number))).collect()
    }

    fn folder(&self, name: &CStr) -> Result<Dir, Problem> {
        let failed = |error: &std::io::Error| cannot("make", &self.dir.path_of(name), error);
        match self.dir.make_dir(name) {
            Err(error) if self.taken_up && error.kind() == std::io::ErrorKind::AlreadyExists => {
                let there = self.dir.dir(name).map_err(|error| failed(&error))?;
                match there.is_private() {
                    Ok(true) => Ok(there),
                    Ok(false) => Err(failed(&Errno::PERM.into())),
                    Err(error) => Err(failed(&error)),
                }
            }
            other => other.map_err(|error| failed(&error)),
        }
    }

    /// Makes the files that are missing or cut short, and waits until all are on the device. `progress` is told files done and
    /// in all.
    ///
    /// # Errors
    /// What the system refuses; an interrupt.
    pub fn fill(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Problem> {
        let content = Content::new(&self.shape);
        for file in 0..self.shape.files {
            if file % LOOK_EVERY == 0 {
                progress(file, self.shape.files);
                if interrupt::requested() {
                    return Err(Problem::failed(format!(
                        "interrupted while making `{}`",
                        self.root().display()
                    )));
                }
            }
            let (folder, name, size) = (self.folder_of(file)?, file_name(file), self.shape.size(file));
            if self.taken_up {
                let whole = |stat: rustix::fs::Stat| {
                    FileType::from_raw_mode(stat.st_mode).is_file() && u64::try_from(stat.st_size) == Ok(size)
                };
                match folder.stat(&name).map(whole) {
                    Ok(true) => continue,
                    // Removed and made again: it may have a second name elsewhere.
                    Ok(false) => folder
                        .remove_file(&name)
                        .map_err(|errno| cannot("remove", &folder.path_of(&name), &errno.into()))?,
                    Err(_) => {}
                }
            }
            folder
                .create_new(&name, OFlags::WRONLY, FILE_MODE)
                .map_err(std::io::Error::from)
                .and_then(|made| File::from(made).write_all(content.of(file, size)))
                .map_err(|error| cannot("write", &folder.path_of(&name), &error))?;
            self.made += 1;
        }
        self.sync()
    }

    /// Waits until the file system that the tree lies on has written everything.
    ///
    /// # Errors
    /// What the system refuses, a full device for instance.
    pub fn sync(&self) -> Result<(), Problem> {
        rustix::fs::syncfs(self.dir.as_fd()).map_err(|errno| cannot("sync", self.root(), &errno.into()))
    }

    /// Makes a tree and fills it: see [`Tree::lay_out`] and [`Tree::fill`].
    ///
    /// # Errors
    /// Those of both.
    pub fn make(
        parent: &Path,
        keep: Option<&Path>,
        shape: Shape,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tree, Problem> {
        let mut tree = Tree::lay_out(parent, keep, shape)?;
        tree.fill(progress)?;
        Ok(tree)
    }

    /// Files that [`Tree::fill`] had to make: fewer than all where a kept tree was taken up.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Where it was when it was made: for messages, and to find out what it lies on.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Its files as they were planned, one directory after the other, whether they are there yet or not.
    pub fn files(&self) -> Files {
        let directories = self.shape.used();
        let in_order = (0..directories).flat_map(move |directory| {
            (directory..self.shape.files)
                .step_by(directories.max(1) as usize)
                .map(move |file| (directory, file))
        });
        Files::planned(
            Arc::clone(&self.folders),
            in_order.map(|(d, file)| (d as u32, file.to_string(), self.shape.size(file))),
        )
    }

    /// Its files as its directories list them.
    ///
    /// # Errors
    /// A directory cannot be listed; an interrupt.
    pub fn listed(&self) -> Result<Files, Problem> {
        Files::listed(Arc::clone(&self.folders))
    }

    /// What its files hold.
    pub(super) fn content(&self) -> Content {
        Content::new(&self.shape)
    }

    /// The directory of a file, and its name there.
    pub fn spot(&self, file: u64) -> Result<(&Dir, CString), Problem> {
        Ok((self.folder_of(file)?, file_name(file)))
    }

    /// The directory of a file.
    pub fn folder_of(&self, file: u64) -> Result<&Dir, Problem> {
        let number = usize::try_from(file % self.shape.used()).ok();
        number
            .and_then(|number| self.folders.get(number))
            .ok_or_else(|| Problem::failed(format!("there is no directory for file {file} of the tree")))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some((parent, name)) = &self.place {
            // Best effort: there is nobody to tell, and the name says whose it was.
            let _ = empty(&self.dir, &mut |_| Ok(()));
            let _ = self.dir.remove_file(MARK_NAME);
            let _ = parent.remove_dir(name, &self.dir);
        }
    }
}

fn folder_name(number: u64) -> CString {
    CString::new(format!("d{number}")).unwrap_or_default()
}

fn file_name(number: u64) -> CString {
    CString::new(number.to_string()).unwrap_or_default()
}

/// Random bytes that every file has a piece of, each another one: hardly anything can be deduplicated or compressed.
#[derive(Debug)]
pub(super) struct Content {
    bytes: Vec<u8>,
}

/// Begins of pieces, a prime apart from one file to the next.
const BEGINS: u64 = 1 << 20;
const APART: u64 = 4099;

impl Content {
    fn new(shape: &Shape) -> Content {
        let longest = shape.sizes.iter().copied().max().unwrap_or(0);
        let mut bytes = vec![0u8; usize::try_from(longest.saturating_add(BEGINS)).unwrap_or(0)];
        let mut rng = Rng::new(1);
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_le_bytes()[..word.len()]);
        }
        Content { bytes }
    }

    /// The content of a file; shorter only where a size is longer than any of the shape.
    pub(super) fn of(&self, file: u64, size: u64) -> &[u8] {
        let begin = (file.wrapping_mul(APART) % BEGINS) as usize;
        let end = begin.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(self.bytes.len());
        self.bytes.get(begin..end).unwrap_or(&[])
    }
}

/// Makes a directory for a tree that is not kept.
fn new_root(parent: &Dir) -> Result<(Dir, CString), Problem> {
    let first = format!("{MARK}-{}", std::process::id());
    let more = (1..MAX_TREES).map(|number| format!("{first}-{number}"));
    for name in std::iter::once(first.clone()).chain(more) {
        let name = CString::new(name).unwrap_or_default();
        match parent.make_dir(&name) {
            Ok(dir) => return Ok((dir, name)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("make", &parent.path_of(&name), &error)),
        }
    }
    Err(Problem::failed(format!("`{}` holds {MAX_TREES} trees of iowhy's already", parent.path().display()))
        .hint("remove what is not needed: `iowhy tree --remove DIR`"))
}

/// As root nothing is made where another user could put something else under its name.
fn refuse_where_others_may_exchange(parent: &Dir) -> Result<(), Problem> {
    let others = parent.others_may_exchange().map_err(|error| cannot("look at", parent.path(), &error))?;
    if !others || !owner().is_root() {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "root makes no tree of files in `{}`: another user may exchange names in it",
        parent.path().display()
    ))
    .hint(
        "run it as the owner of that directory (`--user NAME` for `prove` and `-- CMD`, else `sudo -u NAME iowhy ...`), or \
         use a directory that only root may write to",
    ))
}

/// The directory that a path is in.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_room(place: &Dir, shape: &Shape) -> Result<(), Problem> {
    const FIX: &str = "use fewer `--files`, or name another directory";
    let Ok(space) = rustix::fs::fstatvfs(place.as_fd()) else { return Ok(()) };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let room = shape.room_bytes();
    let needed = room.saturating_add(room / 20);
    if space.f_blocks > 0 && free < needed {
        return Err(Problem::refused(format!(
            "not enough space in `{}`: {} free, {} needed for {} small files",
            place.path().display(),
            Bytes(free),
            Bytes(needed),
            shape.files
        ))
        .hint(FIX));
    }
    let inodes = shape.files.saturating_add(shape.directories);
    if space.f_files > 0 && space.f_favail < inodes {
        return Err(Problem::refused(format!(
            "not enough inodes in `{}`: {} free, {inodes} needed",
            place.path().display(),
            space.f_favail,
        ))
        .hint(FIX));
    }
    Ok(())
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
