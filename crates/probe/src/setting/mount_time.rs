//! What belongs to a mount: when a read changes the time of access (an attribute of the mount), whether new times stay in memory
//! (a flag of the file system, which all its mounts share), and for notes alone the read-ahead window of a file system.
//!
//! Invariants: no other option of a mount is touched, and where the kernel touched one it is an error; a mount is found again by
//! its number, device, point and namespace together, and by nothing less.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use iowhy_core::setting::Key;
use iowhy_linux::mounts::{self, Mount};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fspick};

use crate::last_act::LastAct;
use crate::target::Status;

/// Values of the time of access, as mount(8) names them, and the attribute of mount_setattr(2).
const ACCESS: [(&str, u64); 3] = [("relatime", 0), ("noatime", 0x10), ("strictatime", 0x20)];
/// All attributes of the time of access together.
const ANY_ACCESS: u64 = 0x70;
/// Values of the other one.
const LAZY: [(&str, u64); 2] = [("off", 0), ("on", 1)];

/// The words that a mount knows for a setting.
pub(super) fn offered(key: Key) -> Vec<String> {
    values(key).iter().map(|(word, _)| (*word).to_owned()).collect()
}

fn values(key: Key) -> &'static [(&'static str, u64)] {
    match key {
        Key::AccessTime => &ACCESS,
        Key::LazyTime => &LAZY,
        _ => &[],
    }
}

fn argument(key: Key, value: &str) -> Result<u64, Errno> {
    values(key).iter().find(|(word, _)| *word == value).map(|(_, argument)| *argument).ok_or(Errno::INVAL)
}

/// A time option of a mount.
pub(super) fn present(key: Key, mount: &Mount) -> &'static str {
    let has = |options: &str, option: &str| options.split(',').any(|one| one == option);
    match key {
        Key::LazyTime if has(&mount.super_options, "lazytime") => "on",
        Key::LazyTime => "off",
        _ => ["noatime", "relatime"].into_iter().find(|o| has(&mount.options, o)).unwrap_or("strictatime"),
    }
}

/// The options of a mount and of its file system, without those of a setting.
fn others(key: Key, mount: &Mount) -> [Vec<&str>; 2] {
    let other = |option: &&str| match key {
        Key::LazyTime => *option != "lazytime",
        _ => !ACCESS.iter().any(|(word, _)| word == option),
    };
    [&mount.options, &mount.super_options].map(|options| options.split(',').filter(other).collect())
}

/// A setting of one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountTime {
    pub(super) key: Key,
    pub(super) point: PathBuf,
    id: u64,
    device: (u32, u32),
    /// The mount namespace, as `/proc/self/ns/mnt` names it.
    namespace: String,
}

impl MountTime {
    pub(super) fn new(key: Key, mount: &Mount) -> MountTime {
        MountTime {
            key,
            point: mount.point.clone(),
            id: mount.id,
            device: mount.device,
            namespace: namespace(),
        }
    }

    /// Whether this process sees the namespace that it is in.
    pub(super) fn in_sight(&self) -> bool {
        self.namespace == namespace()
    }

    /// The mount, where it is still there.
    pub(super) fn found(&self) -> Option<Mount> {
        let same = |m: &Mount| (m.id, m.device, &m.point) == (self.id, self.device, &self.point);
        mounts::read().into_iter().find(same)
    }

    /// A descriptor of it.
    ///
    /// # Errors
    /// The path leads to another mount, or cannot be opened.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let file = rustix::fs::open(&self.point, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let covered = Status::from_fd(file.as_fd())?.mount_id != Some(self.id);
        if covered { Err(Errno::STALE) } else { Ok(file) }
    }

    /// Changes it.
    ///
    /// # Errors
    /// What the kernel refuses; INPROGRESS where it changed more than this, or not this.
    pub(super) fn set(&self, mount: BorrowedFd<'_>, value: &str) -> Result<(), Errno> {
        let before = self.found().ok_or(Errno::STALE)?;
        change(self.key, mount, argument(self.key, value)?)?;
        let after = self.found().ok_or(Errno::STALE)?;
        let same = others(self.key, &before) == others(self.key, &after);
        if same && present(self.key, &after) == value { Ok(()) } else { Err(Errno::INPROGRESS) }
    }

    /// The same for the last signal.
    pub(super) fn last_act(&self, mount: BorrowedFd<'_>, value: &str) -> Option<LastAct> {
        let act: fn(RawFd, u64) -> bool = if self.key == Key::LazyTime { end_lazy } else { end_access };
        Some(LastAct::Call { act, descriptor: mount.as_raw_fd(), argument: argument(self.key, value).ok()? })
    }

    /// The command that sets it.
    pub(super) fn by_hand(&self, value: &str) -> String {
        let option = match (self.key, value) {
            (Key::LazyTime, "on") => "lazytime",
            (Key::LazyTime, _) => "nolazytime",
            _ => value,
        };
        let point = self.point.display().to_string();
        let plain = point.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c));
        let point = if plain { point } else { format!("'{}'", point.replace('\'', "'\\''")) };
        format!("sudo mount -o remount,{option} {point}")
    }

    /// As a word of a note; [`MountTime::from_note`] reads it.
    pub(super) fn to_note(&self) -> String {
        let (major, minor) = self.device;
        let MountTime { key, point, id, namespace, .. } = self;
        format!("mount {namespace} {id} {major}:{minor} {} {}", key.id(), point.display())
    }

    pub(super) fn from_note(text: &str) -> Option<MountTime> {
        let mut words = text.splitn(6, ' ');
        let mut word = || words.next();
        (word()? == "mount").then_some(())?;
        let (namespace, id, device) = (word()?.to_owned(), word()?.parse().ok()?, word()?.split_once(':')?);
        let key = Key::from_id(word()?).filter(|key| *key == Key::ReadAhead || !values(*key).is_empty())?;
        let device = (device.0.parse().ok()?, device.1.parse().ok()?);
        Some(MountTime { key, point: PathBuf::from(word()?), id, device, namespace })
    }
}

/// Whether a mount point fits into a note, which has one line per entry.
pub(super) fn can_be_noted(point: &Path) -> bool {
    point.to_str().is_some_and(|text| !text.chars().any(char::is_control))
}

fn namespace() -> String {
    fs::read_link("/proc/self/ns/mnt").map(|link| link.display().to_string()).unwrap_or_default()
}

fn change(key: Key, mount: BorrowedFd<'_>, argument: u64) -> Result<(), Errno> {
    if key == Key::LazyTime { change_lazy(mount, argument) } else { change_access(mount, argument) }
}

/// Changes the time of access of this mount alone, and no other attribute of it. Async-signal-safe.
fn change_access(mount: BorrowedFd<'_>, attribute: u64) -> Result<(), Errno> {
    /// `struct mount_attr` of linux/mount.h.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = Attributes { set: attribute, clear: ANY_ACCESS, propagation: 0, user_namespace: 0 };
    // SAFETY: the descriptor is open, the path is empty and ends in a nul byte, and the structure is as long as is said;
    // the kernel only reads it.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if rc == 0 {
        return Ok(());
    }
    // SAFETY: errno is this thread's own.
    Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }))
}

/// Changes that flag of the file system, and no other. Async-signal-safe: system calls, and no memory is taken.
fn change_lazy(mount: BorrowedFd<'_>, on: u64) -> Result<(), Errno> {
    let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
    let context = fspick(mount, c"", flags)?;
    fsconfig_set_flag(&context, if on == 1 { c"lazytime" } else { c"nolazytime" })?;
    fsconfig_reconfigure(&context)
}

/// Called by the last signal.
fn end_access(mount: RawFd, attribute: u64) -> bool {
    // SAFETY: it is open as long as it is armed; at the worst, on the way out, the call fails.
    change_access(unsafe { BorrowedFd::borrow_raw(mount) }, attribute).is_ok()
}

fn end_lazy(mount: RawFd, on: u64) -> bool {
    // SAFETY: as above.
    change_lazy(unsafe { BorrowedFd::borrow_raw(mount) }, on).is_ok()
}

#[cfg(test)]
mod tests {
    use iowhy_linux::mounts;

    use super::*;

    fn mount(options: &str, file_system: &str) -> Mount {
        let line = format!("27 1 254:0 / /mnt/a\\040b {options} - ext4 /dev/vda {file_system}\n");
        mounts::parse(&line).remove(0)
    }

    #[test]
    fn what_is_set_is_read_from_the_half_of_the_options_that_it_is_in() {
        let of = |key, options, file_system| present(key, &mount(options, file_system));
        assert_eq!(of(Key::AccessTime, "rw,noatime,nodiratime", "rw,relatime"), "noatime");
        assert_eq!(of(Key::AccessTime, "rw,relatime", "rw"), "relatime");
        assert_eq!(
            of(Key::AccessTime, "rw,nodiratime", "rw"),
            "strictatime",
            "nodiratime is about directories"
        );
        assert_eq!(of(Key::LazyTime, "rw,relatime", "rw,lazytime,discard"), "on");
        assert_eq!(of(Key::LazyTime, "rw,lazytime", "rw"), "off");
    }

    #[test]
    fn a_change_of_another_option_is_seen() {
        let before = mount("rw,nosuid,relatime", "rw,discard");
        assert_eq!(
            others(Key::AccessTime, &before),
            others(Key::AccessTime, &mount("rw,nosuid,noatime", "rw,discard"))
        );
        assert_eq!(
            others(Key::AccessTime, &before),
            others(Key::AccessTime, &mount("rw,nosuid", "rw,discard"))
        );
        assert_ne!(
            others(Key::AccessTime, &before),
            others(Key::AccessTime, &mount("rw,noatime", "rw,discard"))
        );
        assert_ne!(
            others(Key::LazyTime, &before),
            others(Key::LazyTime, &mount("rw,nosuid,noatime", "rw,discard"))
        );
        assert_eq!(
            others(Key::LazyTime, &before),
            others(Key::LazyTime, &mount("rw,nosuid,relatime", "rw,lazytime,discard"))
        );
    }

    #[test]
    fn a_note_brings_the_same_mount_back_and_nonsense_none() {
        let one = MountTime::new(Key::LazyTime, &mount("rw", "rw"));
        assert_eq!(MountTime::from_note(&one.to_note()), Some(one));
        for text in [
            "",
            "mount",
            "mount a 1 2:3 scheduler /x",
            "mount a x 2:3 atime /x",
            "/sys/x",
            "mount a 1 2:3 atime",
        ] {
            assert_eq!(MountTime::from_note(text), None, "{text}");
        }
        assert!(can_be_noted(Path::new("/a b=c")) && !can_be_noted(Path::new("/a\nb")));
    }

    #[test]
    fn commands_name_the_option_of_mount() {
        let of = |key| MountTime::new(key, &mount("rw", "rw"));
        assert_eq!(of(Key::LazyTime).by_hand("off"), "sudo mount -o remount,nolazytime '/mnt/a b'");
        assert_eq!(of(Key::AccessTime).by_hand("noatime"), "sudo mount -o remount,noatime '/mnt/a b'");
    }

    #[test]
    fn a_mount_that_is_not_there_is_not_touched() {
        let gone = MountTime { id: u64::MAX, ..MountTime::new(Key::AccessTime, &mount("rw", "rw")) };
        assert!(gone.found().is_none() && gone.open().is_err());
        let root = MountTime { point: "/".into(), ..gone };
        assert_eq!(root.open().err(), Some(Errno::STALE), "another mount is at that point");
        assert!(root.in_sight());
    }
}
