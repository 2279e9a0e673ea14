//! Free space for scratch files.

use std::path::Path;

use iowhy_core::replay::Room;

/// Free space beside this file; `None` where the file system sets no bound or cannot be asked.
pub fn room(beside: &str) -> Option<Room> {
    let dir = Path::new(beside).parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file_system = rustix::fs::stat(dir).ok()?.st_dev;
    let space = rustix::fs::statvfs(dir).ok()?;
    // ramfs and unlimited tmpfs report nothing at all.
    (space.f_blocks > 0).then(|| Room {
        file_system,
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        replays: 1,
    })
}

/// `st_dev` of a directory.
pub fn file_system(directory: &str) -> Option<u64> {
    Some(rustix::fs::stat(directory).ok()?.st_dev)
}
