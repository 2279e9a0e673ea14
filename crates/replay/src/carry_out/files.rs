//! Files of a replay: opened or made, checked, and put into their page-cache state before each run.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use iowhy_core::problem::Problem;
use iowhy_core::profile::FileIdentity;
use iowhy_core::replay::{Advice, PlanFile, Role, State};
use iowhy_linux::file_size;
use iowhy_linux::names::{Dir, Regular};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use iowhy_probe::residency;
use iowhy_probe::target::{reopen, scratch_in};
use iowhy_probe::tree::{Shape, Tree};

/// A cold file may keep 1/N of its pages in the cache.
const COLD_PART: u64 = 20;
const MAX_WARMED_BYTES: u64 = 1 << 30;

/// An open file.
#[derive(Debug)]
pub(super) struct ReplayFile {
    /// With the flags of the plan.
    pub(super) fd: OwnedFd,
    /// Through the page cache, to set its state.
    plain: OwnedFd,
    made: Option<MadeFiles>,
}

/// Scratch files that a run makes under names: the only ones of a tree, which is removed with them.
#[derive(Debug)]
struct MadeFiles {
    tree: Tree,
    /// One for each that is there at the end of a run.
    names: Vec<CString>,
    /// How many of the names a run has taken.
    taken: AtomicUsize,
    flags: OFlags,
}

/// Opens a user file or makes a scratch file. `made`: how many files of [`ReplayFile::make`] are there at the end of a run.
pub(super) fn open(planned: &PlanFile, made: u64) -> Result<ReplayFile, Problem> {
    let path = Path::new(&planned.path);
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    if planned.direct {
        flags |= OFlags::DIRECT;
    }
    if planned.durable {
        flags |= OFlags::DSYNC;
    }
    let cannot = |errno: Errno| {
        let words = std::io::Error::from(errno);
        Problem::failed(format!("cannot open `{}`: {words}", planned.path)).hint(match errno {
            Errno::ACCESS | Errno::PERM => "run `iowhy prove` as a user who may read it",
            _ => "put it back, or profile the program again: `iowhy --prove -- CMD`",
        })
    };
    let mut opened = match planned.role {
        Role::User => {
            let failed = |error: std::io::Error| cannot(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
            let file = Regular::find(path, OFlags::empty()).map_err(failed)?;
            let quietly = |flags: OFlags| match file.open(flags | OFlags::NOATIME) {
                Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => file.open(flags),
                other => other,
            };
            let mut plain: OwnedFd = quietly(OFlags::RDONLY).map_err(failed)?.into();
            if leaves_access_time(&plain) {
                plain = file.open(OFlags::RDONLY).map_err(failed)?.into();
            }
            let fd = match planned.direct {
                true => quietly(flags | OFlags::RDONLY).map_err(failed)?.into(),
                false => rustix::io::fcntl_dupfd_cloexec(&plain, 0).map_err(cannot)?,
            };
            ReplayFile { fd, plain, made: None }
        }
        Role::Sink => {
            let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(cannot)?;
            let character = rustix::fs::fstat(&fd).is_ok_and(|s| {
                rustix::fs::FileType::from_raw_mode(s.st_mode) == rustix::fs::FileType::CharacterDevice
            });
            if !character {
                return Err(Problem::failed(format!("`{}` is no device that discards data", planned.path)));
            }
            let plain = rustix::io::fcntl_dupfd_cloexec(&fd, 0).map_err(cannot)?;
            ReplayFile { fd, plain, made: None }
        }
        Role::ScratchEmpty | Role::ScratchFull => {
            let dir = directory_of(path);
            let full = planned.role == Role::ScratchFull;
            let plain = scratch_in(dir, if full { planned.size_bytes } else { 0 })
                .map_err(|problem| with_directory_hint(problem, dir))?;
            let fd = reopen(plain.as_fd(), OFlags::RDWR | flags).map_err(cannot)?;
            ReplayFile { fd, plain, made: None }
        }
    };
    if made > 0 && planned.role == Role::ScratchEmpty {
        opened.made = Some(MadeFiles::new(path, flags, made)?);
    }
    opened.check_unchanged(planned)?;
    if planned.role != Role::Sink && !planned.direct {
        let advice = match planned.advice {
            Advice::Normal => rustix::fs::Advice::Normal,
            Advice::Random => rustix::fs::Advice::Random,
            Advice::Sequential => rustix::fs::Advice::Sequential,
        };
        rustix::fs::fadvise(&opened.fd, 0, None, advice).map_err(cannot)?;
    }
    Ok(opened)
}

/// Says why a scratch file cannot be made in a directory.
fn with_directory_hint(problem: Problem, dir: &Path) -> Problem {
    use rustix::fs::Access;
    if !dir.is_dir() {
        return problem
            .hint("make that directory again, or profile the program again: `iowhy --prove -- CMD`");
    }
    // By the effective user: access(2) checks the real one, who is root under sudo.
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(rustix::fs::CWD, dir, wanted, rustix::fs::AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM) => problem
            .hint("a replay makes scratch files beside the program's: run `iowhy prove` as a user who may write there"),
        _ => problem,
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl MadeFiles {
    fn new(path: &Path, flags: OFlags, files: u64) -> Result<MadeFiles, Problem> {
        let tree =
            Tree::lay_out(directory_of(path), None, Shape { files, directories: 1, sizes: Vec::new() })?;
        let names = (0..files).map(|file| Ok(tree.spot(file)?.1)).collect::<Result<_, Problem>>()?;
        Ok(MadeFiles { tree, names, taken: AtomicUsize::new(0), flags: flags | OFlags::RDWR })
    }

    fn dir(&self) -> Result<&Dir, Errno> {
        self.tree.folder_of(0).map_err(|_| Errno::BADF)
    }

    fn remove(&self, name: &CStr) -> Result<(), Errno> {
        match self.dir()?.remove_file(name) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Makes the next one. `stays`: under the next name; else again under the first.
    fn make(&self, stays: bool) -> Result<OwnedFd, Errno> {
        let number = if stays { self.taken.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let name = self.names.get(number).ok_or(Errno::INVAL)?;
        if !stays {
            self.taken.store(1, Ordering::Relaxed);
            self.remove(name)?;
        }
        self.dir()?.create_new(name, self.flags, Mode::RUSR | Mode::WUSR)
    }

    /// Removes those of a run.
    fn remove_all(&self) {
        let taken = self.taken.swap(0, Ordering::Relaxed);
        for name in self.names.iter().take(taken) {
            let _ = self.remove(name);
        }
    }
}

/// Whether reads leave the access time of a file unchanged by the rule of `relatime` (mount(8)). Then O_NOATIME is not
/// needed, and it would change the time of a call: checking that rule takes 100 of 520 ns of a read of 128 bytes (AMD EPYC,
/// Linux 6.18).
fn leaves_access_time(fd: &OwnedFd) -> bool {
    /// `relatime` updates an access time after a day: not during a replay.
    const MAX_AGE_S: i64 = 22 * 3600;
    let relative =
        rustix::fs::fstatvfs(fd).is_ok_and(|s| s.f_flag.contains(rustix::fs::StatVfsMountFlags::RELATIME));
    let Ok(stat) = rustix::fs::fstat(fd) else { return false };
    let accessed = (stat.st_atime, stat.st_atime_nsec);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let age = now.map_or(i64::MAX, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX) - stat.st_atime);
    relative
        && accessed > (stat.st_mtime, stat.st_mtime_nsec)
        && accessed > (stat.st_ctime, stat.st_ctime_nsec)
        && age < MAX_AGE_S
}

impl ReplayFile {
    /// Through the page cache.
    pub(super) fn plain(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }

    /// Checks a user file against its recorded identity.
    pub(super) fn check_unchanged(&self, planned: &PlanFile) -> Result<(), Problem> {
        let Some(then) = planned.identity.filter(|_| planned.role == Role::User) else { return Ok(()) };
        let now = rustix::fs::fstat(&self.plain).ok().map(|s| FileIdentity {
            device: s.st_dev,
            inode: s.st_ino,
            size_bytes: u64::try_from(s.st_size).unwrap_or(0),
            modified_ns: s
                .st_mtime
                .saturating_mul(1_000_000_000)
                .saturating_add(i64::try_from(s.st_mtime_nsec).unwrap_or(0)),
        });
        if now == Some(then) {
            return Ok(());
        }
        Err(Problem::failed(format!("`{}` was changed since the recorded run", planned.path))
            .hint("profile the program again: `iowhy --prove -- CMD`"))
    }

    /// As [`ReplayFile::prepare`], for a user file in a control group: page cache is charged to the group that read it first,
    /// so it is dropped and read again. Reading starts at `first` and wraps, so that the pages needed first are the oldest
    /// where memory is short, as after a whole pass.
    pub(super) fn prepare_in_cgroup(&self, planned: &PlanFile, first: u64) -> Result<(), Problem> {
        let (file, bytes) = (self.plain.as_fd(), planned.size_bytes);
        if planned.state == State::Cold || bytes == 0 {
            return self.prepare(planned);
        }
        residency::evict(file, 0, bytes)?;
        let first = first % bytes / 4096 * 4096;
        let most = bytes.min(MAX_WARMED_BYTES);
        let behind = most.min(bytes - first);
        residency::pass(file, first, behind)?;
        residency::pass(file, 0, most - behind)
    }

    /// Frees the space of a run. A file that cannot be truncated goes with its descriptor.
    pub(super) fn discard(&self, planned: &PlanFile) {
        if planned.role == Role::ScratchEmpty {
            let _ = rustix::fs::ftruncate(&self.plain, 0);
        }
        if let Some(made) = &self.made {
            made.remove_all();
            let _ = rustix::fs::ftruncate(&self.fd, 0);
        }
    }

    /// Makes a new file under its descriptor, `stays` says what becomes of the one before: see [`Op::MakeFile`].
    ///
    /// [`Op::MakeFile`]: iowhy_core::replay::Op::MakeFile
    pub(super) fn make(&self, stays: bool) -> Result<usize, Errno> {
        let Some(made) = &self.made else { return Err(Errno::INVAL) };
        let new = made.make(stays)?;
        // SAFETY: both descriptors are open and owned here; the target keeps its number and its owner.
        let done = unsafe { libc::dup3(new.as_raw_fd(), self.fd.as_raw_fd(), libc::O_CLOEXEC) };
        if done < 0 {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        Ok(0)
    }

    /// Makes the name of the last file durable.
    pub(super) fn sync_directory(&self) -> Result<usize, Errno> {
        let Some(made) = &self.made else { return Err(Errno::INVAL) };
        made.dir()?.sync().map(|()| 0)
    }

    /// Brings what a pass finds in the page cache of a cold file, and nothing around it: advice reads no further than it says. All ranges
    /// are asked for together and then waited for. `passes`: as of [`PlanFile::place`].
    pub(super) fn bring_cached(&self, planned: &PlanFile, passes: u64) -> Result<(), Problem> {
        let ranges = || planned.cached.iter().map(|[at, bytes]| (planned.place(*at, *bytes, passes), *bytes));
        for (offset, bytes) in ranges() {
            let length = std::num::NonZeroU64::new(bytes);
            // Only advice: the pass reads what it does not bring.
            let _ = rustix::fs::fadvise(&self.plain, offset, length, rustix::fs::Advice::WillNeed);
        }
        ranges().try_for_each(|(offset, bytes)| residency::pass(self.plain.as_fd(), offset, bytes))
    }

    /// Sets the page-cache state at the start of a run.
    pub(super) fn prepare(&self, planned: &PlanFile) -> Result<(), Problem> {
        let failed = |what: &str, errno: Errno| {
            let error = std::io::Error::from(errno);
            let problem =
                Problem::failed(format!("cannot {what} the scratch file beside `{}`: {error}", planned.path));
            file_size::explained(problem, &error)
        };
        match planned.role {
            Role::Sink => return Ok(()),
            Role::ScratchEmpty => {
                rustix::fs::ftruncate(&self.plain, 0).map_err(|e| failed("empty", e))?;
                return rustix::fs::fdatasync(&self.plain).map_err(|e| failed("settle", e));
            }
            Role::ScratchFull => rustix::fs::fdatasync(&self.plain).map_err(|e| failed("settle", e))?,
            Role::User => {}
        }
        let (file, bytes) = (self.plain.as_fd(), planned.size_bytes);
        if bytes == 0 {
            return Ok(());
        }
        match planned.state {
            State::Warm => {
                let most = bytes.min(MAX_WARMED_BYTES);
                if residency::look(file, 0, most).is_ok_and(|seen| seen.resident >= seen.pages) {
                    return Ok(());
                }
                residency::fetch(file, 0, most).map(|_| ())
            }
            State::Cold => match residency::evict_patiently(file, bytes, COLD_PART)? {
                Ok(seen) if seen.resident * COLD_PART > seen.pages => Err(Problem::failed(format!(
                    "`{}` stays in the page cache ({} of {} pages), and it was cold in the recorded run",
                    planned.path, seen.resident, seen.pages
                ))
                .hint("end the programs that map it and try again")),
                Ok(_) => Ok(()),
                Err(reason) => Err(Problem::failed(format!(
                    "the page cache of `{}` is not visible: {reason}",
                    planned.path
                ))),
            },
        }
    }
}
