//! Trees that killed runs have left: found and removed by the next run beside them.
//!
//! Invariant: a tree is taken for left behind only if directory and mark belong to us, nobody else may write to either, and
//! no living process holds the mark's lock; what other users plant is not touched.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use iowhy_linux::names::{Dir, Entry};
use rustix::fs::{FileType, FlockOperation, OFlags, flock};

use super::build::{MARK, MARK_NAME, NOT_KEPT, empty};

/// Bytes of a mark that are read; ours are shorter.
const MAX_MARK_BYTES: u64 = 64 << 10;

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

/// What the mark of a tree says, if it has one that is ours.
pub(super) fn mark_of(tree: &Dir) -> Option<String> {
    let mut text = String::new();
    let mark = File::from(tree.open_ours(MARK_NAME, OFlags::RDONLY)?);
    mark.take(MAX_MARK_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
