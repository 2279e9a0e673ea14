//! Which file the kernel means: the layout of `struct file_key` in `bpf/observer.bpf.c`.

/// Inode number; device number and file type bits of `i_mode` in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileKey(pub(crate) [u64; 2]);

impl FileKey {
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

    /// Whether bytes of it have offsets.
    pub(crate) fn has_offsets(self) -> bool {
        matches!(self.kind(), "regular" | "directory" | "block-device")
    }
}
