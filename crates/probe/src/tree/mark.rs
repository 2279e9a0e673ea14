//! The names that iowhy gives to trees and their marks, and what a mark says.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_linux::file_size;
use iowhy_linux::names::Dir;
use rustix::fs::OFlags;

/// Marks a directory as a scratch tree.
pub(super) const MARK: &str = ".iowhy-tree";
/// The same for system calls.
pub(super) const MARK_NAME: &CStr = c".iowhy-tree";
/// What stands in the mark of a tree that goes with its run.
pub(super) const NOT_KEPT: &str = "removed when the run ends\n";
/// Behind the name of a file that was renamed.
pub(super) const MOVED: &str = ".moved";
/// Bytes of a mark that are read; ours are shorter.
const MAX_MARK_BYTES: u64 = 64 << 10;

/// What the mark of a tree says, if it has one that is ours.
pub(super) fn mark_of(tree: &Dir) -> Option<String> {
    let mut text = String::new();
    let mark = File::from(tree.open_ours(MARK_NAME, OFlags::RDONLY)?);
    mark.take(MAX_MARK_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

pub(super) fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    file_size::explained(Problem::failed(format!("cannot {what} `{}`: {error}", path.display())), error)
}
