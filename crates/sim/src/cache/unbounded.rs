//! A cache that all fits into.

use crate::policy::BlockCache;
use rustc_hash::FxHashSet;

/// Every block that was ever put in.
#[derive(Debug, Default)]
pub(super) struct Unbounded(FxHashSet<u64>);

impl BlockCache for Unbounded {
    fn lookup(&mut self, block: u64) -> bool {
        self.0.contains(&block)
    }

    fn insert(&mut self, block: u64, _: &mut dyn FnMut(u64)) {
        self.0.insert(block);
    }

    fn contains(&self, block: u64) -> bool {
        self.0.contains(&block)
    }

    fn remove(&mut self, block: u64) -> bool {
        self.0.remove(&block)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn capacity(&self) -> usize {
        usize::MAX
    }
}
