//! A setting of the machine, on one device or on several at once, changed for a while and put back: for every program, so only
//! where the user asks for it.
//!
//! Invariants: what was there is put back when the change is dropped, also after an interrupt or a panic, and by the signal
//! that ends the process at once; before anything is changed a note for each device says what is to be put back, so that
//! the next start can undo what a killed run has left. Whether a run still lives is told by the lock on its note, which the kernel takes
//! from a dead one.

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

use super::back::{self, Back, by_hand, present};
use super::mount_time::{self, MountTime};
use crate::interrupt::{self, LastAct};

/// Where notes are left: it is gone after the next start of the machine, as the settings are.
const NOTES: &str = "/run";
/// Begin of a note's name; the device and the setting follow.
const NOTE: &str = "iowhy-setting-";

/// A setting that is held: changed, or about to be.
#[derive(Debug)]
pub struct Held {
    parts: Vec<Part>,
}

/// The setting on one device, mount or CPU.
#[derive(Debug)]
struct Part {
    subject: Option<String>,
    place: Place,
    was: String,
    /// What puts the old state back, in this order: the setting, or its other half, and what changes along with it.
    back: Vec<Back>,
    note: Note,
}

/// A note of what is to be put back.
#[derive(Debug)]
struct Note {
    dir: Arc<Dir>,
    name: CString,
    /// Locked as long as we live.
    _lock: File,
}

/// Where a setting is.
#[derive(Debug)]
enum Place {
    File(PathBuf),
    Mount(MountTime, OwnedFd),
}

impl Held {
    /// Takes hold of a setting that was read, on each device that it was read of, without changing it yet.
    ///
    /// # Errors
    /// A refusal where it may not be written, or where another run has it.
    pub fn hold(readings: &[Reading], place: &super::Place) -> Result<Held, Problem> {
        Held::hold_in(readings, place.mount.as_ref(), Path::new("/"), Path::new(NOTES))
    }

    /// The same for a device's read-ahead, by its kernel name.
    ///
    /// # Errors
    /// Those of [`Held::hold`]; the device is not there.
    pub fn read_ahead(device: &str) -> Result<Held, Problem> {
        let devices =
            iowhy_linux::block::devices::Devices { leaves: vec![device.to_owned()], ..Default::default() };
        let place = super::Place { devices, mount: None };
        let all = super::read_each(Path::new("/"), &place, Key::ReadAhead);
        let found: Vec<Reading> = all.into_iter().filter(|reading| reading.value.is_some()).collect();
        if found.is_empty() {
            return Err(Problem::refused(format!("`{device}` has no read-ahead here")));
        }
        Held::hold(&found, &place)
    }

    fn hold_in(
        readings: &[Reading],
        mount: Option<&Mount>,
        root: &Path,
        notes: &Path,
    ) -> Result<Held, Problem> {
        // What is held when a later one is refused was not changed yet, and goes as it came.
        let mut held = Held { parts: Vec::new() };
        let notes = Arc::new(Dir::open(notes).map_err(|error| no_note(notes, &error))?);
        for reading in readings {
            held.parts.push(Part::hold(reading, mount, root, &notes)?);
        }
        if let Err(problem) = held.parts.iter().try_for_each(Part::check) {
            // What somebody else has set stays.
            held.parts.iter_mut().for_each(|part| part.back.clear());
            return Err(problem);
        }
        let back = held.parts.iter().flat_map(|part| part.back.iter().filter_map(Back::at_the_end));
        let notes = held
            .parts
            .iter()
            .map(|part| &part.note)
            .map(|note| LastAct::Remove { directory: note.dir.as_fd().as_raw_fd(), name: note.name.clone() });
        interrupt::put_back_at_the_end(back.chain(notes).collect());
        Ok(held)
    }

    /// What was there, in the kernel's words: on the first device, where there are several.
    pub fn was(&self) -> &str {
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
    /// What the system refuses, also by taking another value than the one given. What was changed already stays so until it
    /// is put back.
    pub fn set(&self, value: &str) -> Result<(), Problem> {
        self.parts.iter().try_for_each(|part| part.set(value))
    }

    /// Puts the old state back, on every device; it is still held.
    ///
    /// # Errors
    /// What the system refuses first; then the note stays, and the next start tries again. The others are put back.
    pub fn put_back(&self) -> Result<(), Problem> {
        let tried: Vec<Result<(), Problem>> = self.parts.iter().map(Part::put_back).collect();
        tried.into_iter().collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Armed until all is put back.
        let done: Vec<bool> = self.parts.iter().map(|part| part.put_back().is_ok()).collect();
        for (part, done) in self.parts.iter().zip(done) {
            part.let_go(done);
        }
        interrupt::put_back_at_the_end(Vec::new());
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
            _ => hold_file(reading, was, root)?,
        };
        let name = reading.subject.as_deref().unwrap_or("machine").replace(['/', ' '], "-");
        let name = CString::new(format!("{NOTE}{name}-{}", reading.key.id()))
            .map_err(|_| Problem::refused("the name of a device has a zero byte in it"))?;
        let lock = write_note(notes, &name, &back)?;
        let note = Note { dir: Arc::clone(notes), name, _lock: lock };
        Ok(Part { subject: reading.subject.clone(), place, was: was.clone(), back, note })
    }

    /// Whether it can be changed, once nobody else can: another run may have put its own back since it was read.
    fn check(&self) -> Result<(), Problem> {
        let now = match &self.place {
            Place::File(file) => present(file),
            Place::Mount(time, _) => {
                time.found().map(|mount| mount_time::present(time.key, &mount).to_owned())
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
            Place::File(_) => Ok(()),
            Place::Mount(..) => self.set(&self.was),
        }
    }

    fn old_state(&self) -> String {
        match (&self.place, self.back.first()) {
            (Place::File(own), Some(Back::File(file, value))) if file != own => {
                format!("{}={value}", file.file_name().unwrap_or_default().to_string_lossy())
            }
            _ => self.was.clone(),
        }
    }

    fn set(&self, value: &str) -> Result<(), Problem> {
        match &self.place {
            Place::File(file) => set_file(file, value, &self.was),
            Place::Mount(time, mount) => {
                time.set(mount.as_fd(), value).map_err(|errno| cannot_remount(time, value, errno))
            }
        }
    }

    fn put_back(&self) -> Result<(), Problem> {
        self.back.iter().try_for_each(|step| {
            step.put().map_err(|error| {
                Problem::failed(format!("cannot put `{}` back: {error}", step.place()))
                    .hint(by_hand(&self.back))
            })
        })
    }

    /// The note stays where the setting could not be put back: the next start tries again.
    fn let_go(&self, is_back: bool) {
        if is_back {
            let _ = self.note.dir.remove_file(&self.note.name);
        }
    }
}

fn hold_file(reading: &Reading, was: &str, root: &Path) -> Result<(Place, Vec<Back>), Problem> {
    let Some(file) = &reading.file else {
        return Err(Problem::refused(format!("`{}` is in no file that could be written", reading.key.id())));
    };
    let file = root.join(file.trim_start_matches('/'));
    // Where links lead to: only such paths are put back from a note.
    let file = fs::canonicalize(&file).unwrap_or(file);
    OpenOptions::new().write(true).open(&file).map_err(|error| cannot_change(&file, &error))?;
    let back = back::of_file(reading.key, &file, was);
    Ok((Place::File(file), back))
}

fn hold_mount(key: Key, mount: &Mount, was: &str) -> Result<(Place, Vec<Back>), Problem> {
    let time = MountTime::of(key, mount);
    if !mount_time::can_be_noted(&mount.point) {
        return Err(Problem::refused(format!(
            "the mount point `{}` holds control characters",
            time.point.display()
        ))
        .hint("a note could not name it; mount it elsewhere"));
    }
    if key == Key::LazyTime {
        may_be_reconfigured(mount)?;
    }
    let opened = time.open().and_then(|file| {
        let again = file.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        Ok((file, again))
    });
    let (file, again) = opened.map_err(|errno| cannot_remount(&time, was, errno))?;
    let back = vec![Back::Mount(time.clone(), Some(again), was.to_owned())];
    Ok((Place::Mount(time, file), back))
}

/// Whether a file system can be told of one flag and keeps all else as it is. Others of a kind may fall back to what they
/// take when they are not told.
fn may_be_reconfigured(mount: &Mount) -> Result<(), Problem> {
    const KNOWN: [&str; 3] = ["ext4", "xfs", "btrfs"];
    let (point, kind) = (mount.point.display(), mount.file_system.as_str());
    let has = |option: &str| mount.super_options.split(',').any(|one| one == option);
    if has("ro") {
        return Err(Problem::refused(format!("the file system at `{point}` is read only"))
            .hint("no time is written there, soon or late"));
    }
    // XFS that is not told of inode32 takes inode64.
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
    back::overwrite(file, value).map_err(|error| {
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

/// Writes and locks the note. Of two runs only one gets it; what a killed one has left is undone first.
fn write_note(dir: &Dir, name: &CStr, back: &[Back]) -> Result<File, Problem> {
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
        let text: String = back.iter().map(Back::to_note).collect();
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

/// Puts back what runs that were killed have left; in words, one a setting. Where that is not allowed it says so.
pub fn undo_left() -> Vec<String> {
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
    let back: Vec<Back> = text.lines().filter_map(Back::from_note).collect();
    if !back.iter().all(|step| step.may_be_put(root)) {
        return None;
    }
    let words: Vec<String> =
        back.iter().map(|step| format!("`{}` is {}", step.place(), step.value())).collect();
    match back.iter().try_for_each(|step| step.put().map_err(|error| (step, error))) {
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
#[path = "held_tests.rs"]
mod tests;
