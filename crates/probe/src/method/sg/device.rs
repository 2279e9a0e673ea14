//! An open sg device: its system calls, each in one small wrapper, and its mapped reserve buffer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{FileType, fstat, major};
use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Getter, Opcode, Setter, Updater, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::header::{Header, Moved, Rejected, Transfer};

const SG_SET_RESERVED_SIZE: Opcode = 0x2275;
const SG_GET_RESERVED_SIZE: Opcode = 0x2272;
const SG_GET_VERSION_NUM: Opcode = 0x2282;
const SG_IO: Opcode = 0x2285;

/// Major device number of /dev/sg*.
const SCSI_GENERIC_MAJOR: u32 = 21;

/// Kind of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// A SCSI generic device.
    Sg,
    /// A block device: the block layer knows SG_IO too, but neither the reserve buffer nor the ways around the copy.
    Block,
    /// Anything else.
    Other,
}

/// Looks at the descriptor without touching the device.
pub(super) fn nature(file: &OwnedFd) -> Result<Nature, Errno> {
    let stat = fstat(file)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if major(stat.st_rdev) == SCSI_GENERIC_MAJOR => Nature::Sg,
        FileType::BlockDevice => Nature::Block,
        _ => Nature::Other,
    })
}

/// The driver's version, e.g. 30536 for 3.5.36. ENOTTY from anything that is not sg.
pub(super) fn version(file: impl AsFd) -> Result<i32, Errno> {
    // SAFETY: this request writes one int.
    unsafe { ioctl(file, Getter::<SG_GET_VERSION_NUM, i32>::new()) }
}

/// Asks for a reserve buffer of this size and returns the size that there is now.
pub(super) fn reserve(file: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
    let wanted = i32::try_from(bytes).map_err(|_| Errno::INVAL)?;
    // SAFETY: this request reads one int.
    unsafe { ioctl(file, Setter::<SG_SET_RESERVED_SIZE, i32>::new(wanted)) }?;
    // SAFETY: this request writes one int.
    let got = unsafe { ioctl(file, Getter::<SG_GET_RESERVED_SIZE, i32>::new()) }?;
    Ok(usize::try_from(got).unwrap_or(0))
}

/// Why a command came to nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The driver refused it.
    Call(Errno),
    /// The device or the way to it refused it.
    Command(Rejected),
}

/// Sends a command that reads and waits for its end. `data` is used if the transfer names memory.
pub(super) fn send(
    file: BorrowedFd<'_>,
    command: &[u8],
    transfer: Transfer,
    data: &mut [u8],
    bytes: usize,
) -> Result<Moved, Trouble> {
    if transfer.names_memory() && bytes > data.len() {
        return Err(Trouble::Call(Errno::INVAL));
    }
    let mut sense = [0u8; 64];
    let mut header = Header::read(command, transfer, data.as_mut_ptr(), bytes, &mut sense);
    // A signal leaves the command to sg, which throws its result away: it is sent again.
    retry_on_intr(|| {
        // SAFETY: the request reads and writes one `sg_io_hdr_t`, whose layout `Header` has. It names `command`, `sense`
        // and, if it names memory, the first `bytes` of `data`: all alive and, the last two, borrowed for writing here.
        // What a signal leaves behind writes to pinned pages of `data` at most, whose owner is a mapping of its own.
        unsafe { ioctl(file, Updater::<SG_IO, Header>::new(&mut header)) }
    })
    .map_err(Trouble::Call)?;
    header.outcome(&sense).map_err(Trouble::Command)
}

/// sg's reserve buffer, mapped for reading.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first `bytes` of the reserve buffer, which must be that large.
    pub(super) fn new(file: &OwnedFd, bytes: usize) -> Result<Mapping, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0) }?;
        NonNull::new(start.cast()).map(|start| Mapping { start, bytes }).ok_or(Errno::NOMEM)
    }

    /// The first `bytes`, as the last command left them.
    pub(super) fn front(&self, bytes: usize) -> &[u8] {
        // SAFETY: mapped for reading while `self` lives; only a command writes to it, and commands need `&mut` of the
        // owner of this mapping, so that none runs while the slice lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), bytes.min(self.bytes)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no borrow outlives `self`. A failure leaves a mapping behind and nothing else.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
