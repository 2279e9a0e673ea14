//! The block devices that a file's bytes are on, down to the leaves whose counters are exact.
//!
//! Invariant: a leaf is listed once. A loop device is a leaf, for its counters are those of the file; what its backing
//! file is on is listed apart. Devices that cannot be known are not listed. Nothing here touches a file system that
//! another program or machine serves: that could hang.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts::{Mount, above, overlay_layers};

/// Block devices under a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Under {
    /// Kernel name of the device that the file's file system names: `nvme0n1p2`, `dm-0`, `vda`.
    pub display: Option<String>,
    /// Leaf whole disks, by the names of [`crate::block::uses::uses`], sorted; empty when there are none or they are not known.
    pub leaves: Vec<String>,
    /// Leaves under the backing files of loop devices, sorted. Their counters hold the same bytes again.
    pub backing: Vec<String>,
}

/// Stacks deeper than this are given up.
const MAX_DEPTH: usize = 16;

/// The part of sysfs that describes block devices, and the mounts that this process sees.
#[derive(Clone, Debug)]
pub struct BlockTree {
    sys: PathBuf,
    mounts: Vec<Mount>,
}

impl BlockTree {
    /// That of this machine.
    pub fn new(mounts: Vec<Mount>) -> BlockTree {
        BlockTree { sys: PathBuf::from("/sys"), mounts }
    }

    /// The devices under a file: by the device number that stat gives for it, or where that is anonymous by its mount
    /// (`path` is where it lies below the mount point; an overlay needs it).
    pub fn of_file(&self, number: (u32, u32), mount: Option<&Mount>, path: Option<&Path>) -> Under {
        self.of_file_below(number, mount, path, 0)
    }

    /// The devices under a block device.
    pub fn of_number(&self, number: (u32, u32)) -> Under {
        self.of_number_below(number, 0)
    }

    fn of_file_below(
        &self,
        number: (u32, u32),
        mount: Option<&Mount>,
        path: Option<&Path>,
        depth: usize,
    ) -> Under {
        if depth > MAX_DEPTH {
            return Under::default();
        }
        if number.0 != 0 {
            return self.of_number_below(number, depth);
        }
        let Some(mount) = mount else { return Under::default() };
        match mount.file_system.as_str() {
            "btrfs" => self.of_btrfs(&mount.source, depth),
            "bcachefs" => self.of_nodes(mount.source.split(':'), depth),
            "overlay" => self.of_overlay(mount, path, depth).unwrap_or_default(),
            _ => Under::default(),
        }
    }

    fn of_number_below(&self, (major, minor): (u32, u32), depth: usize) -> Under {
        match fs::canonicalize(self.sys.join(format!("dev/block/{major}:{minor}"))) {
            Ok(directory) => self.of_directory(&directory, depth),
            Err(_) => Under::default(),
        }
    }

    fn of_name(&self, name: &str, depth: usize) -> Under {
        match fs::canonicalize(self.sys.join("class/block").join(name)) {
            Ok(directory) => self.of_directory(&directory, depth),
            Err(_) => Under::default(),
        }
    }

    /// A partition's whole disk, a stack's members (device mapper and md list them as slaves), a loop device's file.
    fn of_directory(&self, directory: &Path, depth: usize) -> Under {
        let whole = whole_disk(directory);
        let mut all = Under { display: file_name(directory), ..Under::default() };
        let mut members: Vec<String> = fs::read_dir(whole.join("slaves"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|e| file_name(&e.path()))
            .collect();
        members.sort();
        if depth < MAX_DEPTH && !members.is_empty() {
            members.iter().for_each(|member| all.join(self.of_name(member, depth + 1)));
            return all;
        }
        all.leaves.extend(file_name(whole));
        if let Ok(file) = fs::read_to_string(whole.join("loop/backing_file")) {
            let below = self.of_path(Path::new(file.trim_end_matches('\n')), depth + 1);
            all.backing.extend(below.leaves.into_iter().chain(below.backing));
        }
        all
    }

    /// The devices under a file, or a device node, that is named by its path in our own name space.
    fn of_path(&self, path: &Path, depth: usize) -> Under {
        let mount = above(&self.mounts, path);
        if depth > MAX_DEPTH || mount.is_none_or(|mount| is_served(&mount.file_system)) {
            return Under::default();
        }
        let Ok(status) = fs::metadata(path) else { return Under::default() };
        if is_block_device(&status) {
            return self.of_number_below(split(status.rdev()), depth);
        }
        self.of_file_below(split(status.dev()), mount, Some(path), depth)
    }

    /// Devices named by nodes such as `/dev/sda1`.
    fn of_nodes<'a>(&self, nodes: impl Iterator<Item = &'a str>, depth: usize) -> Under {
        let mut all = Under::default();
        for node in nodes {
            if let Some(status) = fs::metadata(node).ok().filter(is_block_device) {
                all.join(self.of_number_below(split(status.rdev()), depth));
            }
        }
        all
    }

    /// Every member of the btrfs that `source`, the device in the mount table, is a member of.
    fn of_btrfs(&self, source: &str, depth: usize) -> Under {
        let node = fs::canonicalize(source).unwrap_or_else(|_| source.into());
        let Some(first) = file_name(&node) else { return Under::default() };
        let file_systems = fs::read_dir(self.sys.join("fs/btrfs")).into_iter().flatten().flatten();
        let members = file_systems.map(|e| e.path().join("devices")).find(|dir| dir.join(&first).exists());
        let Some(members) = members else { return self.of_nodes(std::iter::once(source), depth) };
        let mut all = Under { display: Some(first), ..Under::default() };
        for member in fs::read_dir(members).into_iter().flatten().flatten() {
            all.join(self.of_name(&member.file_name().to_string_lossy(), depth));
        }
        all
    }

    /// The devices of the first layer, top down, that has the file. Where the layers are not visible to us (they are
    /// named as seen by who mounted them) nothing is known.
    fn of_overlay(&self, mount: &Mount, path: Option<&Path>, depth: usize) -> Option<Under> {
        let inside = path?.strip_prefix(&mount.point).ok()?;
        let below = mount.root.strip_prefix("/").ok()?.join(inside);
        let layers = overlay_layers(&mount.super_options);
        let at = layers.into_iter().map(|layer| Path::new(layer).join(&below)).find(|at| {
            let served = above(&self.mounts, at).is_none_or(|mount| is_served(&mount.file_system));
            !served && at.symlink_metadata().is_ok()
        })?;
        Some(self.of_path(&at, depth + 1))
    }
}

impl Under {
    fn join(&mut self, other: Under) {
        self.display = self.display.take().or(other.display);
        self.leaves.extend(other.leaves);
        self.backing.extend(other.backing);
        for list in [&mut self.leaves, &mut self.backing] {
            list.sort();
            list.dedup();
        }
    }
}

/// Whether another machine or a user-space program answers for this type of file system, so that a question may take
/// for ever.
pub fn is_served(file_system: &str) -> bool {
    const SERVED: [&str; 15] = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "coda", "9p", "virtiofs", "lustre", "gfs2",
        "ocfs2", "autofs", "vboxsf",
    ];
    SERVED.contains(&file_system) || file_system.starts_with("fuse")
}

/// The directory of the whole disk that a device's directory belongs to; itself unless it is a partition.
pub(super) fn whole_disk(directory: &Path) -> &Path {
    if directory.join("partition").exists() { directory.parent().unwrap_or(directory) } else { directory }
}

fn is_block_device(status: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&status.file_type())
}

fn split(number: u64) -> (u32, u32) {
    (rustix::fs::major(number), rustix::fs::minor(number))
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use crate::mounts::parse;

    use super::*;

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
        let tree = BlockTree { sys: root.to_owned(), mounts: parse(mounts) };
        (folder, tree)
    }

    fn under(display: &str, leaves: &[&str]) -> Under {
        let leaves = leaves.iter().map(|&leaf| leaf.to_owned()).collect();
        Under { display: Some(display.into()), leaves, ..Under::default() }
    }

    #[test]
    fn partitions_and_stacks_end_in_whole_disks_each_once() {
        let (_folder, tree) = made_up("");
        assert_eq!(tree.of_number((8, 1)), under("sda1", &["sda"]));
        assert_eq!(tree.of_number((9, 0)), under("md0", &["sda", "sdb"]));
        assert_eq!(tree.of_file((253, 0), None, None), under("dm-0", &["sda", "sdb"]));
        assert_eq!(tree.of_number((7, 7)), Under::default());
    }

    #[test]
    fn anonymous_numbers_are_resolved_by_the_mount_or_not_at_all() {
        let (_folder, tree) = made_up("");
        let table = parse(
            "1 0 0:40 / /b rw - btrfs /no-such/dm-0 rw\n2 0 0:41 / /n rw - nfs4 host:/x rw\n\
             3 0 0:42 / /o rw - overlay overlay rw,lowerdir=/no-such/l,upperdir=/no-such/u\n",
        );
        assert_eq!(tree.of_file((0, 40), Some(&table[0]), None), under("dm-0", &["sda", "sdb"]));
        for mount in &table[1..] {
            assert_eq!(tree.of_file(mount.device, Some(mount), Some(Path::new("/o/f"))), Under::default());
        }
        assert_eq!(tree.of_file((0, 40), None, None), Under::default());
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
        let found = tree.of_number((7, 0));
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
        let found = |path: &str| tree.of_file((0, 42), Some(overlay), Some(Path::new(path)));
        assert_eq!(found("/o/f").leaves.len(), 1);
        assert_eq!(found("/o/absent"), Under::default());
    }

    #[test]
    fn who_serves_is_known_by_name() {
        assert!(["nfs4", "fuse.sshfs", "fuseblk", "9p", "autofs"].into_iter().all(is_served));
        assert!(!["ext4", "xfs", "btrfs", "overlay", "tmpfs"].into_iter().any(is_served));
    }
}
