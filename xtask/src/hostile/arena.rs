//! Where it happens: files that may not change, directories of attackers, disks that are full or read-only.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(super) const NOBODY: u32 = 65534;
/// Numbered files of root's, named as those of trees and of databases are.
const PRECIOUS: u64 = 64;

/// The arena. Its directory goes when it is dropped.
#[derive(Debug)]
pub(super) struct Arena {
    top: tempfile::TempDir,
    /// The binary.
    pub(super) iowhy: PathBuf,
    /// Recorded traces and records to damage.
    pub(super) samples: Vec<(PathBuf, Vec<u8>)>,
}

impl Arena {
    pub(super) fn new(root: &Path) -> io::Result<Arena> {
        let top = tempfile::tempdir()?;
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755))?;
        let arena = Arena { iowhy: top.path().join("iowhy"), samples: samples(root), top };
        fs::copy(crate::programs::binary(root), &arena.iowhy)?;
        for (name, mode, owner) in [
            ("victim", 0o700, 0),
            ("hostile", 0o755, NOBODY),
            ("sticky", 0o1777, 0),
            ("data", 0o755, 0),
            ("home", 0o700, 0),
            ("full", 0o755, 0),
            ("readonly", 0o755, 0),
        ] {
            let dir = arena.at(name);
            fs::create_dir(&dir)?;
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode))?;
            chown(&dir, Some(owner), Some(owner))?;
        }
        for number in 0..PRECIOUS {
            fs::write(arena.at("victim").join(number.to_string()), precious(number))?;
        }
        fs::write(arena.at("data/big"), vec![7u8; 4 << 20])?;
        for (dir, options) in [("full", "size=64k"), ("readonly", "ro,size=64k")] {
            let mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", options, "tmpfs"])
                .arg(arena.at(dir))
                .status()?;
            if !mounted.success() {
                return Err(io::Error::other(format!("cannot mount a tmpfs at {dir}")));
            }
        }
        // Full: the write ends with ENOSPC.
        let _ = fs::write(arena.at("full/filler"), vec![1u8; 1 << 20]);
        Ok(arena)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The binary in this arena, with nothing of the caller's home or terminal.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.iowhy);
        for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "TERM", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command.env("HOME", self.at("home")).env("TMPDIR", self.at("data")).current_dir(self.at("data"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What was destroyed or written where it must not be.
    pub(super) fn harm(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let names = fs::read_dir(self.at("victim")).map_or(0, |entries| entries.count() as u64);
        if names != PRECIOUS {
            wrong.push(format!("{names} files of root's instead of {PRECIOUS}"));
        }
        for number in 0..PRECIOUS {
            let now = fs::read_to_string(self.at("victim").join(number.to_string()));
            if now.as_deref().unwrap_or_default() != precious(number) {
                wrong.push(format!("root's file {number} is not what it was: {now:?}"));
            }
        }
        if fs::metadata(self.at("data/big")).map_or(0, |meta| meta.len()) != 4 << 20 {
            wrong.push("the program's file is not what it was".to_owned());
        }
        wrong
    }

    /// Names of iowhy's that are left in directories of root's, after a run that removes what killed ones left.
    pub(super) fn names_left(&self) -> Vec<String> {
        for dir in ["sticky", "data"] {
            let args = ["tree", "--files", "4", "--dirs", "2", "--sizes", "1", "--phases", "create,delete"];
            let _ = self.command().args(args).arg(self.at(dir)).stdout(Stdio::null()).status();
        }
        let mut left = Vec::new();
        for dir in ["sticky", "data", "home", "full"] {
            for entry in fs::read_dir(self.at(dir)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let planted =
                    entry.metadata().is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) != 0);
                if name.starts_with(".iowhy") && !planted {
                    left.push(format!("`{dir}/{name}` is left"));
                }
            }
        }
        left
    }

    /// Processes of this arena's binary that still run.
    pub(super) fn processes_left(&self) -> Vec<String> {
        let own = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.iowhy);
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = pids.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && own(name))
            .map(|pid| format!("process {pid} of iowhy is left"))
            .collect()
    }
}

fn precious(number: u64) -> String {
    format!("precious {number}")
}

/// Golden records and traces.
fn samples(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open =
        vec![root.join("crates/trace/tests/golden"), root.join("crates/iowhy/tests/command/records")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

/// Settings that `iowhy` may change for a while.
pub(super) fn machine_settings() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = ["dirty_bytes", "dirty_ratio", "dirty_background_ratio", "swappiness"]
        .iter()
        .map(|name| Path::new("/proc/sys/vm").join(name))
        .collect();
    files.push(PathBuf::from("/sys/kernel/mm/transparent_hugepage/enabled"));
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        for name in ["scheduler", "read_ahead_kb", "nr_requests", "nomerges", "iostats"] {
            files.push(device.path().join("queue").join(name));
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|file| (file.display().to_string(), fs::read_to_string(file).unwrap_or_default()))
        .collect()
}

/// Ends a process that outlives its scenario.
pub(super) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
