//! Changes a setting of the machine, on one device or several, and restores it. It affects every program, so it needs
//! the user's request.
//!
//! Invariants: the old value is restored when the change is dropped, after an interrupt or panic, and before a signal
//! ends the process. A note per device is written before the change, so that the next start can restore what a killed
//! run left. A locked note belongs to a live run.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_linux::mounts::Mount;
use iowhy_linux::names::Dir;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::dm_crypt::CryptFlag;
use super::mount_time::{self, MountTime};
use super::restore::{self, Restore, by_hand, present};
use crate::last_act::{self, LastAct};

/// Directory of the notes. A reboot clears it, and resets the settings too.
const NOTES: &str = "/run";
/// Begin of a note's name; the device and the setting follow.
const NOTE: &str = "iowhy-setting-";

/// A setting that is changed, or about to be.
#[derive(Debug)]
pub struct ChangedSetting {
    parts: Vec<Part>,
}

/// The setting on one device, mount or CPU.
#[derive(Debug)]
struct Part {
    subject: Option<String>,
    place: Location,
    was: String,
    /// Restores the old state, in this order: the setting, or its other half, and what changes along with it.
    back: Vec<Restore>,
    note: Note,
}

/// A note of the old state.
#[derive(Debug)]
struct Note {
    dir: Arc<Dir>,
    name: CString,
    /// Locked as long as we live.
    _lock: File,
}

/// Where a setting is.
#[derive(Debug)]
enum Location {
    File(PathBuf),
    Mount(MountTime, OwnedFd),
    Crypt(CryptFlag, OwnedFd),
}

impl ChangedSetting {
    /// Takes hold of a setting that was read, on each device that it was read of, without changing it yet.
    ///
    /// # Errors
    /// A refusal where it may not be written, or where another run has it.
    pub fn new(readings: &[Reading], place: &super::Storage) -> Result<ChangedSetting, Problem> {
        ChangedSetting::hold_in(readings, place.mount.as_ref(), Path::new("/"), Path::new(NOTES))
    }

    /// The same for a device's read-ahead, by its kernel name.
    ///
    /// # Errors
    /// Those of [`ChangedSetting::new`]; the device is not there.
    pub fn read_ahead(device: &str) -> Result<ChangedSetting, Problem> {
        let devices =
            iowhy_linux::block::devices::Devices { leaves: vec![device.to_owned()], ..Default::default() };
        let place = super::Storage { devices, mount: None };
        let all = super::read_each(Path::new("/"), &place, Key::ReadAhead);
        let found: Vec<Reading> = all.into_iter().filter(|reading| reading.value.is_some()).collect();
        if found.is_empty() {
            return Err(Problem::refused(format!("`{device}` has no read-ahead here")));
        }
        ChangedSetting::new(&found, &place)
    }

    fn hold_in(
        readings: &[Reading],
        mount: Option<&Mount>,
        root: &Path,
        notes: &Path,
    ) -> Result<ChangedSetting, Problem> {
        // If a later one is refused, nothing was changed yet.
        let mut held = ChangedSetting { parts: Vec::new() };
        let notes = Arc::new(Dir::open(notes).map_err(|error| no_note(notes, &error))?);
        for reading in readings {
            held.parts.push(Part::hold(reading, mount, root, &notes)?);
        }
        if let Err(problem) = held.parts.iter().try_for_each(Part::check) {
            // Another run's change stays.
            held.parts.iter_mut().for_each(|part| part.back.clear());
            return Err(problem);
        }
        let back = held.parts.iter().flat_map(|part| part.back.iter().filter_map(Restore::last_act));
        let notes = held
            .parts
            .iter()
            .map(|part| &part.note)
            .map(|note| LastAct::Remove { directory: note.dir.as_fd().as_raw_fd(), name: note.name.clone() });
        last_act::arm(back.chain(notes).collect());
        Ok(held)
    }

    /// The old value in the kernel's words; with several devices, that of the first.
    pub fn old_value(&self) -> &str {
        self.parts.first().map_or("", |part| &part.was)
    }

    /// The old state in words: the value, or `KEY=VALUE` of the setting that holds instead of this one; `DEVICE VALUE` for
    /// each where they differ.
    pub fn old_state(&self) -> String {
        let states: Vec<String> = self.parts.iter().map(Part::old_state).collect();
        match states.first() {
            Some(first) if states.iter().all(|state| state == first) => first.clone(),
            _ => {
                let names = self.parts.iter().map(|part| part.subject.as_deref().unwrap_or("machine"));
                let both = names.zip(&states).map(|(name, state)| format!("{name} {state}"));
                both.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Changes it, on every device. A file that is opened from now on has a new read-ahead.
    ///
    /// # Errors
    /// What the system refuses, also by taking another value than the one given. Values already changed stay until
    /// they are restored.
    pub fn set(&self, value: &str) -> Result<(), Problem> {
        self.parts.iter().try_for_each(|part| part.set(value))
    }

    /// Restores the old value on every device; the change can be set again.
    ///
    /// # Errors
    /// The first refusal; then the note stays, and the next start tries again. The other devices are restored.
    pub fn restore(&self) -> Result<(), Problem> {
        let tried: Vec<Result<(), Problem>> = self.parts.iter().map(Part::put_back).collect();
        tried.into_iter().collect()
    }
}

impl Drop for ChangedSetting {
    fn drop(&mut self) {
        // Armed until all is put back.
        let done: Vec<bool> = self.parts.iter().map(|part| part.put_back().is_ok()).collect();
        for (part, done) in self.parts.iter().zip(done) {
            part.let_go(done);
        }
        last_act::arm(Vec::new());
        self.parts.clear();
    }
}

impl Part {
    fn hold(
        reading: &Reading,
        mount: Option<&Mount>,
        root: &Path,
        notes: &Arc<Dir>,
    ) -> Result<Part, Problem> {
        let Some(was) = &reading.value else {
            return Err(Problem::refused(format!("`{}` cannot be read here", reading.key.id())));
        };
        let (place, back) = match (reading.key.group(), mount) {
            // Whether that may be changed is seen by setting what is set already; see `check`.
            (Group::FileSystem, Some(mount)) => hold_mount(reading.key, mount, was)?,
            (Group::Encryption, _) => hold_crypt(reading, was, root)?,
            (_, Some(mount)) if reading.key == Key::ReadAhead && is_of(mount, reading) => {
                let (place, _) = hold_file(reading, was, root)?;
                may_be_noted(mount)?;
                (place, vec![Restore::Window(MountTime::new(reading.key, mount), was.clone())])
            }
            _ => hold_file(reading, was, root)?,
        };
        let name = reading.subject.as_deref().unwrap_or("machine").replace(['/', ' '], "-");
        let name = CString::new(format!("{NOTE}{name}-{}", reading.key.id()))
            .map_err(|_| Problem::refused("the name of a device has a zero byte in it"))?;
        let lock = write_note(notes, &name, &back)?;
        let note = Note { dir: Arc::clone(notes), name, _lock: lock };
        Ok(Part { subject: reading.subject.clone(), place, was: was.clone(), back, note })
    }

    /// Checked after the lock: another run may have restored its value since the reading.
    fn check(&self) -> Result<(), Problem> {
        let now = match &self.place {
            Location::File(file) => present(file),
            Location::Mount(time, _) => {
                time.found().map(|mount| mount_time::present(time.key, &mount).to_owned())
            }
            Location::Crypt(flag, control) => {
                let is_set = flag.present(control.as_raw_fd()).map_err(|f| flag.problem(f, &self.was))?;
                Some(u8::from(is_set).to_string())
            }
        };
        if now.as_ref() != Some(&self.was) {
            return Err(Problem::refused(format!(
                "somebody else has just changed it from {} to {}",
                self.was,
                now.as_deref().unwrap_or("nothing")
            ))
            .hint("repeat the command when nobody changes it"));
        }
        match &self.place {
            // That it may be written was seen when it was opened.
            Location::File(_) => Ok(()),
            Location::Mount(..) => self.set(&self.was),
            Location::Crypt(flag, control) => {
                flag.may_be_changed(control.as_raw_fd()).map_err(|f| flag.problem(f, &self.was))
            }
        }
    }

    fn old_state(&self) -> String {
        match (&self.place, self.back.first()) {
            (Location::File(own), Some(Restore::File(file, value))) if file != own => {
                format!("{}={value}", file.file_name().unwrap_or_default().to_string_lossy())
            }
            _ => self.was.clone(),
        }
    }

    fn set(&self, value: &str) -> Result<(), Problem> {
        match &self.place {
            Location::File(file) => set_file(file, value, &self.was),
            Location::Mount(time, mount) => {
                time.set(mount.as_fd(), value).map_err(|errno| cannot_remount(time, value, errno))
            }
            Location::Crypt(flag, control) => {
                flag.set(control.as_raw_fd(), value == "1").map_err(|f| flag.problem(f, value))?;
                // All but the flag is to be as it was.
                let beside = self.back.get(1..).unwrap_or_default();
                restore::put_all(beside).map_err(|(step, error)| cannot_put(step, &error, &self.back))
            }
        }
    }

    fn put_back(&self) -> Result<(), Problem> {
        restore::put_all(&self.back).map_err(|(step, error)| cannot_put(step, &error, &self.back))
    }

    /// The note stays where the setting could not be put back: the next start tries again.
    fn let_go(&self, is_back: bool) {
        if is_back {
            let _ = self.note.dir.remove_file(&self.note.name);
        }
    }
}

fn cannot_put(step: &Restore, error: &std::io::Error, back: &[Restore]) -> Problem {
    Problem::failed(format!("cannot put `{}` back: {error}", step.place())).hint(by_hand(back))
}

/// The flag, and what a new table changes along with it.
fn hold_crypt(reading: &Reading, was: &str, root: &Path) -> Result<(Location, Vec<Restore>), Problem> {
    let device = reading.subject.as_deref().unwrap_or_default();
    let flag =
        CryptFlag::new(reading.key, root, device).filter(CryptFlag::can_be_noted).ok_or_else(|| {
            Problem::refused(format!("a note could not name the device `{device}` by its name and UUID"))
                .hint("only devices that cryptsetup opened are changed, without blanks in their UUID")
        })?;
    let opened = CryptFlag::open().and_then(|control| Ok((control.try_clone()?, control)));
    let (again, control) = opened.map_err(|error| {
        Problem::refused(format!("cannot open the device mapper's control node: {error}"))
            .hint("it needs /dev/mapper/control, which containers often have not")
    })?;
    let queue = root.join(format!("sys/class/block/{device}/queue"));
    // Where links lead to: only such paths are put back from a note.
    let beside = restore::beside_table(&fs::canonicalize(&queue).unwrap_or(queue));
    let back = std::iter::once(Restore::Crypt(flag.clone(), Some(again), was.to_owned())).chain(beside);
    Ok((Location::Crypt(flag, control), back.collect()))
}

fn hold_file(reading: &Reading, was: &str, root: &Path) -> Result<(Location, Vec<Restore>), Problem> {
    let Some(file) = &reading.file else {
        return Err(Problem::refused(format!("`{}` is in no file that could be written", reading.key.id())));
    };
    let file = root.join(file.trim_start_matches('/'));
    // Where links lead to: only such paths are put back from a note.
    let file = fs::canonicalize(&file).unwrap_or(file);
    OpenOptions::new().write(true).open(&file).map_err(|error| cannot_change(&file, &error))?;
    let back = restore::for_file(reading.key, &file, was);
    Ok((Location::File(file), back))
}

fn hold_mount(key: Key, mount: &Mount, was: &str) -> Result<(Location, Vec<Restore>), Problem> {
    let time = MountTime::new(key, mount);
    may_be_noted(mount)?;
    if key == Key::LazyTime {
        may_be_reconfigured(mount)?;
    }
    let opened = time.open().and_then(|file| {
        let again = file.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        Ok((file, again))
    });
    let (file, again) = opened.map_err(|errno| cannot_remount(&time, was, errno))?;
    let back = vec![Restore::Mount(time.clone(), Some(again), was.to_owned())];
    Ok((Location::Mount(time, file), back))
}

/// Whether a reading is of this mount, and not of a device.
fn is_of(mount: &Mount, reading: &Reading) -> bool {
    reading.subject.as_ref() == Some(&mount.point.display().to_string())
}

fn may_be_noted(mount: &Mount) -> Result<(), Problem> {
    if mount_time::can_be_noted(&mount.point) {
        return Ok(());
    }
    Err(Problem::refused(format!("the mount point `{}` holds control characters", mount.point.display()))
        .hint("a note could not name it; mount it elsewhere"))
}

/// Whether remounting with one flag keeps all other options. Other file systems may fall back to defaults for options
/// that are not repeated.
fn may_be_reconfigured(mount: &Mount) -> Result<(), Problem> {
    const KNOWN: [&str; 3] = ["ext4", "xfs", "btrfs"];
    let (point, kind) = (mount.point.display(), mount.file_system.as_str());
    let has = |option: &str| mount.super_options.split(',').any(|one| one == option);
    if has("ro") {
        return Err(Problem::refused(format!("the file system at `{point}` is read only"))
            .hint("no time is written there, soon or late"));
    }
    // XFS without inode32 takes inode64.
    if !KNOWN.contains(&kind) || has("inode32") {
        let with = if has("inode32") { " with inode32" } else { "" };
        return Err(Problem::refused(format!(
            "`lazytime` is tried on {} only, and `{point}` is {kind}{with}",
            KNOWN.join(", ")
        ))
        .hint(format!(
            "by hand: `iowhy --json before.json {point}`, `sudo mount -o remount,lazytime {point}`, `iowhy --json after.json \
             {point}`, `iowhy compare before.json after.json`"
        )));
    }
    Ok(())
}

fn set_file(file: &Path, value: &str, was: &str) -> Result<(), Problem> {
    restore::overwrite(file, value).map_err(|error| {
        Problem::refused(format!("the kernel does not take `{value}` for `{}`: {error}", file.display()))
            .hint(format!("it is `{was}`; name a value that this device and kernel can take"))
    })?;
    match present(file) {
        Some(taken) if taken == value => Ok(()),
        taken => Err(Problem::refused(format!(
            "the kernel made `{}` of `{value}` for `{}`",
            taken.as_deref().unwrap_or("nothing"),
            file.display()
        ))
        .hint("name a value within the range that this device and kernel can take")),
    }
}

fn cannot_remount(time: &MountTime, value: &str, errno: Errno) -> Problem {
    let (key, point) = (time.key.id(), time.point.display());
    let hint = match errno {
        Errno::NOSYS => "it needs mount_setattr(2), which Linux has since 5.12".to_owned(),
        Errno::STALE => {
            format!("another mount covers `{point}`, or it was unmounted; look at `findmnt {point}`")
        }
        Errno::INPROGRESS => {
            "the kernel took something else, or changed other options with it; look at `findmnt -o \
                              TARGET,OPTIONS`"
                .to_owned()
        }
        Errno::PERM | Errno::ACCESS => {
            "the mount belongs to another user namespace, or its options are locked: try it \
                                        outside of the container"
                .to_owned()
        }
        _ => format!("by hand: `{}`", time.by_hand(value)),
    };
    Problem::refused(format!("cannot set `{key}` of the mount `{point}` to {value}: {errno}")).hint(hint)
}

fn cannot_change(file: &Path, error: &std::io::Error) -> Problem {
    let root = rustix::process::geteuid().is_root();
    let hint = if root {
        "it needs a /sys and /proc/sys that may be written, which containers often have not".to_owned()
    } else {
        let words: Vec<String> = std::env::args().collect();
        format!("run it as root: `sudo {}`", words.join(" "))
    };
    Problem::refused(format!("cannot change `{}`: {error}", file.display())).hint(hint)
}

fn no_note(note: &Path, error: &std::io::Error) -> Problem {
    Problem::refused(format!("cannot write the note `{}`: {error}", note.display()))
        .hint("without it a run that is killed could not be undone")
}

/// Writes and locks the note. Only one of two runs gets it; a killed run's change is restored first.
fn write_note(dir: &Dir, name: &CStr, back: &[Restore]) -> Result<File, Problem> {
    let note = dir.path_of(name);
    let refused = |errno: Errno| no_note(&note, &errno.into());
    // A note may vanish between opening and locking, when its owner ends.
    for _ in 0..100 {
        let mut file = match dir.create_new(name, OFlags::RDWR, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            Err(Errno::EXIST) => match (dir.open_ours(name, OFlags::RDWR), dir.stat(name)) {
                (Some(file), _) => File::from(file),
                (None, Err(Errno::NOENT)) => continue,
                (None, _) => return Err(refused(Errno::EXIST).hint("it belongs to another user: remove it")),
            },
            Err(errno) => return Err(refused(errno)),
        };
        match lock(&file, dir, name) {
            Lock::Others => {
                return Err(Problem::refused(format!(
                    "another run has changed it, as `{}` says",
                    note.display()
                ))
                .hint("wait for its end"));
            }
            Lock::Gone => continue,
            Lock::Ours if file.metadata().is_ok_and(|m| m.len() > 0) => {
                return Err(Problem::refused(format!(
                    "a killed run has left it changed, as `{}` says",
                    note.display()
                ))
                .hint("start iowhy once more: every start as root puts such settings back"));
            }
            Lock::Ours => {}
        }
        let text: String = back.iter().map(Restore::to_note).collect();
        file.write_all(text.as_bytes())
            .and_then(|()| file.flush())
            .map_err(|error| no_note(&note, &error))?;
        return Ok(file);
    }
    Err(refused(Errno::AGAIN))
}

/// Who has a note.
enum Lock {
    /// We.
    Ours,
    /// A run that lives.
    Others,
    /// Its owner has ended and removed it meanwhile.
    Gone,
}

fn lock(file: &File, dir: &Dir, name: &CStr) -> Lock {
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Lock::Others;
    }
    match (rustix::fs::fstat(file), dir.stat(name)) {
        (Ok(ours), Ok(there)) if (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino) => Lock::Ours,
        _ => Lock::Gone,
    }
}

/// Restores what killed runs left; one sentence per setting, also where it is not permitted.
pub fn restore_leftovers() -> Vec<String> {
    undo_in(Path::new(NOTES), Path::new("/"))
}

fn undo_in(notes: &Path, root: &Path) -> Vec<String> {
    let Ok(notes) = Dir::open(notes) else { return Vec::new() };
    let entries = notes.entries().unwrap_or_default();
    let ours = entries.iter().filter(|entry| entry.name.to_bytes().starts_with(NOTE.as_bytes()));
    ours.filter_map(|entry| undo_one(&notes, &entry.name, root)).collect()
}

fn undo_one(notes: &Dir, name: &CStr, root: &Path) -> Option<String> {
    let mut note = File::from(notes.open_ours(name, OFlags::RDONLY)?);
    if !matches!(lock(&note, notes, name), Lock::Ours) {
        return None;
    }
    let mut text = String::new();
    note.read_to_string(&mut text).ok()?;
    let back: Vec<Restore> = text.lines().filter_map(Restore::from_note).collect();
    if !back.iter().all(|step| step.is_permitted(root)) {
        return None;
    }
    let words: Vec<String> =
        back.iter().map(|step| format!("`{}` is {}", step.place(), step.value())).collect();
    match restore::put_all(&back) {
        Ok(()) => {
            notes.remove_file(name).ok()?;
            // Nothing was changed yet when it was killed.
            (!words.is_empty())
                .then(|| format!("{} again: a run that was killed had left it changed", words.join(", ")))
        }
        Err((step, error)) => Some(format!(
            "a run that was killed has left `{}` changed, and it cannot be put back now ({error}); {}",
            step.place(),
            by_hand(&back)
        )),
    }
}

#[cfg(test)]
#[path = "changed_tests.rs"]
mod tests;
