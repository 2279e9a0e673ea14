//! The part of sysfs that describes block devices. Its root is passed in, so that tests make one up.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A sysfs.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    /// That of this machine.
    pub fn new() -> Sysfs {
        Sysfs::at(PathBuf::from("/sys"))
    }

    /// One that lies elsewhere.
    pub fn at(root: PathBuf) -> Sysfs {
        Sysfs { root }
    }

    /// The directory of the device with this number.
    pub fn device_of_number(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        fs::canonicalize(self.root.join(format!("dev/block/{major}:{minor}"))).ok()
    }

    /// The directory of the device with this kernel name.
    pub fn device_of_name(&self, name: &str) -> Option<PathBuf> {
        fs::canonicalize(self.class_directory(name)).ok()
    }

    /// As [`Sysfs::device_of_name`], by a path that is not resolved: a few system calls less.
    pub fn class_directory(&self, name: &str) -> PathBuf {
        // The kernel writes a slash in a name (`cciss/c0d0`) as an exclamation mark there.
        self.root.join("class/block").join(name.replace('/', "!"))
    }

    /// Kernel name of a device by its number as text (`8:0`) or by the path of a node.
    pub fn name_of(&self, number: &str) -> Option<String> {
        file_name(&fs::canonicalize(self.root.join("dev/block").join(number)).ok()?)
    }

    /// The directory of the mounted btrfs that has a member of this kernel name.
    pub fn btrfs_of(&self, member: &str) -> Option<PathBuf> {
        let file_systems = fs::read_dir(self.root.join("fs/btrfs")).ok()?;
        file_systems.flatten().map(|entry| entry.path()).find(|at| at.join("devices").join(member).exists())
    }
}

impl Default for Sysfs {
    fn default() -> Sysfs {
        Sysfs::new()
    }
}

/// The directory of the whole disk that a device's directory belongs to; itself unless it is a partition.
pub fn whole_disk(directory: &Path) -> &Path {
    if directory.join("partition").exists() { directory.parent().unwrap_or(directory) } else { directory }
}

/// The devices that a stack (device mapper, md) is made of, by kernel name, sorted.
pub fn members(stack: &Path) -> Vec<String> {
    entries(&stack.join("slaves"))
}

/// Names in a directory, sorted; none where it cannot be read.
pub fn entries(directory: &Path) -> Vec<String> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The text of an attribute without the blanks around it; `None` for an empty one.
pub fn text(attribute: &Path) -> Option<String> {
    fs::read_to_string(attribute).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// An attribute that is a number.
pub fn number(attribute: &Path) -> Option<u64> {
    text(attribute)?.parse().ok()
}

/// The last component of a path, as text.
pub fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The name of the loop device that has this file behind it.
pub fn loop_device_backed_by(file: &Path) -> Option<String> {
    let wanted = fs::metadata(file).ok()?;
    entries(Path::new("/sys/block")).into_iter().find(|name| {
        let present =
            backing_file(&Path::new("/sys/block").join(name)).and_then(|file| fs::metadata(file).ok());
        present.is_some_and(|present| (present.dev(), present.ino()) == (wanted.dev(), wanted.ino()))
    })
}

/// The file behind a loop device, by the device's directory. A name may end in a blank.
pub fn backing_file(device: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(device.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// Whether the kernel refuses every write to this open block device (`blockdev --setro`): opening it for writing succeeds
/// nevertheless.
pub fn is_read_only(device: impl AsFd) -> bool {
    let Ok(status) = rustix::fs::fstat(device) else { return false };
    let (major, minor) = (rustix::fs::major(status.st_rdev), rustix::fs::minor(status.st_rdev));
    number(Path::new(&format!("/sys/dev/block/{major}:{minor}/ro"))) == Some(1)
}
