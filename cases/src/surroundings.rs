//! Conditions around a program: control groups with limits, and small file systems on loop devices. All of it is
//! undone on drop; what a killed run left behind is undone by the next one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iowhy_core::problem::Problem;

use crate::case::Condition;
use crate::skip::Skip;

/// Dirty pages that a file system with a limit may hold.
const DIRTY_BYTES: u64 = 8 << 20;

/// Prefix of the control groups' names; the process number follows.
const GROUP_PREFIX: &str = "iowhy-cases-";

/// Conditions in effect.
#[derive(Debug)]
pub(crate) enum Surroundings {
    Nothing,
    Group(Group),
    Mounts { limited: Mount, free: Mount },
}

impl Surroundings {
    /// Sets them up.
    ///
    /// # Errors
    /// The machine cannot, or something failed on the way; then what was set up is undone.
    pub(crate) fn make(condition: Condition, dir: &Path) -> Result<Self, Skip> {
        match condition {
            Condition::None | Condition::OtherProcess(..) => Ok(Surroundings::Nothing),
            Condition::DiskLimit(bytes) => {
                let disk = disk_of(dir).ok_or_else(|| unavailable("the folder is on no disk of its own"))?;
                let line = format!("{disk} {bytes}");
                Group::make(&Limits {
                    controller: "blkio",
                    old: &[
                        ("blkio.throttle.read_bps_device", line.clone()),
                        ("blkio.throttle.write_bps_device", line),
                    ],
                    new: &[("io.max", format!("{disk} rbps={bytes} wbps={bytes}"))],
                })
                .map(Surroundings::Group)
            }
            Condition::MemoryLimit(bytes) => Group::make(&Limits {
                controller: "memory",
                old: &[("memory.limit_in_bytes", bytes.to_string())],
                new: &[("memory.max", bytes.to_string())],
            })
            .map(Surroundings::Group),
            Condition::DirtyLimit(bytes) => {
                let free = Mount::make(dir, "free", bytes)?;
                let limited = Mount::make(dir, "limited", bytes)?;
                limited.limit_dirty(DIRTY_BYTES)?;
                Ok(Surroundings::Mounts { limited, free })
            }
        }
    }

    /// Placeholders of commands and their values.
    pub(crate) fn names(&self) -> Vec<(&'static str, String)> {
        match self {
            Surroundings::Nothing => Vec::new(),
            Surroundings::Group(group) => {
                vec![("{group}", group.folder.join("cgroup.procs").display().to_string())]
            }
            Surroundings::Mounts { limited, free } => vec![
                ("{limited}", limited.point.display().to_string()),
                ("{free}", free.point.display().to_string()),
            ],
        }
    }

    /// Empties the small file systems and writes all of their debt back.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(crate) fn before(&self) -> Result<(), Problem> {
        let Surroundings::Mounts { limited, free } = self else { return Ok(()) };
        for mount in [limited, free] {
            for entry in fs::read_dir(&mount.point).into_iter().flatten().flatten() {
                if entry.path().is_file() {
                    fs::remove_file(entry.path()).map_err(|e| {
                        Problem::failed(format!("cannot remove `{}`: {e}", entry.path().display()))
                    })?;
                }
            }
            let root = fs::File::open(&mount.point)
                .map_err(|e| Problem::failed(format!("cannot open `{}`: {e}", mount.point.display())))?;
            rustix::fs::syncfs(&root)
                .map_err(|e| Problem::failed(format!("cannot sync the loop device: {e}")))?;
        }
        Ok(())
    }
}

fn unavailable(reason: &str) -> Skip {
    Skip::Unavailable(reason.to_owned())
}

/// Limits of one controller in the words of both hierarchies: file and line.
struct Limits<'a> {
    controller: &'a str,
    old: &'a [(&'a str, String)],
    new: &'a [(&'a str, String)],
}

/// A control group made for a case.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
}

impl Group {
    fn make(limits: &Limits<'_>) -> Result<Group, Skip> {
        let (parent, lines) = controller_folder(limits).ok_or_else(|| {
            Skip::Unavailable(format!("no control groups with the controller {}", limits.controller))
        })?;
        remove_leftovers(&parent);
        let folder = parent.join(format!("{GROUP_PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder)
            .map_err(|e| Skip::Unavailable(format!("cannot make a control group: {e}")))?;
        let group = Group { folder };
        for (file, line) in lines {
            fs::write(group.folder.join(file), line)
                .map_err(|e| Skip::Unavailable(format!("cannot set the limit {file}: {e}")))?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.folder);
    }
}

/// Where a group with the controller can be made, and the lines that set its limits there.
fn controller_folder<'a>(limits: &'a Limits<'a>) -> Option<(PathBuf, &'a [(&'a str, String)])> {
    let old = Path::new("/sys/fs/cgroup").join(limits.controller);
    if old.join("cgroup.procs").exists() {
        return Some((old, limits.old));
    }
    let new = Path::new("/sys/fs/cgroup");
    let name = if limits.controller == "blkio" { "io" } else { limits.controller };
    let offered = fs::read_to_string(new.join("cgroup.controllers")).ok()?;
    if !offered.split_whitespace().any(|c| c == name) {
        return None;
    }
    // It is usually on already; where it cannot be turned on, the limit's file is missing, and that is said.
    let _ = fs::write(new.join("cgroup.subtree_control"), format!("+{name}"));
    Some((new.to_path_buf(), limits.new))
}

/// A group goes once its last process has gone, which may take a moment.
fn remove_group(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir(folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            _ => return,
        }
    }
    eprintln!("cannot remove the control group `{}`: it still has processes", folder.display());
}

/// Groups of runs that are no more.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(owner) = name.strip_prefix(GROUP_PREFIX)
            && !Path::new("/proc").join(owner).exists()
        {
            remove_group(&entry.path());
        }
    }
}

/// The whole disk (not the partition) that holds a folder, as `major:minor`.
fn disk_of(dir: &Path) -> Option<String> {
    let device = rustix::fs::stat(dir).ok()?.st_dev;
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let entry = Path::new("/sys/dev/block").join(&number).canonicalize().ok()?;
    if entry.join("partition").exists() {
        return Some(fs::read_to_string(entry.parent()?.join("dev")).ok()?.trim().to_owned());
    }
    Some(number)
}

/// A small ext4 on a loop device over a file.
#[derive(Debug)]
pub(crate) struct Mount {
    image: PathBuf,
    point: PathBuf,
    device: String,
}

impl Mount {
    fn make(dir: &Path, name: &str, bytes: u64) -> Result<Mount, Skip> {
        let (image, point) = (dir.join(format!("{name}.img")), dir.join(name));
        undo(&image, &point);
        fs::create_dir_all(&point)
            .map_err(|e| Problem::failed(format!("cannot make `{}`: {e}", point.display())))?;
        let made = fs::File::create(&image).and_then(|file| file.set_len(bytes));
        made.map_err(|e| Problem::failed(format!("cannot make `{}`: {e}", image.display())))?;
        let image_word = image.display().to_string();
        let mut mount = Mount { image, point, device: String::new() };
        // Without a journal the file system adds no waits of its own.
        tool(
            "mkfs.ext4",
            &["-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", &image_word],
        )?;
        mount.device =
            tool("losetup", &["--find", "--show", "--direct-io=on", &image_word])?.trim().to_owned();
        tool("mount", &[&mount.device, &mount.point.display().to_string()])?;
        Ok(mount)
    }

    /// Limits the dirty pages of the file system's device.
    fn limit_dirty(&self, bytes: u64) -> Result<(), Skip> {
        let device =
            rustix::fs::stat(&self.point).map_err(|e| unavailable(&format!("no loop device: {e}")))?.st_dev;
        let folder = PathBuf::from(format!(
            "/sys/class/bdi/{}:{}",
            rustix::fs::major(device),
            rustix::fs::minor(device)
        ));
        for (file, line) in [("strict_limit", "1".to_owned()), ("max_bytes", bytes.to_string())] {
            fs::write(folder.join(file), line).map_err(|e| {
                Skip::Unavailable(format!("the kernel limits no dirty pages by device ({file}): {e}"))
            })?;
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The loop device outlives its mount, and so would the limit.
        let number = self.device.trim_start_matches("/dev/loop");
        let folder = PathBuf::from(format!("/sys/class/bdi/7:{number}"));
        for (file, line) in [("max_ratio", "100"), ("strict_limit", "0")] {
            // Where there is no such file, nothing was limited.
            let _ = fs::write(folder.join(file), line);
        }
        undo(&self.image, &self.point);
    }
}

/// Unmounts, detaches and removes; silent where there is nothing to undo.
fn undo(image: &Path, point: &Path) {
    let image_word = image.display().to_string();
    if point.exists() {
        let _ = tool("umount", &[&point.display().to_string()]);
    }
    if let Ok(list) = tool("losetup", &["--noheadings", "--output", "NAME", "--associated", &image_word]) {
        for device in list.split_whitespace() {
            let _ = tool("losetup", &["--detach", device]);
        }
    }
    let _ = fs::remove_file(image);
    // Removes only an empty folder: while something is mounted there, its files are not the case's.
    let _ = fs::remove_dir(point);
}

/// Runs a tool and returns its stdout.
fn tool(program: &str, arguments: &[&str]) -> Result<String, Skip> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| Skip::Unavailable(format!("`{program}` does not run: {e}")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Skip::Unavailable(format!("`{program} {}` failed: {words}", arguments.join(" "))))
    }
}
