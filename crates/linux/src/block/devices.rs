//! The block devices under a file, down to the whole disks whose counters are exact.
//!
//! Invariant: a leaf is listed once. A loop device is a leaf, for its counters are those of the file; the devices of its
//! backing file are listed apart. Devices that cannot be known are not listed, with the reason. No file system that
//! another program or machine serves is touched: that could hang.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::sysfs::{Sysfs, backing_file, entries, file_name, members, text, whole_disk};
use crate::mounts::{self, Mount, above, overlay_layers};
use crate::served;

/// Block devices under a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Kernel name of the device that the file is or its file system names: `nvme0n1p2`, `dm-0`, `vda`.
    pub display: Option<String>,
    /// Whole disks, sorted; empty when there are none or they are not known.
    pub leaves: Vec<String>,
    /// The stacked device (dm, md) that the file is or is on, where there is exactly one.
    pub stack: Option<String>,
    /// Devices between file and disks that dm-crypt encrypts, by kernel name, sorted.
    pub crypt: Vec<String>,
    /// Leaves under the backing files of loop devices in `leaves`, sorted. Their counters hold the same bytes again.
    pub backing: Vec<String>,
    /// Why there are no leaves.
    pub reason: Option<String>,
}

/// Nested loops and stacks deeper than this are given up.
const MAX_DEPTH: usize = 16;

/// Sysfs and the mounts that this process sees.
#[derive(Clone, Debug)]
pub struct BlockTree {
    sysfs: Sysfs,
    mounts: Vec<Mount>,
}

impl BlockTree {
    /// Reads the mounts.
    pub fn read() -> BlockTree {
        BlockTree::new(mounts::read())
    }

    /// With mounts that were read before.
    pub fn new(mounts: Vec<Mount>) -> BlockTree {
        BlockTree { sysfs: Sysfs::new(), mounts }
    }

    /// The mounts.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The devices under a block device.
    pub fn under_device(&self, number: (u32, u32)) -> Devices {
        self.of_number(number, 0)
    }

    /// The devices under a file: by the device number that stat gives for it, or where that is anonymous by its mount.
    /// `path` is the file without links, which an overlay needs.
    pub fn under_file(&self, number: (u32, u32), mount: Option<&Mount>, path: Option<&Path>) -> Devices {
        self.of_file(number, mount, path, 0)
    }

    fn of_file(
        &self,
        number: (u32, u32),
        mount: Option<&Mount>,
        path: Option<&Path>,
        depth: usize,
    ) -> Devices {
        if number.0 != 0 {
            return self.of_number(number, depth);
        }
        // An anonymous device number: only the file system itself knows its devices.
        let Some(mount) = mount else { return Devices::none("its mount is not visible from this process") };
        let (kind, source) = (mount.file_system.as_str(), mount.source.as_str());
        if let Some(server) = served::by_type(kind) {
            return Devices::none(format!("{kind} from `{source}`: {server} serves the bytes"));
        }
        match kind {
            "btrfs" => self.of_btrfs(source, depth),
            "overlay" => self.of_overlay(mount, path, depth).unwrap_or_else(|| {
                Devices::none("overlay: its layers are not visible from this process (a container?)")
            }),
            "bcachefs" => self.of_nodes(source.split(':'), depth),
            "tmpfs" | "ramfs" | "hugetlbfs" => Devices::none("its bytes live in memory"),
            "zfs" => Devices::none("zfs hides its devices behind the pool; see `zpool status`"),
            other => self
                .of_nodes(std::iter::once(source), depth)
                .or_reason(|| format!("{other} on `{source}` names no block device")),
        }
    }

    fn of_number(&self, number: (u32, u32), depth: usize) -> Devices {
        match self.sysfs.device_of_number(number) {
            Some(directory) => self.of_directory(&directory, depth),
            None => Devices::none(format!("block device {}:{} is not visible in /sys", number.0, number.1)),
        }
    }

    fn of_name(&self, name: &str, depth: usize) -> Devices {
        match self.sysfs.device_of_name(name) {
            Some(directory) => self.of_directory(&directory, depth),
            None => Devices::none(format!("block device {name} is not visible in /sys")),
        }
    }

    /// A partition's whole disk, a stack's members (device mapper and md list them as slaves), a loop device's file.
    fn of_directory(&self, directory: &Path, depth: usize) -> Devices {
        let whole = whole_disk(directory);
        let mut all = Devices { display: file_name(directory), ..Devices::default() };
        let members = members(whole);
        if depth < MAX_DEPTH && !members.is_empty() {
            members.iter().for_each(|member| all.join(self.of_name(member, depth + 1)));
            all.stack = file_name(whole);
            all.crypt.extend(file_name(whole).filter(|_| is_crypt(whole)));
            all.crypt.sort();
            return all;
        }
        all.leaves.extend(file_name(whole));
        if let Some(file) = backing_file(whole) {
            let below = self.of_path(&file, depth + 1);
            all.backing.extend(below.leaves.into_iter().chain(below.backing));
        }
        all
    }

    /// The devices under a file, or a device node, that is named by its path in our own name space.
    fn of_path(&self, path: &Path, depth: usize) -> Devices {
        if depth > MAX_DEPTH || self.is_served(path) {
            return Devices::none("too many loop devices, or a server has the file");
        }
        let Ok(status) = fs::metadata(path) else { return Devices::none("the file is not visible") };
        if status.file_type().is_block_device() {
            return self.of_number(split(status.rdev()), depth);
        }
        let real = fs::canonicalize(path).ok();
        let mount = real.as_deref().and_then(|real| above(&self.mounts, real));
        self.of_file(split(status.dev()), mount, real.as_deref(), depth)
    }

    fn is_served(&self, path: &Path) -> bool {
        above(&self.mounts, path).is_none_or(|mount| served::by_type(&mount.file_system).is_some())
    }

    /// Devices named by nodes such as `/dev/sda1`.
    fn of_nodes<'a>(&self, nodes: impl Iterator<Item = &'a str>, depth: usize) -> Devices {
        let mut all = Devices::default();
        for node in nodes.filter(|node| node.starts_with('/')) {
            if let Some(status) =
                fs::metadata(node).ok().filter(|status| status.file_type().is_block_device())
            {
                all.join(self.of_number(split(status.rdev()), depth));
            }
        }
        all
    }

    /// Every member of the btrfs that `source`, the device in the mount table, is a member of.
    fn of_btrfs(&self, source: &str, depth: usize) -> Devices {
        let node = fs::canonicalize(source).unwrap_or_else(|_| source.into());
        let first = file_name(&node).unwrap_or_default();
        let Some(home) = self.sysfs.btrfs_of(&first) else {
            return self
                .of_nodes(std::iter::once(source), depth)
                .or_reason(|| format!("btrfs: the member `{source}` is not visible in /sys/fs/btrfs"));
        };
        let mut all = Devices { display: Some(first), ..Devices::default() };
        entries(&home.join("devices")).iter().for_each(|member| all.join(self.of_name(member, depth)));
        all
    }

    /// The devices of the first layer, top down, that has the file: there it is read, and a new one is made in the upper
    /// layer. Where the layers are not visible to us (they are named as seen by who mounted them) nothing is known.
    fn of_overlay(&self, mount: &Mount, path: Option<&Path>, depth: usize) -> Option<Devices> {
        let inside = path?.strip_prefix(&mount.point).ok()?;
        let below = mount.root.strip_prefix("/").ok()?.join(inside);
        let layers = overlay_layers(&mount.super_options);
        let at = layers
            .into_iter()
            .map(|layer| Path::new(layer).join(&below))
            .find(|at| !self.is_served(at) && at.symlink_metadata().is_ok())?;
        Some(self.of_path(&at, depth + 1))
    }
}

impl Devices {
    /// None, and why.
    pub fn none(reason: impl Into<String>) -> Devices {
        Devices { reason: Some(reason.into()), ..Devices::default() }
    }

    /// Every device of the path by name and `major:minor`; `root` is where `sys` is.
    pub fn numbered(&self, root: &Path) -> Vec<(String, String)> {
        let mut names: Vec<&String> = self.display.iter().chain(&self.leaves).chain(&self.backing).collect();
        names.sort();
        names.dedup();
        let number =
            |name: &String| std::fs::read_to_string(root.join(format!("sys/class/block/{name}/dev"))).ok();
        names.into_iter().filter_map(|name| Some((name.clone(), number(name)?.trim().to_owned()))).collect()
    }

    /// Adds the devices of another file; the name and the reason of the first stay.
    pub fn join(&mut self, other: Devices) {
        self.display = self.display.take().or(other.display);
        self.leaves.extend(other.leaves);
        self.backing.extend(other.backing);
        self.crypt.extend(other.crypt);
        for list in [&mut self.leaves, &mut self.backing, &mut self.crypt] {
            list.sort();
            list.dedup();
        }
    }

    fn or_reason(mut self, reason: impl Fn() -> String) -> Devices {
        if self.leaves.is_empty() {
            self.reason.get_or_insert_with(reason);
        }
        self
    }
}

/// Whether it has the UUID that cryptsetup gives to dm-crypt devices, and not to those of dm-verity and dm-integrity.
fn is_crypt(device: &Path) -> bool {
    const OTHERS: [&str; 3] = ["VERITY-", "INTEGRITY-", "SUBDEV-"];
    let uuid = text(&device.join("dm/uuid")).unwrap_or_default();
    uuid.strip_prefix("CRYPT-").is_some_and(|rest| !OTHERS.iter().any(|other| rest.starts_with(other)))
}

fn split(number: u64) -> (u32, u32) {
    (rustix::fs::major(number), rustix::fs::minor(number))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::mounts::parse;

    /// A made-up sysfs: disks sda (8:0, partition sda1 8:1) and sdb (8:16), md0 (9:0) over sda1 and sdb, dm-0
    /// (253:0) over md0, a btrfs over sda1 and dm-0.
    fn made_up(mounts: &str) -> (tempfile::TempDir, BlockTree) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
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
        let tree = BlockTree { sysfs: Sysfs::at(root.to_owned()), mounts: parse(mounts) };
        (folder, tree)
    }

    fn devices(display: &str, leaves: &[&str]) -> Devices {
        let leaves = leaves.iter().map(|&leaf| leaf.to_owned()).collect();
        Devices { display: Some(display.into()), leaves, ..Devices::default() }
    }

    #[test]
    fn partitions_and_stacks_end_in_whole_disks_each_once() {
        let (_folder, tree) = made_up("");
        assert_eq!(tree.under_device((8, 0)), devices("sda", &["sda"]));
        assert_eq!(tree.under_device((8, 1)), devices("sda1", &["sda"]));
        for (major, name) in [(9, "md0"), (253, "dm-0")] {
            let stacked = Devices { stack: Some(name.into()), ..devices(name, &["sda", "sdb"]) };
            assert_eq!(tree.under_device((major, 0)), stacked);
            assert_eq!(tree.under_file((major, 0), None, None), stacked);
        }
    }

    #[test]
    fn encrypted_devices_are_found_at_any_height_and_other_mapped_ones_are_not() {
        let (folder, tree) = made_up("");
        let uuid = |text: &str| {
            fs::create_dir_all(folder.path().join("devices/dm-0/dm")).unwrap();
            fs::write(folder.path().join("devices/dm-0/dm/uuid"), format!("{text}\n")).unwrap();
        };
        uuid("CRYPT-LUKS2-0123-home");
        assert_eq!(tree.under_device((253, 0)).crypt, ["dm-0"]);
        assert!(tree.under_device((9, 0)).crypt.is_empty());
        // A member of a btrfs.
        let table = parse("1 0 0:40 / /b rw - btrfs /no-such/dm-0 rw\n");
        assert_eq!(tree.under_file((0, 40), Some(&table[0]), None).crypt, ["dm-0"]);
        for other in ["CRYPT-VERITY-0123-root", "CRYPT-INTEGRITY-x", "LVM-0123"] {
            uuid(other);
            assert!(tree.under_device((253, 0)).crypt.is_empty(), "{other}");
        }
    }

    #[test]
    fn anonymous_numbers_are_resolved_by_the_mount_or_have_a_reason() {
        let (_folder, tree) = made_up("");
        let table = parse("1 0 0:40 / /b rw - btrfs /no-such/dm-0 rw\n");
        assert_eq!(tree.under_file((0, 40), Some(&table[0]), None), devices("dm-0", &["sda", "sdb"]));
        for (file_system, word) in [
            ("nfs4", "another machine"),
            ("fuse.sshfs", "user space"),
            ("9p", "host"),
            ("zfs", "pool"),
            ("tmpfs", "memory"),
            ("overlay", "layers"),
            ("btrfs", "not visible"),
            ("odd", "names no block device"),
        ] {
            let mount = Mount { file_system: file_system.into(), source: "x:/y".into(), ..Mount::default() };
            let found = tree.under_file((0, 41), Some(&mount), Some(Path::new("/o/f")));
            assert!(found.leaves.is_empty() && found.reason.as_ref().unwrap().contains(word), "{found:?}");
        }
        for unseen in [tree.under_device((7, 7)), tree.under_file((0, 40), None, None)] {
            assert!(unseen.leaves.is_empty() && unseen.reason.is_some(), "{unseen:?}");
        }
    }

    #[test]
    fn a_loop_device_is_a_leaf_and_its_file_lies_on_another() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (major, minor) = split(file.as_file().metadata().unwrap().dev());
        let (folder, tree) = made_up("1 0 8:0 / / rw - ext4 /dev/sda rw\n");
        let home = folder.path().join("devices/loop0/loop");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("backing_file"), format!("{}\n", file.path().display())).unwrap();
        symlink(folder.path().join("devices/loop0"), folder.path().join("dev/block/7:0")).unwrap();
        if major == 0 {
            eprintln!("skipped: the temporary directory is on no block device");
            return;
        }
        let number = format!("dev/block/{major}:{minor}");
        if !folder.path().join(&number).exists() {
            symlink(folder.path().join("devices/sdb"), folder.path().join(&number)).unwrap();
        }
        let found = tree.under_device((7, 0));
        assert_eq!(
            (found.leaves.as_slice(), found.backing.len()),
            (&["loop0".to_owned()][..], 1),
            "{found:?}"
        );
    }

    #[test]
    fn a_layer_of_an_overlay_that_has_the_file_tells_the_device() {
        let (folder, mut tree) = made_up("");
        let layer = tempfile::tempdir().unwrap();
        fs::write(layer.path().join("f"), "x").unwrap();
        let (major, minor) = split(layer.path().metadata().unwrap().dev());
        if major == 0 {
            eprintln!("skipped: the temporary directory is on no block device");
            return;
        }
        tree.mounts = parse("1 0 8:0 / / rw - ext4 /dev/sda rw\n");
        let number = folder.path().join(format!("dev/block/{major}:{minor}"));
        if !number.exists() {
            symlink(folder.path().join("devices/sdb"), number).unwrap();
        }
        let options =
            format!("3 0 0:42 / /o rw - overlay o rw,lowerdir={},upperdir=/none", layer.path().display());
        let overlay = &parse(&options)[0];
        let found = |path: &str| tree.under_file((0, 42), Some(overlay), Some(Path::new(path)));
        assert_eq!(found("/o/f").leaves.len(), 1);
        assert!(found("/o/absent").reason.is_some());
    }
}
