//! What reading evicted pages of files again costs. The kernel counts refaults for all of a control group, or of the machine:
//! others can have had no more of them than they read from the devices, so that the rest is the program's for certain.

use super::super::facts::{ENOUGH_LOOKS, PAGE_BYTES};
use super::super::short_memory::ShortMemory;
use super::super::{Facts, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

/// Reads of pages that had been evicted.
pub(super) struct Refaults {
    /// Wall time of the program's waits for them, at least.
    pub(super) wall_ns: f64,
    /// Waits for the device, those for other pages included.
    pub(super) waits: u64,
    /// Bytes that came back, at least.
    bytes: f64,
    /// Bytes that the program had read from devices.
    fetched: f64,
}

impl Refaults {
    /// `None`: there were none for certain, or nothing waited for them.
    pub(super) fn new(facts: &Facts<'_>, short: &ShortMemory) -> Option<Refaults> {
        let profile = facts.profile;
        let counted = profile.pressure.memory.as_ref()?.refaulted_file_pages? as f64 * PAGE_BYTES;
        let fetched = profile.io.device_read_bytes? as f64;
        let all: f64 = profile.devices.iter().map(|d| d.read_bytes as f64).sum();
        let bytes = (counted - (all - fetched).max(0.0)).min(fetched);
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

    pub(super) fn evidence(&self, facts: &Facts<'_>) -> String {
        format!(
            "waiting for evicted pages of files: {} of wall time; {} of the {} read from the device had been in the page cache",
            say::percent(facts.wall_share(self.wall_ns)),
            say::bytes(self.bytes),
            say::bytes(self.fetched)
        )
    }
}
