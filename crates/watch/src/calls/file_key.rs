//! Which file the kernel means: the layout of `struct file_key` in `bpf/observer.bpf.c`.

/// Inode number; device number, and file type bits of `i_mode` with a half of the inode's generation above them, in one word: an
/// inode that is free is given to the next file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileKey(pub(crate) [u64; 2]);

impl FileKey {
    /// The keys that stand for all files of a type that have no place of their own.
    pub(crate) fn others() -> impl Iterator<Item = FileKey> {
        let of = |number: u32| FileKey([0, u64::from_ne_bytes(halves(0, number << 12))]);
        (0..=libc::S_IFMT >> 12).map(of)
    }

    /// Whether it is one of [`FileKey::others`]. No file has inode 0 on device 0.
    pub(crate) fn stands_for_many(self) -> bool {
        let FileKey([inode, device_and_type]) = self;
        let [a, b, c, d, ..] = device_and_type.to_ne_bytes();
        inode == 0 && [a, b, c, d] == [0; 4]
    }

    /// What it is, by the type bits of its mode (inode(7)), as in `FileUse::kind`.
    pub(crate) fn kind(self) -> &'static str {
        let FileKey([_, device_and_type]) = self;
        let [_, _, _, _, a, b, c, d] = device_and_type.to_ne_bytes();
        match u32::from_ne_bytes([a, b, c, d]) & libc::S_IFMT {
            libc::S_IFREG => "regular",
            libc::S_IFDIR => "directory",
            libc::S_IFBLK => "block-device",
            libc::S_IFCHR => "character-device",
            libc::S_IFIFO => "pipe",
            libc::S_IFSOCK => "socket",
            _ => "anonymous",
        }
    }

    /// Its device as `major:minor`.
    pub(crate) fn device(self) -> String {
        let (major, minor) = self.number_of_device();
        format!("{major}:{minor}")
    }

    /// Major and minor number of its device, which are in the kernel's own encoding: MKDEV of `include/linux/kdev_t.h`.
    pub(crate) fn number_of_device(self) -> (u32, u32) {
        let FileKey([_, device_and_type]) = self;
        let [a, b, c, d, ..] = device_and_type.to_ne_bytes();
        let device = u32::from_ne_bytes([a, b, c, d]);
        (device >> 20, device & 0xf_ffff)
    }

    /// Whether bytes of it have offsets.
    pub(crate) fn has_offsets(self) -> bool {
        matches!(self.kind(), "regular" | "directory" | "block-device")
    }
}

/// Two fields of four bytes, as they lie in memory.
fn halves(first: u32, second: u32) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d, e, f, g, h]
}
