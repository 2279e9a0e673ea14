//! A file that the user named for a result: complete under its name, or not there at all.
//!
//! The content goes to a file without a name beside the destination, which gets its name at the end: nothing half-written
//! is left by a run that is killed, and what is there stays until then. Invariants: a name that others put there meanwhile
//! is not replaced; links of other users are not followed; devices and pipes are written to as they are.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use rustix::fs::{FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::dir::Dir;
use super::trust::owner;
use super::unnamed;
use super::walk::{Place, walk};
use crate::file_size;

/// Names beside a destination that was taken meanwhile: `NAME.2` and so on.
const MAX_BESIDE: u32 = 1000;

/// A place for a result, opened before the result is known.
#[derive(Debug)]
pub struct Destination {
    /// The option and the path, for messages.
    /// As the user named it.
    path: PathBuf,
    /// `None` after it was finished.
    file: Option<File>,
    way: Way,
}

/// How the content gets to its place.
#[derive(Debug)]
enum Way {
    /// A file that gets its name at the end.
    Name {
        dir: Dir,
        name: CString,
        /// What had the name at the beginning.
        before: Option<Before>,
        /// The name that it has meanwhile, where a file system knows no files without one.
        meanwhile: Option<CString>,
    },
    /// A device, a pipe, or a file in a directory that may not be changed.
    InPlace,
}

/// The identity of the file to replace, taken when the output was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: (i64, i64),
    mode: u32,
    owner: (u32, u32),
}

/// Where a result ended up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Under the name that the user gave.
    Named,
    /// Beside it: something else had the name by then.
    Beside(PathBuf),
}

impl Before {
    fn new(stat: &Stat) -> Before {
        Before {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            mode: stat.st_mode & 0o777,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

impl Destination {
    /// Takes a place without touching what is there. `label` names it in messages, with its option; `replace`: a file that
    /// is there is replaced at the end.
    ///
    /// # Errors
    /// A refusal: the place cannot be written, is a directory or a block device, is taken and may not be replaced, or is
    /// a link that another user made.
    pub fn open(label: impl Into<String>, path: &Path, replace: bool) -> Result<Destination, Problem> {
        let label = label.into();
        match Destination::way(&label, path, replace) {
            Ok((file, way)) => Ok(Destination { path: path.to_owned(), file: Some(file), way }),
            Err(Refusal::Io(error)) => Err(Problem::refused(format!("cannot write `{label}`: {error}"))
                .hint("name a file in a directory that you may write to")),
            Err(Refusal::Problem(problem)) => Err(problem),
        }
    }

    fn way(label: &str, path: &Path, replace: bool) -> Result<(File, Way), Refusal> {
        let in_place = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        let (dir, name) = match walk::<Dir>(path, replace)? {
            Place::Name(dir, name) => (dir, name),
            Place::Directory(_) => return Err(Errno::ISDIR.into()),
            Place::Magic(dir, name) => {
                return Ok((rustix::fs::openat(&dir, &name, in_place, Mode::empty())?.into(), Way::InPlace));
            }
        };
        let before = match dir.stat(&name) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        if before.is_some() && !replace {
            return Err(taken(label));
        }
        match before.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            None | Some(FileType::RegularFile) => {}
            Some(FileType::BlockDevice) => {
                return Err(Refusal::Problem(
                    Problem::refused(format!("`{label}` is a block device: an output would destroy it"))
                        .hint("name a file"),
                ));
            }
            Some(FileType::Directory) => return Err(Errno::ISDIR.into()),
            // Waits for a pipe's reader, as any program does.
            Some(_) => {
                let file = rustix::fs::openat(&dir, &name, in_place | OFlags::NOFOLLOW, Mode::empty())?;
                return Ok((file.into(), Way::InPlace));
            }
        }
        // What may not be written is not replaced either, though its directory would allow it.
        let old = before.map(|_| dir.open_file(&name, OFlags::WRONLY)).transpose()?;
        let others = before.is_some_and(|stat| stat.st_uid != owner().as_raw() && !owner().is_root());
        if let Some(old) = old.as_ref().filter(|_| others) {
            // It stays its owner's, who is another user.
            return Ok((old.try_clone().map_err(Refusal::Io)?.into(), Way::InPlace));
        }
        let mode = before.map_or(0o666, |_| 0o600);
        match (begin(&dir, &name, mode), old) {
            (Ok((file, meanwhile)), _) => {
                let before = before.as_ref().map(Before::new);
                Ok((file.into(), Way::Name { dir, name, before, meanwhile }))
            }
            (Err(Errno::ACCESS | Errno::PERM | Errno::ROFS), Some(old)) => {
                // Read again by those that write in two passes, where it may be read.
                let both = dir.open_file(&name, OFlags::RDWR);
                Ok((both.unwrap_or(old).into(), Way::InPlace))
            }
            (Err(errno), _) => Err(errno.into()),
        }
    }

    /// Device and inode of the file that the content will replace.
    pub fn replaces(&self) -> Option<(u64, u64)> {
        match &self.way {
            Way::Name { before, .. } => before.map(|before| (before.device, before.inode)),
            Way::InPlace => {
                let stat = rustix::fs::fstat(self.file.as_ref()?).ok()?;
                FileType::from_raw_mode(stat.st_mode).is_file().then_some((stat.st_dev, stat.st_ino))
            }
        }
    }

    /// Where the content is written to, from its beginning.
    ///
    /// # Errors
    /// A file that is written in place cannot be emptied.
    pub fn begin(&mut self) -> io::Result<&mut File> {
        let in_place = matches!(self.way, Way::InPlace);
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if in_place && file.metadata()?.is_file() {
            file.set_len(0)?;
            file.rewind()?;
        }
        Ok(file)
    }

    /// The content so far: for those that write piece by piece, after [`Destination::begin`].
    ///
    /// # Errors
    /// After the end.
    pub fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Writes all of the content and gives it its name.
    ///
    /// # Errors
    /// See [`Destination::finish`]; a full disk.
    pub fn write(mut self, content: &[u8]) -> Result<Placed, Problem> {
        let written = self.begin().and_then(|file| file.write_all(content).and_then(|()| file.flush()));
        match written {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Gives the content its name.
    ///
    /// # Errors
    /// The directory refuses the name, for instance because it was removed meanwhile. Then nothing is left.
    pub fn finish(mut self) -> Result<Placed, Problem> {
        let placed = self.place();
        placed.map_err(|errno| self.failed(&errno.into()))
    }

    fn failed(&self, error: &io::Error) -> Problem {
        let problem = Problem::failed(format!("cannot write `{}`: {error}", self.path.display()));
        file_size::explained(problem, error)
    }

    fn place(&mut self) -> Result<Placed, Errno> {
        let Way::Name { dir, name, before, meanwhile } = &mut self.way else { return Ok(Placed::Named) };
        let Some(file) = self.file.take() else { return Ok(Placed::Named) };
        let named = match before {
            None => name_it(dir, &file, meanwhile, name),
            Some(before) => replace(dir, &file, meanwhile, name, *before),
        };
        match named {
            Err(Errno::EXIST) => {}
            other => return other.map(|()| Placed::Named),
        }
        for number in 2..MAX_BESIDE {
            let beside = [name.to_bytes(), format!(".{number}").as_bytes()].concat();
            let beside = CString::new(beside).map_err(|_| Errno::INVAL)?;
            match name_it(dir, &file, meanwhile, &beside) {
                Err(Errno::EXIST) => {}
                other => return other.map(|()| Placed::Beside(dir.path_of(&beside))),
            }
        }
        Err(Errno::EXIST)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Way::Name { dir, meanwhile: Some(meanwhile), .. } = &self.way {
            // Best effort: there is nobody to tell, and the name says whose it was.
            let _ = dir.remove_file(meanwhile);
        }
    }
}

/// Why a place cannot be taken.
enum Refusal {
    Io(io::Error),
    Problem(Problem),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Refusal {
        Refusal::Io(errno.into())
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Io(error)
    }
}

fn taken(label: &str) -> Refusal {
    Refusal::Problem(Problem::refused(format!("`{label}` is there already")).hint("name another file"))
}

/// Opens the file that will get the name; with the name that it has meanwhile, if it needs one.
fn begin(dir: &Dir, name: &CStr, mode: u32) -> Result<(OwnedFd, Option<CString>), Errno> {
    let mode = Mode::from_raw_mode(mode);
    match unnamed::tmpfile(dir.as_fd(), mode) {
        Err(errno) if unnamed::is_unsupported(errno) => {
            let prefix = format!(".{}.iowhy", name.to_string_lossy());
            let (file, meanwhile) = unnamed::named(dir.as_fd(), &prefix, mode)?;
            Ok((file, Some(meanwhile)))
        }
        other => other.map(|file| (file, None)),
    }
}

/// Gives the file a name that is free.
fn name_it(dir: &Dir, file: &File, meanwhile: &mut Option<CString>, name: &CStr) -> Result<(), Errno> {
    match meanwhile {
        None => dir.link(file.as_fd(), name),
        Some(from) => {
            dir.rename(from, name)?;
            *meanwhile = None;
            Ok(())
        }
    }
}

/// Gives the file the name of the one that it replaces; EEXIST where that is no longer what it was.
fn replace(
    dir: &Dir,
    file: &File,
    meanwhile: &mut Option<CString>,
    name: &CStr,
    before: Before,
) -> Result<(), Errno> {
    let unchanged = |name: &CStr| dir.stat(name).map(|stat| Before::new(&stat));
    match unchanged(name) {
        Ok(now) if now == before => {}
        Ok(_) => return Err(Errno::EXIST),
        Err(Errno::NOENT) => return name_it(dir, file, meanwhile, name),
        Err(errno) => return Err(errno),
    }
    // Its owner keeps it. A group that we are not in is not ours to give; the mode is then the owner's part alone.
    let (uid, gid) = (Uid::from_raw(before.owner.0), Gid::from_raw(before.owner.1));
    let kept = rustix::fs::fchown(file, Some(uid), Some(gid)).is_ok();
    let mode = if kept { before.mode } else { before.mode & 0o700 };
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    let temporary = match meanwhile {
        Some(name) => name.clone(),
        None => {
            let (_, spare) = unnamed::named(dir.as_fd(), ".iowhy-output", Mode::RUSR)?;
            dir.remove_file(&spare)?;
            dir.link(file.as_fd(), &spare)?;
            meanwhile.insert(spare).clone()
        }
    };
    match dir.rename_over(&temporary, name, RenameFlags::EXCHANGE) {
        Ok(()) if unchanged(&temporary) == Ok(before) => {
            // The old file, under the temporary name.
            dir.remove_file(&temporary)?;
        }
        Ok(()) => {
            // Somebody was faster: theirs gets its name back, ours goes beside it.
            dir.rename_over(&temporary, name, RenameFlags::EXCHANGE)?;
            return Err(Errno::EXIST);
        }
        // Somebody removed the old file in this moment.
        Err(Errno::NOENT) => return name_it(dir, file, meanwhile, name),
        Err(Errno::INVAL | Errno::NOSYS) => {
            dir.rename_over(&temporary, name, RenameFlags::empty())?;
        }
        Err(errno) => return Err(errno),
    }
    *meanwhile = None;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::AtFlags;

    use super::*;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn open(path: &Path) -> Destination {
        Destination::open("--json", path, true).unwrap()
    }

    #[test]
    fn nothing_is_under_the_name_before_the_content_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        let mut half = open(&path);
        half.begin().unwrap().write_all(b"{").unwrap();
        assert_eq!(names(dir.path()), [""; 0]);
        drop(half);
        assert_eq!(names(dir.path()), [""; 0]);
        assert_eq!(open(&path).write(b"{}"), Ok(Placed::Named));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
        let mut half = open(&path);
        half.begin().unwrap().write_all(b"[").unwrap();
        assert_eq!(text(&path), "{}", "the old content stays until the new one is complete");
        drop(half);
        assert_eq!(open(&path).write(b"[]"), Ok(Placed::Named));
        assert_eq!((text(&path).as_str(), names(dir.path())), ("[]", vec!["out.json".to_owned()]));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
    }

    #[test]
    fn what_others_put_there_meanwhile_is_kept_and_so_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let (first, second) = (open(&path), open(&path));
        std::fs::write(&path, "theirs").unwrap();
        assert_eq!(first.write(b"ours"), Ok(Placed::Beside(dir.path().join("out.2"))));
        assert_eq!(second.write(b"more"), Ok(Placed::Beside(dir.path().join("out.3"))));
        let third = open(&path);
        std::fs::write(dir.path().join("new"), "theirs again").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(third.write(b"third"), Ok(Placed::Beside(dir.path().join("out.4"))));
        let contents = ["out", "out.2", "out.3", "out.4"].map(|name| text(&dir.path().join(name)));
        assert_eq!(contents, ["theirs again", "ours", "more", "third"]);
        let fourth = open(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fourth.write(b"fourth"), Ok(Placed::Named));
        assert_eq!(names(dir.path()).len(), 4, "no temporary name is left: {:?}", names(dir.path()));
    }

    #[test]
    fn a_name_that_is_new_is_no_link_and_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("dangling")).unwrap();
        for taken in [&victim, &link, &dir.path().join("dangling")] {
            let problem = Destination::open("--save-as x", taken, false).unwrap_err();
            assert!(problem.message.contains("--save-as x") && problem.hint.is_some(), "{problem}");
        }
        // A link that is planted after the place was taken is not followed either.
        let late = Destination::open("x", &dir.path().join("late"), false).unwrap();
        symlink(&victim, dir.path().join("late")).unwrap();
        assert_eq!(late.write(b"ours"), Ok(Placed::Beside(dir.path().join("late.2"))));
        assert_eq!(text(&victim), "precious");
    }

    #[test]
    fn links_of_our_own_are_followed_and_those_of_others_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("below/real"), "old").unwrap();
        symlink("below/real", dir.path().join("link")).unwrap();
        assert_eq!(open(&dir.path().join("link")).write(b"new"), Ok(Placed::Named));
        assert_eq!(text(&dir.path().join("below/real")), "new");
        assert!(std::fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(Destination::open("x", &dir.path().join("loop"), true).is_err());
        if !owner().is_root() {
            println!("skipped: only root can make a link that belongs to another user");
            return;
        }
        let nobody = rustix::fs::Uid::from_raw(65534);
        rustix::fs::chownat(
            rustix::fs::CWD,
            dir.path().join("link"),
            Some(nobody),
            None,
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
        let problem = Destination::open("--json x", &dir.path().join("link"), true).unwrap_err();
        assert!(problem.message.contains("another user"), "{problem}");
        assert_eq!(text(&dir.path().join("below/real")), "new");
        // On the way it is not followed either.
        std::fs::create_dir(dir.path().join("secret")).unwrap();
        symlink("secret", dir.path().join("way")).unwrap();
        rustix::fs::chownat(
            rustix::fs::CWD,
            dir.path().join("way"),
            Some(nobody),
            None,
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
        assert!(Destination::open("x", &dir.path().join("way/new"), true).is_err());
        assert_eq!(names(&dir.path().join("secret")), [""; 0]);
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_owner_and_mode() {
        if !owner().is_root() {
            println!("skipped: only root can write for another user");
            return;
        }
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("theirs");
        for mode in [0o600, 0o666] {
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
            assert_eq!(open(&path).write(b"new"), Ok(Placed::Named));
            let meta = std::fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (65534, 65534, mode));
            assert_eq!(text(&path), "new");
        }
    }

    #[test]
    fn devices_and_descriptors_are_written_as_they_are() {
        assert_eq!(open(Path::new("/dev/null")).write(b"gone"), Ok(Placed::Named));
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("f")).unwrap();
        use std::os::fd::AsRawFd;
        let magic = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(open(Path::new(&magic)).write(b"through"), Ok(Placed::Named));
        assert_eq!(text(&dir.path().join("f")), "through");
        for bad in [Path::new("/"), Path::new("."), Path::new(""), dir.path(), &dir.path().join("no/file")] {
            let problem = Destination::open("--json", bad, true).unwrap_err();
            assert!(problem.message.contains("cannot write") && problem.hint.is_some(), "{problem}");
        }
    }
}
