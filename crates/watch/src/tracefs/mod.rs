//! The kernel's description of its tracepoints: `events/SYSTEM/NAME/{id,format}`.
//! Invariant: the user's mount table is never changed. Where tracefs is not mounted, root reads it through a mount that is
//! attached nowhere and goes with its last descriptor.

mod format;

pub(crate) use format::text;
pub use format::{Field, Format};

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

/// Where tracefs is looked for, best place first. The last one is debugfs, which mounts it as a directory.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// No description is longer; a guard against a file without end.
const LONGEST: u64 = 1 << 20;

/// An open tracefs.
#[derive(Debug)]
pub struct Tracefs {
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Mounted here.
    Path(PathBuf),
    /// A mount of our own that is attached nowhere.
    Detached(OwnedFd),
}

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The number that `perf_event_open` takes.
    pub id: u64,
    /// How its records are laid out.
    pub format: Format,
}

impl Tracefs {
    /// Opens tracefs where it is mounted, else through a detached mount.
    ///
    /// # Errors
    /// The error of the last attempt: no such file system, no permission.
    pub fn open() -> io::Result<Self> {
        let mut seen: Option<io::Error> = None;
        for place in PLACES {
            let path = PathBuf::from(place);
            match std::fs::read_dir(path.join("events")) {
                Ok(_) => return Ok(Tracefs { place: Place::Path(path) }),
                // A refusal says more than an absence.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => seen = Some(error),
                Err(error) => seen = seen.or(Some(error)),
            }
        }
        match detached() {
            Ok(mount) => Ok(Tracefs { place: Place::Detached(mount) }),
            Err(error) => Err(match seen {
                Some(first) if first.kind() == io::ErrorKind::PermissionDenied => first,
                _ => error,
            }),
        }
    }

    /// Reads the number and the format of one tracepoint.
    ///
    /// # Errors
    /// The kernel does not have it, or a file does not read as expected (`InvalidData`).
    pub fn tracepoint(&self, system: &str, name: &str) -> io::Result<Tracepoint> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{system}/{name}/{what}"));
        let id = self.read(&format!("events/{system}/{name}/id"))?;
        let id = id.trim().parse().map_err(|_| bad("id"))?;
        let text = self.read(&format!("events/{system}/{name}/format"))?;
        let format = Format::parse(&text);
        if format.is_empty() { Err(bad("format")) } else { Ok(Tracepoint { id, format }) }
    }

    fn read(&self, relative: &str) -> io::Result<String> {
        let file = match &self.place {
            Place::Path(path) => File::open(path.join(relative))?,
            Place::Detached(mount) => File::from(rustix::fs::openat(
                mount,
                relative,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?),
        };
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    }
}

/// A read-only mount of tracefs that is attached to no directory (Linux 5.2).
fn detached() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    // MOUNT_ATTR_RDONLY: nothing can be switched on by accident.
    Ok(rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_description_is_read_and_mounts_stay_as_they_are() {
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let before = mounts();
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(error) => {
                eprintln!("skipped: tracefs cannot be used: {error}");
                return;
            }
        };
        match tracefs.tracepoint("raw_syscalls", "sys_enter") {
            Ok(point) => {
                assert!(point.id > 0);
                assert!(point.format.field("id").is_some_and(|f| f.signed));
                assert_eq!(
                    point.format.field("args").map(|f| f.size),
                    Some(6 * std::mem::size_of::<usize>())
                );
            }
            Err(error) => eprintln!("skipped: raw_syscalls: {error}"),
        }
        assert!(tracefs.tracepoint("block", "no_such_tracepoint").is_err());
        assert_eq!(before, mounts());
    }
}
