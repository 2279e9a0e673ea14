//! Puts file systems that the host made onto devices of the guest. Images are mostly empty, so only their full parts
//! travel: an offset (8 bytes, little-endian), a length (4 bytes) and that many bytes, again and again.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

/// Writes the parts to a device or file and makes them durable.
///
/// # Errors
/// In words: a file that cannot be read or written, or that ends in the middle of a part.
pub(crate) fn unpack(image: &str, device: &str) -> Result<(), String> {
    let mut from = BufReader::new(File::open(image).map_err(|e| format!("cannot open {image}: {e}"))?);
    let to = File::options().write(true).open(device).map_err(|e| format!("cannot open {device}: {e}"))?;
    let mut header = [0; 12];
    loop {
        match from.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(format!("cannot read {image}: {e}")),
        }
        let [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = header;
        let offset = u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let mut bytes = vec![0; u32::from_le_bytes([l0, l1, l2, l3]) as usize];
        from.read_exact(&mut bytes).map_err(|e| format!("{image} is cut off: {e}"))?;
        to.write_all_at(&bytes, offset).map_err(|e| format!("cannot write to {device}: {e}"))?;
    }
    to.sync_all().map_err(|e| format!("cannot write to {device}: {e}"))
}

/// Fills a file with bytes that are neither zero nor equal from page to page.
///
/// # Errors
/// In words.
pub(crate) fn fill(path: &str, bytes: u64) -> Result<(), String> {
    let wrong = |e: std::io::Error| format!("cannot fill {path}: {e}");
    let mut file = File::options().write(true).create(true).truncate(false).open(path).map_err(wrong)?;
    const PIECE: usize = 64 << 10;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    let mut piece = vec![0u8; PIECE];
    while left > 0 {
        for word in piece.chunks_exact_mut(8) {
            // Steps of an xorshift generator: cheap, and without a period that a page could show.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let now = left.min(PIECE as u64);
        file.write_all(&piece[..now as usize]).map_err(wrong)?;
        left -= now;
    }
    file.sync_all().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_land_where_they_belong_and_a_cut_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let mut image = Vec::new();
        for (offset, part) in [(0u64, b"first"), (100, b"later")] {
            image.extend_from_slice(&offset.to_le_bytes());
            image.extend_from_slice(&(part.len() as u32).to_le_bytes());
            image.extend_from_slice(part);
        }
        std::fs::write(at("image"), &image).unwrap();
        std::fs::write(at("device"), "").unwrap();
        unpack(&at("image"), &at("device")).unwrap();
        let device = std::fs::read(at("device")).unwrap();
        assert_eq!((&device[..5], &device[100..]), (b"first".as_slice(), b"later".as_slice()));
        std::fs::write(at("image"), &image[..image.len() - 1]).unwrap();
        assert!(unpack(&at("image"), &at("device")).unwrap_err().contains("cut off"));
    }

    #[test]
    fn a_filled_file_has_no_two_equal_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full").to_string_lossy().into_owned();
        fill(&path, 3 * 4096 + 5).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 3 * 4096 + 5);
        assert_ne!(bytes[..4096], bytes[4096..8192]);
    }
}
