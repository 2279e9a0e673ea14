//! File systems whose bytes another machine or a user-space program serves: the one answer to "is it another machine?".
//! A question to one of them may never be answered.

/// Names in the mount table, numbers of linux/magic.h, and who serves.
type Kind = (&'static [&'static str], &'static [u64], &'static str);

const KINDS: [Kind; 13] = [
    (&["nfs", "nfs4"], &[0x6969], "another machine (NFS)"),
    (&["cifs", "smb3", "smbfs"], &[0xfe53_4d42, 0xff53_4d42], "another machine (SMB)"),
    (&["9p"], &[0x0102_1997], "the host machine or another one (9p)"),
    (&["virtiofs"], &[], "the host machine (virtiofs)"),
    (&["ceph"], &[0x00c3_6400], "other machines (Ceph)"),
    (&["afs"], &[0x5346_414f], "another machine (AFS)"),
    (&["coda"], &[0x7375_7245], "another machine (Coda)"),
    (&["lustre"], &[0x0bd0_0bd0], "other machines (Lustre)"),
    (&["gfs2"], &[0x0116_1970], "other machines (GFS2)"),
    (&["ocfs2"], &[0x7461_636f], "other machines (OCFS2)"),
    (&["vboxsf"], &[0x786f_4256], "the host machine (VirtualBox)"),
    (&["autofs"], &[0x0187], "an automounter"),
    (&["fuse", "fuseblk", "fusectl"], &[0x6573_5546], FUSE),
];
const FUSE: &str = "a program in user space (FUSE)";

/// Who serves this type of file system (as the mount table names it), where it is not this kernel alone.
pub fn by_type(file_system: &str) -> Option<&'static str> {
    let known = KINDS.iter().find(|(names, ..)| names.contains(&file_system)).map(|(.., by)| *by);
    known.or_else(|| file_system.starts_with("fuse.").then_some(FUSE))
}

/// Who serves the bytes of a file system with this magic number, whose device has this major number. One on a block
/// device has another number than 0, also where a program serves it (`fuseblk`).
pub fn by_magic(magic: u64, major: u32) -> Option<&'static str> {
    let known = KINDS.iter().find(|(_, magics, _)| magics.contains(&magic)).map(|(.., by)| *by);
    known.filter(|_| major == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_name_and_by_number() {
        assert!(["nfs4", "fuse.sshfs", "fuseblk", "9p", "autofs"].into_iter().all(|t| by_type(t).is_some()));
        assert!(!["ext4", "xfs", "btrfs", "overlay", "tmpfs"].into_iter().any(|t| by_type(t).is_some()));
        assert_eq!(by_magic(0x6573_5546, 0), by_type("fuse.sshfs"));
        assert_eq!(by_magic(0x6573_5546, 8), None, "fuseblk is on a disk");
        assert_eq!(by_magic(0xef53, 0), None);
    }
}
