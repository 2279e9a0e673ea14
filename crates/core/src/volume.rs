//! Volumes of several devices and the layout of file systems, as plain data.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Who joins the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeKind {
    /// The md driver.
    Md,
    /// The device mapper, set up by LVM.
    Lvm,
    /// The device mapper, set up by anybody else.
    DeviceMapper,
    /// Btrfs, by the profile of its data.
    Btrfs,
}

impl VolumeKind {
    /// Its name.
    pub fn words(self) -> &'static str {
        match self {
            VolumeKind::Md => "md",
            VolumeKind::Lvm => "LVM (device mapper)",
            VolumeKind::DeviceMapper => "device mapper",
            VolumeKind::Btrfs => "btrfs",
        }
    }
}

/// Devices that take turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Volume {
    /// Who joins them.
    pub kind: VolumeKind,
    /// Its name in the kernel: `md0`, `dm-3`, the UUID of a btrfs.
    pub name: String,
    /// How they are joined, in the driver's own word: `raid0`, `striped`, `linear`.
    pub profile: String,
    /// Bytes of one turn, where they take turns and it can be known.
    pub interleave_bytes: Option<u64>,
    /// The devices.
    pub members: Vec<VolumeMember>,
    /// Why a part of this is unknown, and the remedy.
    pub limitation: Option<String>,
}

/// One device of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeMember {
    /// Its name in the kernel.
    pub name: String,
    /// Its size.
    pub size_bytes: Option<u64>,
}

/// Where a file system puts things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Geometry {
    /// ext2, ext3 and ext4.
    Ext4(Ext4),
    /// XFS.
    Xfs(Xfs),
    /// Btrfs, which has no groups at fixed offsets; the bytes of a sector of its data.
    Btrfs(u64),
}

/// Fields of an ext4 superblock that decide the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ext4 {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks of a block group.
    pub blocks_per_group: u64,
    /// Inodes of a block group.
    pub inodes_per_group: u64,
    /// Bytes of an inode.
    pub inode_bytes: u64,
    /// Block groups that keep bitmaps and inodes together; 1: none.
    pub flex_groups: u64,
    /// Bytes of the file system.
    pub volume_bytes: u64,
    /// Inodes in use, a group on average, where that is known.
    pub used_inodes_per_group: Option<u64>,
}

impl Ext4 {
    /// What mkfs.ext4 (e2fsprogs 1.47) chooses for a large volume: 4 KiB blocks, groups of 128 MiB, an inode of 256 bytes
    /// for 16 KiB, 16 groups together.
    pub fn usual(volume_bytes: u64) -> Ext4 {
        Ext4 {
            block_bytes: 4096,
            blocks_per_group: 32_768,
            inodes_per_group: 8192,
            inode_bytes: 256,
            flex_groups: 16,
            volume_bytes,
            used_inodes_per_group: None,
        }
    }

    /// Reads a superblock, the 1024 bytes at offset 1024 of the device (Documentation/filesystems/ext4/super.rst). `None`
    /// when it is none, or its figures cannot be.
    pub fn from_superblock(bytes: &[u8]) -> Option<Ext4> {
        let number = |at: usize, length: usize| {
            let field = bytes.get(at..at.checked_add(length)?)?;
            Some(field.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        const MAGIC: u64 = 0xef53;
        const INCOMPAT_64BIT: u64 = 0x80;
        const INCOMPAT_FLEX_BG: u64 = 0x200;
        if number(0x38, 2)? != MAGIC {
            return None;
        }
        let block_bytes =
            1024u64.checked_shl(u32::try_from(number(0x18, 4)?).ok()?).filter(|b| *b <= 65_536)?;
        let incompatible = number(0x60, 4)?;
        let high = if incompatible & INCOMPAT_64BIT != 0 { number(0x150, 4)? } else { 0 };
        let blocks = high << 32 | number(0x4, 4)?;
        // Revision 0 has inodes of 128 bytes and does not say so.
        let inode_bytes = if number(0x4c, 4)? == 0 { 128 } else { number(0x58, 2)? };
        let flex_groups = match incompatible & INCOMPAT_FLEX_BG != 0 {
            true => 1u64
                .checked_shl(u32::try_from(number(0x174, 1)?).ok()?)
                .filter(|groups| *groups <= 1 << 31)?,
            false => 1,
        };
        let (blocks_per_group, inodes_per_group) = (number(0x20, 4)?, number(0x28, 4)?);
        let used = number(0x0, 4)?.saturating_sub(number(0x10, 4)?);
        let groups = blocks.checked_div(blocks_per_group)?.max(1);
        (block_bytes > 0 && inodes_per_group > 0 && inode_bytes >= 128).then_some(Ext4 {
            block_bytes,
            blocks_per_group,
            inodes_per_group,
            inode_bytes,
            flex_groups,
            volume_bytes: blocks.saturating_mul(block_bytes),
            used_inodes_per_group: Some(used.div_ceil(groups)),
        })
    }
}

/// Geometry of an XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Xfs {
    /// Bytes of an allocation group.
    pub group_bytes: u64,
    /// How many.
    pub groups: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// Stripe unit of mkfs in bytes; 0: none.
    pub stripe_unit_bytes: u64,
    /// Bytes of one turn of all disks, likewise.
    pub stripe_width_bytes: u64,
}

/// A table of the device mapper for one mapping: `0 2048 striped 2 128 8:16 2048 8:32 2048`, without start and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedTarget {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// The devices, as the table names them.
    pub devices: Vec<String>,
}

impl StripedTarget {
    /// Reads the parameters of the target `striped` (Documentation/admin-guide/device-mapper/striped.rst); `None` when they
    /// are not such.
    pub fn parse(parameters: &str) -> Option<StripedTarget> {
        let mut words = parameters.split_ascii_whitespace();
        let count: usize = words.next()?.parse().ok().filter(|count| (1..=4096).contains(count))?;
        let sectors: u64 = words.next()?.parse().ok().filter(|sectors| *sectors > 0)?;
        let rest: Vec<&str> = words.collect();
        let devices: Vec<String> = rest.chunks(2).take(count).map(|pair| pair[0].to_owned()).collect();
        (devices.len() == count && rest.len() >= 2 * count)
            .then_some(StripedTarget { interleave_bytes: sectors.checked_mul(512)?, devices })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn superblock(fields: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0u8; 1024];
        for (at, value) in fields {
            bytes[*at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[0x38..0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
        bytes
    }

    #[test]
    fn a_superblock_is_read_field_by_field() {
        let mut bytes = superblock(&[
            (0x0, 65_536),
            (0x4, 262_144),
            (0x10, 65_525),
            (0x18, 2),
            (0x20, 32_768),
            (0x28, 8192),
            (0x4c, 1),
            (0x60, 0x200 | 0x80),
            (0x150, 0),
        ]);
        bytes[0x58] = 0;
        bytes[0x59] = 1;
        bytes[0x174] = 4;
        let expected = Ext4 { used_inodes_per_group: Some(2), ..Ext4::usual(1 << 30) };
        assert_eq!(Ext4::from_superblock(&bytes), Some(expected));
        bytes[0x18] = 60;
        assert_eq!(Ext4::from_superblock(&bytes), None, "a block of 2^70 bytes");
        assert_eq!(Ext4::from_superblock(&[0; 1024]), None);
        assert_eq!(Ext4::from_superblock(&bytes[..100]), None);
    }

    #[test]
    fn tables_of_the_device_mapper() {
        let table = StripedTarget::parse("2 128 8:16 2048 8:32 2048").unwrap();
        assert_eq!(
            (table.interleave_bytes, table.devices),
            (65_536, vec!["8:16".to_owned(), "8:32".to_owned()])
        );
        for broken in
            ["", "2", "2 0 8:16 0 8:32 0", "2 128 8:16 0 8:32", "0 128", "x 128 8:16 0", "9999999 1 a 0"]
        {
            assert_eq!(StripedTarget::parse(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn no_superblock_does_harm(bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
            let mut bytes = bytes;
            if bytes.len() > 0x3a {
                bytes[0x38..0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
            }
            let _ = Ext4::from_superblock(&bytes);
        }

        #[test]
        fn fields_that_are_possible_are_read(bytes in prop::collection::vec(any::<u8>(), 1024), log in 0u8..7) {
            let mut bytes = bytes;
            bytes[0x38..0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
            bytes[0x18..0x1c].copy_from_slice(&[log, 0, 0, 0]);
            bytes[0x60..0x64].fill(0);
            // Blocks and inodes of a group, and the size of an inode, are not 0.
            for at in [0x20, 0x28, 0x59] {
                bytes[at] |= 1;
            }
            let found = Ext4::from_superblock(&bytes).unwrap();
            prop_assert_eq!(found.block_bytes, 1024 << log);
            prop_assert!(found.inodes_per_group > 0 && found.blocks_per_group > 0 && found.inode_bytes >= 128);
        }
    }
}
