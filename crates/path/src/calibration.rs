//! Calibration cells: the same request answered by one layer more each time, as in the Minix posting of 1989 (`/dev/null`,
//! a null block device, the raw disk, the block disk, the file). [`crate::fit`] solves them for the cost of each layer.

use iowhy_core::cell::CellRun;

/// What answers the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CalibrationCell {
    /// The cheapest system call: entry, descriptor look-up, exit.
    Syscall,
    /// `pread` from `/dev/null`: the call and the dispatch through the VFS; no byte moves.
    NullDevice,
    /// `pread` at the end of the file: call, VFS and file system; no page is looked up and no byte moves.
    EndOfFile,
    /// `pread` from `/dev/zero`: and user memory is zeroed.
    ZeroDevice,
    /// `pread` from a memory file: page cache and copy, no file system with a disk layout, no device.
    Memory,
    /// `pread` from a file that is wholly in the cache.
    CachedFile,
    /// One byte of each page loaded from a mapping of a cached file.
    MappedFile,
    /// `pread` from a file that is not in the cache.
    ColdFile,
    /// `pread` with O_DIRECT from the block device under the file (root only).
    RawDevice,
    /// `pread` with O_DIRECT from the file.
    DirectFile,
    /// A page of a cached file through io_uring, many in flight: the call is shared by a batch.
    RingMemory,
    /// A page of the file with O_DIRECT through io_uring, many in flight; the depth is the workload's.
    DirectDeep,
}

impl CalibrationCell {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            CalibrationCell::Syscall => "syscall",
            CalibrationCell::NullDevice => "null-device",
            CalibrationCell::EndOfFile => "end-of-file",
            CalibrationCell::ZeroDevice => "zero-device",
            CalibrationCell::Memory => "memory",
            CalibrationCell::CachedFile => "cached-file",
            CalibrationCell::MappedFile => "mapped-file",
            CalibrationCell::ColdFile => "cold-file",
            CalibrationCell::RawDevice => "raw-device",
            CalibrationCell::DirectFile => "direct-file",
            CalibrationCell::RingMemory => "ring-memory",
            CalibrationCell::DirectDeep => "direct-deep",
        }
    }

    /// Whether the cost does not depend on the block size, so that one cell serves every size.
    fn sizeless(self) -> bool {
        matches!(self, CalibrationCell::Syscall | CalibrationCell::NullDevice | CalibrationCell::EndOfFile)
    }

    /// Whether it is measured at several block sizes. A cell with one size says what a call or a queue costs, and cannot be
    /// held out of the fit.
    pub(crate) fn spans_sizes(self) -> bool {
        !self.sizeless() && !matches!(self, CalibrationCell::RingMemory | CalibrationCell::DirectDeep)
    }
}

/// A measured calibration cell.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationRun<'a> {
    /// What answered.
    pub cell: CalibrationCell,
    /// Its rounds; the block size is the workload's.
    pub run: &'a CellRun,
}
