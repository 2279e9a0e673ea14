//! The read-ahead of a block device's queue, changed for a while and put back: for every program on the machine, so only where the
//! user asks for it.
//!
//! Invariants: what was there is put back when the change is dropped, also after an interrupt or a panic; before anything is
//! changed a note says what is to be put back, so that the next start can undo what a killed run has left.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;

use crate::target::devices::whole_disk;

/// Where notes are left: it is gone after the next start of the machine, as the setting is.
const NOTES: &str = "/run";
/// Begin of a note's name; the device follows.
const NOTE: &str = "iowhy-read-ahead-";
/// Where the setting is below a disk's directory.
const SETTING: &str = "queue/read_ahead_kb";

/// A changed setting.
#[derive(Debug)]
pub struct ReadAhead {
    setting: PathBuf,
    was_kib: u64,
    note: PathBuf,
}

impl ReadAhead {
    /// Takes hold of the read-ahead of a device, by its kernel name, without changing it yet.
    ///
    /// # Errors
    /// A refusal where it is not there or may not be written, or where another run has it.
    pub fn hold(device: &str) -> Result<ReadAhead, Problem> {
        let disk = fs::canonicalize(Path::new("/sys/class/block").join(device))
            .map_err(|error| Problem::refused(format!("`{device}` is no block device here: {error}")))?;
        ReadAhead::hold_in(whole_disk(&disk), Path::new(NOTES))
    }

    fn hold_in(disk: &Path, notes: &Path) -> Result<ReadAhead, Problem> {
        let setting = disk.join(SETTING);
        let refused = |error: std::io::Error| {
            Problem::refused(format!("cannot change `{}`: {error}", setting.display()))
                .hint("it needs root and a /sys that may be written")
        };
        let was_kib = read(&setting)
            .ok_or_else(|| Problem::refused(format!("there is no read-ahead in `{}`", setting.display())))?;
        OpenOptions::new().write(true).open(&setting).map_err(refused)?;
        let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let note = notes.join(format!("{NOTE}{name}"));
        // Of two runs only one can make it.
        let mut written = File::options().write(true).create_new(true).open(&note).map_err(|error| {
            Problem::refused(format!("another run has changed it, as `{}` says: {error}", note.display()))
                .hint("wait for its end; if there is none, remove that file")
        })?;
        let held = ReadAhead { setting: setting.clone(), was_kib, note };
        writeln!(written, "{} {} {}", std::process::id(), was_kib, setting.display()).map_err(refused)?;
        Ok(held)
    }

    /// What was there, in KiB.
    pub fn was_kib(&self) -> u64 {
        self.was_kib
    }

    /// Changes it. A file that is opened from now on has the new one.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set(&self, kib: u64) -> Result<(), Problem> {
        fs::write(&self.setting, kib.to_string())
            .map_err(|error| Problem::failed(format!("cannot change `{}`: {error}", self.setting.display())))
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // The note stays where the setting could not be put back: the next start tries again.
        if self.set(self.was_kib).is_ok() {
            let _ = fs::remove_file(&self.note);
        }
    }
}

/// Puts back what runs that were killed have left; in words, one a setting.
pub fn undo_left() -> Vec<String> {
    undo_in(Path::new(NOTES), Path::new("/sys/"), &|process| {
        Path::new("/proc").join(process.to_string()).exists()
    })
}

fn undo_in(notes: &Path, below: &Path, runs: &dyn Fn(u32) -> bool) -> Vec<String> {
    let mut undone = Vec::new();
    for entry in fs::read_dir(notes).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(NOTE) {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let mut words = text.trim_end().splitn(3, ' ');
        let (process, was_kib) =
            (words.next().and_then(|w| w.parse().ok()), words.next().and_then(|w| w.parse().ok()));
        let (Some(process), Some(was_kib), Some(setting)) =
            (process, was_kib, words.next().map(PathBuf::from))
        else {
            continue;
        };
        let ours = setting.starts_with(below) && setting.ends_with(SETTING) && !text.contains("..");
        if runs(process) || !ours {
            continue;
        }
        let was_kib: u64 = was_kib;
        if fs::write(&setting, was_kib.to_string()).is_ok() && fs::remove_file(entry.path()).is_ok() {
            undone.push(format!(
                "`{}` is {was_kib} again: a run that was killed had left it changed",
                setting.display()
            ));
        }
    }
    undone
}

fn read(setting: &Path) -> Option<u64> {
    fs::read_to_string(setting).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("vdx");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::write(disk.join(SETTING), "128\n").unwrap();
        (dir, disk)
    }

    #[test]
    fn what_was_there_is_put_back_and_the_note_goes() {
        let (dir, disk) = disk();
        let held = ReadAhead::hold_in(&disk, dir.path()).unwrap();
        assert_eq!((held.was_kib(), names(dir.path())), (128, 2));
        let second = ReadAhead::hold_in(&disk, dir.path()).unwrap_err();
        assert!(second.message.contains("another run"), "{second}");
        held.set(0).unwrap();
        assert_eq!(read(&disk.join(SETTING)), Some(0));
        drop(held);
        assert_eq!((read(&disk.join(SETTING)), names(dir.path())), (Some(128), 1));
        let panicked = std::panic::catch_unwind(|| {
            let held = ReadAhead::hold_in(&disk, dir.path()).unwrap();
            held.set(7).unwrap();
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!((read(&disk.join(SETTING)), names(dir.path())), (Some(128), 1));
    }

    #[test]
    fn what_a_killed_run_has_left_is_undone_and_a_running_one_is_let_be() {
        let (dir, disk) = disk();
        let held = ReadAhead::hold_in(&disk, dir.path()).unwrap();
        held.set(0).unwrap();
        std::mem::forget(held);
        assert!(undo_in(dir.path(), dir.path(), &|_| true).is_empty());
        assert!(undo_in(dir.path(), Path::new("/elsewhere"), &|_| false).is_empty(), "only below /sys");
        assert_eq!(read(&disk.join(SETTING)), Some(0));
        assert_eq!(undo_in(dir.path(), dir.path(), &|_| false).len(), 1);
        assert_eq!((read(&disk.join(SETTING)), names(dir.path())), (Some(128), 1));
        fs::write(dir.path().join(format!("{NOTE}vdy")), "nonsense").unwrap();
        assert!(undo_in(dir.path(), dir.path(), &|_| false).is_empty());
    }

    #[test]
    fn a_disk_without_a_queue_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(ReadAhead::hold_in(dir.path(), dir.path()).is_err());
        assert!(ReadAhead::hold("no-such-device").is_err());
    }

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }
}
