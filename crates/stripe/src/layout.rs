//! Areas of file systems beside the data, which repeat in every group.
//!
//! Sources: FFS: NetBSD 1.4T `mkfs.c` 1.37 (the layout that the simulator has, too); ext4: Documentation/filesystems/ext4
//! (block groups, flexible block groups); XFS: allocation groups as XFS_IOC_FSGEOMETRY tells them. Btrfs has no groups at
//! fixed offsets: its metadata is in chunks, and these rules do not apply.

use iowhy_core::volume::{Ext4, Xfs};

/// A kind of area in each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Name on the screen.
    pub what: &'static str,
    /// First byte, from the start of the group.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The layout of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What it is called: `ffs`, `ext4`, `xfs`; `none` for a stripe without one.
    pub name: &'static str,
    /// Bytes of a group; 0: nothing repeats.
    pub group_bytes: u64,
    /// How many groups.
    pub groups: u64,
    /// Where the first begins on the stripe: behind a partition table, say.
    pub start_bytes: u64,
    /// Files begin at multiples of this.
    pub alignment_bytes: u64,
    /// The areas of each group.
    pub areas: Vec<Area>,
}

/// FFS: inodes are this long.
const FFS_INODE_BYTES: u64 = 128;
/// FFS: boot block and first superblock, and a superblock's copy.
const FFS_BOOT_BYTES: u64 = 16 << 10;
const FFS_SUPERBLOCK_BYTES: u64 = 8 << 10;

impl Layout {
    /// A stripe without a file system: only requests count.
    pub fn none(alignment_bytes: u64) -> Layout {
        Layout { name: "none", group_bytes: 0, groups: 1, start_bytes: 0, alignment_bytes, areas: Vec::new() }
    }

    /// FFS with cylinder groups of `group_bytes` on a volume of `volume_bytes`, blocks of `block_bytes`, an inode for every
    /// `bytes_per_inode`; of each group's inodes `used_inodes` are in use, where that is known. Files begin at fragments only
    /// where they are shorter than a block; those of a block and more, and most others, begin at blocks.
    pub fn ffs(
        group_bytes: u64,
        volume_bytes: u64,
        block_bytes: u64,
        bytes_per_inode: u64,
        used_inodes: Option<u64>,
    ) -> Layout {
        let block = block_bytes.max(512);
        let superblock = FFS_BOOT_BYTES.next_multiple_of(block);
        let descriptor = superblock + FFS_SUPERBLOCK_BYTES.next_multiple_of(block);
        let inodes = descriptor + block;
        let count = group_bytes / bytes_per_inode.max(1);
        let all = (count.saturating_mul(FFS_INODE_BYTES)).checked_next_multiple_of(block).unwrap_or(u64::MAX);
        let used = used_inodes.map_or(all, |used| {
            used.saturating_mul(FFS_INODE_BYTES)
                .checked_next_multiple_of(block)
                .map_or(all, |bytes| bytes.min(all))
        });
        Layout {
            name: "ffs",
            group_bytes,
            groups: groups(volume_bytes, group_bytes),
            start_bytes: 0,
            alignment_bytes: block,
            areas: vec![
                Area { what: "group descriptors", offset: descriptor, bytes: block },
                Area { what: "inodes", offset: inodes, bytes: used.max(block) },
                Area { what: "first data blocks", offset: inodes.saturating_add(all), bytes: block },
            ],
        }
    }

    /// ext4 from its superblock's figures. Copies of the superblock, which a few groups have, are left out.
    pub fn ext4(super_block: &Ext4) -> Layout {
        let block = super_block.block_bytes;
        let flex = super_block.flex_groups.max(1);
        let group_bytes = super_block.blocks_per_group.saturating_mul(block).saturating_mul(flex);
        let bitmaps = block.saturating_mul(flex);
        let table = super_block
            .inodes_per_group
            .saturating_mul(super_block.inode_bytes)
            .checked_next_multiple_of(block.max(1))
            .unwrap_or(u64::MAX)
            .saturating_mul(flex);
        let used = super_block.used_inodes_per_group.map_or(table, |used| {
            used.saturating_mul(super_block.inode_bytes).saturating_mul(flex).min(table)
        });
        Layout {
            name: "ext4",
            group_bytes,
            groups: groups(super_block.volume_bytes, group_bytes),
            start_bytes: 0,
            alignment_bytes: block,
            areas: vec![
                Area { what: "block bitmaps", offset: 0, bytes: bitmaps },
                Area { what: "inode bitmaps", offset: bitmaps, bytes: bitmaps },
                Area { what: "inodes", offset: bitmaps.saturating_mul(2), bytes: used.max(block) },
            ],
        }
    }

    /// XFS from its geometry: the headers and the first blocks of the free-space and inode trees of each allocation group.
    pub fn xfs(geometry: &Xfs) -> Layout {
        let headers = geometry.sector_bytes.saturating_mul(4);
        let block_bytes = geometry.block_bytes;
        Layout {
            name: "xfs",
            group_bytes: geometry.group_bytes,
            groups: geometry.groups.max(1),
            start_bytes: 0,
            alignment_bytes: block_bytes,
            areas: vec![
                Area { what: "group headers", offset: 0, bytes: headers },
                // mkfs puts the roots of the trees into the blocks behind the headers.
                Area {
                    what: "tree roots",
                    offset: headers.checked_next_multiple_of(block_bytes.max(1)).unwrap_or(headers),
                    bytes: block_bytes.saturating_mul(4),
                },
            ],
        }
    }
}

fn groups(volume_bytes: u64, group_bytes: u64) -> u64 {
    volume_bytes.checked_div(group_bytes).unwrap_or(1).max(1)
}
