//! The device mapper's calls (`include/uapi/linux/dm-ioctl.h`), as far as reading a table of one target and loading it again
//! needs them. Devices are named by their UUID.
//!
//! Invariants: each call asks the kernel to wipe its copies; nothing is allocated, so that a handler of a signal may do it.

use std::mem::{offset_of, size_of};
use std::os::fd::RawFd;

/// `struct dm_ioctl`.
#[repr(C)]
struct Header {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; UUID_BYTES],
    data: [u8; 7],
}

/// `struct dm_target_spec`; the parameters follow, with a zero byte at their end.
#[repr(C)]
struct Spec {
    sector_start: u64,
    length: u64,
    status: i32,
    next: u32,
    target_type: [u8; 16],
}

/// `DM_UUID_LEN`.
pub(super) const UUID_BYTES: usize = 129;
const HEADER: usize = size_of::<Header>();
const SPEC: usize = size_of::<Spec>();
const PARAMETERS: usize = HEADER + SPEC;

const READ_ONLY: u32 = 1 << 0;
const SUSPENDED: u32 = 1 << 1;
const STATUS_TABLE: u32 = 1 << 4;
const INACTIVE_PRESENT: u32 = 1 << 6;
const BUFFER_FULL: u32 = 1 << 8;
const SKIP_LOCKFS: u32 = 1 << 10;
const NO_FLUSH: u32 = 1 << 11;
const SECURE_DATA: u32 = 1 << 15;

/// A call by its number.
#[derive(Clone, Copy)]
enum Call {
    /// `DM_DEV_SUSPEND`, which without the flag of suspending is a resume.
    Resume = 6,
    TableLoad = 9,
    TableClear = 10,
    TableStatus = 12,
}

/// What was read of a device.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    pub(super) kind: &'a [u8],
    /// The parameters of its only target; `None`: it has several.
    pub(super) parameters: Option<&'a [u8]>,
    pub(super) suspended: bool,
    /// A table was loaded and waits for a resume.
    pub(super) has_inactive: bool,
    start: u64,
    length: u64,
    read_only: bool,
}

/// An error number of the kernel.
pub(super) type Errno = i32;

/// Reads the live table into the buffer.
///
/// # Errors
/// The kernel's; ENXIO: there is no such device; E2BIG: the table is larger than the buffer.
pub(super) fn read<'a>(control: RawFd, uuid: &[u8], buffer: &'a mut [u8]) -> Result<Live<'a>, Errno> {
    begin(buffer, uuid, STATUS_TABLE | NO_FLUSH | SECURE_DATA);
    call(control, Call::TableStatus, buffer)?;
    let flags = word(buffer, offset_of!(Header, flags));
    if flags & BUFFER_FULL != 0 {
        return Err(libc::E2BIG);
    }
    let at = word(buffer, offset_of!(Header, data_start)) as usize;
    let single = word(buffer, offset_of!(Header, target_count)) == 1;
    let spec = buffer.get(at..).filter(|spec| spec.len() > SPEC).ok_or(libc::EPROTO)?;
    let kind = until_zero(&spec[offset_of!(Spec, target_type)..SPEC]);
    Ok(Live {
        kind,
        parameters: single.then(|| until_zero(&spec[SPEC..])),
        suspended: flags & SUSPENDED != 0,
        has_inactive: flags & INACTIVE_PRESENT != 0,
        start: long(spec, offset_of!(Spec, sector_start)),
        length: long(spec, offset_of!(Spec, length)),
        read_only: flags & READ_ONLY != 0,
    })
}

/// Loads a table of one target beside the live one. `parameters` writes them and returns their length, or `None` for want of
/// room. Returns whether the device is suspended.
///
/// # Errors
/// The kernel's, then nothing is loaded.
pub(super) fn load(
    control: RawFd,
    uuid: &[u8],
    like: &Live<'_>,
    buffer: &mut [u8],
    parameters: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> Result<bool, Errno> {
    begin(buffer, uuid, SECURE_DATA | if like.read_only { READ_ONLY } else { 0 });
    put(buffer, offset_of!(Header, target_count), &1u32.to_ne_bytes());
    // A zero byte stays behind the parameters.
    let end = buffer.len() - 1;
    let length = parameters(buffer.get_mut(PARAMETERS..end).ok_or(libc::E2BIG)?).ok_or(libc::E2BIG)?;
    let next = (SPEC + length + 1).next_multiple_of(8) as u32;
    put(buffer, HEADER + offset_of!(Spec, sector_start), &like.start.to_ne_bytes());
    put(buffer, HEADER + offset_of!(Spec, length), &like.length.to_ne_bytes());
    put(buffer, HEADER + offset_of!(Spec, next), &next.to_ne_bytes());
    put(buffer, HEADER + offset_of!(Spec, target_type), like.kind);
    call(control, Call::TableLoad, buffer)?;
    Ok(word(buffer, offset_of!(Header, flags)) & SUSPENDED != 0)
}

/// Makes the loaded table the live one. The kernel suspends and resumes the device within this call, as `cryptsetup refresh`
/// has it: requests under way are finished, later ones wait, and no file system is frozen.
///
/// # Errors
/// The kernel's; EINTR: a signal came, and the old table is still live.
pub(super) fn swap(control: RawFd, uuid: &[u8], buffer: &mut [u8]) -> Result<(), Errno> {
    begin(buffer, uuid, SKIP_LOCKFS | NO_FLUSH);
    call(control, Call::Resume, buffer)
}

/// Throws a loaded table away.
///
/// # Errors
/// The kernel's.
pub(super) fn clear(control: RawFd, uuid: &[u8], buffer: &mut [u8]) -> Result<(), Errno> {
    begin(buffer, uuid, 0);
    call(control, Call::TableClear, buffer)
}

/// The header of a call. Callers have a buffer that holds more than it, and a UUID that was checked.
fn begin(buffer: &mut [u8], uuid: &[u8], flags: u32) {
    buffer.fill(0);
    let size = buffer.len() as u32;
    // Interface version 4.0.0.
    put(buffer, offset_of!(Header, version), &4u32.to_ne_bytes());
    put(buffer, offset_of!(Header, data_size), &size.to_ne_bytes());
    put(buffer, offset_of!(Header, data_start), &(HEADER as u32).to_ne_bytes());
    put(buffer, offset_of!(Header, flags), &flags.to_ne_bytes());
    put(buffer, offset_of!(Header, uuid), uuid);
}

fn call(control: RawFd, call: Call, buffer: &mut [u8]) -> Result<(), Errno> {
    /// `_IOWR(DM_IOCTL, number, struct dm_ioctl)`.
    const BASE: u64 = 3 << 30 | (HEADER as u64) << 16 | 0xfd << 8;
    let number = BASE | call as u64;
    // SAFETY: the buffer is as long as its header says, and any bytes in it are valid.
    let result = unsafe { libc::ioctl(control, number as _, buffer.as_mut_ptr()) };
    if result >= 0 {
        return Ok(());
    }
    // SAFETY: errno is this thread's own.
    Err(unsafe { *libc::__errno_location() })
}

fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = buffer.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

fn word(buffer: &[u8], at: usize) -> u32 {
    buffer.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn long(buffer: &[u8], at: usize) -> u64 {
    buffer.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_laid_out_as_in_the_header_of_the_kernel() {
        assert_eq!((HEADER, SPEC), (312, 40));
        let header = [
            (offset_of!(Header, version), 0),
            (offset_of!(Header, data_size), 12),
            (offset_of!(Header, data_start), 16),
            (offset_of!(Header, target_count), 20),
            (offset_of!(Header, flags), 28),
            (offset_of!(Header, event_nr), 32),
            (offset_of!(Header, dev), 40),
            (offset_of!(Header, name), 48),
            (offset_of!(Header, uuid), 176),
            (offset_of!(Header, data), 305),
        ];
        let spec = [
            (offset_of!(Spec, sector_start), 0),
            (offset_of!(Spec, length), 8),
            (offset_of!(Spec, status), 16),
            (offset_of!(Spec, next), 20),
            (offset_of!(Spec, target_type), 24),
        ];
        for (found, expected) in header.into_iter().chain(spec) {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_call_has_its_size_its_flags_and_the_name_of_the_device() {
        let mut buffer = vec![9; 512];
        begin(&mut buffer, b"CRYPT-PLAIN-x", SECURE_DATA);
        assert_eq!((word(&buffer, 0), word(&buffer, 12), word(&buffer, 16)), (4, 512, 312));
        assert_eq!(word(&buffer, 28), 1 << 15);
        assert_eq!(&buffer[176..190], b"CRYPT-PLAIN-x\0");
        assert_eq!(buffer[48], 0, "the kernel refuses a name beside the UUID");
        // What is no device mapper refuses them all.
        let file = std::fs::File::open("/dev/null").unwrap();
        let control = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(read(control, b"x", &mut buffer).err(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_table_that_leaves_no_room_for_its_end_is_not_loaded() {
        let live = Live {
            kind: b"crypt",
            parameters: None,
            suspended: false,
            has_inactive: false,
            start: 0,
            length: 8,
            read_only: true,
        };
        let mut buffer = vec![0; PARAMETERS + 9];
        let file = std::fs::File::open("/dev/null").unwrap();
        let control = std::os::fd::AsRawFd::as_raw_fd(&file);
        let tried = load(control, b"u", &live, &mut buffer, |room| {
            assert_eq!(room.len(), 8);
            None
        });
        assert_eq!(tried, Err(libc::E2BIG));
        let refused = load(control, b"u", &live, &mut buffer, |room| {
            room.copy_from_slice(b"a b 0 c ");
            Some(8)
        });
        assert_eq!(refused, Err(libc::ENOTTY));
        assert_eq!((word(&buffer, 28), word(&buffer, 20)), (SECURE_DATA | READ_ONLY, 1));
        assert_eq!(word(&buffer, HEADER + 20) as usize % 8, 0);
        assert_eq!(&buffer[HEADER + 24..HEADER + 30], b"crypt\0");
        assert_eq!(&buffer[PARAMETERS..], b"a b 0 c \0");
    }
}
