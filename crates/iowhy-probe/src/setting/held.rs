//! A setting of the machine, changed for a while and put back: for every program, so only where the user asks for it.
//!
//! Invariants: what was there is put back when the change is dropped, also after an interrupt or a panic, and by the signal
//! that ends the process at once; before anything is changed a note says what is to be put back, so that the next start can
//! undo what a killed run has left. Whether a run still lives is told by the lock on its note, which the kernel takes
//! from a dead one.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iowhy_core::kernel_text::choice;
use iowhy_core::problem::Problem;
use iowhy_core::setting::{Key, Reading};
use rustix::fs::{FlockOperation, flock};

use crate::interrupt;

/// Where notes are left: it is gone after the next start of the machine, as the settings are.
const NOTES: &str = "/run";
/// Begin of a note's name; the device and the setting follow.
const NOTE: &str = "iowhy-setting-";
/// What a note may put back, below these directories only.
const BELOW: [(&str, &[&str]); 3] = [
    ("/sys/devices/", &["scheduler", "read_ahead_kb", "nr_requests", "wbt_lat_usec", "iostats", "nomerges"]),
    ("/sys/kernel/mm/transparent_hugepage/", &["enabled"]),
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

/// A file and what belongs into it.
type Content = (PathBuf, String);

/// A setting that is held: changed, or about to be.
#[derive(Debug)]
pub struct Held {
    file: PathBuf,
    was: String,
    /// What puts the old state back, in this order: the setting, or its other half, and what changes along with it.
    back: Vec<Content>,
    note: PathBuf,
    /// Locked as long as we live.
    _lock: File,
}

impl Held {
    /// Takes hold of a setting that was read, without changing it yet.
    ///
    /// # Errors
    /// A refusal where it may not be written, or where another run has it.
    pub fn hold(reading: &Reading) -> Result<Held, Problem> {
        Held::hold_in(reading, Path::new("/"), Path::new(NOTES))
    }

    /// The same for a device's read-ahead, by its kernel name.
    ///
    /// # Errors
    /// Those of [`Held::hold`]; the device is not there.
    pub fn read_ahead(device: &str) -> Result<Held, Problem> {
        let devices =
            crate::target::devices::Devices { leaves: vec![device.to_owned()], ..Default::default() };
        let place = super::Place { devices, mount: None };
        let all = super::read(Path::new("/"), &place);
        let found = all.iter().find(|reading| reading.key == Key::ReadAhead && reading.value.is_some());
        let found = found.ok_or_else(|| Problem::refused(format!("`{device}` has no read-ahead here")))?;
        Held::hold(found)
    }

    fn hold_in(reading: &Reading, root: &Path, notes: &Path) -> Result<Held, Problem> {
        let at = |file: &str| root.join(file.trim_start_matches('/'));
        let (Some(file), Some(was)) = (&reading.file, &reading.value) else {
            return Err(Problem::refused(format!("`{}` cannot be read here", reading.key.id())));
        };
        // Where links lead to: only such paths are put back from a note.
        let file = fs::canonicalize(at(file)).unwrap_or_else(|_| at(file));
        OpenOptions::new().write(true).open(&file).map_err(|error| cannot_change(&file, &error))?;
        let back = back(reading.key, &file, was);
        let name = reading.subject.as_deref().unwrap_or("machine").replace(['/', ' '], "-");
        let note = notes.join(format!("{NOTE}{name}-{}", reading.key.id()));
        let lock = write_note(&note, &back)?;
        interrupt::put_back_at_the_end(arm(&back, &note));
        Ok(Held { file, was: was.clone(), back, note, _lock: lock })
    }

    /// What was there, in the kernel's words.
    pub fn was(&self) -> &str {
        &self.was
    }

    /// The old state in words: the value, or `KEY=VALUE` of the setting that holds instead of this one.
    pub fn old_state(&self) -> String {
        match self.back.first() {
            Some((file, value)) if *file != self.file => {
                format!("{}={value}", file.file_name().unwrap_or_default().to_string_lossy())
            }
            _ => self.was.clone(),
        }
    }

    /// Changes it. A file that is opened from now on has a new read-ahead.
    ///
    /// # Errors
    /// What the system refuses, also by taking another value than the one given.
    pub fn set(&self, value: &str) -> Result<(), Problem> {
        fs::write(&self.file, value).map_err(|error| {
            Problem::refused(format!(
                "the kernel does not take `{value}` for `{}`: {error}",
                self.file.display()
            ))
            .hint(format!("it is `{}`; name a value that this device and kernel can take", self.was))
        })?;
        match present(&self.file) {
            Some(taken) if taken == value => Ok(()),
            taken => Err(Problem::refused(format!(
                "the kernel made `{}` of `{value}` for `{}`",
                taken.as_deref().unwrap_or("nothing"),
                self.file.display()
            ))
            .hint("name a value within the range that this device and kernel can take")),
        }
    }

    /// Puts the old state back; it is still held.
    ///
    /// # Errors
    /// What the system refuses; then the note stays, and the next start tries again.
    pub fn put_back(&self) -> Result<(), Problem> {
        put_back(&self.back).map_err(|(file, error)| {
            Problem::failed(format!("cannot put `{}` back: {error}", file.display()))
                .hint(by_hand(&self.back))
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The note stays where the setting could not be put back: the next start tries again.
        if self.put_back().is_ok() {
            let _ = fs::remove_file(&self.note);
        }
        interrupt::put_back_at_the_end(Vec::new());
    }
}

/// What is to be written to have the old state again. Of a ratio and a number of bytes the kernel clears the one when
/// the other is set; another scheduler brings another number of requests and another throttle of writes.
fn back(key: Key, file: &Path, was: &str) -> Vec<Content> {
    let beside = |name: &str| file.with_file_name(name);
    let also = |names: &[&str]| -> Vec<Content> {
        names.iter().filter_map(|name| Some((beside(name), present(&beside(name))?))).collect()
    };
    let other = match key {
        Key::DirtyBytes => "dirty_ratio",
        Key::DirtyRatio => "dirty_bytes",
        Key::DirtyBackgroundBytes => "dirty_background_ratio",
        Key::DirtyBackgroundRatio => "dirty_background_bytes",
        _ => "",
    };
    let mut back = vec![(file.to_owned(), was.to_owned())];
    match key {
        Key::Scheduler => back.extend(also(&["nr_requests", "wbt_lat_usec"])),
        _ if was == "0" && !other.is_empty() => back = also(&[other]),
        _ => {}
    }
    back
}

/// What is in the file; of several choices the chosen one.
fn present(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    if text.contains('[') { Some(choice::parse(&text)?.0) } else { Some(text.trim().to_owned()) }
}

/// Writes what is not there already: a value that is written counts as chosen by hand, even where it is the same.
fn put_back(back: &[Content]) -> Result<(), (PathBuf, std::io::Error)> {
    for (file, value) in back {
        if present(file).as_ref() != Some(value) {
            fs::write(file, value).map_err(|error| (file.clone(), error))?;
        }
    }
    Ok(())
}

/// The commands that put it back.
fn by_hand(back: &[Content]) -> String {
    let one = |(file, value): &Content| format!("echo {value} | sudo tee {}", file.display());
    format!("by hand: {}", back.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// What the last signal has to do, ready made, because nothing may be allocated there.
fn arm(back: &[Content], note: &Path) -> Vec<interrupt::LastWrite> {
    use std::os::unix::ffi::OsStrExt;
    let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    let writes = back.iter().filter_map(|(file, value)| {
        Some(interrupt::LastWrite { file: path(file)?, content: Some(value.clone().into_bytes()) })
    });
    let removal = path(note).map(|file| interrupt::LastWrite { file, content: None });
    writes.chain(removal).collect()
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

/// Writes and locks the note. Of two runs only one gets it; what a killed one has left is undone first.
fn write_note(note: &Path, back: &[Content]) -> Result<File, Problem> {
    let refused = |error: std::io::Error| {
        Problem::refused(format!("cannot write the note `{}`: {error}", note.display()))
            .hint("without it a run that is killed could not be undone")
    };
    // A note may vanish between opening and locking, when its owner ends.
    for _ in 0..100 {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(note)
            .map_err(refused)?;
        match lock(&file, note) {
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
        let text: String = back.iter().map(|(file, value)| format!("{}={value}\n", file.display())).collect();
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(refused)?;
        return Ok(file);
    }
    Err(refused(std::io::ErrorKind::WouldBlock.into()))
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

fn lock(file: &File, note: &Path) -> Lock {
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Lock::Others;
    }
    match (file.metadata(), fs::metadata(note)) {
        (Ok(ours), Ok(there)) if ours.ino() == there.ino() => Lock::Ours,
        _ => Lock::Gone,
    }
}

/// Puts back what runs that were killed have left; in words, one a setting. Where that is not allowed it says so.
pub fn undo_left() -> Vec<String> {
    undo_in(Path::new(NOTES), Path::new("/"))
}

fn undo_in(notes: &Path, root: &Path) -> Vec<String> {
    let entries = fs::read_dir(notes).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NOTE));
    ours.filter_map(|entry| undo_one(&entry.path(), root)).collect()
}

fn undo_one(note: &Path, root: &Path) -> Option<String> {
    let file = File::open(note).ok()?;
    if !matches!(lock(&file, note), Lock::Ours) {
        return None;
    }
    let text = fs::read_to_string(note).ok()?;
    let back: Vec<Content> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(file, value)| (PathBuf::from(file), value.to_owned()))
        .collect();
    if !back.iter().all(|(file, _)| may_be_put_back(file, root)) {
        return None;
    }
    let words: Vec<String> =
        back.iter().map(|(file, value)| format!("`{}` is {value}", file.display())).collect();
    match put_back(&back) {
        Ok(()) => {
            fs::remove_file(note).ok()?;
            // Nothing was changed yet when it was killed.
            (!words.is_empty())
                .then(|| format!("{} again: a run that was killed had left it changed", words.join(", ")))
        }
        Err((file, error)) => Some(format!(
            "a run that was killed has left `{}` changed, and it cannot be put back now ({error}); {}",
            file.display(),
            by_hand(&back)
        )),
    }
}

/// Whether it is a file that only we put into notes: one of the settings, and nothing else of the machine.
fn may_be_put_back(file: &Path, root: &Path) -> bool {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let Ok(below) = file.strip_prefix(&root) else { return false };
    let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let text = format!("/{}", below.display());
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    plain && BELOW.iter().any(|(directory, names)| text.starts_with(directory) && names.contains(&name))
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
