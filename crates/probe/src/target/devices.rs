//! The block devices under a target: what its file system stands on, down to the leaves whose counters are exact.
//!
//! Invariant: a leaf is listed once, and none carries another in the list, so that sums count nothing twice. A loop device is a leaf (its own counters are those of the target); what its backing file stands on is
//! listed apart. Where the devices cannot be known the reason is given, never a guess.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iowhy_core::kernel_text::mountinfo::{Mount, overlay_layers};
use iowhy_core::problem::Problem;

use super::{Status, Target};
use crate::environment::mounts;

/// The block devices under a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Kernel name of the device that the target or its file system names: `nvme0n1p2`, `dm-0`, `vda`.
    pub display: Option<String>,
    /// Leaf whole disks, sorted; empty when there are none or they are not known.
    pub leaves: Vec<String>,
    /// The whole stacked device (dm, md) that the target names or stands on, where there is exactly one.
    pub stack: Option<String>,
    /// Leaves under the backing files of loop devices in `leaves`. Their counters hold the same bytes again.
    pub backing: Vec<String>,
    /// Why there are no leaves, in words.
    pub reason: Option<String>,
}

/// Nested loops and stacks deeper than this are given up.
const MAX_DEPTH: usize = 16;

/// Finds the devices under a target.
pub fn under(target: &Target) -> Devices {
    let found = all_under(target);
    match found.leaves.iter().find(|leaf| found.backing.contains(leaf)) {
        None => found,
        Some(twice) => Devices {
            reason: Some(format!(
                "{twice} carries bytes of its own and those of a loop device, which it counts again"
            )),
            leaves: Vec::new(),
            ..found
        },
    }
}

fn all_under(target: &Target) -> Devices {
    if let Some(stripe) = target.stripe() {
        let mut all = Devices::default();
        for member in stripe.members() {
            let mut found = all_under(member);
            all.reason = all.reason.take().or(found.reason.take());
            all.join(found);
        }
        return all;
    }
    let Some(status) = target.status() else { return none("a false target has no device") };
    if let Some((major, minor)) = status.block_device {
        return Sysfs::real().of_number(major, minor, 0);
    }
    if status.char_device {
        return none("a character device has no block device under it");
    }
    let table = mounts::read();
    of_file_system(
        &Sysfs::real(),
        status,
        mounts::of(&table, status.mount_id, target.path()),
        target.path(),
        0,
    )
}

/// The devices under a path and the mount that it lies on (`None` for a device), without opening it.
///
/// # Errors
/// A refusal where there is nothing of that name, or it may not be looked at.
pub fn under_path(path: &Path) -> Result<(Devices, Option<Mount>), Problem> {
    rustix::fs::stat(path).map_err(|errno| super::cannot_open(path, errno))?;
    let status = Status::from_path(path).ok_or_else(|| super::cannot_open(path, rustix::io::Errno::NOENT))?;
    if let Some((major, minor)) = status.block_device {
        return Ok((Sysfs::real().of_number(major, minor, 0), None));
    }
    if status.char_device {
        return Ok((none("a character device has no block device under it"), None));
    }
    let table = mounts::read();
    let mount = mounts::of(&table, status.mount_id, Some(path));
    let devices = of_file_system(&Sysfs::real(), &status, mount, Some(path), 0);
    Ok((devices, mount.cloned()))
}

/// The name of the loop device that has this file behind it.
pub(super) fn loop_device_backed_by(file: &Path) -> Option<String> {
    let wanted = fs::metadata(file).ok()?;
    fs::read_dir("/sys/block").ok()?.flatten().find_map(|entry| {
        let backing = text(&entry.path().join("loop/backing_file"))?;
        let present = fs::metadata(backing).ok()?;
        let same = (present.dev(), present.ino()) == (wanted.dev(), wanted.ino());
        same.then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

/// Whether the kernel refuses every write to this open block device (`blockdev --setro`): opening it for writing succeeds
/// nevertheless.
pub(super) fn is_read_only(device: BorrowedFd<'_>) -> bool {
    let Ok(status) = rustix::fs::fstat(device) else { return false };
    let (major, minor) = (rustix::fs::major(status.st_rdev), rustix::fs::minor(status.st_rdev));
    fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro")).is_ok_and(|flag| flag.trim() == "1")
}

fn none(reason: impl Into<String>) -> Devices {
    Devices { reason: Some(reason.into()), ..Devices::default() }
}

/// The devices of the file system that holds `path` (for a scratch file its directory).
fn of_file_system(
    sysfs: &Sysfs,
    status: &Status,
    mount: Option<&Mount>,
    path: Option<&Path>,
    depth: usize,
) -> Devices {
    if status.memory_backed {
        return none("its bytes live in memory");
    }
    let (major, minor) = status.device;
    if major != 0 {
        return sysfs.of_number(major, minor, depth);
    }
    // An anonymous device number: only the file system itself knows its devices.
    let Some(mount) = mount else { return none("its mount is not visible from this process") };
    match mount.file_system.as_str() {
        "btrfs" => sysfs.of_btrfs(&mount.source, depth),
        "overlay" => of_overlay(sysfs, mount, path, depth),
        "bcachefs" => sysfs.of_nodes(mount.source.split(':'), depth),
        "zfs" => none("zfs hides its devices behind the pool; see `zpool status`"),
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "afs" => {
            none(format!("{}: the bytes come over the network from {}", mount.file_system, mount.source))
        }
        "9p" | "virtiofs" => none(format!("{}: the host machine serves the bytes", mount.file_system)),
        fuse if fuse.starts_with("fuse") => none(format!("{fuse}: a user-space program serves the bytes")),
        other => sysfs
            .of_nodes(std::iter::once(mount.source.as_str()), depth)
            .or_reason(format!("{other} on `{}` names no block device", mount.source)),
    }
}

/// The devices of the first layer, top down, that has the path: there the bytes are read, and a new file is made in
/// the upper one.
fn of_overlay(sysfs: &Sysfs, mount: &Mount, path: Option<&Path>, depth: usize) -> Devices {
    let hidden = none("overlay: its layers are not visible from this process (a container?)");
    if depth >= MAX_DEPTH {
        return hidden;
    }
    let below_mount = path.and_then(|path| {
        let path = fs::canonicalize(path).ok()?;
        let inside = path.strip_prefix(&mount.point).ok()?;
        Some(mount.root.strip_prefix("/").ok()?.join(inside))
    });
    let Some(below_mount) = below_mount else { return hidden };
    let found = overlay_layers(&mount.super_options).into_iter().find_map(|layer| {
        let inside = Path::new(layer).join(&below_mount);
        Some((Status::from_path(&inside)?, inside))
    });
    let Some((status, inside)) = found else { return hidden };
    let table = mounts::read();
    let mount = mounts::of(&table, status.mount_id, Some(&inside));
    of_file_system(sysfs, &status, mount, Some(&inside), depth + 1)
}

impl Devices {
    fn join(&mut self, other: Devices) {
        self.display = self.display.take().or(other.display);
        self.leaves.extend(other.leaves);
        self.backing.extend(other.backing);
        for list in [&mut self.leaves, &mut self.backing] {
            list.sort();
            list.dedup();
        }
    }

    fn or_reason(mut self, reason: impl Into<String>) -> Devices {
        if self.leaves.is_empty() && self.reason.is_none() {
            self.reason = Some(reason.into());
        }
        self
    }
}

/// The part of sysfs that describes block devices, with its root passed in so that it can be a made-up one.
struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    fn real() -> Self {
        Sysfs { root: PathBuf::from("/sys") }
    }

    /// The devices under a device number.
    fn of_number(&self, major: u32, minor: u32, depth: usize) -> Devices {
        match fs::canonicalize(self.root.join(format!("dev/block/{major}:{minor}"))) {
            Ok(dir) => self.of_dir(&dir, depth),
            Err(_) => none(format!("block device {major}:{minor} is not visible in /sys")),
        }
    }

    fn of_name(&self, name: &str, depth: usize) -> Devices {
        match fs::canonicalize(self.root.join("class/block").join(name)) {
            Ok(dir) => self.of_dir(&dir, depth),
            Err(_) => none(format!("block device {name} is not visible in /sys")),
        }
    }

    /// The devices under the device with this sysfs directory: a partition's whole disk, a stack's members.
    fn of_dir(&self, dir: &Path, depth: usize) -> Devices {
        let Some(name) = file_name(dir) else { return none("a device without a name") };
        let whole = whole_disk(dir);
        let mut all = Devices { display: Some(name), ..Devices::default() };
        let mut members: Vec<String> = fs::read_dir(whole.join("slaves"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|e| file_name(&e.path()))
            .collect();
        members.sort();
        if depth < MAX_DEPTH && !members.is_empty() {
            all.stack = file_name(whole);
            members.iter().for_each(|member| all.join(self.of_name(member, depth + 1)));
            return all;
        }
        all.leaves.extend(file_name(whole));
        if let Some(file) = text(&whole.join("loop/backing_file")).filter(|_| depth < MAX_DEPTH) {
            let mut below = self.of_backing_file(Path::new(&file), depth + 1);
            all.backing.append(&mut below.leaves);
            all.backing.append(&mut below.backing);
        }
        all
    }

    fn of_backing_file(&self, file: &Path, depth: usize) -> Devices {
        let Some(status) = Status::from_path(file) else { return none("the backing file is not visible") };
        if let Some((major, minor)) = status.block_device {
            return self.of_number(major, minor, depth);
        }
        let table = mounts::read();
        of_file_system(self, &status, mounts::of(&table, status.mount_id, Some(file)), Some(file), depth)
    }

    /// Devices named by nodes such as `/dev/sda1`.
    fn of_nodes<'a>(&self, nodes: impl Iterator<Item = &'a str>, depth: usize) -> Devices {
        let mut all = Devices::default();
        for node in nodes {
            if let Some((major, minor)) = Status::from_path(Path::new(node)).and_then(|s| s.block_device) {
                all.join(self.of_number(major, minor, depth));
            }
        }
        all
    }

    /// Every member of the btrfs file system that `source`, the device in the mount table, is a member of.
    fn of_btrfs(&self, source: &str, depth: usize) -> Devices {
        let first = fs::canonicalize(source).ok().and_then(|node| file_name(&node));
        let first = first.or_else(|| file_name(Path::new(source)));
        let Some((display, dir)) = first.and_then(|name| self.btrfs_dir(&name).map(|dir| (name, dir))) else {
            return self
                .of_nodes(std::iter::once(source), depth)
                .or_reason(format!("btrfs: the member `{source}` is not visible in /sys/fs/btrfs"));
        };
        let mut all = Devices { display: Some(display), ..Devices::default() };
        for member in fs::read_dir(dir.join("devices")).into_iter().flatten().flatten() {
            all.join(self.of_name(&member.file_name().to_string_lossy(), depth));
        }
        all
    }

    /// The directory of the mounted btrfs that has a member of this kernel name.
    fn btrfs_dir(&self, member: &str) -> Option<PathBuf> {
        let file_systems = fs::read_dir(self.root.join("fs/btrfs")).ok()?;
        file_systems.flatten().map(|e| e.path()).find(|dir| dir.join("devices").join(member).exists())
    }
}

/// The read-ahead window that btrfs keeps for the file system a device is a member of, in KiB.
pub(crate) fn btrfs_read_ahead_kib(member: &str) -> Option<u64> {
    text(&Sysfs::real().btrfs_dir(member)?.join("bdi/read_ahead_kb"))?.parse().ok()
}

/// The directory of the whole disk that a device's directory belongs to; itself unless it is a partition.
pub(crate) fn whole_disk(dir: &Path) -> &Path {
    if dir.join("partition").exists() { dir.parent().unwrap_or(dir) } else { dir }
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A made-up sysfs: disks sda (8:0, partition sda1 8:1) and sdb (8:16), md0 (9:0) over sda1 and sdb, dm-0
    /// (253:0) over md0, and a btrfs over sda1 and dm-0.
    fn made_up() -> (tempfile::TempDir, Sysfs) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for made in ["dev/block", "class/block", "fs/btrfs/1234/devices"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        let device = |at: &str, number: &str, members: &[&str]| {
            let home = root.join("devices").join(at);
            fs::create_dir_all(home.join("slaves")).unwrap();
            members.iter().for_each(|m| fs::create_dir(home.join("slaves").join(m)).unwrap());
            symlink(&home, root.join("dev/block").join(number)).unwrap();
            symlink(&home, root.join("class/block").join(home.file_name().unwrap())).unwrap();
        };
        device("sda", "8:0", &[]);
        device("sda/sda1", "8:1", &[]);
        fs::write(root.join("devices/sda/sda1/partition"), "1\n").unwrap();
        device("sdb", "8:16", &[]);
        device("md0", "9:0", &["sda1", "sdb"]);
        device("dm-0", "253:0", &["md0"]);
        for member in ["sda1", "dm-0"] {
            fs::create_dir(root.join("fs/btrfs/1234/devices").join(member)).unwrap();
        }
        let sysfs = Sysfs { root: root.to_owned() };
        (dir, sysfs)
    }

    fn devices(display: &str, leaves: &[&str]) -> Devices {
        Devices {
            display: Some(display.into()),
            leaves: leaves.iter().map(|&l| l.to_owned()).collect(),
            ..Devices::default()
        }
    }

    #[test]
    fn partitions_and_stacks_end_in_whole_disks_each_once() {
        let (_dir, sysfs) = made_up();
        assert_eq!(sysfs.of_number(8, 0, 0), devices("sda", &["sda"]));
        assert_eq!(sysfs.of_number(8, 1, 0), devices("sda1", &["sda"]));
        for (major, name) in [(9, "md0"), (253, "dm-0")] {
            let stacked = Devices { stack: Some(name.into()), ..devices(name, &["sda", "sdb"]) };
            assert_eq!(sysfs.of_number(major, 0, 0), stacked);
        }
    }

    #[test]
    fn a_file_system_over_several_devices_lists_the_leaves_of_all() {
        let (_dir, sysfs) = made_up();
        assert_eq!(sysfs.of_btrfs("/dev/no-such-node/dm-0", 0), devices("dm-0", &["sda", "sdb"]));
    }

    #[test]
    fn what_cannot_be_seen_has_a_reason_and_no_leaves() {
        let (_dir, sysfs) = made_up();
        for unseen in [sysfs.of_number(7, 7, 0), sysfs.of_btrfs("/dev/no-such-node/sdz", 0)] {
            assert!(unseen.leaves.is_empty() && unseen.reason.is_some(), "{unseen:?}");
        }
        let status = Status { device: (0, 40), ..Status::default() };
        for (file_system, word) in
            [("nfs4", "network"), ("fuse.sshfs", "user-space"), ("9p", "host"), ("zfs", "pool")]
        {
            let mount = Mount { file_system: file_system.into(), source: "x:/y".into(), ..Mount::default() };
            let found = of_file_system(&sysfs, &status, Some(&mount), None, 0);
            assert!(found.leaves.is_empty() && found.reason.as_ref().unwrap().contains(word), "{found:?}");
        }
        let memory = Status { memory_backed: true, ..status };
        assert!(of_file_system(&sysfs, &memory, None, None, 0).reason.unwrap().contains("memory"));
    }
}
