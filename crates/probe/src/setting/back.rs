//! What puts an old state back: a file with what belongs into it, or a time of a mount. In the process, in a note that the next
//! start reads, in the last act of a signal, and as a command for people.
//!
//! Invariant: from a note only settings are put back that [`super::Held`] changes, and no other file of the machine.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use iowhy_core::setting::Key;
use iowhy_linux::choice;

use super::mount_time::{self, MountTime};
use crate::interrupt::LastAct;

/// What a note may put back, below these directories only.
const BELOW: [(&str, &[&str]); 4] = [
    ("/sys/devices/", &["scheduler", "read_ahead_kb", "nr_requests", "wbt_lat_usec", "iostats", "nomerges"]),
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
pub(super) enum Back {
    /// A file and what belongs into it.
    File(PathBuf, String),
    /// A mount, a descriptor of it where it is held, and its value.
    Mount(MountTime, Option<OwnedFd>, String),
}

impl Back {
    /// Puts it back where it is not so already: a value that is written counts as chosen by hand, even where it is the same.
    pub(super) fn put(&self) -> io::Result<()> {
        match self {
            Back::File(file, value) if present(file).as_ref() == Some(value) => Ok(()),
            Back::File(file, value) => overwrite(file, value),
            Back::Mount(time, mount, value) => {
                // An option goes with its mount.
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
        }
    }

    /// What the last signal does, ready made, because nothing may be allocated there.
    pub(super) fn at_the_end(&self) -> Option<LastAct> {
        match self {
            Back::File(file, value) => {
                Some(LastAct::Write { file: c_path(file)?, content: value.clone().into_bytes() })
            }
            Back::Mount(time, mount, value) => time.at_the_end(mount.as_ref()?.as_fd(), value),
        }
    }

    /// Its line of a note.
    pub(super) fn to_note(&self) -> String {
        match self {
            Back::File(file, value) => format!("{}={value}\n", file.display()),
            Back::Mount(time, _, value) => format!("{}={value}\n", time.to_note()),
        }
    }

    /// What a line of a note says; `None` for what no note of ours holds. Whether this process may put it back is another
    /// question: [`Back::may_be_put`].
    pub(super) fn from_note(line: &str) -> Option<Back> {
        let (what, value) = line.rsplit_once('=')?;
        match MountTime::from_note(what) {
            Some(time) => mount_time::offered(time.key)
                .contains(&value.to_owned())
                .then(|| Back::Mount(time, None, value.to_owned())),
            None => Some(Back::File(PathBuf::from(what), value.to_owned())),
        }
    }

    /// Whether it is a setting, and nothing else of the machine; of a mount, whether it can be seen from here.
    pub(super) fn may_be_put(&self, root: &Path) -> bool {
        let file = match self {
            Back::File(file, _) => file,
            Back::Mount(time, ..) => return time.in_sight(),
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
            Back::File(file, _) => file.display().to_string(),
            Back::Mount(time, ..) => format!("{} of {}", time.key.id(), time.point.display()),
        }
    }

    /// What it puts there.
    pub(super) fn value(&self) -> &str {
        match self {
            Back::File(_, value) | Back::Mount(_, _, value) => value,
        }
    }

    /// The command that does it.
    pub(super) fn by_hand(&self) -> String {
        match self {
            Back::File(file, value) => format!("echo {value} | sudo tee {}", file.display()),
            Back::Mount(time, _, value) => time.by_hand(value),
        }
    }
}

/// The commands that put all of it back.
pub(super) fn by_hand(back: &[Back]) -> String {
    format!("by hand: {}", back.iter().map(Back::by_hand).collect::<Vec<_>>().join("; "))
}

/// What is to be written to have the old state again. Of a ratio and a number of bytes the kernel clears the one when
/// the other is set; another scheduler brings another number of requests and another throttle of writes; another governor may
/// bring another preference of energy, and takes the rate that was set by hand.
pub(super) fn of_file(key: Key, file: &Path, was: &str) -> Vec<Back> {
    let beside = |name: &str| file.with_file_name(name);
    let also = |names: &[&str]| -> Vec<Back> {
        names.iter().filter_map(|name| Some(Back::File(beside(name), present(&beside(name))?))).collect()
    };
    let other = match key {
        Key::DirtyBytes => "dirty_ratio",
        Key::DirtyRatio => "dirty_bytes",
        Key::DirtyBackgroundBytes => "dirty_background_ratio",
        Key::DirtyBackgroundRatio => "dirty_background_bytes",
        _ => "",
    };
    let mut back = vec![Back::File(file.to_owned(), was.to_owned())];
    match key {
        Key::Scheduler => back.extend(also(&["nr_requests", "wbt_lat_usec"])),
        Key::Governor if was == "userspace" => back.extend(also(&["scaling_setspeed"])),
        Key::Governor => back.extend(also(&["energy_performance_preference"])),
        _ if was == "0" && !other.is_empty() => back = also(&[other]),
        _ => {}
    }
    back
}

/// What is in the file; of several choices the chosen one.
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
