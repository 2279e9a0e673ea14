//! What reading evicted pages of files again costs. Three bounds hold:
//! - The kernel counts refaults for all of a control group, or of the machine. Others can have had no more of them than they
//!   read from the devices.
//! - It also counts pages that were evicted before the run, however long ago. The program can have read no more again than
//!   it had read from devices beyond the distinct bytes that it touched.
//! - What comes back to be evicted again is evicted in the run: no more came back than reclaim took meanwhile, where that is counted. A
//!   machine that frees what nobody uses (DAMON, `memory.reclaim`) has refaults while its memory is not short.

use super::super::facts::Side;
use super::super::facts::{ENOUGH_LOOKS, PAGE_BYTES};
use super::super::short_memory::ShortMemory;
use super::super::{Facts, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

/// Reads of pages that had been evicted.
pub(super) struct Refaults {
    /// Wall time of the program's waits for them.
    pub(super) wall_ns: f64,
    /// Waits for the device, those for other pages included.
    pub(super) waits: u64,
    /// Bytes that came back.
    bytes: f64,
    /// Bytes that the program had read from devices.
    fetched: f64,
}

impl Refaults {
    /// `None`: there were none for certain, or nothing waited for them.
    pub(super) fn new(facts: &Facts<'_>, short: &ShortMemory) -> Option<Refaults> {
        let profile = facts.profile;
        let memory = profile.pressure.memory.as_ref()?;
        let counted = memory.refaulted_file_pages? as f64 * PAGE_BYTES;
        let freed = memory.freed_pages.map_or(f64::INFINITY, |pages| pages as f64 * PAGE_BYTES);
        let fetched = profile.io.device_read_bytes? as f64;
        let all: f64 = profile.devices.iter().map(|d| d.read_bytes as f64).sum();
        let bytes = (counted - (all - fetched).max(0.0)).min(fetched - distinct_bytes(facts)?).min(freed);
        let waiting = |e: &Entry| {
            e.class.wait == Some(Wait::DeviceRead)
                && matches!(e.class.operation, Operation::Read | Operation::Fault)
        };
        let sum = facts.account.sum(waiting);
        let waits = sum.events.saturating_sub(short.swap_waiting.events);
        if bytes <= 0.0 || waits < ENOUGH_LOOKS {
            return None;
        }
        let wall_ns = (sum.wall_ns - short.swap_waiting.wall_ns).max(0.0) * bytes / fetched;
        Some(Refaults { wall_ns, waits, bytes, fetched })
    }

    /// What was waited for, and why.
    pub(super) fn evidence(&self, facts: &Facts<'_>) -> String {
        format!(
            "waiting for evicted pages of files: {} of wall time; {} of the {} read from the device had been in the page cache",
            say::percent(facts.wall_share(self.wall_ns)),
            say::bytes(self.bytes),
            say::bytes(self.fetched)
        )
    }
}

/// Distinct bytes of files that the program touched, at most; `None` where it is not known.
fn distinct_bytes(facts: &Facts<'_>) -> Option<f64> {
    facts.calls_are_counted_by_file(Side::Read).then(|| {
        let read: f64 = facts.profile.files.iter().map(|f| f.reads.distinct_bytes as f64).sum();
        read + facts.mapped_bytes().unwrap_or(0.0)
    })
}
