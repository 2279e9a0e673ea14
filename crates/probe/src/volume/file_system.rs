//! Where a file system puts things: the superblock of ext4, the geometry of XFS.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iowhy_core::volume::{Ext4, Geometry, Xfs};
use rustix::fs::{Mode, OFlags};

use super::Found;

/// Where ext4 keeps its superblock, and how long that is.
const SUPERBLOCK_OFFSET: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
/// Bytes of `struct xfs_fsop_geom_v1` (linux/fs/xfs/libxfs/xfs_fs.h), aligned to 8.
const GEOMETRY_BYTES: usize = 112;
/// XFS_IOC_FSGEOMETRY_V1: _IOR('X', 100, struct xfs_fsop_geom_v1).
const GEOMETRY: u64 = 2 << 30 | (GEOMETRY_BYTES as u64) << 16 | (b'X' as u64) << 8 | 100;

/// Adds the geometry of the file system that a path is in.
pub(super) fn add_of_path(path: &Path, found: &mut Found) {
    match found.file_system.as_deref() {
        Some("ext2" | "ext3" | "ext4") => {
            let Some(device) = &found.device else { return };
            let node = Path::new("/dev").join(device);
            match ext4_of(&node) {
                Ok(Some(geometry)) => found.geometry = Some(Geometry::Ext4(geometry)),
                Ok(None) => found.limitations.push(format!("`{}` has no superblock of ext4", node.display())),
                Err(error) => {
                    found.limitations.push(format!(
                        "the superblock on `{}` cannot be read ({error}): sizes are those that mkfs.ext4 usually chooses",
                        node.display()
                    ));
                    found.geometry = usual(path).map(Geometry::Ext4);
                }
            }
        }
        Some("xfs") => match xfs_of(path) {
            Ok(geometry) => found.geometry = Some(Geometry::Xfs(geometry)),
            Err(error) => found.limitations.push(format!("the geometry of the XFS cannot be read: {error}")),
        },
        Some(other) => found.limitations.push(format!("where {other} puts its metadata is not known here")),
        None => {}
    }
}

/// Adds the geometry of what is on a device, where that is ext4.
pub(super) fn add_of_device(node: &Path, found: &mut Found) {
    match ext4_of(node) {
        Ok(Some(geometry)) => {
            found.file_system = Some("ext4".to_owned());
            found.geometry = Some(Geometry::Ext4(geometry));
        }
        Ok(None) => found.limitations.push(
            "the device holds no ext4; of other file systems name a directory in them, where they are mounted".to_owned(),
        ),
        Err(error) => found.limitations.push(format!("`{}` cannot be read: {error}", node.display())),
    }
}

fn ext4_of(node: &Path) -> std::io::Result<Option<Ext4>> {
    let mut bytes = [0u8; SUPERBLOCK_BYTES];
    File::open(node)?.read_exact_at(&mut bytes, SUPERBLOCK_OFFSET)?;
    Ok(Ext4::from_superblock(&bytes))
}

/// What mkfs.ext4 chooses for a file system of this size, with the blocks and inodes that statfs tells.
fn usual(path: &Path) -> Option<Ext4> {
    let told = rustix::fs::statvfs(path).ok()?;
    let volume_bytes = told.f_blocks.saturating_mul(told.f_frsize);
    // A group has as many blocks as a block has bits.
    let blocks_per_group = told.f_frsize.saturating_mul(8);
    let groups = told.f_blocks.checked_div(blocks_per_group)?.max(1);
    Some(Ext4 {
        block_bytes: told.f_frsize,
        blocks_per_group,
        inodes_per_group: (told.f_files / groups).max(1),
        used_inodes_per_group: Some(told.f_files.saturating_sub(told.f_ffree).div_ceil(groups)),
        ..Ext4::usual(volume_bytes)
    })
}

fn xfs_of(path: &Path) -> std::io::Result<Xfs> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    // Eight bytes each, so that it is aligned as the kernel's structure is.
    let mut answer = [0u64; GEOMETRY_BYTES / 8];
    // SAFETY: the request writes GEOMETRY_BYTES bytes, which is all of `answer`.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), GEOMETRY as _, answer.as_mut_ptr()) };
    if result != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(geometry(&bytes))
}

/// The fields of `struct xfs_fsop_geom_v1`.
fn geometry(bytes: &[u8]) -> Xfs {
    let number = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|field| field.try_into().ok())
            .map_or(0, |field| u64::from(u32::from_ne_bytes(field)))
    };
    let block_bytes = number(0);
    Xfs {
        block_bytes,
        group_bytes: number(8).saturating_mul(block_bytes),
        groups: number(12),
        sector_bytes: number(20),
        // Both are counted in blocks here.
        stripe_unit_bytes: number(80).saturating_mul(block_bytes),
        stripe_width_bytes: number(84).saturating_mul(block_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometry_of_xfs_field_by_field() {
        let mut bytes = vec![0u8; GEOMETRY_BYTES];
        for (at, value) in [(0, 4096u32), (8, 25_600), (12, 4), (20, 512), (80, 16), (84, 48)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let expected = Xfs {
            group_bytes: 100 << 20,
            groups: 4,
            block_bytes: 4096,
            sector_bytes: 512,
            stripe_unit_bytes: 64 << 10,
            stripe_width_bytes: 192 << 10,
        };
        assert_eq!(geometry(&bytes), expected);
        assert_eq!(geometry(&[]).groups, 0);
    }

    #[test]
    fn what_a_path_is_on_is_found_or_has_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let found = super::super::look(dir.path()).unwrap();
        assert!(found.geometry.is_some() || !found.limitations.is_empty(), "{found:?}");
        assert!(super::super::look(&dir.path().join("missing")).unwrap_err().message.contains("missing"));
        assert!(!super::super::look(Path::new("/dev/null")).unwrap().limitations.is_empty());
    }
}
