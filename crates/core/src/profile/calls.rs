//! System calls and files, as the observer in the kernel counts them.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// System calls of the whole run, each counted by the observer in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// Whether every thread was counted. If not, there were more threads than the observer has places for, and counts are lower
    /// bounds.
    pub complete: bool,
    /// Counts by system call, most first.
    pub calls: Vec<CallCount>,
}

/// One system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCount {
    /// Its name, as in the manual: `pread64`, `fdatasync`.
    pub name: String,
    /// Calls that returned.
    pub calls: u64,
    /// Of these, calls that failed (returned an error).
    pub failed: u64,
    /// Of those, how many with which error: `ENOENT`, `EAGAIN`. Empty where none failed, and in earlier records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Their time: the number of calls times the mean duration of those that were recorded (inferred); 0 where none was.
    pub time_ns: u64,
    /// Sum of bytes returned, where the call moves bytes.
    pub bytes: u64,
}

impl CallCount {
    /// Calls that did what they are for.
    pub fn succeeded(&self) -> u64 {
        self.calls.saturating_sub(self.failed)
    }
}

/// A share that was sampled: `hits` of `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledShare {
    /// How many had the property.
    pub hits: u64,
    /// Of how many that were looked at.
    pub n: u64,
}

impl SampledShare {
    /// The share; `None` when nothing was looked at.
    pub fn value(self) -> Option<f64> {
        (self.n > 0).then(|| self.hits as f64 / self.n as f64)
    }

    /// The 95 % interval of the share by Wilson's formula (Wilson 1927, J. Am. Stat. Assoc. 22): right also near 0 and
    /// 1. It takes the looks as independent.
    pub fn interval(self) -> Option<(f64, f64)> {
        const Z: f64 = 1.96;
        let p = self.value()?;
        let n = self.n as f64;
        let denominator = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / denominator;
        let arm = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
        Some(((centre - arm).max(0.0), (centre + arm).min(1.0)))
    }
}

/// Number of classes in size histograms.
pub const SIZE_CLASSES: usize = 32;

/// The class of a request size: class `k` holds sizes in `2^(k-1) < size <= 2^k`; 0 and 1 byte are class 0.
pub fn size_class(bytes: u64) -> usize {
    // A program may ask for any number, though the kernel moves at most 2 GiB at once.
    (bytes.clamp(1, 1 << 63).next_power_of_two().trailing_zeros() as usize).min(SIZE_CLASSES - 1)
}

/// Reads, or writes, of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Calls that succeeded. Those that moved no byte (end of file) are in none of the shares of place.
    pub calls: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Time in them.
    pub time_ns: u64,
    /// Calls by [`size_class`] of the bytes asked for.
    pub sizes: Vec<u64>,
    /// Calls that began where the one before on the same descriptor ended.
    pub sequential: SampledShare,
    /// Calls whose offset or length was not a multiple of 4096 bytes.
    pub unaligned: SampledShare,
    /// Calls of which at least one byte had been moved before, by the marks that they covered (one byte in each group of blocks).
    pub repeated: SampledShare,
    /// Bytes of the union of all intervals, estimated from the marks: equals `bytes` when nothing was repeated. Bytes whose
    /// offset is not known count as distinct.
    pub distinct_bytes: u64,
    /// Calls right after an lseek on the same descriptor that moved it away from where the call before had ended.
    pub after_seek: SampledShare,
    /// Calls on descriptors opened with O_DIRECT.
    pub direct: SampledShare,
    /// Calls on descriptors opened with O_SYNC or O_DSYNC.
    pub synchronous: SampledShare,
}

pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Calls on all files of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindUse {
    /// As [`FileUse::kind`].
    pub kind: String,
    /// Calls that read and succeeded, `recv` on sockets included.
    pub read_calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Calls that wrote and succeeded, `send` on sockets included.
    pub write_calls: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// Sockets by the side that the program has in their connections. Where it has both, as with a client that is watched as well, each end
/// is in its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Those that it accepted: it returned from accept while it was watched, or a table of the kernel has it at the address of a socket
    /// that listens.
    pub accepted: SocketUse,
    /// Those that a table has and that it did not accept: it connected itself, they are pairs, or have no connection.
    pub other: SocketUse,
    /// Those that were opened and closed between two looks at the tables, without accept.
    pub unknown: SocketUse,
}

/// Calls on sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketUse {
    /// Sockets that were read from and written to.
    pub sockets: u64,
    /// Calls that read and succeeded.
    pub read_calls: u64,
    /// Calls that wrote and succeeded.
    pub write_calls: u64,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileUse {
    /// Its path, or what `/proc/PID/fd` calls it (`pipe:[123]`); `?` for all files whose path could not be learnt in
    /// time, `others` for all files beyond the bound.
    pub path: String,
    /// What it is: `regular`, `directory`, `block-device`, `character-device`, `pipe`, `socket`, `anonymous`,
    /// `unknown`.
    pub kind: String,
    /// File-system type.
    pub file_system: Option<String>,
    /// Where its file system is mounted, by the mount table that the program saw; absent where its path tells no mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_point: Option<String>,
    /// Kernel name of the block device its bytes are on.
    pub device: Option<String>,
    /// Kernel name of the volume (device mapper, md) through which they come to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Size at the end.
    pub size_bytes: Option<u64>,
    /// It never held more bytes while it was watched, unless it was made longer without a write: the largest of its sizes when it was met, when it was looked
    /// at and at the end, and what was written to it. Of `others` the sum. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_bytes: Option<u64>,
    /// Bytes of it at the end that are in holes, which hold no data and read as zeros (SEEK_DATA, SEEK_HOLE; space that was allocated and never
    /// written is among them). Asked only where more of it was read than its file system has allocated to it, where nothing changed it since the watch
    /// began, and where only its reader or root may write it; 0 otherwise, and where it, or others before it, have too many holes to be counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hole_bytes: u64,
    /// Reads.
    pub reads: Access,
    /// Writes.
    pub writes: Access,
    /// Opens that succeeded.
    pub opens: u64,
    /// Files of this path that were written and no longer exist at the end, because they were replaced or removed: asked by
    /// their handles (open_by_handle_at) on ext2 to ext4 and XFS; 0 elsewhere. Where there are thousands, not all are asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replaced: u64,
    /// Bytes that were written to them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replaced_bytes: u64,
    /// Looks at `/proc` that found it open where the look before had not: how often it was met, without a trace.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appearances: u64,
    /// Whether the program got it from its caller (descriptors 0 to 2, or a file that iowhy itself was started with): a log,
    /// a terminal, a pipe. It says nothing about where the program's own files are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
    /// `st_dev` of the file, or of its directory where the file is gone: which file system it is on. Absent where it could not be
    /// asked, and in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_number: Option<u64>,
    /// Calls of fsync and fdatasync.
    pub syncs: u64,
    /// Whether it was mapped (by mmap, other than as the program's own code).
    pub mapped: bool,
    /// How often it was mapped, each mapping counted; 0 where mappings were not counted.
    #[serde(default)]
    pub mappings: u64,
    /// Part of it in the page cache when it was first seen, 0 to 1.
    pub cached_before: Option<f64>,
    /// Part of it in the page cache at the end.
    pub cached_after: Option<f64>,
    /// Pages of it that were evicted recently (cachestat): more memory would have kept them.
    pub recently_evicted_pages: Option<u64>,
}
