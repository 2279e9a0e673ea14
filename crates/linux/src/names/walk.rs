//! Where a path leads, one component after the other, as open(2) would go, but with every directory held.
//!
//! Invariant: root follows no symbolic link that another user made or may exchange: such a link may lead anywhere by the
//! time it is used. Other users' rights end where their own do, so for them links are followed as usual.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::dir::{DIRECTORY, Dir, owner};

/// Links on the way at most, as in the kernel.
const MAX_LINKS: u32 = 40;
/// To go on from there; it need not be readable.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Place {
    /// A name in a directory, whether anything has it or not.
    Name(Dir, CString),
    /// A directory without a name of its own here: `/`, `.`, `..`.
    Directory(Dir),
    /// A link of /proc, which is no path: an open file of this process, such as /dev/stdout.
    Magic(Dir, CString),
}

/// Walks a path. `follow`: a link that is its last component is followed, too.
///
/// # Errors
/// What openat(2) says; PermissionDenied with its reason for a link that root does not follow.
pub(super) fn walk(path: &Path, follow: bool) -> io::Result<Place> {
    let mut at = Walk::new(path)?;
    while let Some(next) = at.rest.pop() {
        let name = match next.as_slice() {
            b"" | b"." => continue,
            b".." => {
                at.step(c"..", STEP)?;
                continue;
            }
            name => CString::new(name).map_err(|_| Errno::INVAL)?,
        };
        let last = at.rest.iter().all(|rest| rest.is_empty());
        match rustix::fs::statat(&at.fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) if last => return Ok(Place::Name(at.dir(), name)),
            Err(errno) => return Err(errno.into()),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() && (follow || !last) => {
                let magic = rustix::fs::fstatfs(&at.fd)
                    .is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC);
                match (magic, last) {
                    (true, true) => return Ok(Place::Magic(at.dir(), name)),
                    (true, false) => at.step(&name, STEP)?,
                    (false, _) => at.link(&name, &stat)?,
                }
            }
            Ok(_) if last => return Ok(Place::Name(at.dir(), name)),
            Ok(_) => at.step(&name, STEP | OFlags::NOFOLLOW)?,
        }
    }
    Ok(Place::Directory(at.dir()))
}

/// Device and inode of what a path leads to, by links that this user may trust.
///
/// # Errors
/// Those of opening it by the same way; nothing is opened.
pub fn identify(path: &Path) -> io::Result<(u64, u64)> {
    let stat = match walk(path, true)? {
        Place::Name(dir, name) => rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)?,
        Place::Directory(dir) => rustix::fs::fstat(&dir)?,
        Place::Magic(dir, name) => rustix::fs::statat(&dir, &name, AtFlags::empty())?,
    };
    Ok((stat.st_dev, stat.st_ino))
}

/// A walk on its way.
struct Walk {
    fd: OwnedFd,
    /// For messages.
    shown: PathBuf,
    /// Components to come, the next one last.
    rest: Vec<Vec<u8>>,
    links: u32,
}

impl Walk {
    fn new(path: &Path) -> io::Result<Walk> {
        let (start, shown) = match path.is_absolute() {
            true => (c"/", PathBuf::from("/")),
            false => (c".", PathBuf::new()),
        };
        let fd = rustix::fs::openat(CWD, start, STEP, Mode::empty())?;
        let mut walk = Walk { fd, shown, rest: Vec::new(), links: 0 };
        walk.put_first(path.as_os_str().as_bytes());
        Ok(walk)
    }

    fn put_first(&mut self, path: &[u8]) {
        self.rest.extend(path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
    }

    fn step(&mut self, name: &CStr, flags: OFlags) -> io::Result<()> {
        self.fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        self.shown.push(OsStr::from_bytes(name.to_bytes()));
        Ok(())
    }

    /// Goes on where a link leads.
    fn link(&mut self, name: &CStr, stat: &Stat) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new())?;
        if owner().is_root() {
            let mine = stat.st_uid == 0 && !Dir::others_may_exchange_in(self.fd.as_fd())?;
            if !mine {
                let link = self.shown.join(OsStr::from_bytes(name.to_bytes()));
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!(
                        "`{}` is a symbolic link that another user may change (uid {}, to `{}`): root does not follow it",
                        link.display(),
                        stat.st_uid,
                        target.to_string_lossy()
                    ),
                ));
            }
        }
        if target.to_bytes().starts_with(b"/") {
            self.fd = rustix::fs::openat(CWD, c"/", STEP, Mode::empty())?;
            self.shown = PathBuf::from("/");
        }
        self.put_first(target.to_bytes());
        Ok(())
    }

    fn dir(self) -> Dir {
        let shown = if self.shown.as_os_str().is_empty() { PathBuf::from(".") } else { self.shown };
        Dir::from_fd(self.fd, shown)
    }
}

impl Dir {
    /// Opens a directory that the user named; links in its path are followed where they can be trusted.
    ///
    /// # Errors
    /// What open(2) says; PermissionDenied for a link that root does not follow.
    pub fn open(path: &Path) -> io::Result<Dir> {
        match walk(path, true)? {
            Place::Name(dir, name) => dir.dir(&name),
            Place::Directory(dir) => Ok(dir),
            Place::Magic(dir, name) => {
                let fd = rustix::fs::openat(&dir, &name, DIRECTORY, Mode::empty())?;
                Ok(Dir::from_fd(fd, dir.path_of(&name)))
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
        match walk(path, false)? {
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
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_path_leads_where_the_kernel_says() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "x").unwrap();
        symlink("a/b", at("in")).unwrap();
        symlink(at("a"), at("absolute")).unwrap();
        symlink("../a/b/file", at("a/back")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in ["a/b/file", "in/file", "absolute/b/file", "a/back", "in/../b/./file", "a//b", "in/"] {
            let meta = std::fs::metadata(at(path)).unwrap();
            assert_eq!(identify(&at(path)).unwrap(), (meta.dev(), meta.ino()), "{path}");
        }
        assert!(identify(&at("loop")).is_err() && identify(&at("none")).is_err());
        assert!(identify(&at("a/b/file/x")).is_err());
        assert!(matches!(walk(&at("none"), true), Ok(Place::Name(..))));
        assert!(matches!(walk(Path::new("/"), true), Ok(Place::Directory(_))));
        assert!(matches!(walk(Path::new(""), true), Ok(Place::Directory(_))));
        assert!(matches!(walk(Path::new("/dev/stdin"), true), Ok(Place::Magic(..))));
        assert!(matches!(walk(&at("in"), false), Ok(Place::Name(_, name)) if name.as_c_str() == c"in"));
        let here = std::fs::metadata("/proc/self/cwd/.").unwrap();
        assert_eq!(identify(Path::new("/proc/self/cwd/.")).unwrap(), (here.dev(), here.ino()));
    }

    #[test]
    fn root_follows_no_link_that_another_user_may_change() {
        if !owner().is_root() {
            println!("skipped: only root can make a link that belongs to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::create_dir(at("theirs")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink(at("real"), at("theirs/link")).unwrap();
        assert!(identify(&at("link/x/..")).is_err() && identify(&at("link")).is_ok());
        assert!(identify(&at("theirs/link")).is_ok());
        let nobody = rustix::fs::Uid::from_raw(65534);
        let give = |name: &str| {
            rustix::fs::chownat(CWD, at(name), Some(nobody), None, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        };
        give("theirs");
        let refused = identify(&at("theirs/link")).unwrap_err().to_string();
        assert!(
            refused.contains("another user may change"),
            "a link of root's that they may exchange: {refused}"
        );
        give("link");
        for path in ["link", "link/", "link/x", "real/../link/y"] {
            assert!(walk(&at(path), true).is_err(), "{path}");
        }
        assert!(walk(&at("link"), false).is_ok(), "the link itself may be named");
    }
}
