//! Views of an account that reports need: by operation, by thread, by kind of wait.

use std::collections::BTreeMap;

use iowhy_core::layer::Ledger;

use super::{Account, Entry, Sum};
use crate::classify::{Operation, Wait};

/// Time of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationTime {
    /// Which.
    pub operation: Operation,
    /// All of it.
    pub sum: Sum,
    /// Thread time by layer; sums to `sum.time_ns`.
    pub layers: Ledger,
}

/// Time of one thread, or pool of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTime {
    /// Index into the profile's threads.
    pub thread: u32,
    /// All of it.
    pub sum: Sum,
    /// Thread time by layer; sums to `sum.time_ns`.
    pub layers: Ledger,
}

impl Account {
    /// Operations that took time, greatest thread time first.
    pub fn operations(&self) -> Vec<OperationTime> {
        let grouped = self.grouped(|e| Some(e.class.operation));
        grouped.into_iter().map(|(operation, sum, layers)| OperationTime { operation, sum, layers }).collect()
    }

    /// Threads, greatest thread time first.
    pub fn threads(&self) -> Vec<ThreadTime> {
        let grouped = self.grouped(|e| Some(e.thread));
        grouped.into_iter().map(|(thread, sum, layers)| ThreadTime { thread, sum, layers }).collect()
    }

    /// Kinds of wait that occurred, greatest thread time first.
    pub fn waits(&self) -> Vec<(Wait, Sum)> {
        self.waits_of(|_| true)
    }

    /// The same of the entries that are picked.
    fn waits_of(&self, pick: impl Fn(&Entry) -> bool) -> Vec<(Wait, Sum)> {
        let grouped = self.grouped(|e| e.class.wait.filter(|_| pick(e)));
        grouped.into_iter().map(|(wait, sum, _)| (wait, sum)).collect()
    }

    fn grouped<K: Ord>(&self, key: impl Fn(&Entry) -> Option<K>) -> Vec<(K, Sum, Ledger)> {
        let mut groups: BTreeMap<K, (Sum, Ledger)> = BTreeMap::new();
        for e in &self.entries {
            let Some(key) = key(e) else { continue };
            let (sum, ledger) = groups.entry(key).or_default();
            sum.add(e.time_ns, e.wall_ns, e.events);
            sum.add_delay(e.delay);
            let (busy, wait) = if e.busy { (e.time_ns, 0.0) } else { (0.0, e.time_ns) };
            ledger.add(e.class.layer, busy, wait);
        }
        let mut groups: Vec<(K, Sum, Ledger)> = groups.into_iter().map(|(k, (s, l))| (k, s, l)).collect();
        // Stable: groups of equal time stay in the order of their keys.
        groups.sort_by(|a, b| b.1.time_ns.total_cmp(&a.1.time_ns));
        groups
    }
}
