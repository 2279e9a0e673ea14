//! What puts an old state back: a file with what belongs into it, a time of a mount, or the read-ahead of a mount. In the
//! process, in a note that the next start reads, in the last act of a signal, and as a command for people.
//!
//! Invariant: from a note only settings are put back that [`super::ChangedSetting`] changes, and no other file of the machine.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use iowhy_core::setting::Key;
use iowhy_linux::choice;

use super::dm_crypt::{CryptFlag, Failure};
use super::mount_time::{self, MountTime};
use super::read;
use crate::last_act::LastAct;

/// Notes may restore files below these directories only.
const BELOW: [(&str, &[&str]); 4] = [
    (
        "/sys/devices/",
        &[
            "scheduler",
            "read_ahead_kb",
            "max_sectors_kb",
            "nr_requests",
            "wbt_lat_usec",
            "iostats",
            "nomerges",
        ],
    ),
    ("/sys/kernel/mm/transparent_hugepage/", &["enabled"]),
    (
        "/sys/devices/system/cpu/cpufreq/",
        &["scaling_governor", "energy_performance_preference", "scaling_setspeed"],
    ),
    (
        "/proc/sys/vm/",
        &[
            "dirty_bytes",
            "dirty_ratio",
            "dirty_background_bytes",
            "dirty_background_ratio",
            "dirty_expire_centisecs",
            "dirty_writeback_centisecs",
            "swappiness",
        ],
    ),
];

/// One step.
#[derive(Debug)]
pub(super) enum Restore {
    /// A file and its old content.
    File(PathBuf, String),
    /// A mount, its descriptor while the setting is changed, and the old value.
    Mount(MountTime, Option<OwnedFd>, String),
    /// The read-ahead window of a mount, and the old value. The note names the mount and no file: an anonymous device number
    /// belongs to another file system once this one is unmounted.
    Window(MountTime, String),
    /// A flag of dm-crypt, the device mapper while it is changed, and the old value. Steps behind it are of the same device.
    Crypt(CryptFlag, Option<OwnedFd>, String),
}

impl Restore {
    /// Puts it back where it is not so already: a value that is written counts as chosen by hand, even where it is the same.
    pub(super) fn put(&self) -> io::Result<()> {
        match self {
            Restore::File(file, value) if present(file).as_ref() == Some(value) => Ok(()),
            Restore::File(file, value) => overwrite(file, value),
            Restore::Mount(time, mount, value) => {
                // The option is gone with its mount.
                let Some(there) = time.found() else { return Ok(()) };
                if mount_time::present(time.key, &there) == value {
                    return Ok(());
                }
                match mount {
                    Some(mount) => time.set(mount.as_fd(), value)?,
                    None => time.set(time.open()?.as_fd(), value)?,
                }
                Ok(())
            }
            Restore::Window(of, value) => {
                // It is gone with its mount.
                let Some(file) = window_file(of) else { return Ok(()) };
                if present(&file).as_ref() == Some(value) { Ok(()) } else { overwrite(&file, value) }
            }
            Restore::Crypt(flag, control, value) => {
                let set = |control: &OwnedFd| flag.set(control.as_raw_fd(), value == "1");
                let done = match control {
                    Some(control) => set(control),
                    None => set(&CryptFlag::open()?),
                };
                done.map_err(Failure::to_error)
            }
        }
    }

    /// Prepared for a signal handler, which may not allocate.
    pub(super) fn last_act(&self) -> Option<LastAct> {
        let write = |file: &Path, value: &String| {
            Some(LastAct::Write { file: c_path(file)?, content: value.clone().into_bytes() })
        };
        match self {
            Restore::File(file, value) => write(file, value),
            Restore::Window(of, value) => write(&window_file(of)?, value),
            Restore::Crypt(flag, control, value) => {
                flag.last_act(control.as_ref()?.as_raw_fd(), value == "1")
            }
            Restore::Mount(time, mount, value) => time.last_act(mount.as_ref()?.as_fd(), value),
        }
    }

    /// Its line of a note.
    pub(super) fn to_note(&self) -> String {
        match self {
            Restore::File(file, value) => format!("{}={value}\n", file.display()),
            Restore::Mount(of, _, value) | Restore::Window(of, value) => {
                format!("{}={value}\n", of.to_note())
            }
            Restore::Crypt(flag, _, value) => format!("{}={value}\n", flag.to_note()),
        }
    }

    /// One line of a note; `None` for any other line. [`Restore::is_permitted`] is checked apart.
    pub(super) fn from_note(line: &str) -> Option<Restore> {
        let (what, value) = line.rsplit_once('=')?;
        if let Some(flag) = CryptFlag::from_note(what) {
            return ["0", "1"].contains(&value).then(|| Restore::Crypt(flag, None, value.to_owned()));
        }
        match MountTime::from_note(what) {
            Some(of) if of.key == Key::ReadAhead => {
                value.parse::<u64>().is_ok().then(|| Restore::Window(of, value.to_owned()))
            }
            Some(time) => mount_time::offered(time.key)
                .contains(&value.to_owned())
                .then(|| Restore::Mount(time, None, value.to_owned())),
            None => Some(Restore::File(PathBuf::from(what), value.to_owned())),
        }
    }

    /// Whether it is a setting, and nothing else of the machine; of a mount, whether it can be seen from here.
    pub(super) fn is_permitted(&self, root: &Path) -> bool {
        let file = match self {
            Restore::File(file, _) => file,
            Restore::Mount(of, ..) | Restore::Window(of, _) => return of.in_sight(),
            Restore::Crypt(..) => return true,
        };
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let Ok(below) = file.strip_prefix(&root) else { return false };
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let text = format!("/{}", below.display());
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        plain && BELOW.iter().any(|(directory, names)| text.starts_with(directory) && names.contains(&name))
    }

    /// Where it is, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Restore::File(file, _) => file.display().to_string(),
            Restore::Mount(of, ..) | Restore::Window(of, _) => {
                format!("{} of {}", of.key.id(), of.point.display())
            }
            Restore::Crypt(flag, ..) => format!("{} of {}", flag.key.id(), flag.name),
        }
    }

    /// The value that it writes.
    pub(super) fn value(&self) -> &str {
        match self {
            Restore::File(_, value)
            | Restore::Mount(_, _, value)
            | Restore::Window(_, value)
            | Restore::Crypt(_, _, value) => value,
        }
    }

    /// The command that does it.
    pub(super) fn by_hand(&self) -> String {
        match self {
            Restore::File(file, value) => format!("echo {value} | sudo tee {}", file.display()),
            Restore::Window(of, value) => {
                let file = window_file(of).unwrap_or_default();
                format!("echo {value} | sudo tee {}", file.display())
            }
            Restore::Mount(time, _, value) => time.by_hand(value),
            Restore::Crypt(flag, _, value) => flag.by_hand(value),
        }
    }
}

/// Puts all of it back, in order.
///
/// # Errors
/// The first step that could not be done, and why. An encrypted device that is gone took its settings along.
pub(super) fn put_all(back: &[Restore]) -> Result<(), (&Restore, io::Error)> {
    for step in back {
        match step.put() {
            Ok(()) => {}
            Err(error) if matches!(step, Restore::Crypt(..)) && error.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err((step, error)),
        }
    }
    Ok(())
}

/// What a new table of a mapped device changes along with it: the kernel derives limits of the queue anew.
pub(super) fn beside_table(queue: &Path) -> Vec<Restore> {
    let files = ["read_ahead_kb", "max_sectors_kb"].map(|name| queue.join(name));
    files.into_iter().filter_map(|file| Some(Restore::File(file.clone(), present(&file)?))).collect()
}

/// The file with the read-ahead window of a mount, where that is still there.
fn window_file(of: &MountTime) -> Option<PathBuf> {
    read::window_of(Path::new("/"), &of.found()?)?.ok().map(PathBuf::from)
}

/// The commands that put all of it back.
pub(super) fn by_hand(back: &[Restore]) -> String {
    format!("by hand: {}", back.iter().map(Restore::by_hand).collect::<Vec<_>>().join("; "))
}

/// The writes that restore the old state. Of a ratio and a number of bytes the kernel clears the one when
/// the other is set; another scheduler brings another number of requests and another throttle of writes; another governor may
/// bring another preference of energy, and takes the rate that was set by hand.
pub(super) fn for_file(key: Key, file: &Path, was: &str) -> Vec<Restore> {
    let beside = |name: &str| file.with_file_name(name);
    let also = |names: &[&str]| -> Vec<Restore> {
        names.iter().filter_map(|name| Some(Restore::File(beside(name), present(&beside(name))?))).collect()
    };
    let other = match key {
        Key::DirtyBytes => "dirty_ratio",
        Key::DirtyRatio => "dirty_bytes",
        Key::DirtyBackgroundBytes => "dirty_background_ratio",
        Key::DirtyBackgroundRatio => "dirty_background_bytes",
        _ => "",
    };
    let mut back = vec![Restore::File(file.to_owned(), was.to_owned())];
    match key {
        Key::Scheduler => back.extend(also(&["nr_requests", "wbt_lat_usec"])),
        Key::Governor if was == "userspace" => back.extend(also(&["scaling_setspeed"])),
        Key::Governor => back.extend(also(&["energy_performance_preference"])),
        _ if was == "0" && !other.is_empty() => back = also(&[other]),
        _ => {}
    }
    back
}

/// Content of the file; of several choices the selected one.
pub(super) fn present(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    if text.contains('[') { Some(choice::parse(&text)?.0) } else { Some(text.trim().to_owned()) }
}

/// Writes into a setting; it never makes a file.
pub(super) fn overwrite(file: &Path, value: &str) -> io::Result<()> {
    fs::File::options().write(true).truncate(true).open(file)?.write_all(value.as_bytes())
}

/// A path for the last act of a signal.
pub(super) fn c_path(path: &Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).ok()
}
