//! Flags of dm-crypt: reads them, and loads the same table with one of them changed, as `cryptsetup refresh` does.
//!
//! Invariants: the key is read and handed back by the kernel's own line, in memory that is wiped after each use, and goes
//! nowhere else; the device is never left suspended, for suspending and resuming are one call; a note names device and flag.
//! Non-goals: tables of several targets, and those whose integrity is kept by another device.

mod ioctl;
mod secret;
mod table;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key};

use self::ioctl::UUID_BYTES;
use self::secret::Secret;
use self::table::Table;
use crate::last_act::LastAct;

const CONTROL: &str = "/dev/mapper/control";
/// Type of the target.
const CRYPT: &[u8] = b"crypt";
/// Begin of the UUIDs that cryptsetup gives.
const OURS: &str = "CRYPT-";
/// Room for a table: the longest key has 64 parts of 64 bytes, in two digits each.
const BUFFER_BYTES: usize = 16 << 10;
/// How often a table is loaded again when a signal came between.
const ATTEMPTS: u32 = 5;

/// Why a flag is neither read nor changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no such device any more.
    Gone,
    /// It is suspended, with or without its key.
    Suspended,
    /// Another table was loaded by somebody else and waits.
    Occupied,
    /// Not one crypt target, or a line that is not understood.
    Form,
    /// Its integrity is kept by another device.
    Integrity,
    /// The kernel took the table and has the flag as it was.
    NotTaken,
    /// The kernel refuses.
    Refused(i32),
}

/// One flag of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CryptFlag {
    pub(super) key: Key,
    /// As people know the device.
    pub(super) name: String,
    uuid: String,
}

impl CryptFlag {
    /// The flag of a device by its kernel name.
    pub(super) fn new(key: Key, root: &Path, device: &str) -> Option<CryptFlag> {
        let (name, uuid) = identity(root, device)?;
        Some(CryptFlag { key, name, uuid })
    }

    /// A descriptor of the device mapper.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open() -> io::Result<OwnedFd> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(CONTROL)?;
        let is_device = file.metadata()?.file_type().is_char_device();
        is_device.then(|| file.into()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// Whether it is set.
    pub(super) fn present(&self, control: RawFd) -> Result<bool, Failure> {
        Job::new(self)?.present(control)
    }

    /// Whether it can be changed: no other table waits, and no integrity is kept elsewhere.
    pub(super) fn may_be_changed(&self, control: RawFd) -> Result<(), Failure> {
        let mut job = Job::new(self)?;
        job.with_table(control, |table, waits| match (waits, table.has_integrity()) {
            (true, _) => Err(Failure::Occupied),
            (_, true) => Err(Failure::Integrity),
            _ => Ok(()),
        })?
    }

    /// Sets it or takes it away.
    pub(super) fn set(&self, control: RawFd, on: bool) -> Result<(), Failure> {
        Job::new(self)?.set(control, on)
    }

    /// The same for the last signal, prepared now.
    pub(super) fn last_act(&self, control: RawFd, on: bool) -> Option<LastAct> {
        let job = LastJob { job: Job::new(self).ok()?, on, begun: AtomicBool::new(false) };
        // It stays in memory as the armed list does.
        let argument = Box::into_raw(Box::new(job)) as u64;
        Some(LastAct::Call { act: run_last, descriptor: control, argument })
    }

    /// As a word of a note; [`CryptFlag::from_note`] reads it.
    pub(super) fn to_note(&self) -> String {
        format!("dm-crypt {} {} {}", self.key.id(), self.uuid, self.name)
    }

    pub(super) fn from_note(text: &str) -> Option<CryptFlag> {
        let rest = text.strip_prefix("dm-crypt ")?;
        let (key, rest) = rest.split_once(' ')?;
        let (uuid, name) = rest.split_once(' ')?;
        let key = Key::from_id(key).filter(|key| key.group() == Group::Encryption)?;
        let flag = CryptFlag { key, name: name.to_owned(), uuid: uuid.to_owned() };
        flag.can_be_noted().then_some(flag)
    }

    /// Whether a note of one line can name it, and whether cryptsetup made it.
    pub(super) fn can_be_noted(&self) -> bool {
        let plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        let short = self.uuid.len() < UUID_BYTES && !self.uuid.contains(' ');
        plain(&self.name) && plain(&self.uuid) && short && self.uuid.starts_with(OURS)
    }

    /// The command that sets it. It asks for the passphrase; options that the device was opened with are given again.
    pub(super) fn by_hand(&self, value: &str) -> String {
        let option = if value == "1" { "with" } else { "without" };
        format!(
            "`sudo cryptsetup refresh {}` with the options that it was opened with, {option} `--perf-{}`",
            self.name,
            self.key.id()
        )
    }

    /// A refusal, in words.
    pub(super) fn problem(&self, failure: Failure, value: &str) -> Problem {
        let name = &self.name;
        let (why, hint) = match failure {
            Failure::Gone => (format!("`{name}` is no longer there"), "open it again".to_owned()),
            Failure::Suspended => (
                format!("`{name}` is suspended, and resuming it is its owner's decision"),
                format!(
                    "`sudo cryptsetup luksResume {name}` or `sudo dmsetup resume {name}`, then repeat it"
                ),
            ),
            Failure::Occupied => (
                format!("somebody else has loaded another table for `{name}`, which waits for a resume"),
                "repeat the command when nobody changes the device".to_owned(),
            ),
            Failure::Form => (
                format!(
                    "the table of `{name}` is not one dm-crypt target in the form that the kernel documents"
                ),
                format!("by hand: {}", self.by_hand(value)),
            ),
            Failure::Integrity => (
                format!(
                    "`{name}` has its integrity kept by another device, whose table would have to change too"
                ),
                format!("by hand: {}", self.by_hand(value)),
            ),
            Failure::NotTaken => (
                format!("the kernel took the table of `{name}` and did not change the flag"),
                "zoned disks always have `no_write_workqueue`".to_owned(),
            ),
            Failure::Refused(errno) => (
                format!("the kernel refuses to load the table of `{name}` again: {}", reason(errno)),
                if is_keyring(errno) {
                    format!(
                        "cryptsetup takes the key out of the keyring once a LUKS2 device is open; by hand: {}, with \
                         records of before and after for `iowhy compare`",
                        self.by_hand(value)
                    )
                } else {
                    "the flags of work queues need Linux 5.9".to_owned()
                },
            ),
        };
        Problem::refused(format!("cannot set `{}` to {value}: {why}", self.key.id())).hint(hint)
    }
}

impl Failure {
    /// As an error of the system, for who restores.
    pub(super) fn to_error(self) -> io::Error {
        let text = match self {
            Failure::Gone => return io::Error::new(io::ErrorKind::NotFound, "the device is gone"),
            Failure::Suspended => "the device is suspended".to_owned(),
            Failure::Occupied => "another table waits for a resume".to_owned(),
            Failure::Form => "the table is not that of one dm-crypt target".to_owned(),
            Failure::Integrity => "its integrity is kept by another device".to_owned(),
            Failure::NotTaken => "the kernel did not change the flag".to_owned(),
            Failure::Refused(errno) => reason(errno),
        };
        io::Error::other(text)
    }
}

fn is_keyring(errno: i32) -> bool {
    [libc::ENOKEY, libc::EKEYEXPIRED, libc::EKEYREVOKED, libc::EKEYREJECTED].contains(&errno)
}

fn reason(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno);
    if is_keyring(errno) {
        format!("its key is not in the kernel's keyring ({text})")
    } else {
        text.to_string()
    }
}

/// Name and UUID of a mapped device by its kernel name.
fn identity(root: &Path, device: &str) -> Option<(String, String)> {
    let of = |file: &str| {
        let text = fs::read_to_string(root.join(format!("sys/class/block/{device}/dm/{file}"))).ok()?;
        Some(text.trim_end_matches('\n').to_owned())
    };
    Some((of("name")?, of("uuid")?))
}

/// The name of a device, and the options of its table; none of them is secret.
///
/// # Errors
/// In words.
pub(super) fn options(root: &Path, device: &str) -> Result<(String, Vec<String>), String> {
    let flag = CryptFlag::new(Key::NoReadWorkqueue, root, device).ok_or("its name is not visible in /sys")?;
    if !rustix::process::geteuid().is_root() {
        return Err(
            "it needs root: the flags are read from the device's table, which holds the key too".to_owned()
        );
    }
    let control = CryptFlag::open().map_err(|error| format!("{CONTROL}: {error}"))?;
    let mut job = Job::new(&flag).map_err(|failure| failure.to_error().to_string())?;
    let read = job.with_table(control.as_raw_fd(), |table, _| table.options().map(str::to_owned).collect());
    Ok((flag.name, read.map_err(|failure| failure.to_error().to_string())?))
}

/// Reading and changing, with its memory.
struct Job {
    flag: &'static str,
    uuid: [u8; UUID_BYTES],
    uuid_bytes: usize,
    live: Secret,
    new: Secret,
}

impl Job {
    fn new(flag: &CryptFlag) -> Result<Job, Failure> {
        let mut uuid = [0; UUID_BYTES];
        let room = uuid.get_mut(..flag.uuid.len()).filter(|_| flag.uuid.len() < UUID_BYTES);
        room.ok_or(Failure::Form)?.copy_from_slice(flag.uuid.as_bytes());
        let memory = || {
            Secret::new(BUFFER_BYTES).map_err(|e| Failure::Refused(e.raw_os_error().unwrap_or(libc::ENOMEM)))
        };
        Ok(Job { flag: flag.key.id(), uuid, uuid_bytes: flag.uuid.len(), live: memory()?, new: memory()? })
    }

    /// Looks at the live table; whether another one waits beside it comes along.
    fn with_table<T>(
        &mut self,
        control: RawFd,
        look: impl FnOnce(Table<'_>, bool) -> T,
    ) -> Result<T, Failure> {
        let read = ioctl::read(control, &self.uuid[..self.uuid_bytes], self.live.bytes_mut());
        let found = read.map_err(refused).and_then(|live| Ok(look(table_of(&live)?, live.has_inactive)));
        self.live.wipe();
        found
    }

    fn present(&mut self, control: RawFd) -> Result<bool, Failure> {
        let flag = self.flag;
        self.with_table(control, |table, _| table.has(flag))
    }

    /// Changes it, and sees that it is changed. Async-signal-safe.
    fn set(&mut self, control: RawFd, on: bool) -> Result<(), Failure> {
        let done = self.try_set(control, on);
        self.live.wipe();
        self.new.wipe();
        done
    }

    fn try_set(&mut self, control: RawFd, on: bool) -> Result<(), Failure> {
        let uuid = &self.uuid[..self.uuid_bytes];
        let new = self.new.bytes_mut();
        for attempt in 0..=ATTEMPTS {
            let live = ioctl::read(control, uuid, self.live.bytes_mut()).map_err(refused)?;
            if live.suspended {
                return Err(Failure::Suspended);
            }
            let table = table_of(&live)?;
            if table.has(self.flag) == on {
                // Left by a run that was killed before it was made the live one.
                return if live.has_inactive {
                    ioctl::clear(control, uuid, new).map_err(refused)
                } else {
                    Ok(())
                };
            }
            if attempt == ATTEMPTS {
                break;
            }
            let write = |room: &mut [u8]| table.write_with(self.flag, on, room);
            let suspended = ioctl::load(control, uuid, &live, new, write).map_err(refused)?;
            let swapped = if suspended { Err(libc::EBUSY) } else { ioctl::swap(control, uuid, new) };
            match swapped {
                // Whether it took the flag is read above.
                Ok(()) => continue,
                // What was loaded may be gone already.
                Err(errno) => {
                    let _ = ioctl::clear(control, uuid, new);
                    match errno {
                        _ if suspended => return Err(Failure::Suspended),
                        // A signal came: newer kernels say so, older ones find the device not suspended.
                        libc::EINTR | libc::EINVAL | libc::EAGAIN => {}
                        other => return Err(Failure::Refused(other)),
                    }
                }
            }
        }
        Err(Failure::NotTaken)
    }
}

fn table_of<'a>(live: &ioctl::Live<'a>) -> Result<Table<'a>, Failure> {
    let parameters = live.parameters.filter(|_| live.kind == CRYPT).ok_or(Failure::Form)?;
    std::str::from_utf8(parameters).ok().and_then(Table::parse).ok_or(Failure::Form)
}

fn refused(errno: i32) -> Failure {
    if errno == libc::ENXIO { Failure::Gone } else { Failure::Refused(errno) }
}

/// What the last signal does.
struct LastJob {
    job: Job,
    on: bool,
    begun: AtomicBool,
}

/// Called by the last signal.
fn run_last(control: RawFd, argument: u64) -> bool {
    let job = argument as *mut LastJob;
    // SAFETY: the pointer is of `CryptFlag::last_act`, and is never freed.
    if unsafe { &(*job).begun }.swap(true, Ordering::AcqRel) {
        // Another thread is at it.
        return false;
    }
    // SAFETY: as above, and whoever comes first has it alone.
    let (job, on) = unsafe { (&mut (*job).job, (*job).on) };
    matches!(job.set(control, on), Ok(()) | Err(Failure::Gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(name: &str, uuid: &str) -> CryptFlag {
        CryptFlag { key: Key::NoReadWorkqueue, name: name.into(), uuid: uuid.into() }
    }

    #[test]
    fn a_note_names_device_and_flag_and_nonsense_none() {
        for name in ["home", "a name=1"] {
            let one = flag(name, "CRYPT-LUKS2-0123-home");
            assert_eq!(CryptFlag::from_note(&one.to_note()), Some(one));
        }
        for text in [
            "",
            "dm-crypt",
            "dm-crypt no_read_workqueue CRYPT-LUKS2-0123-home",
            "dm-crypt scheduler CRYPT-LUKS2-0123-home home",
            "dm-crypt no_read_workqueue LVM-0123 home",
            "no_read_workqueue CRYPT-LUKS2-0123-home home",
        ] {
            assert_eq!(CryptFlag::from_note(text), None, "{text}");
        }
        assert!(!flag("a", "CRYPT-PLAIN-a b").can_be_noted() && !flag("a\n", "CRYPT-PLAIN-a").can_be_noted());
        assert!(!flag("a", &format!("CRYPT-{}", "x".repeat(UUID_BYTES))).can_be_noted());
    }

    #[test]
    fn a_key_that_left_the_keyring_is_told_in_plain_words() {
        let told = flag("home", "CRYPT-LUKS2-0-home").problem(Failure::Refused(libc::ENOKEY), "1");
        assert!(told.message.contains("its key is not in the kernel's keyring"), "{told}");
        assert!(told.hint.unwrap().contains("cryptsetup refresh home"));
        let old = flag("home", "CRYPT-LUKS2-0-home").problem(Failure::Refused(libc::EINVAL), "1");
        assert!(old.message.contains("refuses") && old.hint.unwrap().contains("5.9"));
    }

    #[test]
    fn what_is_no_device_mapper_changes_nothing_and_leaves_nothing_in_memory() {
        let file = fs::File::open("/dev/null").unwrap();
        let mut job = Job::new(&flag("home", "CRYPT-LUKS2-0-home")).unwrap();
        job.new.bytes_mut().fill(7);
        assert_eq!(job.set(file.as_raw_fd(), true), Err(Failure::Refused(libc::ENOTTY)));
        assert!(job.live.bytes().iter().chain(job.new.bytes()).all(|byte| *byte == 0));
        assert_eq!(job.present(file.as_raw_fd()), Err(Failure::Refused(libc::ENOTTY)));
        assert!(job.live.bytes().iter().all(|byte| *byte == 0));
        assert_eq!(refused(libc::ENXIO), Failure::Gone);
    }
}
