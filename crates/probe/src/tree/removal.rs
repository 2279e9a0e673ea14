//! Removal of trees: a named one, and those that killed runs left beside the next run.
//!
//! Invariants: only names that iowhy made are removed. A tree counts as left behind only if directory and mark belong to this
//! user, nobody else may write to either, and no living process holds the mark's lock.

use std::ffi::CStr;
use std::fs::File;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_linux::names::{Dir, Entry};
use rustix::fs::{FileType, FlockOperation, OFlags, flock};

use super::mark::{MARK, MARK_NAME, MOVED, NOT_KEPT, cannot, mark_of};
use crate::interrupt;

/// Files between two looks for an interrupt.
const LOOK_EVERY: u64 = 64;

/// Removes trees that killed runs have left in a directory: those that are not kept and whose mark nobody holds. What cannot
/// be removed stays; its name says whose it was. How many are gone.
pub(super) fn remove_left(parent: &Dir) -> u64 {
    let entries = parent.entries().unwrap_or_default();
    entries.iter().map(|entry| u64::from(remove_one(parent, entry).unwrap_or(false))).sum()
}

/// Whether it was a tree that was left, and is gone.
fn remove_one(parent: &Dir, entry: &Entry) -> Option<bool> {
    if !matches!(entry.kind, FileType::Directory | FileType::Unknown) {
        return None;
    }
    let maker = maker(&entry.name)?;
    let tree = parent.dir(&entry.name).ok()?;
    if !tree.is_private().ok()? {
        return None;
    }
    // One that is being made has nothing in its mark yet.
    if !Path::new("/proc").join(maker).exists() && remove_begun(parent, &entry.name, &tree) {
        return Some(true);
    }
    let mark = File::from(tree.open_ours(MARK_NAME, OFlags::RDONLY)?);
    let left =
        mark_of(&tree)?.ends_with(NOT_KEPT) && flock(&mark, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !left {
        return None;
    }
    empty(&tree, &mut |_| Ok(())).ok()?;
    let others = tree.entries().ok()?.iter().any(|entry| entry.name.as_c_str() != MARK_NAME);
    if others {
        return None;
    }
    tree.remove_file(MARK_NAME).ok()?;
    Some(parent.remove_dir(&entry.name, &tree).is_ok())
}

/// The process that made a tree of this name: `.iowhy-tree-PID` or `.iowhy-tree-PID-N`.
fn maker(name: &CStr) -> Option<&str> {
    let number = name.to_str().ok()?.strip_prefix(MARK)?.strip_prefix('-')?;
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    number.split('-').next().filter(|_| plain)
}

/// Removes a tree of which there is no more than its directory and an empty mark, if anything: its maker was killed between
/// the two. Whether it is gone.
fn remove_begun(parent: &Dir, name: &CStr, tree: &Dir) -> bool {
    let mark = tree.open_ours(MARK_NAME, OFlags::RDONLY);
    if mark.is_some_and(|mark| rustix::fs::fstat(&mark).is_ok_and(|stat| stat.st_size == 0)) {
        let _ = tree.remove_file(MARK_NAME);
    }
    // Stays where anything is in it.
    parent.remove_dir(name, tree).is_ok()
}

/// Removes a tree that iowhy made, also one that is not complete; other files stay, and so does the directory then.
/// `progress` is told how many files are gone. How many were removed.
///
/// # Errors
/// A directory without our mark, or in which others may write, is refused; what the system refuses.
pub fn remove(root: &Path, progress: &mut dyn FnMut(u64)) -> Result<u64, Problem> {
    let shown = root.display();
    let hint = "name the directory that was given to `--keep`";
    let dir = Dir::open(root).map_err(|error| cannot("open", root, &error).hint(hint))?;
    let ours = dir.is_private().map_err(|error| cannot("look at", root, &error))?;
    if !ours || dir.open_ours(MARK_NAME, OFlags::RDONLY).is_none() {
        return Err(Problem::refused(format!(
            "`{shown}` is no tree of iowhy's that belongs to this user: `{MARK}` in it is missing, or others may write there"
        ))
        .hint(hint));
    }
    let gone = empty(&dir, &mut |gone| {
        if gone % LOOK_EVERY == 0 {
            progress(gone);
            if interrupt::requested() {
                // The mark stays, so that the next call goes on.
                return Err(Problem::failed(format!("interrupted; {gone} files are gone"))
                    .hint("the same command again removes the rest"));
            }
        }
        Ok(())
    })?;
    let others = dir.entries().map_err(|errno| cannot("list", root, &errno.into()))?;
    if let Some(other) = others.iter().find(|entry| entry.name.as_c_str() != MARK_NAME) {
        return Err(Problem::failed(format!(
            "{gone} files of the tree are removed; `{shown}` stays, because `{}` in it is not of the tree",
            other.name.to_string_lossy()
        )));
    }
    let removed = root.canonicalize().and_then(|path| Dir::holding(&path)).and_then(|(parent, name)| {
        dir.remove_file(MARK_NAME)?;
        Ok(parent.remove_dir(&name, &dir)?)
    });
    removed.map_err(|error| cannot("remove", root, &error))?;
    Ok(gone)
}

/// Removes the files and directories of a tree, but for its mark. `gone` is told after each file how many are.
pub(super) fn empty(tree: &Dir, gone: &mut dyn FnMut(u64) -> Result<(), Problem>) -> Result<u64, Problem> {
    let number = |name: &[u8]| std::str::from_utf8(name).is_ok_and(|name| name.parse::<u64>().is_ok());
    let listed = |dir: &Dir| dir.entries().map_err(|errno| cannot("list", dir.path(), &errno.into()));
    let mut files = 0;
    for folder in listed(tree)? {
        if !folder.name.to_bytes().strip_prefix(b"d").is_some_and(number) {
            continue;
        }
        // A link, or what belongs to another user, is not of the tree.
        let Ok(dir) = tree.dir(&folder.name) else { continue };
        if !dir.is_private().unwrap_or(false) {
            continue;
        }
        for file in listed(&dir)? {
            let name = file.name.to_bytes();
            // A run that was killed may have left files under their second name.
            let first = name.strip_suffix(MOVED.as_bytes()).unwrap_or(name);
            let regular =
                || dir.stat(&file.name).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
            if number(first) && regular() {
                dir.remove_file(&file.name)
                    .map_err(|errno| cannot("remove", &dir.path_of(&file.name), &errno.into()))?;
                files += 1;
                gone(files)?;
            }
        }
        // Stays where something else is in it.
        let _ = tree.remove_dir(&folder.name, &dir);
    }
    Ok(files)
}
