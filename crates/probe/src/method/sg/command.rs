//! The SCSI side: command descriptor blocks of READ BUFFER and the meaning of sense data, as SPC-4 defines them.

use rustix::io::Errno;

/// READ BUFFER (10).
pub(super) const READ_BUFFER: u8 = 0x3c;
/// Mode "data": the bytes of the buffer alone, without a header.
const MODE_DATA: u8 = 0x02;
/// Mode "descriptor": four bytes that tell the buffer's capacity.
const MODE_DESCRIPTOR: u8 = 0x03;

/// Length of the answer in descriptor mode.
pub(super) const DESCRIPTOR_BYTES: usize = 4;

/// The allocation length is a 24-bit field.
pub(super) const MAX_TRANSFER_BYTES: usize = (1 << 24) - 1;

/// A ten-byte command descriptor block.
pub(super) type Cdb = [u8; 10];

/// READ BUFFER, data mode: `bytes` from the start of buffer 0. At most [`MAX_TRANSFER_BYTES`] (more is cut to 24 bits).
pub(super) fn read_data(bytes: usize) -> Cdb {
    read_buffer(MODE_DATA, bytes)
}

/// READ BUFFER, descriptor mode, of buffer 0.
pub(super) fn read_descriptor() -> Cdb {
    read_buffer(MODE_DESCRIPTOR, DESCRIPTOR_BYTES)
}

/// Opcode, mode, buffer id, 24-bit buffer offset, 24-bit allocation length, control.
fn read_buffer(mode: u8, bytes: usize) -> Cdb {
    let length = bytes as u32;
    [READ_BUFFER, mode, 0, 0, 0, 0, (length >> 16) as u8, (length >> 8) as u8, length as u8, 0]
}

/// The capacity in a descriptor: its first byte is the offset boundary, the next three the capacity, big-endian.
pub(super) fn capacity_bytes(descriptor: [u8; DESCRIPTOR_BYTES]) -> usize {
    let [_, high, middle, low] = descriptor;
    u32::from_be_bytes([0, high, middle, low]) as usize
}

/// Error report of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sense {
    /// Sense key, 0 to 15.
    pub(super) key: u8,
    /// Additional sense code.
    pub(super) asc: u8,
    /// Additional sense code qualifier.
    pub(super) ascq: u8,
}

impl Sense {
    /// Reads sense data in fixed (70h, 71h) or descriptor format (72h, 73h); `None` when it is neither or cut off.
    pub(super) fn parse(bytes: &[u8]) -> Option<Sense> {
        match bytes.first()? & 0x7f {
            0x70 | 0x71 => Some(Sense {
                key: bytes.get(2)? & 0x0f,
                asc: bytes.get(12).copied().unwrap_or(0),
                ascq: bytes.get(13).copied().unwrap_or(0),
            }),
            0x72 | 0x73 => {
                Some(Sense { key: bytes.get(1)? & 0x0f, asc: *bytes.get(2)?, ascq: *bytes.get(3)? })
            }
            _ => None,
        }
    }

    /// The data arrived all the same: NO SENSE and RECOVERED ERROR.
    pub(super) fn is_success(self) -> bool {
        self.key <= 1
    }

    /// The standard's name of the key.
    pub(super) fn name(self) -> &'static str {
        KEYS[usize::from(self.key & 0x0f)].name
    }

    /// The name of the call, with the sense key, for a failure in the timed part.
    pub(super) fn call(self) -> &'static str {
        KEYS[usize::from(self.key & 0x0f)].call
    }

    /// The nearest errno.
    pub(super) fn errno(self) -> Errno {
        KEYS[usize::from(self.key & 0x0f)].errno
    }
}

struct Key {
    name: &'static str,
    call: &'static str,
    errno: Errno,
}

macro_rules! keys {
    ($($name:literal $errno:ident,)*) => {
        [$(Key { name: $name, call: concat!("SG_IO READ BUFFER (sense key ", $name, ")"), errno: Errno::$errno }),*]
    };
}

/// SPC-4, table of sense keys.
static KEYS: [Key; 16] = keys! {
    "NO SENSE" IO,
    "RECOVERED ERROR" IO,
    "NOT READY" NOMEDIUM,
    "MEDIUM ERROR" IO,
    "HARDWARE ERROR" IO,
    "ILLEGAL REQUEST" INVAL,
    "UNIT ATTENTION" AGAIN,
    "DATA PROTECT" PERM,
    "BLANK CHECK" IO,
    "VENDOR SPECIFIC" IO,
    "COPY ABORTED" IO,
    "ABORTED COMMAND" IO,
    "RESERVED" IO,
    "VOLUME OVERFLOW" IO,
    "MISCOMPARE" IO,
    "COMPLETED" IO,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_blocks_are_those_of_the_standard() {
        assert_eq!(read_descriptor(), [0x3c, 0x03, 0, 0, 0, 0, 0, 0, 4, 0]);
        assert_eq!(read_data(0x01_02_03), [0x3c, 0x02, 0, 0, 0, 0, 1, 2, 3, 0]);
        assert_eq!(read_data(4096), [0x3c, 0x02, 0, 0, 0, 0, 0, 0x10, 0, 0]);
        assert_eq!(read_data(MAX_TRANSFER_BYTES)[6..9], [0xff; 3]);
    }

    #[test]
    fn the_capacity_is_three_bytes_after_the_offset_boundary() {
        assert_eq!(capacity_bytes([0xff, 0x00, 0x80, 0x00]), 32 << 10);
        assert_eq!(capacity_bytes([9, 0xff, 0xff, 0xff]), MAX_TRANSFER_BYTES);
    }

    #[test]
    fn sense_is_read_in_both_formats() {
        // Invalid command operation code: what a device without READ BUFFER answers.
        let mut fixed = [0u8; 18];
        (fixed[0], fixed[2], fixed[7], fixed[12]) = (0x70, 0x05, 10, 0x20);
        let illegal = Sense { key: 5, asc: 0x20, ascq: 0 };
        assert_eq!(Sense::parse(&fixed), Some(illegal));
        assert_eq!((illegal.name(), illegal.errno()), ("ILLEGAL REQUEST", Errno::INVAL));
        assert_eq!(illegal.call(), "SG_IO READ BUFFER (sense key ILLEGAL REQUEST)");
        // Power on occurred, in descriptor format; bit 7 of the first byte does not matter to the format.
        let unit_attention = Sense { key: 6, asc: 0x29, ascq: 1 };
        assert_eq!(Sense::parse(&[0x72, 6, 0x29, 1, 0, 0, 0, 0]), Some(unit_attention));
        assert_eq!(Sense::parse(&[0xf0, 0, 6]), Some(Sense { key: 6, asc: 0, ascq: 0 }));
        assert_eq!(Sense::parse(&[0x72, 6]), None);
        assert_eq!(Sense::parse(&[0x7f; 18]), None);
        assert_eq!(Sense::parse(&[]), None);
    }

    #[test]
    fn only_the_first_two_keys_let_the_data_stand() {
        let good = (0..16).filter(|&key| Sense { key, asc: 0, ascq: 0 }.is_success()).collect::<Vec<_>>();
        assert_eq!(good, [0, 1]);
    }
}
