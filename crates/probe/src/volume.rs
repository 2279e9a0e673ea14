//! Which volume of several devices a path stands on, and where its file system puts things. Reads and never writes.
//!
//! Sources: sysfs (`md/`, `dm/`, `slaves/`, `fs/btrfs/`), the chunk tree of btrfs (ioctl, as root), the table of the device mapper (ioctl, with the rights for it),
//! the geometry of XFS (ioctl, without), the superblock of ext4 (from the device, with the rights to read it). What cannot be
//! known has a reason in words.

mod btrfs;
mod device_mapper;
mod file_system;
mod sysfs;

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::volume::{Geometry, Volume};
use iowhy_linux::mounts;

use crate::target::{Status, cannot_open};

/// What was found under a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The type of the file system that the path is in; `None` for a device.
    pub file_system: Option<String>,
    /// The device that it names or is on, by kernel name.
    pub device: Option<String>,
    /// The volume of several devices, when there is one.
    pub volume: Option<Volume>,
    /// Where the file system puts things.
    pub geometry: Option<Geometry>,
    /// Where the file system begins on the volume: behind a partition table.
    pub start_bytes: u64,
    /// How much of the file that the path names is on each device, where that is known; copies count.
    pub file_parts: Vec<FilePart>,
    /// What could not be known, and why.
    pub lacks: Vec<String>,
}

/// What a device has of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// The device, by kernel name.
    pub device: String,
    /// Bytes.
    pub bytes: u64,
}

/// Looks at a path: a file, a directory, or a block device (whose own file system is then looked at).
///
/// # Errors
/// A path that is not there or may not be looked at.
pub fn look(path: &Path) -> Result<Found, Problem> {
    let stat = rustix::fs::stat(path).map_err(|errno| cannot_open(path, errno))?;
    let table = mounts::read();
    let Some(status) = Status::from_path(path) else {
        // Between the two looks it went away, or it may be named and not opened.
        return Ok(Found {
            lacks: vec![format!("`{}` cannot be looked at", path.display())],
            ..Found::default()
        });
    };
    let mut found = Found::default();
    let sys = sysfs::Volumes::new();
    if status.char_device {
        found.lacks.push("a character device has no block devices under it".to_owned());
        return Ok(found);
    }
    if let Some(number) = status.block_device {
        sys.add_device(number, &mut found);
        file_system::add_of_device(path, &mut found);
        return Ok(found);
    }
    let mount = mounts::find(&table, status.mount_id, Some(path));
    found.file_system = mount.map(|mount| mount.file_system.clone());
    match (found.file_system.as_deref(), mount) {
        (Some("btrfs"), Some(mount)) => {
            sys.add_btrfs(&mount.source, &mut found);
            btrfs::add(path, &mut found);
        }
        _ => {
            let number = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
            if number.0 == 0 {
                found.lacks.push(format!(
                    "{} names no block device",
                    found.file_system.as_deref().unwrap_or("the file system")
                ));
                return Ok(found);
            }
            sys.add_device(number, &mut found);
            file_system::add_of_path(path, &mut found);
        }
    }
    Ok(found)
}
