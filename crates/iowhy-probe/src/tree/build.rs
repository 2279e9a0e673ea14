//! A tree of our own: room for it looked at first, made fast, taken up again where it was left, removed.
//!
//! Invariants: only names that we made are written or removed; a tree that is not kept is removed when it is dropped, also
//! after an interrupt; a directory with other things in it is refused. Every tree bears a mark, so that one that a killed run
//! has left can be told: the mark is locked as long as its run lives, and the next tree beside it removes the one that is not.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::units::Bytes;
use iowhy_linux::file_size;
use rustix::fs::{FlockOperation, flock};

use super::files::{Files, MOVED};
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
    root: PathBuf,
    shape: Shape,
    keep: bool,
    made: u64,
    /// The mark of a new tree, locked as long as we live.
    _lock: Option<File>,
}

/// Marks a directory as a tree of ours.
pub(super) const MARK: &str = ".iowhy-tree";
/// What stands in the mark of a tree that goes with its run.
const NOT_KEPT: &str = "removed when the run ends\n";
/// How often an interrupt is looked for.
const LOOK_EVERY: u64 = 64;
/// Trees that one process has in one directory.
const MOST_TREES: u32 = 1000;

impl Tree {
    /// Makes the directories of a tree below `parent`, or takes up the tree in `keep`, which stays.
    ///
    /// # Errors
    /// Too little room or too few inodes, looked at before anything is written; a directory with other things in it; what the
    /// system refuses. What was made is removed again, unless it is to be kept.
    pub fn lay_out(parent: &Path, keep: Option<&Path>, shape: Shape) -> Result<Tree, Problem> {
        let root = match keep {
            Some(kept) => {
                // What a kept tree has is not needed once more.
                if !kept.join(MARK).exists() {
                    check_room(place_of(kept, parent), &shape)?;
                }
                kept.to_owned()
            }
            None => {
                remove_left(parent);
                check_room(parent, &shape)?;
                new_root(parent)?
            }
        };
        let mut tree = Tree { root, shape, keep: keep.is_some(), made: 0, _lock: None };
        tree._lock = take_up(&tree.root, &tree.shape, tree.keep)?;
        for number in 0..tree.shape.used() {
            let path = tree.directory(number);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(cannot("make", &path, &error));
                }
                _ => {}
            }
        }
        Ok(tree)
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
                        self.root.display()
                    )));
                }
            }
            let (path, size) = (self.path(file), self.shape.size(file));
            if self.keep && fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() == size) {
                continue;
            }
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .and_then(|mut f| f.write_all(content.of(file, size)))
                .map_err(|error| cannot("write", &path, &error))?;
            self.made += 1;
        }
        self.sync()
    }

    /// Waits until the file system that the tree lies on has written everything.
    ///
    /// # Errors
    /// What the system refuses, a full device for instance.
    pub fn sync(&self) -> Result<(), Problem> {
        let root = File::open(&self.root).map_err(|error| cannot("open", &self.root, &error))?;
        rustix::fs::syncfs(&root).map_err(|errno| cannot("sync", &self.root, &errno.into()))
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

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its files as they were planned, one directory after the other, whether they are there yet or not.
    pub fn files(&self) -> Files {
        let directories = self.shape.used();
        let paths = (0..directories).map(|number| self.directory(number)).collect();
        let in_order = (0..directories).flat_map(move |directory| {
            (directory..self.shape.files)
                .step_by(directories.max(1) as usize)
                .map(move |file| (directory, file))
        });
        Files::planned(paths, in_order.map(|(d, file)| (d as u32, file.to_string(), self.shape.size(file))))
    }

    /// What its files hold.
    pub(super) fn content(&self) -> Content {
        Content::new(&self.shape)
    }

    pub(crate) fn path(&self, file: u64) -> PathBuf {
        self.directory(file % self.shape.used()).join(file.to_string())
    }

    fn directory(&self, number: u64) -> PathBuf {
        self.root.join(format!("d{number}"))
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

/// Bytes by chance that every file has a piece of, each another one: hardly anything can be deduplicated or compressed.
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

/// Removes a tree of ours, also one that is not complete; files that are not ours stay, and so does the directory then.
/// `progress` is told how many files are gone. How many were removed.
///
/// # Errors
/// A directory without our mark is refused; what the system refuses.
pub fn remove(root: &Path, progress: &mut dyn FnMut(u64)) -> Result<u64, Problem> {
    if !root.join(MARK).is_file() {
        return Err(Problem::refused(format!(
            "`{}` is no tree of ours: it has no `{MARK}` in it",
            root.display()
        ))
        .hint("name the directory that was given to `--keep`"));
    }
    let entries = fs::read_dir(root).map_err(|error| cannot("list", root, &error))?;
    let number = |name: &str| name.parse::<u64>().is_ok();
    let mut gone = 0;
    for directory in entries.flatten() {
        let name = directory.file_name().to_string_lossy().into_owned();
        let ours = name.strip_prefix('d').is_some_and(number);
        if !ours || !directory.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        for file in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            // A run that was killed may have left files under their second name.
            let first = name.strip_suffix(MOVED).unwrap_or(&name);
            if number(first) && file.file_type().is_ok_and(|kind| kind.is_file()) {
                fs::remove_file(file.path()).map_err(|error| cannot("remove", &file.path(), &error))?;
                gone += 1;
                if gone % LOOK_EVERY == 0 {
                    progress(gone);
                    if interrupt::requested() {
                        // The mark stays, so that the next call goes on.
                        return Err(Problem::failed(format!("interrupted; {gone} files are gone"))
                            .hint("the same command again removes the rest"));
                    }
                }
            }
        }
        // Stays where something else is in it, which the check below tells.
        let _ = fs::remove_dir(directory.path());
    }
    let others = fs::read_dir(root).map_err(|error| cannot("list", root, &error))?.flatten();
    if let Some(other) = others.map(|entry| entry.file_name()).find(|name| name != MARK) {
        return Err(Problem::failed(format!(
            "{gone} files of ours are removed; `{}` stays, because `{}` in it is not ours",
            root.display(),
            other.to_string_lossy()
        )));
    }
    fs::remove_file(root.join(MARK))
        .and_then(|()| fs::remove_dir(root))
        .map_err(|error| cannot("remove", root, &error))?;
    Ok(gone)
}

/// Makes a directory for a tree that is not kept.
fn new_root(parent: &Path) -> Result<PathBuf, Problem> {
    let first = format!("{MARK}-{}", std::process::id());
    let more = (1..MOST_TREES).map(|number| format!("{first}-{number}"));
    for name in std::iter::once(first.clone()).chain(more) {
        let root = parent.join(name);
        match fs::create_dir(&root) {
            Ok(()) => return Ok(root),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("make", &root, &error)),
        }
    }
    Err(Problem::failed(format!("`{}` holds {MOST_TREES} trees of ours already", parent.display()))
        .hint("remove what is not needed: `iowhy tree --remove DIR`"))
}

/// Removes trees that killed runs have left in a directory: those that are not kept and whose mark nobody holds. What cannot
/// be removed stays; its name says whose it was. How many are gone.
pub(super) fn remove_left(parent: &Path) -> u64 {
    let mut gone = 0;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(MARK)?.strip_prefix('-'));
        let ours =
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // One that is being made has nothing in its mark yet.
        let mark = entry.path().join(MARK);
        let maker = number.and_then(|n| n.split('-').next());
        let maker_lives = maker.is_some_and(|pid| Path::new("/proc").join(pid).exists());
        if !maker_lives && remove_begun(&entry.path(), &mark) {
            gone += 1;
            continue;
        }
        let not_kept = fs::read_to_string(&mark).is_ok_and(|content| content.ends_with(NOT_KEPT));
        let nobodys = |mark: File| flock(&mark, FlockOperation::NonBlockingLockExclusive).is_ok();
        if not_kept && File::open(&mark).is_ok_and(nobodys) && remove(&entry.path(), &mut |_| {}).is_ok() {
            gone += 1;
        }
    }
    gone
}

/// Removes a tree of which there is no more than its directory and an empty mark, if anything: its maker was killed between
/// the two. Whether it is gone.
fn remove_begun(root: &Path, mark: &Path) -> bool {
    if fs::metadata(mark).is_ok_and(|mark| mark.is_file() && mark.len() == 0) {
        let _ = fs::remove_file(mark);
    }
    // Stays where anything is in it.
    fs::remove_dir(root).is_ok()
}

/// The directory whose file system the tree will lie on.
fn place_of<'p>(root: &'p Path, parent: &'p Path) -> &'p Path {
    root.ancestors().find(|path| !path.as_os_str().is_empty() && path.exists()).unwrap_or(parent)
}

fn check_room(place: &Path, shape: &Shape) -> Result<(), Problem> {
    const FIX: &str = "use fewer `--files`, or name another directory";
    let Ok(space) = rustix::fs::statvfs(place) else { return Ok(()) };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let room = shape.room_bytes();
    let needed = room.saturating_add(room / 20);
    if space.f_blocks > 0 && free < needed {
        return Err(Problem::refused(format!(
            "not enough space in `{}`: {} free, {} needed for {} small files",
            place.display(),
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
            place.display(),
            space.f_favail,
        ))
        .hint(FIX));
    }
    Ok(())
}

/// Marks a new directory as a tree of ours, or makes sure that it is one with the same shape. Returns the mark of a new one,
/// locked.
fn take_up(root: &Path, shape: &Shape, keep: bool) -> Result<Option<File>, Problem> {
    let mark = root.join(MARK);
    let mut content =
        format!("{} files, {} directories, sizes {:?}\n", shape.files, shape.directories, shape.sizes);
    if !keep {
        content.push_str(NOT_KEPT);
    }
    match fs::read_to_string(&mark) {
        Ok(found) if found == content => return Ok(None),
        Ok(found) => {
            return Err(Problem::refused(format!(
                "`{}` holds another tree: {}",
                root.display(),
                found.trim_end()
            ))
            .hint("give the same files, directories and sizes, or another directory"));
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
    let made = OpenOptions::new().write(true).create_new(true).open(&mark).and_then(|mut file| {
        // Where the file system knows no locks nobody takes it for left behind.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        file.write_all(content.as_bytes())?;
        Ok(file)
    });
    made.map(Some).map_err(|error| cannot("write", &mark, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    file_size::explained(Problem::failed(format!("cannot {what} `{}`: {error}", path.display())), error)
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
    fn what_is_planned_is_what_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        let (planned, found) = (tree.files(), Files::walk(tree.root(), 1000, &mut |_| {}).unwrap());
        assert_eq!((planned.len(), planned.bytes()), (found.len(), found.bytes()));
        assert_eq!(planned.bytes(), (0..60).map(|f| shape().size(f)).sum::<u64>());
        for file in 0..60 {
            let path = planned.path(file, false).unwrap();
            let meta = fs::metadata(path.to_str().unwrap()).unwrap();
            assert_eq!(meta.len(), planned.size(file));
        }
        assert_eq!(tree.made(), 60);
        drop(tree);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn fewer_files_than_directories_leave_no_empty_directory() {
        let dir = tempfile::tempdir().unwrap();
        let few = Shape { files: 3, directories: 10, sizes: vec![1] };
        let tree = Tree::make(dir.path(), None, few, &mut |_, _| {}).unwrap();
        assert_eq!((tree.files().directories(), tree.files().len()), (3, 3));
    }

    #[test]
    fn no_two_files_hold_the_same() {
        let content = Content::new(&shape());
        assert_ne!(content.of(1, 930), content.of(2, 930));
        assert_eq!((content.of(7, 6102).len(), content.of(BEGINS - 1, 6102).len()), (6102, 6102));
        assert!(content.of(3, u64::MAX).len() as u64 <= BEGINS + 6102);
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
        assert!(remove(full.path(), &mut |_| {}).unwrap_err().message.contains("no tree of ours"));
        assert_eq!(fs::read(full.path().join("precious")).unwrap(), b"data");
        let huge = Shape { files: 1 << 50, ..shape() };
        assert!(
            Tree::make(full.path(), None, huge, &mut |_, _| {}).unwrap_err().message.contains("not enough")
        );
        assert_eq!(fs::read_dir(full.path()).unwrap().count(), 1, "refused before anything was made");
    }

    #[test]
    fn what_a_run_that_was_killed_at_once_has_begun_goes_with_the_next_and_not_from_under_one_that_lives() {
        let dir = tempfile::tempdir().unwrap();
        let root = |pid: &str| dir.path().join(format!("{MARK}-{pid}"));
        // No process has so high a number (proc(5): at most 2^22).
        let (bare, marked, filled, living) =
            (root("4194305"), root("4194306-2"), root("4194307"), root(&std::process::id().to_string()));
        for root in [&bare, &marked, &filled, &living] {
            fs::create_dir(root).unwrap();
        }
        fs::write(marked.join(MARK), "").unwrap();
        fs::write(filled.join("own"), "data").unwrap();
        assert_eq!(remove_left(dir.path()), 2);
        assert!(!bare.exists() && !marked.exists() && living.is_dir());
        assert_eq!(fs::read(filled.join("own")).unwrap(), b"data");
    }

    #[test]
    fn a_tree_that_a_killed_run_has_left_goes_with_the_next_and_one_in_use_stays() {
        let dir = tempfile::tempdir().unwrap();
        let used = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        // As a killed process leaves it: the kernel has taken its lock.
        let mut left = Tree::make(dir.path(), None, shape(), &mut |_, _| {}).unwrap();
        left._lock = None;
        let left = std::mem::ManuallyDrop::new(left);
        let others = [format!("{MARK}-"), format!("{MARK}-x"), "own".to_owned()].map(|n| dir.path().join(n));
        for other in &others {
            fs::create_dir(other).unwrap();
            fs::write(other.join(MARK), NOT_KEPT).unwrap();
        }
        let kept = dir.path().join(format!("{MARK}-1"));
        drop(Tree::make(dir.path(), Some(&kept), shape(), &mut |_, _| {}).unwrap());
        assert_ne!(used.root(), left.root());
        let next = Tree::lay_out(dir.path(), None, shape()).unwrap();
        assert!(used.path(59).is_file() && next.directory(0).is_dir() && others.iter().all(|o| o.is_dir()));
        assert!(!left.path(0).exists(), "it is gone");
        assert_eq!(remove_left(dir.path()), 0, "nothing else is left behind");
        drop((used, next));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), others.len() + 1);
        assert!(kept.join("d5/59").is_file(), "what is kept stays whatever its name");
    }

    #[test]
    fn removing_takes_our_files_and_leaves_others() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("news");
        drop(Tree::make(dir.path(), Some(&kept), shape(), &mut |_, _| {}).unwrap());
        fs::write(kept.join("d1/note"), b"not ours").unwrap();
        fs::rename(kept.join("d2/8"), kept.join("d2/8.moved")).unwrap();
        let stays = remove(&kept, &mut |_| {}).unwrap_err();
        assert!(stays.message.contains("60 files") && stays.message.contains("not ours"), "{stays}");
        assert_eq!(fs::read(kept.join("d1/note")).unwrap(), b"not ours");
        fs::remove_file(kept.join("d1/note")).unwrap();
        assert_eq!(remove(&kept, &mut |_| {}).unwrap(), 0);
        assert!(!kept.exists());
    }
}
