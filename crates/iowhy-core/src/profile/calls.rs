//! System calls and files: exact where the kernel counts, else what short bursts of tracing saw.

use serde::{Deserialize, Serialize};

/// What bursts of system-call tracing saw. Counts are those in the bursts, not scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSample {
    /// Bursts.
    pub bursts: u32,
    /// Their length together. Shorter than the run: counts times `wall / observed` estimate the whole.
    pub observed_ns: u64,
    /// Whether every call of the whole run was seen (short programs), so that counts are exact.
    pub complete: bool,
    /// Counts by system call, most first.
    pub calls: Vec<CallCount>,
}

/// One system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallCount {
    /// Its name, as in the manual: `pread64`, `fdatasync`.
    pub name: String,
    /// Calls that were seen to return.
    pub calls: u64,
    /// Of these, calls that failed (returned an error).
    pub failed: u64,
    /// Sum of their durations, tracing included; of calls that cross the edge of a burst the part inside, also of those
    /// that were not seen to return.
    pub time_ns: u64,
    /// Sum of bytes returned, where the call moves bytes.
    pub bytes: u64,
    /// Calls in each burst, so that a reader can say how uncertain the sum is. At most 256 entries: with more bursts,
    /// each entry stands for 2, 4, 8, ... of them (the last one for what is left).
    pub per_burst: Vec<u32>,
}

/// A share that was sampled: `hits` of `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// 1. It takes the looks as independent; bursts are not quite, so it is a little too narrow.
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

/// Reads, or writes, of one file as far as bursts (or other means) saw them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Calls of which at least one byte had been moved before within the same burst.
    pub repeated: SampledShare,
    /// Bytes of the union of all intervals seen, burst by burst: equals `bytes` when nothing was repeated. Bytes whose
    /// offset is not known count as distinct.
    pub distinct_bytes: u64,
    /// Calls right after an lseek on the same descriptor.
    pub after_seek: SampledShare,
    /// Calls on descriptors opened with O_DIRECT.
    pub direct: SampledShare,
    /// Calls on descriptors opened with O_SYNC or O_DSYNC.
    pub synchronous: SampledShare,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileUse {
    /// Its path, or what `/proc/PID/fd` calls it (`pipe:[123]`); `?` for all files whose path could not be learnt in
    /// time, `others` for all files beyond the bound.
    pub path: String,
    /// What it is: `regular`, `directory`, `block-device`, `character-device`, `pipe`, `socket`, `anonymous`,
    /// `unknown`.
    pub kind: String,
    /// File-system type.
    pub file_system: Option<String>,
    /// Kernel name of the block device its bytes are on.
    pub device: Option<String>,
    /// Size at the end.
    pub size_bytes: Option<u64>,
    /// Reads that were seen.
    pub reads: Access,
    /// Writes that were seen.
    pub writes: Access,
    /// Opens that were seen.
    pub opens: u64,
    /// Calls of fsync, fdatasync, sync_file_range that were seen.
    pub syncs: u64,
    /// Whether it was mapped (by mmap, other than as the program's own code).
    pub mapped: bool,
    /// Part of it in the page cache when it was first seen, 0 to 1.
    pub cached_before: Option<f64>,
    /// Part of it in the page cache at the end.
    pub cached_after: Option<f64>,
    /// Pages of it that were evicted recently (cachestat): more memory would have kept them.
    pub recently_evicted_pages: Option<u64>,
}
