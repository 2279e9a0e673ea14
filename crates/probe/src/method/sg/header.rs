//! The sg driver's side: the header of SG_IO (version 3), how a command is put into it and how its outcome is read.
//!
//! Invariant: nothing here calls the kernel; a header's pointers are only as good as what the caller put in.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

use rustix::io::Errno;

use super::command::Sense;

/// Data buffer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    /// Into sg's buffer, then copied to user memory.
    Indirect,
    /// By the device into user memory, if sg allows it.
    Direct,
    /// Into sg's reserve buffer, which is mapped into user memory.
    Mapped,
    /// Into sg's buffer, where it stays.
    KernelOnly,
}

impl Transfer {
    /// SG_FLAG_*. Since Linux 2.6.28 sg leaves the copy out because the data pointer is null and no longer looks at
    /// SG_FLAG_NO_DXFER; both are given.
    fn flags(self) -> u32 {
        match self {
            Transfer::Indirect => 0,
            Transfer::Direct => 1,
            Transfer::Mapped => 4,
            Transfer::KernelOnly => 0x10000,
        }
    }

    /// Whether the header names user memory for the data.
    pub(super) fn names_memory(self) -> bool {
        matches!(self, Transfer::Indirect | Transfer::Direct)
    }
}

/// `sg_io_hdr_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut c_void,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<Header>() == 88
        && offset_of!(Header, dxferp) == 16
        && offset_of!(Header, usr_ptr) == 56
        && offset_of!(Header, status) == 64
        && offset_of!(Header, resid) == 72
        && offset_of!(Header, info) == 80
);
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<Header>() == 64 && offset_of!(Header, status) == 44);

const INTERFACE_ID: i32 = 'S' as i32;
const DXFER_FROM_DEV: i32 = -3;
const INFO_DIRECT_IO_MASK: u32 = 6;
const INFO_DIRECT_IO: u32 = 2;
/// `driver_status`: sense data is there (kernels before 5.14 set it beside CHECK CONDITION).
const DRIVER_SENSE: u16 = 8;
/// Long enough for a disk that spins up first.
const TIMEOUT_MS: u32 = 30_000;

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// Bytes requested less the residual count.
    pub(super) bytes: usize,
    /// The device wrote to user memory itself.
    pub(super) direct: bool,
}

/// Why a command moved nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    /// The call's name with the cause, for a failure in the timed part.
    pub(super) call: &'static str,
    /// The nearest errno.
    pub(super) errno: Errno,
    status: u8,
    host_status: u16,
    driver_status: u16,
    sense: Option<Sense>,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(sense) = self.sense {
            return write!(
                f,
                "the device answers {} (sense key {:X}h, additional code {:02X}h/{:02X}h)",
                sense.name(),
                sense.key,
                sense.asc,
                sense.ascq
            );
        }
        let Rejected { status, host_status, driver_status, .. } = self;
        write!(
            f,
            "SCSI status {status:02X}h, host status {host_status:02X}h, driver status {driver_status:02X}h"
        )
    }
}

impl Header {
    /// A command that reads `bytes` from the device. `data` is used only if the transfer names memory.
    pub(super) fn read(
        command: &[u8],
        transfer: Transfer,
        data: *mut u8,
        bytes: usize,
        sense: &mut [u8],
    ) -> Header {
        Header {
            interface_id: INTERFACE_ID,
            dxfer_direction: DXFER_FROM_DEV,
            cmd_len: command.len() as u8,
            mx_sb_len: sense.len().min(usize::from(u8::MAX)) as u8,
            iovec_count: 0,
            dxfer_len: bytes as u32,
            dxferp: if transfer.names_memory() { data.cast() } else { std::ptr::null_mut() },
            cmdp: command.as_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout: TIMEOUT_MS,
            flags: transfer.flags(),
            pack_id: 0,
            usr_ptr: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        }
    }

    /// Reads the outcome after SG_IO; `sense` is the memory the header named.
    pub(super) fn outcome(&self, sense: &[u8]) -> Result<Moved, Rejected> {
        let sense = Sense::parse(&sense[..usize::from(self.sb_len_wr).min(sense.len())]);
        let transported = self.host_status == 0 && self.driver_status & !DRIVER_SENSE == 0;
        let accepted = self.status == 0 || sense.is_some_and(Sense::is_success);
        if transported && accepted {
            let residual = u32::try_from(self.resid).unwrap_or(0);
            return Ok(Moved {
                bytes: self.dxfer_len.saturating_sub(residual) as usize,
                direct: self.info & INFO_DIRECT_IO_MASK == INFO_DIRECT_IO,
            });
        }
        Err(Rejected {
            call: sense.map_or("SG_IO READ BUFFER", Sense::call),
            errno: sense.map_or(Errno::IO, Sense::errno),
            status: self.status,
            host_status: self.host_status,
            driver_status: self.driver_status,
            sense,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    fn header(transfer: Transfer, sense: &mut [u8]) -> Header {
        Header::read(&command::read_data(4096), transfer, 0x1000 as *mut u8, 4096, sense)
    }

    #[test]
    fn a_read_says_what_sg_expects() {
        let cdb = command::read_data(4096);
        let mut sense = [0; 32];
        let header = Header::read(&cdb, Transfer::Indirect, 0x1000 as *mut u8, 4096, &mut sense);
        assert_eq!((header.interface_id, header.dxfer_direction), (0x53, -3));
        assert_eq!((header.cmd_len, header.mx_sb_len, header.iovec_count), (10, 32, 0));
        assert_eq!((header.dxfer_len, header.dxferp as usize, header.flags), (4096, 0x1000, 0));
        assert_eq!((header.cmdp, header.sbp.cast_const()), (cdb.as_ptr(), sense.as_ptr()));
    }

    #[test]
    fn each_transfer_has_its_flag_and_only_two_name_memory() {
        for (transfer, flag, named) in [
            (Transfer::Indirect, 0, true),
            (Transfer::Direct, 1, true),
            (Transfer::Mapped, 4, false),
            (Transfer::KernelOnly, 0x10000, false),
        ] {
            let header = header(transfer, &mut [0; 8]);
            assert_eq!((header.flags, !header.dxferp.is_null()), (flag, named), "{transfer:?}");
        }
    }

    #[test]
    fn the_outcome_counts_the_residual_and_tells_direct_from_indirect() {
        let good = header(Transfer::Direct, &mut []);
        assert_eq!(good.outcome(&[]), Ok(Moved { bytes: 4096, direct: false }));
        assert_eq!(Header { info: 2, ..good }.outcome(&[]), Ok(Moved { bytes: 4096, direct: true }));
        assert_eq!(
            Header { info: 4, ..good }.outcome(&[]).map(|m| m.direct),
            Ok(false),
            "mixed is not direct"
        );
        let bytes = |resid| Header { resid, ..good }.outcome(&[]).map(|m| m.bytes);
        assert_eq!((bytes(96), bytes(5000), bytes(-1)), (Ok(4000), Ok(0), Ok(4096)));
    }

    #[test]
    fn check_condition_is_a_rejection_that_names_the_sense_key() {
        let mut sense = [0u8; 32];
        (sense[0], sense[2], sense[12]) = (0x70, 5, 0x24);
        let good = header(Transfer::Indirect, &mut sense);
        for driver_status in [0, DRIVER_SENSE] {
            let rejected =
                Header { status: 2, driver_status, sb_len_wr: 18, ..good }.outcome(&sense).unwrap_err();
            assert_eq!(rejected.errno, Errno::INVAL);
            let text = rejected.to_string();
            assert_eq!(text, "the device answers ILLEGAL REQUEST (sense key 5h, additional code 24h/00h)");
        }
        sense[2] = 1;
        let recovered = Header { status: 2, sb_len_wr: 18, ..good }.outcome(&sense);
        assert_eq!(recovered, Ok(Moved { bytes: 4096, direct: false }), "RECOVERED ERROR: the data stands");
    }

    #[test]
    fn a_failure_below_the_device_is_one_even_without_sense() {
        let good = header(Transfer::Indirect, &mut []);
        for bad in [
            Header { host_status: 3, ..good },
            Header { driver_status: 6, ..good },
            Header { status: 8, ..good },
            Header { status: 2, sb_len_wr: 200, ..good },
        ] {
            let rejected = bad.outcome(&[]).unwrap_err();
            assert_eq!((rejected.call, rejected.errno), ("SG_IO READ BUFFER", Errno::IO));
        }
        let text = Header { host_status: 3, ..good }.outcome(&[]).unwrap_err().to_string();
        assert_eq!(text, "SCSI status 00h, host status 03h, driver status 00h");
    }
}
