//! Watches a simulation while it runs: its memory and its progress.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_probe::counters::peak_memory_bytes;
use iowhy_probe::machine::memory_available_bytes;

use crate::progress::Progress;

/// Share of the available memory that may be filled with `--force`.
pub(crate) const MEMORY_SHARE_AT_MOST: f64 = 0.8;

/// Memory that replaying a trace may take beyond the size of its file unless the user says yes. A request of 1 GiB on a stripe of
/// the smallest interleave may add 200 MiB before it is noticed.
const TRACE_MEMORY_BYTES: u64 = 256 << 20;

/// Looks at a simulation while it runs: ends it where it takes too much memory, and shows how far it is.
pub(crate) struct Watch<'a> {
    /// What was taken when it began.
    begun_bytes: u64,
    limit_bytes: u64,
    begun: Instant,
    progress: Option<&'a Progress>,
    /// Whether the user allows what takes long.
    pub(crate) yes: bool,
}

impl<'a> Watch<'a> {
    /// For a run of this trace, or of a workload; with a progress line, for a run that is the only one.
    pub(crate) fn new(trace: Option<&Path>, yes: bool, progress: Option<&'a Progress>) -> Watch<'a> {
        let most = memory_available_bytes()
            .map_or(u64::MAX, |available| (available as f64 * MEMORY_SHARE_AT_MOST) as u64);
        let limit_bytes = match trace {
            Some(path) if !yes => {
                let file = std::fs::metadata(path).map_or(0, |found| found.len());
                most.min(TRACE_MEMORY_BYTES.saturating_add(file))
            }
            _ => most,
        };
        Watch {
            begun_bytes: peak_memory_bytes().unwrap_or(0),
            limit_bytes,
            begun: Instant::now(),
            progress,
            yes,
        }
    }

    /// Shows the share that is done.
    ///
    /// # Errors
    /// As [`Watch::memory`].
    pub(crate) fn at(&self, share: f64) -> Result<(), Problem> {
        if let Some(progress) = self.progress
            && share > 0.0
        {
            let left = self.begun.elapsed().as_secs_f64() * (1.0 - share).max(0.0) / share;
            progress.at(share, Duration::from_secs_f64(left.min(1e9)), "simulating");
        }
        self.memory()
    }

    /// Ends a run that takes too much memory.
    ///
    /// # Errors
    /// The refusal, with what would make it smaller.
    pub(crate) fn memory(&self) -> Result<(), Problem> {
        let taken = peak_memory_bytes().unwrap_or(0).saturating_sub(self.begun_bytes);
        if taken <= self.limit_bytes {
            return Ok(());
        }
        Err(Problem::refused(format!(
            "the simulation takes more than {} of memory: the requests are very large, or very many at one time, as in a damaged \
             trace",
            Bytes(self.limit_bytes >> 20 << 20)
        ))
        .hint(
            "`iowhy trace stat` shows what the trace holds; `--requests N` simulates its first N, `--clients N` keeps N in flight, \
             `--force` allows most of the free memory",
        ))
    }
}
