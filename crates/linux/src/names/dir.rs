//! A directory that is held open, and the names in it.
//!
//! Invariant: every name is one component and `O_NOFOLLOW` is on every open, so that no link can lead elsewhere, on every
//! kernel. Paths of several components are only read, by openat2(2) with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::Resource;

use super::trust::{is_ours, others_may_exchange};
use super::walk::{Held, Place, walk};

/// A directory, held open. What is done in it is done there, whatever becomes of its path.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    /// For messages only.
    path: PathBuf,
}

/// A name in a directory, as the directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One component.
    pub name: CString,
    /// Its type; `Unknown` where the file system does not tell.
    pub kind: FileType,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Raises the soft limit of open descriptors so that `needed` more fit.
///
/// # Errors
/// The hard limit, where it is too low for that.
pub fn allow_descriptors(needed: u64) -> Result<(), u64> {
    /// For what a command opens besides, later.
    const OTHERS: u64 = 256;
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
    let wanted = needed.saturating_add(open).saturating_add(OTHERS);
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= wanted) {
        return Ok(());
    }
    if let Some(most) = limit.maximum.filter(|most| *most < wanted) {
        return Err(most);
    }
    limit.current = Some(wanted);
    rustix::process::setrlimit(Resource::Nofile, limit).map_err(|_| limit.maximum.unwrap_or(u64::MAX))
}

/// A name of one component, or EINVAL.
fn component(name: &CStr) -> Result<&CStr, Errno> {
    let bytes = name.to_bytes();
    match bytes {
        b"" | b"." | b".." => Err(Errno::INVAL),
        _ if bytes.contains(&b'/') => Err(Errno::INVAL),
        _ => Ok(name),
    }
}

impl Dir {
    /// Opens a directory that the user named; links in its path are followed where they can be trusted.
    ///
    /// # Errors
    /// What open(2) says; PermissionDenied for a link that root does not follow.
    pub fn open(path: &Path) -> io::Result<Dir> {
        match walk::<Dir>(path, true)? {
            Place::Name(dir, name) => dir.dir(&name),
            Place::Directory(dir) => Ok(dir),
            Place::Magic(dir, name) => {
                let fd = rustix::fs::openat(&dir.fd, &name, DIRECTORY, Mode::empty())?;
                Ok(Dir { fd, path: dir.path_of(&name) })
            }
        }
    }

    /// A directory that exists by its own path and no link: for those that the kernel named.
    ///
    /// # Errors
    /// What openat(2) says; ELOOP or ENOTDIR for a link on the way.
    pub fn open_real(path: &Path) -> io::Result<Dir> {
        let mut dir = Dir::open(Path::new(if path.is_absolute() { "/" } else { "." }))?;
        for part in path.components() {
            match part {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => {
                    dir = dir.dir(&CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?)?;
                }
                Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
            }
        }
        Ok(dir)
    }

    /// Opens the directory that a path is in; the last component is its name there, whether that is a link or not.
    ///
    /// # Errors
    /// What open(2) says; EISDIR for a path without a last component; PermissionDenied for a link that root does not follow.
    pub fn holding(path: &Path) -> io::Result<(Dir, CString)> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        match walk::<Dir>(path, false)? {
            Place::Name(dir, name) => Ok((dir, name)),
            Place::Directory(_) | Place::Magic(..) => Err(Errno::ISDIR.into()),
        }
    }

    /// Opens a directory that the user named, and makes it, and those above it, where they are missing (mode 0700).
    ///
    /// # Errors
    /// What open(2) and mkdirat(2) say.
    pub fn open_or_make(path: &Path) -> io::Result<Dir> {
        match Dir::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            Dir::open_or_make(above)?;
        }
        let (above, name) = Dir::holding(path)?;
        match above.make_dir(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => above.dir(&name),
            other => other,
        }
    }

    /// Where it was when it was opened: for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name in it: for messages.
    pub fn path_of(&self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    /// Another descriptor of the same directory.
    ///
    /// # Errors
    /// Too many open files.
    pub fn try_clone(&self) -> io::Result<Dir> {
        Ok(Dir { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// Opens a directory in this one; never through a link.
    ///
    /// # Errors
    /// What openat(2) says; ENOTDIR or ELOOP for a link.
    pub fn dir(&self, name: &CStr) -> io::Result<Dir> {
        let fd = rustix::fs::openat(&self.fd, component(name)?, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Dir { fd, path: self.path_of(name) })
    }

    /// Makes a directory that only its owner may enter (mode 0700), and opens it.
    ///
    /// # Errors
    /// EEXIST where the name is taken; PermissionDenied where what was opened is not private to us, because somebody
    /// exchanged it or the file system keeps no owners.
    pub fn make_dir(&self, name: &CStr) -> io::Result<Dir> {
        rustix::fs::mkdirat(&self.fd, component(name)?, Mode::RWXU)?;
        let made = self.dir(name)?;
        if made.is_private()? {
            return Ok(made);
        }
        // rmdir removes an empty directory and nothing else.
        let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR);
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users may write to directories that are made there",
        ))
    }

    /// Makes a file that is not there yet and opens it with `flags`.
    ///
    /// # Errors
    /// EEXIST where the name is taken, also by a link.
    pub fn create_new(&self, name: &CStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, component(name)?, flags, mode)
    }

    /// Makes its names durable: fsync(2).
    ///
    /// # Errors
    /// What fsync(2) says.
    pub fn sync(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.fd)
    }

    /// Opens a file that is there, without waiting for a pipe's other end and never through a link. It cannot make one.
    ///
    /// # Errors
    /// What openat(2) says.
    pub fn open_file(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags.difference(OFlags::CREATE | OFlags::TRUNC | OFlags::TMPFILE)
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, component(name)?, flags, Mode::empty())
    }

    /// Opens a file that an earlier run of iowhy left: a regular file that belongs to us, that only we may write to and
    /// that has no second name. Anything else under that name is not there for this.
    pub fn open_ours(&self, name: &CStr, flags: OFlags) -> Option<OwnedFd> {
        let file = self.open_file(name, flags).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode).is_file();
        (regular && stat.st_nlink == 1 && is_ours(&stat)).then_some(file)
    }

    /// Opens what lies below, by a path of several components without links or `..`; for reading.
    ///
    /// # Errors
    /// What openat2(2) says; ELOOP for a link. Where that call is missing (before Linux 5.6, or refused by a sandbox) only
    /// the last component is kept from being a link.
    pub fn open_below(&self, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags.difference(OFlags::CREATE | OFlags::TRUNC | OFlags::TMPFILE | OFlags::ACCMODE)
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        if !path.to_bytes().contains(&b'/') {
            return rustix::fs::openat(&self.fd, path, flags, Mode::empty());
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), how) {
            // A sandbox answers with EPERM; so does the kernel to O_NOATIME on a file of another user.
            Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => Err(Errno::PERM),
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&self.fd, path, flags, Mode::empty()),
            other => other,
        }
    }

    /// What stands under a name; of a link the link itself.
    ///
    /// # Errors
    /// ENOENT and others of fstatat(2).
    pub fn stat(&self, name: &CStr) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.fd, component(name)?, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes a name that is no directory; of a link the link itself.
    ///
    /// # Errors
    /// What unlinkat(2) says.
    pub fn remove_file(&self, name: &CStr) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.fd, component(name)?, AtFlags::empty())
    }

    /// Removes the name of a directory that is held and empty.
    ///
    /// # Errors
    /// ENOTEMPTY; ESTALE where the name belongs to another directory by now.
    pub fn remove_dir(&self, name: &CStr, held: &Dir) -> Result<(), Errno> {
        let (named, held) = (self.stat(name)?, rustix::fs::fstat(&held.fd)?);
        if (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino) {
            return Err(Errno::STALE);
        }
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
    }

    /// Gives a file in it another name in it. What has that name is not replaced, where the file system can tell.
    ///
    /// # Errors
    /// EEXIST where the new name is taken.
    pub fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let (from, to) = (component(from)?, component(to)?);
        match rustix::fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                if self.stat(to).is_ok() {
                    return Err(Errno::EXIST);
                }
                rustix::fs::renameat(&self.fd, from, &self.fd, to)
            }
            other => other,
        }
    }

    /// Exchanges or replaces a name by another in it: `from` is gone afterwards, or holds what `to` was.
    pub(super) fn rename_over(&self, from: &CStr, to: &CStr, how: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.fd, component(from)?, &self.fd, component(to)?, how)
    }

    /// Gives a file without a name this one.
    pub(super) fn link(&self, file: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        let name = component(name)?;
        let empty = rustix::fs::linkat(file, c"", &self.fd, name, AtFlags::EMPTY_PATH);
        match empty {
            // Before Linux 6.10 only root may link a descriptor; everybody may link its entry in /proc.
            Err(Errno::NOENT | Errno::PERM | Errno::ACCESS) => {
                let entry = format!("/proc/self/fd/{}", file.as_raw_fd());
                rustix::fs::linkat(rustix::fs::CWD, entry, &self.fd, name, AtFlags::SYMLINK_FOLLOW)
            }
            other => other,
        }
    }

    /// All names in it but `.` and `..`.
    ///
    /// # Errors
    /// What getdents64(2) says.
    pub fn entries(&self) -> Result<Vec<Entry>, Errno> {
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                found.push(Entry { name: name.to_owned(), kind: entry.file_type() });
            }
        }
        Ok(found)
    }

    /// Whether it belongs to us and nobody else may write to it: names in it are then of our making.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn is_private(&self) -> io::Result<bool> {
        Ok(is_ours(&rustix::fs::fstat(&self.fd)?))
    }

    /// Whether other users than us could exchange what we make in it: it belongs to another, or others may write to it and
    /// it is not sticky. Root has to ask; what another user breaks in a directory of their own is their own.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn others_may_exchange(&self) -> io::Result<bool> {
        others_may_exchange(self.fd.as_fd())
    }
}

impl From<Held> for Dir {
    fn from(held: Held) -> Dir {
        Dir { fd: held.fd, path: held.shown }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_name_is_one_component_and_never_a_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("victim")).unwrap();
        std::fs::write(dir.path().join("victim/7"), "precious").unwrap();
        symlink("victim", dir.path().join("link")).unwrap();
        symlink("victim/7", dir.path().join("file")).unwrap();
        let held = Dir::open(dir.path()).unwrap();
        assert!(held.dir(c"link").is_err() && held.dir(c"victim").is_ok());
        for name in [c"victim/7", c"..", c".", c"", c"link/7"] {
            assert_eq!(held.remove_file(name), Err(Errno::INVAL), "{name:?}");
            assert!(held.create_new(name, OFlags::WRONLY, Mode::RWXU).is_err());
            assert!(held.make_dir(name).is_err() && held.rename(name, c"x").is_err());
        }
        assert!(held.open_file(c"file", OFlags::WRONLY).is_err());
        assert!(held.create_new(c"file", OFlags::WRONLY, Mode::RWXU).is_err());
        assert!(held.open_below(c"victim/7", OFlags::RDONLY).is_ok());
        assert!(held.open_below(c"link/7", OFlags::RDONLY).is_err());
        assert!(held.open_below(c"victim/../victim/7", OFlags::RDONLY).is_ok());
        assert!(held.open_below(c"../victim/7", OFlags::RDONLY).is_err());
        assert_eq!(held.rename(c"link", c"file"), Err(Errno::EXIST));
        held.remove_file(c"link").unwrap();
        assert_eq!(std::fs::read(dir.path().join("victim/7")).unwrap(), b"precious");
    }

    #[test]
    fn a_directory_is_ours_only_if_nobody_else_may_write_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let made = held.make_dir(c"made").unwrap();
        assert!(made.is_private().unwrap() && !held.others_may_exchange().unwrap());
        let mode = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode));
        for (bits, exchange) in [(0o777, true), (0o1777, false), (0o775, true), (0o755, false)] {
            mode(bits).unwrap();
            assert_eq!(held.others_may_exchange().unwrap(), exchange, "{bits:o}");
            assert_eq!(held.is_private().unwrap(), bits == 0o755, "{bits:o}");
        }
        assert_eq!(held.make_dir(c"made").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::fs::rename(dir.path().join("made"), dir.path().join("moved")).unwrap();
        std::fs::create_dir(dir.path().join("made")).unwrap();
        assert_eq!(held.remove_dir(c"made", &made), Err(Errno::STALE));
        held.remove_dir(c"moved", &made).unwrap();
    }

    #[test]
    fn what_was_left_is_trusted_only_if_it_has_one_name_and_one_owner() {
        let dir = tempfile::tempdir().unwrap();
        let held = Dir::open(dir.path()).unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("mark"), "x").unwrap();
        std::fs::set_permissions(path("mark"), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(held.open_ours(c"mark", OFlags::RDONLY).is_some());
        symlink("mark", path("link")).unwrap();
        assert!(held.open_ours(c"link", OFlags::RDONLY).is_none());
        std::fs::hard_link(path("mark"), path("twin")).unwrap();
        assert!(held.open_ours(c"mark", OFlags::RDONLY).is_none(), "two names");
        std::fs::remove_file(path("twin")).unwrap();
        std::fs::set_permissions(path("mark"), std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(held.open_ours(c"mark", OFlags::RDONLY).is_none(), "others may write to it");
    }

    #[test]
    fn missing_directories_are_made_and_links_to_them_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        assert!(Dir::open_or_make(&deep).is_ok() && Dir::open_or_make(&deep).is_ok());
        assert!(deep.is_dir());
        symlink(dir.path().join("nowhere"), dir.path().join("dangling")).unwrap();
        assert!(Dir::open_or_make(&dir.path().join("dangling")).is_err());
        assert!(!dir.path().join("nowhere").exists());
        assert!(Dir::holding(Path::new("/")).is_err() && Dir::holding(Path::new("x/")).is_err());
    }

    #[test]
    fn descriptors_are_allowed_up_to_the_hard_limit() {
        assert_eq!(allow_descriptors(1), Ok(()));
        match rustix::process::getrlimit(Resource::Nofile).maximum {
            Some(most) => assert_eq!(allow_descriptors(most), Err(most)),
            None => assert_eq!(allow_descriptors(1 << 20), Ok(())),
        }
    }
}
