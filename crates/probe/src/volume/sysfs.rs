//! What sysfs tells of volumes. Its root is passed in, so that it can be a made-up one.

use std::fs;
use std::path::Path;

use iowhy_core::volume::{Geometry, StripedTarget, Volume, VolumeKind, VolumeMember};

use super::{Found, device_mapper};
use iowhy_linux::block::sysfs::{self, Sysfs, entries, file_name as name, number, text, whole_disk};

/// Bytes of one turn of a striped profile of btrfs (BTRFS_STRIPE_LEN): the same for all.
const BTRFS_STRIPE_BYTES: u64 = 64 << 10;
/// A linear mapping over a volume, and one over that: deeper is given up.
const MAX_DEPTH: usize = 8;

/// A sysfs.
pub(super) struct Volumes {
    sysfs: Sysfs,
    /// How the table of a mapping is had.
    table: fn(&str) -> Result<Vec<device_mapper::Mapping>, String>,
}

impl Volumes {
    pub(super) fn new() -> Volumes {
        Volumes { sysfs: Sysfs::new(), table: device_mapper::table }
    }

    /// Adds what a device number stands for: its name, where it begins on its disk, and the volume that it is or is on.
    pub(super) fn add_device(&self, device: (u32, u32), found: &mut Found) {
        let Some(directory) = self.sysfs.device_of_number(device) else {
            let (major, minor) = device;
            found.lacks.push(format!("block device {major}:{minor} is not visible in /sys"));
            return;
        };
        found.device = name(&directory);
        let whole = whole_disk(&directory);
        if whole != directory {
            found.start_bytes = number(&directory.join("start")).unwrap_or(0).saturating_mul(512);
        }
        found.volume = self.volume(whole, 0);
    }

    /// The volume that a whole device is; one device under it is looked through.
    fn volume(&self, directory: &Path, depth: usize) -> Option<Volume> {
        let members = self.slaves(directory);
        if directory.join("md").exists() {
            return Some(self.md(directory, members));
        }
        if directory.join("dm").exists() {
            let volume = self.mapped(directory, members);
            // A linear mapping over one device is as that device is.
            return match volume.members.as_slice() {
                [one] if volume.interleave_bytes.is_none() && depth < MAX_DEPTH => {
                    let below = self.sysfs.device_of_name(&one.name)?;
                    self.volume(whole_disk(&below), depth + 1)
                }
                [] | [_] => None,
                _ => Some(volume),
            };
        }
        None
    }

    fn md(&self, directory: &Path, members: Vec<VolumeMember>) -> Volume {
        let level = text(&directory.join("md/level")).unwrap_or_else(|| "unknown level".to_owned());
        let chunk = number(&directory.join("md/chunk_size")).filter(|bytes| *bytes > 0);
        let strides = matches!(level.as_str(), "raid0" | "raid4" | "raid5" | "raid6" | "raid10");
        let lack = match (level.as_str(), chunk) {
            ("raid0", Some(_)) => None,
            ("raid0", None) => Some("its chunk cannot be read from sysfs".to_owned()),
            (other, _) if strides => Some(format!(
                "{other} also holds copies or parity: the rules of a plain stripe hold only roughly"
            )),
            (other, _) => Some(format!("{other} takes no turns")),
        };
        Volume {
            kind: VolumeKind::Md,
            name: name(directory).unwrap_or_default(),
            profile: level,
            interleave_bytes: chunk.filter(|_| strides),
            members,
            lack,
        }
    }

    fn mapped(&self, directory: &Path, members: Vec<VolumeMember>) -> Volume {
        let uuid = text(&directory.join("dm/uuid")).unwrap_or_default();
        let kind = if uuid.starts_with("LVM-") { VolumeKind::Lvm } else { VolumeKind::DeviceMapper };
        let mapping = text(&directory.join("dm/name")).unwrap_or_default();
        let mut volume = Volume {
            kind,
            name: name(directory).unwrap_or_default(),
            profile: "unknown".to_owned(),
            interleave_bytes: None,
            members,
            lack: None,
        };
        match (self.table)(&mapping) {
            Ok(table) => {
                let striped = table
                    .iter()
                    .filter(|part| part.kind == "striped")
                    .find_map(|part| StripedTarget::parse(&part.parameters));
                let kinds: Vec<&str> = table.iter().map(|part| part.kind.as_str()).collect();
                volume.profile = kinds.first().map_or("unknown", |kind| *kind).to_owned();
                if let Some(striped) = striped {
                    volume.profile = "striped".to_owned();
                    volume.interleave_bytes = Some(striped.interleave_bytes);
                    volume.members = striped.devices.iter().map(|device| self.named(device)).collect();
                    if table.len() > 1 {
                        volume.lack = Some(format!(
                            "the mapping has {} segments; this is of the striped one",
                            table.len()
                        ));
                    }
                } else if table.len() > 1 || volume.members.len() > 1 {
                    volume.lack = Some(format!("its mapping is {}, which takes no turns", kinds.join(", ")));
                }
            }
            Err(why) => volume.lack = Some(format!("its table cannot be read: {why}")),
        }
        volume
    }

    /// Adds the volume of a mounted btrfs, found by one of its members.
    pub(super) fn add_btrfs(&self, source: &str, found: &mut Found) {
        let first =
            fs::canonicalize(source).ok().and_then(|node| name(&node)).or_else(|| name(Path::new(source)));
        let home = first.as_ref().and_then(|member| self.sysfs.btrfs_of(member));
        found.device = first;
        let Some(home) = home else {
            found.lacks.push(format!("btrfs: the member `{source}` is not visible in /sys/fs/btrfs"));
            return;
        };
        found.geometry = number(&home.join("sectorsize")).map(Geometry::Btrfs);
        let members: Vec<VolumeMember> =
            entries(&home.join("devices")).iter().map(|n| self.member(n)).collect();
        if members.len() < 2 {
            return;
        }
        let profiles = profiles(&home.join("allocation/data"));
        let strides = |profile: &String| matches!(profile.as_str(), "raid0" | "raid10" | "raid5" | "raid6");
        let lack = match profiles.as_slice() {
            [] => Some("the profile of its data cannot be read from sysfs".to_owned()),
            [one] if one == "raid0" => None,
            [one] if strides(one) => Some(format!(
                "{one} also holds copies or parity: the rules of a plain stripe hold only roughly"
            )),
            [one] => Some(format!("{one} takes no turns: whole chunks of up to 1 GiB go to one device")),
            many => Some(format!(
                "its data has several profiles ({}): `btrfs balance` is not done",
                many.join(", ")
            )),
        };
        found.volume = Some(Volume {
            kind: VolumeKind::Btrfs,
            name: name(&home).unwrap_or_default(),
            interleave_bytes: profiles.iter().any(strides).then_some(BTRFS_STRIPE_BYTES),
            profile: if profiles.is_empty() { "unknown".to_owned() } else { profiles.join(", ") },
            members,
            lack,
        });
    }

    fn slaves(&self, directory: &Path) -> Vec<VolumeMember> {
        sysfs::members(directory).iter().map(|name| self.member(name)).collect()
    }

    /// A member as a table names it: `8:16`, or a path.
    fn named(&self, device: &str) -> VolumeMember {
        match self.sysfs.name_of(device) {
            Some(name) => self.member(&name),
            None => VolumeMember { name: device.to_owned(), size_bytes: None },
        }
    }

    fn member(&self, name: &str) -> VolumeMember {
        let sectors = number(&self.sysfs.class_directory(name).join("size"));
        VolumeMember { name: name.to_owned(), size_bytes: sectors.map(|sectors| sectors.saturating_mul(512)) }
    }
}

/// The profiles of one kind of chunks: directories such as `raid0` beside the counters, those that hold anything.
fn profiles(directory: &Path) -> Vec<String> {
    let holds = |name: &String| {
        let at = directory.join(name);
        at.is_dir() && number(&at.join("total_bytes")).is_none_or(|bytes| bytes > 0)
    };
    entries(directory).into_iter().filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::device_mapper::Mapping;
    use super::*;

    /// Disks sda and sdb; md0 (raid0, 512 KiB) over both with a partition; dm-0 (LVM, striped) over both, dm-1 linear over
    /// md0, and a btrfs over both.
    fn made_up() -> (tempfile::TempDir, Volumes) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for made in ["dev/block", "class/block", "fs/btrfs/12-34/devices"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        let device = |at: &str, number: &str, members: &[&str], files: &[(&str, &str)]| {
            let home = root.join("devices").join(at);
            fs::create_dir_all(home.join("slaves")).unwrap();
            members.iter().for_each(|m| fs::create_dir(home.join("slaves").join(m)).unwrap());
            for (file, content) in files {
                fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
                fs::write(home.join(file), format!("{content}\n")).unwrap();
            }
            symlink(&home, root.join("dev/block").join(number)).unwrap();
            symlink(&home, root.join("class/block").join(home.file_name().unwrap())).unwrap();
        };
        device("sda", "8:0", &[], &[("size", "4096")]);
        device("sdb", "8:16", &[], &[("size", "8192")]);
        device("md0", "9:0", &["sda", "sdb"], &[("md/level", "raid0"), ("md/chunk_size", "524288")]);
        device("md0/md0p1", "259:0", &[], &[("partition", "1"), ("start", "2048")]);
        device("md1", "9:1", &["sda", "sdb"], &[("md/level", "raid1"), ("md/chunk_size", "0")]);
        device("dm-0", "253:0", &["sdb", "sda"], &[("dm/name", "vg-s"), ("dm/uuid", "LVM-abc")]);
        device("dm-1", "253:1", &["md0"], &[("dm/name", "vg-l"), ("dm/uuid", "LVM-def")]);
        device("dm-2", "253:2", &["sda", "sdb"], &[("dm/name", "secret"), ("dm/uuid", "CRYPT-x")]);
        let btrfs = root.join("fs/btrfs/12-34");
        for member in ["sda", "sdb"] {
            fs::create_dir(btrfs.join("devices").join(member)).unwrap();
        }
        fs::create_dir_all(btrfs.join("allocation/data/raid0")).unwrap();
        fs::write(btrfs.join("allocation/data/flags"), "1\n").unwrap();
        fs::write(btrfs.join("sectorsize"), "4096\n").unwrap();
        fn table(name: &str) -> Result<Vec<Mapping>, String> {
            let mapping =
                |kind: &str, parameters: &str| Mapping { kind: kind.into(), parameters: parameters.into() };
            match name {
                "vg-s" => Ok(vec![mapping("striped", "2 128 8:0 2048 8:16 2048")]),
                "vg-l" => Ok(vec![mapping("linear", "9:0 2048")]),
                _ => Err("not permitted".to_owned()),
            }
        }
        let sysfs = Volumes { sysfs: Sysfs::at(root.to_owned()), table };
        (dir, sysfs)
    }

    fn device(sysfs: &Volumes, number: (u32, u32)) -> Found {
        let mut found = Found::default();
        sysfs.add_device(number, &mut found);
        found
    }

    #[test]
    fn md_with_its_chunk_members_and_partitions() {
        let (_dir, sysfs) = made_up();
        let found = device(&sysfs, (259, 0));
        assert_eq!((found.device.as_deref(), found.start_bytes), (Some("md0p1"), 1 << 20));
        let volume = found.volume.unwrap();
        assert_eq!(
            (volume.kind, volume.profile.as_str(), volume.interleave_bytes),
            (VolumeKind::Md, "raid0", Some(524_288))
        );
        let members: Vec<_> = volume.members.iter().map(|m| (m.name.as_str(), m.size_bytes)).collect();
        assert_eq!(members, [("sda", Some(2 << 20)), ("sdb", Some(4 << 20))]);
        assert_eq!(volume.lack, None);
        let mirror = device(&sysfs, (9, 1)).volume.unwrap();
        assert_eq!(mirror.interleave_bytes, None);
        assert!(mirror.lack.unwrap().contains("takes no turns"));
        assert_eq!(device(&sysfs, (8, 0)).volume, None);
        assert!(!device(&sysfs, (7, 77)).lacks.is_empty());
    }

    #[test]
    fn mappings_by_their_tables_and_what_is_not_permitted() {
        let (_dir, sysfs) = made_up();
        let striped = device(&sysfs, (253, 0)).volume.unwrap();
        assert_eq!((striped.kind, striped.interleave_bytes), (VolumeKind::Lvm, Some(65_536)));
        let members: Vec<_> = striped.members.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(members, ["sda", "sdb"], "in the order of the table, not of the alphabet");
        assert_eq!(device(&sysfs, (253, 1)).volume.unwrap().name, "md0", "looked through");
        let secret = device(&sysfs, (253, 2)).volume.unwrap();
        assert_eq!((secret.kind, secret.interleave_bytes), (VolumeKind::DeviceMapper, None));
        assert!(secret.lack.unwrap().contains("not permitted"));
    }

    #[test]
    fn btrfs_by_its_profile() {
        let (dir, sysfs) = made_up();
        let look = || {
            let mut found = Found::default();
            sysfs.add_btrfs("/dev/no-such-node/sdb", &mut found);
            found
        };
        let found = look();
        assert_eq!(found.geometry, Some(Geometry::Btrfs(4096)));
        let volume = found.volume.unwrap();
        assert_eq!(
            (volume.profile.as_str(), volume.interleave_bytes, volume.members.len()),
            ("raid0", Some(65_536), 2)
        );
        let data = dir.path().join("fs/btrfs/12-34/allocation/data");
        fs::rename(data.join("raid0"), data.join("single")).unwrap();
        let volume = look().volume.unwrap();
        assert_eq!(volume.interleave_bytes, None);
        assert!(volume.lack.unwrap().contains("whole chunks"));
        let mut unseen = Found::default();
        sysfs.add_btrfs("/dev/sdz", &mut unseen);
        assert!(unseen.volume.is_none() && unseen.lacks[0].contains("sdz"));
    }
}
