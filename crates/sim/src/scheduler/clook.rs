//! C-LOOK: upwards to the farthest that waits, then back to the lowest; `disksort` of the BSDs.

use std::collections::BTreeMap;

use super::{Scheduler, Waiting};

/// The queue, by sector and then by arrival.
#[derive(Debug, Default)]
pub(super) struct Clook {
    sorted: BTreeMap<(u64, u64), Waiting>,
    arrivals: u64,
}

impl Scheduler for Clook {
    fn push(&mut self, _: u64, waiting: Waiting) {
        self.arrivals += 1;
        self.sorted.insert((waiting.sector, self.arrivals), waiting);
    }

    fn pop(&mut self, _: u64, sector: u64) -> Option<Waiting> {
        let ahead = self.sorted.range((sector, 0)..).next().map(|(key, _)| *key);
        let key = ahead.or_else(|| self.sorted.keys().next().copied())?;
        self.sorted.remove(&key)
    }

    fn len(&self) -> usize {
        self.sorted.len()
    }
}
