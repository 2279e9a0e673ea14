//! The file systems that every program expects, and small chores on files that fixtures are made of.

use std::ffi::CString;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags};

/// Devices are named by the kernel a moment after a driver is loaded.
const APPEARS_WITHIN: Duration = Duration::from_secs(20);

/// Mounts what a running system has.
///
/// # Errors
/// In words, with the mount that failed.
pub(crate) fn base() -> Result<(), String> {
    for (kind, at) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        mount(kind, kind, at, "")?;
    }
    // Whoever may not read kernel stacks should be refused for their rights, not for this setting's default.
    let _ = std::fs::write("/proc/sys/kernel/perf_event_paranoid", "2");
    Ok(())
}

/// Mounts a file system.
///
/// # Errors
/// In words.
pub(crate) fn mount(kind: &str, source: &str, at: &str, options: &str) -> Result<(), String> {
    if !Path::new(at).is_dir() {
        std::fs::create_dir_all(at).map_err(|e| format!("cannot make {at}: {e}"))?;
    }
    let options = CString::new(options).map_err(|_| "an option holds a zero byte".to_owned())?;
    rustix::mount::mount(source, at, kind, MountFlags::empty(), &*options)
        .map_err(|e| format!("cannot mount {kind} {source} at {at}: {e}"))
}

/// Takes a file system away again.
///
/// # Errors
/// In words.
pub(crate) fn unmount(at: &str) -> Result<(), String> {
    rustix::mount::unmount(at, UnmountFlags::empty()).map_err(|e| format!("cannot unmount {at}: {e}"))
}

/// Writes a setting.
///
/// # Errors
/// In words, with the path.
pub(crate) fn write(path: &str, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("cannot write `{text}` to {path}: {e}"))
}

/// Lets a control group of version 2 read at most this many bytes a second from a disk.
///
/// # Errors
/// In words, with the path.
pub(crate) fn limit_reads(group: &str, disk: &str, bytes_s: &str) -> Result<(), String> {
    let path = format!("/sys/block/{disk}/dev");
    let number = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
    write(&format!("{group}/io.max"), &format!("{} rbps={bytes_s}", number.trim()))
}

/// Waits for a path to appear.
///
/// # Errors
/// When it does not.
pub(crate) fn wait_for(path: &str) -> Result<(), String> {
    let begun = Instant::now();
    while !Path::new(path).exists() {
        if begun.elapsed() > APPEARS_WITHIN {
            return Err(format!("{path} did not appear"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The first entry of a folder whose file `inside` has this content.
pub(crate) fn entry_with(folder: &str, inside: &str, holds: &str) -> Option<String> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join(inside)).ok()?;
        text.contains(holds).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}
