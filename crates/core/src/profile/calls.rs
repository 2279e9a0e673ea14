//! System calls and files: exact where the kernel counts, else what short bursts of tracing saw.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// What bursts of system-call tracing saw. Counts are those in the bursts, not scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSample {
    /// Bursts.
    pub bursts: u32,
    /// Their length together. Shorter than the run: counts times `wall / observed` estimate the whole.
    pub observed_ns: u64,
    /// Whether every call of the whole run was seen (short programs), so that counts are exact.
    pub complete: bool,
    /// Counts by system call, most first.
    pub calls: Vec<CallCount>,
    /// Lengths of the bursts, one for each entry of [`CallCount::per_burst`]. Empty: they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst_lengths_ns: Vec<u64>,
}

impl CallSample {
    /// How often these calls were made in a run of `wall_ns`: low end, likely value, high end. Exact where every call
    /// was seen; `None` where nothing was looked at.
    ///
    /// From bursts by the ratio estimator (Cochran, Sampling Techniques, 1977, section 2.11): calls per time of the
    /// bursts together, with the 95 % interval from how far each burst is from that rate, by Student's t, and corrected
    /// for the part of the run that was seen; a burst's count varies by [`EDGES`] at the least. From one burst alone, half
    /// to twice. The low end is not below what was seen.
    pub fn scaled(&self, calls: &[&CallCount], wall_ns: f64) -> Option<(f64, f64, f64)> {
        let seen: f64 = calls.iter().map(|c| c.calls as f64).sum();
        if self.complete {
            return Some((seen, seen, seen));
        }
        if self.observed_ns == 0 {
            return None;
        }
        let scale = (wall_ns / self.observed_ns as f64).max(1.0);
        let likely = seen * scale;
        let bursts = calls.iter().map(|c| c.per_burst.len()).max().unwrap_or(0);
        if bursts < 2 || seen == 0.0 {
            return Some(((likely / 2.0).max(seen), likely, likely * 2.0));
        }
        let count = |i: usize| -> f64 {
            calls.iter().filter_map(|c| c.per_burst.get(i)).map(|n| f64::from(*n)).sum()
        };
        let known = self.burst_lengths_ns.len() == bursts;
        let length = |i: usize| if known { self.burst_lengths_ns[i] as f64 } else { 1.0 };
        let n = bursts as f64;
        let whole: f64 = (0..bursts).map(length).sum();
        let rate = if whole > 0.0 { (0..bursts).map(count).sum::<f64>() / whole } else { 0.0 };
        let squares: f64 = (0..bursts).map(|i| (count(i) - rate * length(i)).powi(2)).sum();
        let unseen = (1.0 - 1.0 / scale).max(0.0);
        // Relative: the mean count of a burst is rate times mean length.
        let mean = rate * whole / n;
        let arm = if mean > 0.0 {
            student_95(bursts - 1) * ((squares / (n - 1.0)).max(EDGES) / n * unseen).sqrt() / mean
        } else {
            1.0
        };
        Some(((likely * (1.0 - arm)).max(seen), likely, likely * (1.0 + arm)))
    }
}

/// Least variance of the count of a burst, in calls squared. A burst begins and ends anywhere between two calls, so that it
/// counts up to one more or less than its length holds, however regular they are: the variance of rounding, a twelfth, at
/// each end.
pub const EDGES: f64 = 1.0 / 6.0;

/// Two-sided 95 % quantile of Student's t. Above four degrees of freedom an approximation, right to 2 %.
fn student_95(degrees: usize) -> f64 {
    const FIRST: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    match degrees {
        0 => f64::INFINITY,
        1..=4 => FIRST[degrees - 1],
        _ => {
            let v = degrees as f64;
            1.96 + 2.37 / v + 2.8 / (v * v)
        }
    }
}

/// One system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCount {
    /// Its name, as in the manual: `pread64`, `fdatasync`.
    pub name: String,
    /// Calls that were seen to return.
    pub calls: u64,
    /// Of these, calls that failed (returned an error).
    pub failed: u64,
    /// Of those, how many with which error: `ENOENT`, `EAGAIN`. Empty where none failed, and in earlier records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Sum of their durations, tracing included; of calls that cross the edge of a burst the part inside, also of those
    /// that were not seen to return. Where all calls were counted: their number times the mean duration of those that
    /// bursts traced, 0 where none was.
    pub time_ns: u64,
    /// Sum of bytes returned, where the call moves bytes.
    pub bytes: u64,
    /// Calls in each burst, so that a reader can say how uncertain the sum is. At most 256 entries: with more bursts,
    /// each entry stands for 2, 4, 8, ... of them (the last one for what is left).
    pub per_burst: Vec<u32>,
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

fn is_zero(n: &u64) -> bool {
    *n == 0
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
    /// Size at the end.
    pub size_bytes: Option<u64>,
    /// Reads that were seen.
    pub reads: Access,
    /// Writes that were seen.
    pub writes: Access,
    /// Opens that were seen, of those that succeeded.
    pub opens: u64,
    /// Looks at `/proc` that found it open where the look before had not: how often it was met, without a trace.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appearances: u64,
    /// Whether the program got it from its caller (descriptors 0 to 2, or a file that iowhy itself was started with): a log,
    /// a terminal, a pipe. It says nothing about where the program's own files are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
    /// `st_dev` of the file: which file system it is on. Absent where it could not be asked, and in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_number: Option<u64>,
    /// Calls of fsync, fdatasync, sync_file_range that were seen.
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
