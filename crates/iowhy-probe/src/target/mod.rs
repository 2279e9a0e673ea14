//! What is read or written: finding it, looking at it before timing, opening it the safe way.
//!
//! Invariants: a file of the user's is only ever opened O_RDONLY here; only scratch files and memfds are opened for
//! writing, and a named block device only with a [`write_guard::Permit`]. A scratch file has no name while it is in
//! use, so that nothing is left behind however the process ends.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use iowhy_core::environment::TargetFacts;
use iowhy_core::problem::Problem;

use crate::method::scripted::Script;

/// A target, looked at and ready to be opened.
#[derive(Debug)]
pub struct Target {
    /// What was found on it.
    pub facts: TargetFacts,
    place: Place,
}

/// Where the bytes are.
#[derive(Debug)]
enum Place {
    Path(PathBuf),
    /// Scratch files and memfds: no name, reopened through `/proc/self/fd`.
    Descriptor(OwnedFd),
    Null,
    Scripted(Arc<Script>),
}

/// How to open a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Open for writing (refused for files of the user's).
    pub write: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_DSYNC.
    pub dsync: bool,
}

impl Target {
    /// Opens it anew, with its own file position.
    pub fn open(&self, _how: How) -> Result<OwnedFd, Problem> {
        unimplemented!("helper D")
    }

    /// The script of a scripted target.
    pub fn script(&self) -> Option<&Arc<Script>> {
        match &self.place {
            Place::Scripted(script) => Some(script),
            _ => None,
        }
    }
}
