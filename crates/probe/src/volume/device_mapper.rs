//! The table of a mapping, from /dev/mapper/control (linux/dm-ioctl.h, interface 4). Only asks, never sets.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// One segment of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// `linear`, `striped`, `crypt`.
    pub(super) kind: String,
    /// What that kind is given.
    pub(super) parameters: String,
}

const CONTROL: &str = "/dev/mapper/control";
/// Bytes of `struct dm_ioctl`.
const HEADER_BYTES: usize = 312;
/// Bytes of `struct dm_target_spec`.
const SPEC_BYTES: usize = 40;
/// Where in the header things are.
const AT_DATA_SIZE: usize = 12;
const AT_DATA_START: usize = 16;
const AT_TARGET_COUNT: usize = 20;
const AT_FLAGS: usize = 28;
const AT_NAME: usize = 48;
const NAME_BYTES: usize = 128;
/// DM_STATUS_TABLE_FLAG: the table, not the state.
const TABLE_FLAG: u32 = 1 << 4;
/// DM_BUFFER_FULL_FLAG.
const FULL_FLAG: u32 = 1 << 8;
/// DM_TABLE_STATUS: _IOWR(0xfd, 12, struct dm_ioctl).
const TABLE_STATUS: u64 = 3 << 30 | (HEADER_BYTES as u64) << 16 | 0xfd << 8 | 12;
/// Answers larger than this are given up.
const MAX_BYTES: usize = 1 << 20;

/// The table of the mapping of this name, or in words why there is none.
pub(super) fn table(name: &str) -> Result<Vec<Mapping>, String> {
    if name.is_empty() || name.len() >= NAME_BYTES || name.contains('\0') {
        return Err("the mapping has no name".to_owned());
    }
    let control = File::open(CONTROL).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{CONTROL} needs root: `sudo iowhy stripe lint ...` (only asks)")
        }
        _ => format!("{CONTROL}: {error}"),
    })?;
    let mut bytes = 16 << 10;
    loop {
        let mut buffer = request(name, bytes);
        // SAFETY: the request reads and writes at most `data_size` bytes from the address, which are those of `buffer`; it
        // lives through the call. The kernel only asks for an alignment of bytes here: it copies.
        let result = unsafe { libc::ioctl(control.as_raw_fd(), TABLE_STATUS as _, buffer.as_mut_ptr()) };
        if result != 0 {
            return Err(format!("{CONTROL}: {}", io::Error::last_os_error()));
        }
        if number(&buffer, AT_FLAGS) & FULL_FLAG == 0 {
            return read(&buffer).ok_or_else(|| "the kernel's answer makes no sense".to_owned());
        }
        bytes *= 4;
        if bytes > MAX_BYTES {
            return Err("its table is longer than 1 MiB".to_owned());
        }
    }
}

/// The question, with room for the answer.
fn request(name: &str, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0u8; bytes];
    let mut put = |at: usize, value: u32| buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(0, 4);
    put(AT_DATA_SIZE, bytes as u32);
    put(AT_DATA_START, HEADER_BYTES as u32);
    put(AT_FLAGS, TABLE_FLAG);
    buffer[AT_NAME..AT_NAME + name.len()].copy_from_slice(name.as_bytes());
    buffer
}

/// The segments of an answer; `None` when it points outside itself.
fn read(buffer: &[u8]) -> Option<Vec<Mapping>> {
    let data = buffer.get(number(buffer, AT_DATA_START) as usize..)?;
    let count = number(buffer, AT_TARGET_COUNT);
    let mut at = 0usize;
    let mut mappings = Vec::new();
    for _ in 0..count {
        let spec = data.get(at..at.checked_add(SPEC_BYTES)?)?;
        let parameters = text(data.get(at + SPEC_BYTES..)?);
        mappings.push(Mapping { kind: text(spec.get(24..)?), parameters });
        // Counted from the first of them.
        let next = number(spec, 20) as usize;
        if next <= at {
            break;
        }
        at = next;
    }
    (mappings.len() as u32 == count || count == 0).then_some(mappings)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|field| field.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The text up to its zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(segments: &[(&str, &str)]) -> Vec<u8> {
        let mut buffer = request("vg-s", 4096);
        buffer[AT_TARGET_COUNT..AT_TARGET_COUNT + 4].copy_from_slice(&(segments.len() as u32).to_ne_bytes());
        let mut at = 0usize;
        for (kind, parameters) in segments {
            let next = (at + SPEC_BYTES + parameters.len() + 1).next_multiple_of(8);
            let spec = HEADER_BYTES + at;
            buffer[spec + 20..spec + 24].copy_from_slice(&(next as u32).to_ne_bytes());
            buffer[spec + 24..spec + 24 + kind.len()].copy_from_slice(kind.as_bytes());
            let from = spec + SPEC_BYTES;
            buffer[from..from + parameters.len()].copy_from_slice(parameters.as_bytes());
            at = next;
        }
        buffer
    }

    #[test]
    fn an_answer_is_read_segment_by_segment_and_a_broken_one_is_none() {
        let two = answer(&[("striped", "2 128 8:0 0 8:16 0"), ("linear", "8:32 0")]);
        let table = read(&two).unwrap();
        assert_eq!((table[0].kind.as_str(), table[0].parameters.as_str()), ("striped", "2 128 8:0 0 8:16 0"));
        assert_eq!(table[1].kind, "linear");
        let mut far = two.clone();
        far[HEADER_BYTES + 20..HEADER_BYTES + 24].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(read(&far), None);
        let mut many = two.clone();
        many[AT_TARGET_COUNT..AT_TARGET_COUNT + 4].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(read(&many), None);
        assert_eq!(read(&[0; 8]), Some(Vec::new()));
        assert!(table_is_refused_for(&"x".repeat(200)) && table_is_refused_for(""));
    }

    fn table_is_refused_for(name: &str) -> bool {
        table(name).is_err()
    }
}
