//! Marks that file systems, volume managers, encryption and partition tables leave on a device, as data.
//!
//! Goal: refuse to overwrite anything that somebody may want back. Non-goal: telling versions apart. Sources: the
//! on-disk format documents of each, as collected in the manual pages of wipefs(8) and in the kernel's headers.

/// Bytes read from the start of a device: holds every [`At::Start`].
pub(super) const HEAD_BYTES: u64 = 1 << 20;
/// Bytes read from the end of a device: holds the last two ZFS labels, which reach farthest back.
pub(super) const TAIL_BYTES: u64 = 512 << 10;

/// Where a mark stands.
#[derive(Clone, Copy, Debug)]
enum At {
    /// At this offset from the start.
    Start(u64),
    /// This far before the end.
    End(u64),
    /// At `count` places, `step` apart, from this offset on.
    Every { first: u64, step: u64, count: u64 },
    /// At `count` places, `step` apart, beginning `back` before the end rounded down to `grain`.
    Tail { grain: u64, back: u64, step: u64, count: u64 },
}

/// One mark.
struct Signature {
    name: &'static str,
    at: At,
    magic: &'static [u8],
}

const fn mark(name: &'static str, at: At, magic: &'static [u8]) -> Signature {
    Signature { name, at, magic }
}

const K: u64 = 1024;

/// Marks that identify; the unspecific boot-sector mark comes last, so that a better name wins.
static SIGNATURES: &[Signature] = &[
    mark("ext2/3/4", At::Start(0x438), b"\x53\xef"),
    mark("xfs", At::Start(0), b"XFSB"),
    mark("btrfs", At::Start(0x1_0040), b"_BHRfS_M"),
    mark("f2fs", At::Start(0x400), b"\x10\x20\xf5\xf2"),
    mark("bcache", At::Start(0x1018), b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    mark("bcachefs", At::Start(0x1018), b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    mark("LUKS", At::Start(0), b"LUKS\xba\xbe"),
    mark("LUKS2 (second header)", At::Every { first: 16 * K, step: 16 * K, count: 63 }, b"SKUL\xba\xbe"),
    mark("BitLocker", At::Start(3), b"-FVE-FS-"),
    mark("dm-verity", At::Start(0), b"verity\0\0"),
    mark("dm-integrity", At::Start(0), b"integrt\0"),
    mark("VDO", At::Start(0), b"dmvdo001"),
    mark("stratis", At::Start(516), b"!Stra0tis\x86\xff\x02^\x41rh"),
    mark("LVM2", At::Every { first: 0, step: 512, count: 4 }, b"LABELONE"),
    mark("md (1.1)", At::Start(0), b"\xfc\x4e\x2b\xa9"),
    mark("md (1.2)", At::Start(0x1000), b"\xfc\x4e\x2b\xa9"),
    mark("md (1.0)", At::Tail { grain: 4 * K, back: 8 * K, step: 4 * K, count: 1 }, b"\xfc\x4e\x2b\xa9"),
    mark("md (0.90)", At::Tail { grain: 64 * K, back: 64 * K, step: K, count: 1 }, b"\xfc\x4e\x2b\xa9"),
    mark("md (0.90)", At::Tail { grain: 64 * K, back: 64 * K, step: K, count: 1 }, b"\xa9\x2b\x4e\xfc"),
    mark("drbd", At::End(4096 - 60), b"\x83\x74\x02\x6b"),
    mark("swap", At::Start(0xff6), b"SWAPSPACE2"),
    mark("swap", At::Start(0xff6), b"SWAP-SPACE"),
    mark("swap (hibernated)", At::Start(0xff6), b"S1SUSPEND"),
    mark("swap (16 KiB pages)", At::Start(0x3ff6), b"SWAPSPACE2"),
    mark("swap (64 KiB pages)", At::Start(0xfff6), b"SWAPSPACE2"),
    mark("zfs", At::Every { first: 128 * K, step: K, count: 128 }, b"\x0c\xb1\xba\0\0\0\0\0"),
    mark("zfs", At::Every { first: 128 * K, step: K, count: 128 }, b"\0\0\0\0\0\xba\xb1\x0c"),
    mark("zfs", At::Every { first: 384 * K, step: K, count: 128 }, b"\x0c\xb1\xba\0\0\0\0\0"),
    mark("zfs", At::Tail { grain: 256 * K, back: 384 * K, step: K, count: 128 }, b"\x0c\xb1\xba\0\0\0\0\0"),
    mark("zfs", At::Tail { grain: 256 * K, back: 128 * K, step: K, count: 128 }, b"\x0c\xb1\xba\0\0\0\0\0"),
    mark("ntfs", At::Start(3), b"NTFS    "),
    mark("exfat", At::Start(3), b"EXFAT   "),
    mark("fat", At::Start(0x36), b"FAT1"),
    mark("fat", At::Start(0x52), b"FAT32   "),
    mark("iso9660", At::Start(0x8001), b"CD001"),
    mark("udf", At::Start(0x8001), b"BEA01"),
    mark("squashfs", At::Start(0), b"hsqs"),
    mark("erofs", At::Start(0x400), b"\xe2\xe1\xf5\xe0"),
    mark("reiserfs", At::Start(0x1_0034), b"ReIsEr"),
    mark("jfs", At::Start(0x8000), b"JFS1"),
    mark("nilfs2", At::Start(0x406), b"\x34\x34"),
    mark("gfs2", At::Start(0x1_0000), b"\x01\x16\x19\x70"),
    mark("ocfs2", At::Every { first: K, step: K, count: 8 }, b"OCFSV2"),
    mark("hfs+", At::Start(0x400), b"H+\0\x04"),
    mark("apfs", At::Start(0x20), b"NXSB"),
    mark("ceph bluestore", At::Start(0), b"bluestore block device"),
    mark("Oracle ASM", At::Start(32), b"ORCLDISK"),
    mark("GPT partition table", At::Start(512), b"EFI PART"),
    mark("GPT partition table", At::Start(4096), b"EFI PART"),
    mark("GPT partition table (backup)", At::End(512), b"EFI PART"),
    mark("GPT partition table (backup)", At::End(4096), b"EFI PART"),
    mark("boot sector or MBR partition table", At::Start(510), b"\x55\xaa"),
];

/// The name of the first mark found on a device of `size_bytes`, given its first and last bytes (all of it twice
/// when it is small).
pub(super) fn find(size_bytes: u64, head: &[u8], tail: &[u8]) -> Option<&'static str> {
    let tail_start = size_bytes.saturating_sub(tail.len() as u64);
    let seen_at = |offset: u64, magic: &[u8]| {
        within(head, offset, magic)
            || offset.checked_sub(tail_start).is_some_and(|at| within(tail, at, magic))
    };
    SIGNATURES
        .iter()
        .find(|s| s.at.offsets(size_bytes).any(|offset| seen_at(offset, s.magic)))
        .map(|s| s.name)
}

fn within(bytes: &[u8], offset: u64, magic: &[u8]) -> bool {
    usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).is_some_and(|rest| rest.starts_with(magic))
}

impl At {
    /// The offsets from the start on a device of this size; none where the device is too small.
    fn offsets(self, size_bytes: u64) -> impl Iterator<Item = u64> {
        let (first, step, count) = match self {
            At::Start(offset) => (Some(offset), 0, 1),
            At::End(back) => (size_bytes.checked_sub(back), 0, 1),
            At::Every { first, step, count } => (Some(first), step, count),
            At::Tail { grain, back, step, count } => {
                ((size_bytes / grain * grain).checked_sub(back), step, count)
            }
        };
        first.into_iter().flat_map(move |first| (0..count).map(move |i| first + i * step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8 << 20;

    fn found(image: &[u8]) -> Option<&'static str> {
        let head = &image[..image.len().min(HEAD_BYTES as usize)];
        let tail = &image[image.len().saturating_sub(TAIL_BYTES as usize)..];
        find(image.len() as u64, head, tail)
    }

    fn image(offset: u64, magic: &[u8]) -> Vec<u8> {
        let mut image = vec![0; SIZE as usize];
        image[offset as usize..][..magic.len()].copy_from_slice(magic);
        image
    }

    #[test]
    fn every_mark_is_found_at_each_of_its_places_and_lies_in_what_is_read() {
        for s in SIGNATURES {
            for offset in s.at.offsets(SIZE) {
                let name = found(&image(offset, s.magic));
                assert!(name.is_some(), "{} at {offset}", s.name);
            }
        }
    }

    #[test]
    fn blank_and_noise_carry_no_mark() {
        assert_eq!(found(&vec![0; SIZE as usize]), None);
        assert_eq!(found(&vec![0xff; SIZE as usize]), None);
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[0; 600]), None);
    }

    #[test]
    fn places_that_depend_on_the_size_are_the_documented_ones() {
        // 8 MiB + 1 KiB: md 1.0 stands at ((sectors - 16) & ~7) sectors, md 0.90 in the last whole 64 KiB.
        let size = SIZE + 1024;
        let sectors = size / 512;
        let v1_0 = (At::Tail { grain: 4 * K, back: 8 * K, step: 0, count: 1 }).offsets(size).next().unwrap();
        assert_eq!(v1_0, ((sectors - 16) & !7) * 512);
        let v0_90 =
            (At::Tail { grain: 64 * K, back: 64 * K, step: 0, count: 1 }).offsets(size).next().unwrap();
        assert_eq!(v0_90, ((sectors & !127) - 128) * 512);
    }

    #[test]
    fn a_specific_name_wins_over_the_boot_sector_mark() {
        let mut fat = image(0x52, b"FAT32   ");
        fat[510..512].copy_from_slice(b"\x55\xaa");
        assert_eq!(found(&fat), Some("fat"));
    }

    #[test]
    fn what_the_mkfs_programs_write_is_recognised() {
        for (program, args, name) in [
            ("mkfs.ext4", &["-q", "-F"][..], "ext2/3/4"),
            ("mkfs.xfs", &["-q", "-f"], "xfs"),
            ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
            ("mkfs.vfat", &[], "fat"),
            ("mkswap", &[], "swap"),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(320 << 20).unwrap();
            let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
            let made =
                std::process::Command::new(program).args(args).arg(file.path()).env("PATH", path).output();
            match made {
                Ok(out) if out.status.success() => {}
                Ok(out) => {
                    eprintln!(
                        "skipped: a file system cannot be made: {program}: {}",
                        String::from_utf8_lossy(&out.stderr).trim()
                    );
                    continue;
                }
                Err(error) => {
                    eprintln!("skipped: a file system cannot be made: {program}: {error}");
                    continue;
                }
            }
            let image = std::fs::read(file.path()).unwrap();
            assert_eq!(found(&image), Some(name), "{program}");
        }
    }
}
