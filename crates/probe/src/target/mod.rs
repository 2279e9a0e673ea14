//! Targets of reads and writes: find, inspect before timing, open safely.
//!
//! Invariants: a file of the user's is only ever opened O_RDONLY here; only scratch files and memfds are opened for
//! writing, and a named block device or file only with a [`write_guard::Permit`]. A scratch file has no name while
//! it is in use, so that nothing is left behind however the process ends.

pub mod devices;
pub(crate) mod extents;
mod find_file;
mod inspect;
mod measured;
mod refusal;
mod resolve;
mod scratch;
mod signatures;
mod status;
pub mod stripe;
pub mod write_guard;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::problem::Problem;
use iowhy_linux::mounts;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use find_file::find_readable_file;
pub use resolve::{Needs, resolve};
pub use status::Identity;

pub(crate) use status::Status;

/// A path could not be opened or looked at: the refusal in one line, with the fix.
pub(crate) fn cannot_open(path: &Path, errno: Errno) -> Problem {
    refusal::cannot_open(path, "", errno)
}

use crate::script::{Script, ScriptedTarget};
use stripe::Striped;
use write_guard::Permit;

/// A target, looked at and ready to be opened.
#[derive(Debug)]
pub struct Target {
    /// Findings of the inspection.
    pub facts: TargetFacts,
    place: Place,
    /// The kernel's facts; `None` for test targets.
    status: Option<Status>,
    /// The devices under it, found when they are first counted.
    under: OnceLock<iowhy_linux::block::devices::Devices>,
}

/// Where the bytes are.
#[derive(Debug)]
enum Place {
    /// A file or device of the user's, with the permission to write over it if it was given.
    Path {
        path: PathBuf,
        permit: Option<Permit>,
        /// A block device stays open: with its last close the kernel drops what its page cache holds, and a warm slice
        /// would find nothing.
        _held: Option<OwnedFd>,
    },
    /// Scratch files and memfds: no name, reopened through `/proc/self/fd`. The directory is the scratch file's.
    Descriptor {
        file: OwnedFd,
        directory: Option<PathBuf>,
    },
    Null,
    Scripted(Arc<Script>),
    /// Other targets that take turns.
    Stripe(Arc<Striped>),
}

/// How to open a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// Open for writing (refused for files of the user's).
    pub write: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_DSYNC.
    pub dsync: bool,
}

impl Target {
    /// Opens it anew, with its own file position, always close-on-exec; a file of the user's without touching its
    /// access time where that is allowed.
    ///
    /// # Errors
    /// A refusal when writing is not permitted, O_DIRECT is not supported, the target is a false one, the file was
    /// replaced since it was looked at, or the system refuses.
    pub fn open(&self, how: OpenMode) -> Result<OwnedFd, Problem> {
        let mut flags =
            if how.write { OFlags::RDWR } else { OFlags::RDONLY } | OFlags::CLOEXEC | OFlags::NOCTTY;
        flags.set(OFlags::DIRECT, how.direct);
        flags.set(OFlags::DSYNC, how.dsync);
        let opened = match &self.place {
            Place::Null | Place::Scripted(_) => {
                return Err(Problem::refused(format!(
                    "the false target `{}` has no file to open",
                    self.facts.name
                ))
                .hint("use `--method null` with it, or name a file, directory or device"));
            }
            Place::Stripe(_) => {
                return Err(Problem::refused(format!(
                    "the stripe `{}` is no one file to open",
                    self.facts.name
                ))
                .hint("name one of its members"));
            }
            Place::Descriptor { file, .. } => reopen(file.as_fd(), flags).map_err(Refused::Nameless),
            Place::Path { permit: Some(permit), .. } => {
                reopen(permit.claim(), flags).map_err(Refused::Nameless)
            }
            Place::Path { .. } if how.write && !self.is_char_device() => {
                return Err(Problem::refused(format!("`{}` was opened for reading only", self.facts.name))
                    .hint(format!("to destroy all data on it: `--destroy-data {0} {0}`", self.facts.name)));
            }
            Place::Path { path, .. } => open_quietly(path, flags).map_err(Refused::Named),
        };
        let file = opened.map_err(|refused| self.explain(how, refused))?;
        self.check_unchanged(file.as_fd())?;
        Ok(file)
    }

    /// Whether it is the `null` test target.
    pub fn is_null(&self) -> bool {
        matches!(self.place, Place::Null)
    }

    /// The script of a scripted target; of a stripe of such targets that of the first. Where there is one, time is virtual.
    pub fn script(&self) -> Option<&Arc<Script>> {
        match &self.place {
            Place::Scripted(script) => Some(script),
            Place::Stripe(stripe) => stripe.members().first()?.script(),
            _ => None,
        }
    }

    /// Members and map of a stripe.
    pub fn stripe(&self) -> Option<&Arc<Striped>> {
        match &self.place {
            Place::Stripe(stripe) => Some(stripe),
            _ => None,
        }
    }

    /// Whether reads of no bytes are normal, and not the end of a truncated file.
    pub(crate) fn moves_no_data(&self) -> bool {
        match self.facts.kind {
            TargetKind::CharDevice | TargetKind::Null => true,
            _ => self.script().is_some_and(|script| script.target == ScriptedTarget::NullDevice),
        }
    }

    /// The path as the user gave it; for a scratch file its directory; `None` for memory and the false targets.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Path { path, .. } => Some(path),
            Place::Descriptor { directory, .. } => directory.as_deref(),
            Place::Null | Place::Scripted(_) | Place::Stripe(_) => None,
        }
    }

    /// Identity of its bytes; `None` for test targets and for stripes, whose members have one each.
    pub fn identity(&self) -> Option<Identity> {
        self.status.as_ref().map(Status::identity)
    }

    /// Whether it may be written to.
    pub fn writable(&self) -> bool {
        match &self.place {
            Place::Path { permit, .. } => permit.is_some() || self.is_char_device(),
            Place::Descriptor { .. } | Place::Null | Place::Scripted(_) => true,
            Place::Stripe(stripe) => stripe.members().iter().all(|member| member.writable()),
        }
    }

    /// The kernel's facts from the inspection.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// The type of the file system that its bytes are in; `None` for devices and the false targets.
    pub(crate) fn file_system(&self) -> Option<String> {
        let status = self.status().filter(|s| s.holds_files())?;
        let table = mounts::read();
        let listed = mounts::find(&table, status.mount_id, self.path()).map(|m| m.file_system.clone());
        // A memfd is on the kernel's own tmpfs, which no mount table lists.
        listed.or_else(|| status.memory_backed.then(|| "tmpfs".to_owned()))
    }

    fn is_char_device(&self) -> bool {
        self.status.as_ref().is_some_and(|s| s.char_device)
    }

    fn explain(&self, how: OpenMode, refused: Refused) -> Problem {
        let name = &self.facts.name;
        match refused {
            Refused::Named(Errno::INVAL) | Refused::Nameless(Errno::INVAL) if how.direct => {
                refusal::no_direct(name, self.file_system().as_deref())
            }
            Refused::Named(errno) => refusal::cannot_open(Path::new(name), "", errno),
            Refused::Nameless(Errno::NOENT) if !Path::new("/proc/self/fd").exists() => Problem::refused(format!(
                "cannot reopen `{name}`: /proc is not mounted, and a file without a name is reached only through it"
            ))
            .hint("mount it with `mount -t proc proc /proc`, or name a file that you may read"),
            Refused::Nameless(Errno::MFILE | Errno::NFILE) => {
                Problem::refused(format!("cannot open `{name}` once more: too many open files"))
                    .hint("raise the limit with `ulimit -n 1024`, or use fewer `--threads`")
            }
            Refused::Nameless(errno) => {
                Problem::refused(format!("cannot reopen the scratch file of `{name}`: {}", refusal::words(errno)))
                    .hint("its file system does not allow that; name a directory on another one, or a readable file")
            }
        }
    }

    /// All cells must see the same bytes: a file that was renamed over since is refused.
    fn check_unchanged(&self, file: BorrowedFd<'_>) -> Result<(), Problem> {
        let now = Status::from_fd(file).ok().map(|s| s.identity());
        if now == self.identity() {
            return Ok(());
        }
        Err(Problem::failed(format!(
            "`{}` was replaced by another file while it was measured",
            self.facts.name
        ))
        .hint("measure a file that nobody replaces meanwhile, or a directory"))
    }
}

/// Why an open failed, and how it was tried.
enum Refused {
    Named(Errno),
    Nameless(Errno),
}

/// The name under which the kernel reopens a descriptor.
fn descriptor_path(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens what a descriptor refers to anew, always close-on-exec.
pub fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(descriptor_path(file), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

/// A nameless file in a directory: empty, or filled with `bytes` of noise and synced.
///
/// # Errors
/// When the directory cannot be written, has no room, or a signal asked to stop.
pub fn scratch_in(directory: &Path, bytes: u64) -> Result<OwnedFd, Problem> {
    if bytes > 0 { scratch::make(directory, bytes, &mut |_, _| {}) } else { scratch::empty(directory) }
}

/// Opens a file of the user's, without touching its access time where that is allowed (to its owner and to root).
pub(crate) fn open_quietly(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
        other => other,
    }
}
