//! A tree of small files, and readers that read it cold: made fast, read side by side, removed at the end.
//!
//! Non-goal: choosing sizes and lists, statistics. Invariants: only names that we made are written or removed; a tree
//! that is not kept is removed when it is dropped, also after an interrupt; a kept tree is taken up again where it was left,
//! and a directory with other things in it is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Instant;

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;

use crate::{interrupt, residency};

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
    /// Size of a file.
    fn size(&self, file: u64) -> u64 {
        let directories = self.directories.max(1);
        // The turn of the directory is added, so that every directory begins with another size.
        let turn = (file / directories).wrapping_add(file % directories);
        self.sizes.get((turn % self.sizes.len().max(1) as u64) as usize).copied().unwrap_or(0)
    }

    /// Bytes of all files, rounded up to blocks of 4 KiB: what the tree takes on most file systems.
    pub fn room_bytes(&self) -> u64 {
        let each: u64 = self.sizes.iter().map(|s| s.next_multiple_of(4096)).sum();
        (each / self.sizes.len().max(1) as u64).saturating_add(512).saturating_mul(self.files)
    }
}

/// A tree on a file system.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    shape: Shape,
    keep: bool,
    made: u64,
}

/// What one pass of readers came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// From the common start to the first reader's end.
    pub first_done_ns: u64,
    /// From the common start to the last reader's end.
    pub last_done_ns: u64,
    /// Sum over files of the time of `open`.
    pub open_ns: u64,
    /// Sum over files of the time of all reads.
    pub read_ns: u64,
    /// Sum over files of the time of `close`.
    pub close_ns: u64,
    /// Share of the pages to be read that were in the cache before; `None` when it could not be seen.
    pub resident_before: Option<f64>,
    /// Whether somebody asked us to stop.
    pub interrupted: bool,
}

/// Marks a directory as a tree of ours.
const MARK: &str = ".iowhy-tree";
/// How often an interrupt is looked for.
const LOOK_EVERY: u64 = 64;

impl Tree {
    /// Makes a tree below `parent`, or takes up the one in `keep`, which stays. `progress` is told files done and in all.
    ///
    /// # Errors
    /// Too little room or too few inodes, a directory with other things in it, what the system refuses, an interrupt. What
    /// was made is removed again, unless it is to be kept.
    pub fn make(
        parent: &Path,
        keep: Option<&Path>,
        shape: Shape,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tree, Problem> {
        let root = match keep {
            Some(kept) => kept.to_owned(),
            None => parent.join(format!(".iowhy-tree-{}", std::process::id())),
        };
        // What a kept tree has is not needed once more.
        if !root.join(MARK).exists() {
            check_room(place_of(&root, parent), &shape)?;
        }
        if keep.is_some() {
            take_up(&root, &shape)?;
        } else {
            fs::create_dir(&root).map_err(|error| cannot("make", &root, &error))?;
        }
        let mut tree = Tree { root, shape, keep: keep.is_some(), made: 0 };
        tree.fill(progress)?;
        Ok(tree)
    }

    /// Files that had to be made: fewer than all where a kept tree was taken up.
    pub fn made(&self) -> u64 {
        self.made
    }

    fn path(&self, file: u64) -> PathBuf {
        self.directory(file % self.shape.directories.max(1)).join(file.to_string())
    }

    fn directory(&self, number: u64) -> PathBuf {
        self.root.join(format!("d{number}"))
    }

    fn fill(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Problem> {
        let directories = self.shape.directories.max(1).min(self.shape.files.max(1));
        for number in 0..directories {
            let path = self.directory(number);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(cannot("make", &path, &error));
                }
                _ => {}
            }
        }
        let longest = self.shape.sizes.iter().copied().max().unwrap_or(0) as usize;
        let mut content = vec![0u8; longest];
        let mut rng = Rng::new(1);
        for file in 0..self.shape.files {
            if file % LOOK_EVERY == 0 {
                progress(file, self.shape.files);
                if interrupt::requested() {
                    return Err(Problem::failed(format!(
                        "interrupted while making `{}`",
                        self.root.display()
                    )));
                }
            }
            let (path, size) = (self.path(file), self.shape.size(file));
            if self.keep && fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() == size) {
                continue;
            }
            // Every file is another one: nothing can be deduplicated.
            for word in content.chunks_mut(8) {
                word.copy_from_slice(&rng.next_u64().to_le_bytes()[..word.len()]);
            }
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .and_then(|mut f| f.write_all(&content[..(size as usize).min(longest)]))
                .map_err(|error| cannot("write", &path, &error))?;
            self.made += 1;
        }
        let root = File::open(&self.root).map_err(|error| cannot("open", &self.root, &error))?;
        rustix::fs::syncfs(&root).map_err(|errno| cannot("sync", &self.root, &errno.into()))
    }

    /// Takes what the lists name out of the page cache, then lets one thread a list read its files whole, from one start.
    /// Names and inodes stay in the kernel's caches: only the files' data is cold.
    ///
    /// # Errors
    /// A file that cannot be opened or read.
    pub fn read(&self, lists: &[Vec<u64>]) -> Result<Pass, Problem> {
        let resident_before = self.evict(lists)?;
        let ready = Barrier::new(lists.len().max(1));
        let results: Vec<Result<Reader, Problem>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                lists.iter().map(|list| scope.spawn(|| self.read_list(list, &ready))).collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err(Problem::failed("a reader panicked"))))
                .collect()
        });
        let readers = results.into_iter().collect::<Result<Vec<Reader>, Problem>>()?;
        let start = readers.iter().map(|r| r.begun).min();
        let since = |at: Instant| start.map_or(0, |start| at.duration_since(start).as_nanos() as u64);
        let sum = |of: fn(&Reader) -> u64| readers.iter().map(of).sum();
        Ok(Pass {
            files: sum(|r| r.files),
            bytes: sum(|r| r.bytes),
            first_done_ns: readers.iter().map(|r| since(r.ended)).min().unwrap_or(0),
            last_done_ns: readers.iter().map(|r| since(r.ended)).max().unwrap_or(0),
            open_ns: sum(|r| r.open_ns),
            read_ns: sum(|r| r.read_ns),
            close_ns: sum(|r| r.close_ns),
            resident_before,
            interrupted: interrupt::requested(),
        })
    }

    /// Share of the pages that stayed; `None` when that cannot be seen.
    fn evict(&self, lists: &[Vec<u64>]) -> Result<Option<f64>, Problem> {
        let (mut pages, mut resident, mut seen) = (0u64, 0u64, true);
        for &file in lists.iter().flatten() {
            if interrupt::requested() {
                return Ok(None);
            }
            let path = self.path(file);
            let opened = File::open(&path).map_err(|error| cannot("open", &path, &error))?;
            let size = self.shape.size(file);
            residency::evict(opened.as_fd(), 0, size)?;
            match residency::look(opened.as_fd(), 0, size) {
                Ok(look) => {
                    pages += look.pages;
                    resident += look.resident;
                }
                Err(_) => seen = false,
            }
        }
        Ok((seen && pages > 0).then(|| resident as f64 / pages as f64))
    }

    fn read_list(&self, list: &[u64], ready: &Barrier) -> Result<Reader, Problem> {
        let mut buffer = vec![0u8; 64 << 10];
        let paths: Vec<PathBuf> = list.iter().map(|&file| self.path(file)).collect();
        ready.wait();
        let begun = Instant::now();
        let mut reader =
            Reader { begun, ended: begun, files: 0, bytes: 0, open_ns: 0, read_ns: 0, close_ns: 0 };
        for path in &paths {
            if interrupt::requested() {
                break;
            }
            let before = Instant::now();
            let mut file = File::open(path).map_err(|error| cannot("open", path, &error))?;
            let opened = Instant::now();
            loop {
                match file.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => reader.bytes += n as u64,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(cannot("read", path, &error)),
                }
            }
            let done = Instant::now();
            drop(file);
            let closed = Instant::now();
            reader.files += 1;
            reader.open_ns += (opened - before).as_nanos() as u64;
            reader.read_ns += (done - opened).as_nanos() as u64;
            reader.close_ns += (closed - done).as_nanos() as u64;
        }
        reader.ended = Instant::now();
        Ok(reader)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.keep {
            // Best effort: there is nobody to tell, and the name says whose it was.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// What one reader did.
struct Reader {
    begun: Instant,
    ended: Instant,
    files: u64,
    bytes: u64,
    open_ns: u64,
    read_ns: u64,
    close_ns: u64,
}

/// The directory whose file system the tree will lie on.
fn place_of<'p>(root: &'p Path, parent: &'p Path) -> &'p Path {
    root.ancestors().find(|path| !path.as_os_str().is_empty() && path.exists()).unwrap_or(parent)
}

fn check_room(place: &Path, shape: &Shape) -> Result<(), Problem> {
    let Ok(space) = rustix::fs::statvfs(place) else { return Ok(()) };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let needed = shape.room_bytes().saturating_add(shape.room_bytes() / 20);
    if space.f_blocks > 0 && free < needed {
        return Err(Problem::refused(format!(
            "not enough space in `{}`: {free} bytes free, {needed} needed for {} small files",
            place.display(),
            shape.files
        ))
        .hint("use fewer `--files`, or name another directory"));
    }
    if space.f_files > 0 && space.f_favail < shape.files.saturating_add(shape.directories) {
        return Err(Problem::refused(format!(
            "not enough inodes in `{}`: {} free, {} needed",
            place.display(),
            space.f_favail,
            shape.files.saturating_add(shape.directories)
        ))
        .hint("use fewer `--files`, or name another directory"));
    }
    Ok(())
}

/// Makes the directory of a kept tree, or makes sure that it is one of ours with the same shape.
fn take_up(root: &Path, shape: &Shape) -> Result<(), Problem> {
    let mark = root.join(MARK);
    let content =
        format!("{} files, {} directories, sizes {:?}\n", shape.files, shape.directories, shape.sizes);
    match fs::read_to_string(&mark) {
        Ok(found) if found == content => return Ok(()),
        Ok(found) => {
            return Err(Problem::refused(format!(
                "`{}` holds another tree: {}",
                root.display(),
                found.trim_end()
            ))
            .hint("give the same `--files`, or another directory"));
        }
        Err(_) => {}
    }
    match fs::create_dir(root) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(cannot("make", root, &error));
        }
        _ => {}
    }
    let mut entries = fs::read_dir(root).map_err(|error| cannot("read", root, &error))?;
    if entries.next().is_some() {
        return Err(Problem::refused(format!("`{}` is not empty, and no tree of ours", root.display()))
            .hint("name a new or an empty directory"));
    }
    fs::write(&mark, content).map_err(|error| cannot("write", &mark, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::failed(format!("cannot {what} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { files: 60, directories: 6, sizes: vec![930, 3030, 6102] }
    }

    #[test]
    fn sizes_are_mixed_evenly_in_every_directory() {
        for directory in 0..6 {
            let mut counts = [0; 3];
            for file in (0..60).filter(|f| f % 6 == directory) {
                counts[shape().sizes.iter().position(|s| *s == shape().size(file)).unwrap()] += 1;
            }
            assert!(counts.iter().all(|c| (3..=4).contains(c)), "{counts:?}");
        }
    }

    #[test]
    fn every_listed_byte_is_read_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        assert_eq!(tree.made(), 60);
        let lists = vec![(0..30).collect::<Vec<u64>>(), (30..60).collect()];
        let pass = tree.read(&lists).unwrap();
        let bytes: u64 = (0..60).map(|f| shape().size(f)).sum();
        assert_eq!((pass.files, pass.bytes), (60, bytes));
        assert!(pass.first_done_ns <= pass.last_done_ns && pass.last_done_ns > 0);
        drop(tree);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_kept_tree_is_taken_up_and_other_things_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("news");
        let make = |shape| Tree::make(dir.path(), Some(&kept), shape, &mut |_, _| {});
        assert_eq!(make(shape()).unwrap().made(), 60);
        fs::remove_file(kept.join("d1/7")).unwrap();
        fs::write(kept.join("d2/8"), b"cut short").unwrap();
        assert_eq!(make(shape()).unwrap().made(), 2, "only what is missing or cut short is made again");
        let other = make(Shape { files: 61, ..shape() }).unwrap_err();
        assert!(other.message.contains("another tree"), "{other}");
        let full = tempfile::tempdir().unwrap();
        fs::write(full.path().join("precious"), b"data").unwrap();
        let refused = Tree::make(dir.path(), Some(full.path()), shape(), &mut |_, _| {}).unwrap_err();
        assert!(refused.message.contains("not empty"), "{refused}");
        assert_eq!(fs::read(full.path().join("precious")).unwrap(), b"data");
        let huge = Shape { files: 1 << 50, ..shape() };
        assert!(
            Tree::make(full.path(), None, huge, &mut |_, _| {}).unwrap_err().message.contains("not enough")
        );
    }
}
