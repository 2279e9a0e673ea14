//! Layouts of file systems that are described by numbers, or of which only the geometry is known. Numbers that are missing
//! are the defaults of `newfs` (NetBSD 1.4T) and of mkfs.

use iowhy_core::volume::{Ext4, Geometry, Xfs};

use crate::layout::Layout;

const FFS_BLOCK_BYTES: u64 = 8192;
const FFS_BYTES_PER_INODE: u64 = 4096;
const FFS_GROUP_BYTES: u64 = 16 << 20;
const XFS_GROUPS: u64 = 4;
/// A volume, where nobody says how large.
const VOLUME_BYTES: u64 = 1 << 40;

/// A file system described by numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described {
    /// Bytes of the volume.
    pub volume_bytes: Option<u64>,
    /// Bytes of a group.
    pub group_bytes: Option<u64>,
    /// Bytes of a block.
    pub block_bytes: Option<u64>,
    /// Files on the volume.
    pub files: Option<u64>,
}

impl Described {
    /// The volume.
    pub fn volume_bytes(&self) -> u64 {
        self.volume_bytes.unwrap_or(VOLUME_BYTES)
    }

    fn files_per_group(&self, group_bytes: u64) -> Option<u64> {
        let groups = (self.volume_bytes() / group_bytes.max(1)).max(1);
        self.files.map(|files| files.div_ceil(groups))
    }

    /// FFS.
    pub fn ffs(&self) -> Layout {
        let group = self.group_bytes.unwrap_or(FFS_GROUP_BYTES);
        let block = self.block_bytes.unwrap_or(FFS_BLOCK_BYTES);
        Layout::ffs(group, self.volume_bytes(), block, FFS_BYTES_PER_INODE, self.files_per_group(group))
    }

    /// ext4. A group is what keeps its tables together.
    pub fn ext4(&self) -> Layout {
        let usual = Ext4::usual(self.volume_bytes());
        let block_bytes = self.block_bytes.unwrap_or(usual.block_bytes);
        // A block group has as many blocks as a block has bits.
        let blocks_per_group = block_bytes * 8;
        let one = blocks_per_group * block_bytes;
        let flex_groups = self.group_bytes.map_or(usual.flex_groups, |bytes| (bytes / one).max(1));
        let blocks_per_group = match self.group_bytes {
            Some(bytes) if bytes < one => (bytes / block_bytes).max(1),
            _ => blocks_per_group,
        };
        Layout::ext4(&Ext4 {
            block_bytes,
            blocks_per_group,
            inodes_per_group: (blocks_per_group * block_bytes / (16 << 10)).max(1),
            flex_groups,
            used_inodes_per_group: self.files_per_group(blocks_per_group * block_bytes),
            ..usual
        })
    }

    /// XFS.
    pub fn xfs(&self) -> Layout {
        let group_bytes = self.group_bytes.unwrap_or(self.volume_bytes() / XFS_GROUPS);
        Layout::xfs(&Xfs {
            group_bytes,
            groups: self.volume_bytes() / group_bytes.max(1),
            block_bytes: self.block_bytes.unwrap_or(4096),
            sector_bytes: 512,
            stripe_unit_bytes: 0,
            stripe_width_bytes: 0,
        })
    }

    /// No file system.
    pub fn none(&self) -> Layout {
        Layout::none(self.block_bytes.unwrap_or(4096))
    }
}

/// The layout of a file system that was found.
pub fn found(geometry: Option<Geometry>) -> Layout {
    match geometry {
        Some(Geometry::Ext4(ext4)) => Layout::ext4(&ext4),
        Some(Geometry::Xfs(xfs)) => Layout::xfs(&xfs),
        Some(Geometry::Btrfs(sector)) => Layout { name: "btrfs", ..Layout::none(sector) },
        None => Layout::none(4096),
    }
}
