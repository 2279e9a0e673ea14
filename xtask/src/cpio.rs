//! Writes a cpio archive in the "newc" format: the kernel unpacks one as its first file system, and an RPM package holds one.
//! May not enter: what goes into it.
//!
//! Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. Each entry is a header of "070701"
//! and 13 numbers of 8 hexadecimal digits, the name with a zero byte, and the data; both padded to four bytes.

const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER: u32 = 0o020_000;

/// An archive under construction. Folders must be added before what is in them.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// A folder that everybody may enter.
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER | 0o755, (0, 0), &[]);
    }

    /// A file; `mode` holds the permission bits.
    pub(crate) fn file(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entry(name, REGULAR | (mode & 0o7777), (0, 0), data);
    }

    /// A character device.
    pub(crate) fn character_device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, CHARACTER | 0o600, (major, minor), &[]);
    }

    /// The archive with its trailer.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.entries += 1;
        // A size beyond 32 bits cannot be said; what goes into a guest is megabytes.
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let links = if mode & FOLDER == FOLDER { 2 } else { 1 };
        let name_bytes = name.len() as u32 + 1;
        // Inode, mode, uid, gid, links, time, size, device of the file system (2), of the node (2), name, checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_bytes, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(&data[..size as usize]);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_a_name_and_data_each_padded_to_four() {
        let mut archive = Archive::default();
        archive.file("ab", 0o755, b"12345");
        archive.character_device("c", 5, 1);
        let bytes = archive.finish();
        let header = "070701000000010000 81ED".replace(' ', "");
        assert!(bytes.starts_with(header.as_bytes()), "{}", String::from_utf8_lossy(&bytes));
        // 110 bytes of header, three of name: 113 is padded to 116.
        assert_eq!(&bytes[110..116], b"ab\0\0\0\0");
        assert_eq!(&bytes[116..124], b"12345\0\0\0");
        let second = &bytes[124..];
        assert_eq!(&second[..6], b"070701");
        assert_eq!(&second[6 + 9 * 8..6 + 11 * 8], b"0000000500000001");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(10).any(|w| w == b"TRAILER!!!"));
    }
}
