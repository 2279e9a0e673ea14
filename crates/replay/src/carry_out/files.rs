//! Files of a replay: opened, made, and brought into their state before each run.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

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

/// A cold file may keep one page of so many in the cache.
const COLD_PART: u64 = 20;
/// Files are brought into the cache up to here.
const MOST_WARMED_BYTES: u64 = 1 << 30;

/// An open file.
#[derive(Debug)]
pub(super) struct Opened {
    /// As the plan wants it.
    pub(super) fd: OwnedFd,
    /// Through the page cache, to set its state.
    plain: OwnedFd,
    renewed: Option<Renewed>,
}

/// Where a scratch file is made anew, under a name: the only file of a tree, which is removed with it.
#[derive(Debug)]
struct Renewed {
    tree: Tree,
    name: CString,
    flags: OFlags,
}

/// Opens a file, or makes it. `renewed`: it will be made anew ([`Opened::renew`]).
pub(super) fn open(planned: &PlanFile, renewed: bool) -> Result<Opened, Problem> {
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
            Errno::ACCESS | Errno::PERM => "prove as a user who may read it",
            _ => "put it back where it was, or watch the program anew: `iowhy --prove -- CMD`",
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
            Opened { fd, plain, renewed: None }
        }
        Role::Sink => {
            let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(cannot)?;
            let character = rustix::fs::fstat(&fd).is_ok_and(|s| {
                rustix::fs::FileType::from_raw_mode(s.st_mode) == rustix::fs::FileType::CharacterDevice
            });
            if !character {
                return Err(Problem::failed(format!("`{}` is no device that keeps nothing", planned.path)));
            }
            let plain = rustix::io::fcntl_dupfd_cloexec(&fd, 0).map_err(cannot)?;
            Opened { fd, plain, renewed: None }
        }
        Role::ScratchEmpty | Role::ScratchFull => {
            let dir = beside(path);
            let full = planned.role == Role::ScratchFull;
            let plain = scratch_in(dir, if full { planned.size_bytes } else { 0 })
                .map_err(|problem| beside_the_program(problem, dir))?;
            let fd = reopen(plain.as_fd(), OFlags::RDWR | flags).map_err(cannot)?;
            Opened { fd, plain, renewed: None }
        }
    };
    if renewed && planned.role == Role::ScratchEmpty {
        opened.renewed = Some(Renewed::beside(path, flags)?);
    }
    opened.still(planned)?;
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

/// What to do where a scratch file cannot be made for want of the directory, or of rights.
fn beside_the_program(problem: Problem, dir: &Path) -> Problem {
    use rustix::fs::Access;
    if !dir.is_dir() {
        return problem.hint("make that directory again, or watch the program anew: `iowhy --prove -- CMD`");
    }
    // As the user whose files are made: access(2) would judge by the real user, who is root under sudo.
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(rustix::fs::CWD, dir, wanted, rustix::fs::AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM) => problem
            .hint("a replay makes its scratch files beside those of the program: prove as a user who may write there"),
        _ => problem,
    }
}

fn beside(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Renewed {
    fn beside(path: &Path, flags: OFlags) -> Result<Renewed, Problem> {
        let tree = Tree::lay_out(beside(path), None, Shape { files: 1, directories: 1, sizes: Vec::new() })?;
        let (_, name) = tree.spot(0)?;
        Ok(Renewed { tree, name, flags: flags | OFlags::RDWR })
    }

    fn dir(&self) -> Result<&Dir, Errno> {
        self.tree.folder_of(0).map_err(|_| Errno::BADF)
    }

    fn remove(&self) -> Result<(), Errno> {
        match self.dir()?.remove_file(&self.name) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    fn make(&self) -> Result<OwnedFd, Errno> {
        self.dir()?.create_new(&self.name, self.flags, Mode::RUSR | Mode::WUSR)
    }
}

/// Whether reading leaves the access time of a file as it is, by the rule of `relatime` (mount(8)). Then it is opened as a
/// program does: looking at that rule is part of each call (100 of 520 ns of a read of 128 bytes on an AMD EPYC with
/// Linux 6.18), and O_NOATIME would spare it.
fn leaves_access_time(fd: &OwnedFd) -> bool {
    /// An access time that is older is set anew after a day: not during a replay.
    const MOST_AGE_S: i64 = 22 * 3600;
    let relative =
        rustix::fs::fstatvfs(fd).is_ok_and(|s| s.f_flag.contains(rustix::fs::StatVfsMountFlags::RELATIME));
    let Ok(stat) = rustix::fs::fstat(fd) else { return false };
    let accessed = (stat.st_atime, stat.st_atime_nsec);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let age = now.map_or(i64::MAX, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX) - stat.st_atime);
    relative
        && accessed > (stat.st_mtime, stat.st_mtime_nsec)
        && accessed > (stat.st_ctime, stat.st_ctime_nsec)
        && age < MOST_AGE_S
}

impl Opened {
    /// Makes sure that a file of the user's is what it was.
    pub(super) fn still(&self, planned: &PlanFile) -> Result<(), Problem> {
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
        Err(Problem::failed(format!("`{}` was changed since the program ran", planned.path))
            .hint("watch the program anew: `iowhy --prove -- CMD`"))
    }

    /// As [`Opened::prepare`], for a file of the user's in control groups: page cache counts for the group that touched it
    /// first, so all of it is dropped, and what is to be there is read anew. It is read from `first` on and around, so
    /// that where memory does not hold all of it the part that is needed first is the oldest, as after a whole pass.
    pub(super) fn prepare_anew(&self, planned: &PlanFile, first: u64) -> Result<(), Problem> {
        let (file, bytes) = (self.plain.as_fd(), planned.size_bytes);
        if planned.state == State::Cold || bytes == 0 {
            return self.prepare(planned);
        }
        residency::evict(file, 0, bytes)?;
        let first = first % bytes / 4096 * 4096;
        let most = bytes.min(MOST_WARMED_BYTES);
        let behind = most.min(bytes - first);
        residency::pass(file, first, behind)?;
        residency::pass(file, 0, most - behind)
    }

    /// Gives back what a run wrote. A file that cannot be cut is gone with its descriptor.
    pub(super) fn clear(&self, planned: &PlanFile) {
        if planned.role == Role::ScratchEmpty {
            let _ = rustix::fs::ftruncate(&self.plain, 0);
        }
        if let Some(renewed) = &self.renewed {
            let _ = renewed.remove();
            let _ = rustix::fs::ftruncate(&self.fd, 0);
        }
    }

    /// Removes the file that was made last and makes another under its name; the descriptor is that of the new one.
    pub(super) fn renew(&self) -> Result<usize, Errno> {
        let Some(renewed) = &self.renewed else { return Err(Errno::INVAL) };
        renewed.remove()?;
        let new = renewed.make()?;
        // SAFETY: both descriptors are ours and open; the number of ours stays, and so does its owner.
        let done = unsafe { libc::dup3(new.as_raw_fd(), self.fd.as_raw_fd(), libc::O_CLOEXEC) };
        if done < 0 {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        Ok(0)
    }

    /// Sets the state that a run begins with.
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
                let most = bytes.min(MOST_WARMED_BYTES);
                if residency::look(file, 0, most).is_ok_and(|seen| seen.resident >= seen.pages) {
                    return Ok(());
                }
                residency::fetch(file, 0, most).map(|_| ())
            }
            State::Cold => match residency::evict_patiently(file, bytes, COLD_PART)? {
                Ok(seen) if seen.resident * COLD_PART > seen.pages => Err(Problem::failed(format!(
                    "`{}` stays in the page cache ({} of {} pages): it was cold when the program ran",
                    planned.path, seen.resident, seen.pages
                ))
                .hint("end the programs that map it, and try again")),
                Ok(_) => Ok(()),
                Err(reason) => Err(Problem::failed(format!("cannot see whether it is cold: {reason}"))),
            },
        }
    }
}
