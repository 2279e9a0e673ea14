//! Makes a static executable small enough for an initramfs: what is not loaded at run time (debug information, symbols,
//! section headers) is cut off. May not enter: anything that changes what is loaded.

const PROGRAM_HEADERS_AT: usize = 0x20;
const SECTION_HEADERS_AT: usize = 0x28;
const PROGRAM_HEADER_BYTES_AT: usize = 0x36;
const PROGRAM_HEADERS_COUNT_AT: usize = 0x38;
const SECTION_COUNT_AT: usize = 0x3c;
const SECTION_NAMES_AT: usize = 0x3e;
const SEGMENT_OFFSET_AT: usize = 0x08;
const SEGMENT_FILE_BYTES_AT: usize = 0x20;

/// The file up to the last byte that any segment loads; `None` if it is no 64-bit little-endian ELF file, or damaged.
pub(super) fn lean(elf: &[u8]) -> Option<Vec<u8>> {
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let headers = usize::try_from(u64_at(elf, PROGRAM_HEADERS_AT)?).ok()?;
    let each = usize::from(u16_at(elf, PROGRAM_HEADER_BYTES_AT)?);
    let count = usize::from(u16_at(elf, PROGRAM_HEADERS_COUNT_AT)?);
    let mut end = headers.checked_add(each.checked_mul(count)?)?;
    for index in 0..count {
        let at = headers + index * each;
        let offset = u64_at(elf, at + SEGMENT_OFFSET_AT)?;
        let bytes = u64_at(elf, at + SEGMENT_FILE_BYTES_AT)?;
        end = end.max(usize::try_from(offset.checked_add(bytes)?).ok()?);
    }
    let mut lean = elf.get(..end)?.to_vec();
    for (at, bytes) in [(SECTION_HEADERS_AT, 8), (SECTION_COUNT_AT, 2), (SECTION_NAMES_AT, 2)] {
        lean.get_mut(at..at + bytes)?.fill(0);
    }
    Some(lean)
}

/// A little-endian number in a file; `None` beyond its end.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The same of 32 bits.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The same of 16 bits.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_lean_program_is_smaller_and_still_runs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let lean = lean(&own).unwrap();
        assert!(lean.len() < own.len(), "{} of {}", lean.len(), own.len());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lean");
        std::fs::write(&path, lean).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A child that another test forks meanwhile holds the file open for writing until it becomes its program.
        let busy = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ExecutableFileBusy;
        let mut listed = Command::new(&path).arg("--list").output();
        for _ in 0..100 {
            if !listed.as_ref().is_err_and(busy) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            listed = Command::new(&path).arg("--list").output();
        }
        let listed = listed.unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("still_runs"), "{listed:?}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert_eq!(lean(b"#!/bin/sh"), None);
        assert_eq!(lean(b"\x7fELF\x02\x01"), None);
        let mut damaged = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        damaged.truncate(4096);
        assert_eq!(lean(&damaged), None);
    }
}
