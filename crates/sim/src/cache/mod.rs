//! The cache over time: blocks that are there (a policy decides which stay), blocks that are on their way, and dirty ones.
//! Costs and time are outside.

mod unbounded;

use std::collections::VecDeque;

use iowhy_core::problem::Problem;

use crate::machine::{CacheConfig, UNLIMITED};
use crate::policy::{self, BlockCache, PolicyId};
use rustc_hash::FxHashMap;

/// Buffers with an address of their own are told from blocks of the volume by this bit.
const WHOLE: u64 = 1 << 63;

/// The key of a buffer that holds what begins at this byte, and nothing else.
pub(crate) fn whole_key(start: u64) -> u64 {
    (start / 512) | WHOLE
}

/// Ages that are kept without looking through them.
const MIN_AGES: usize = 1024;

/// A cache by policy and number of blocks.
///
/// # Errors
/// When the policy cannot work block by block, or the cache is larger than can be simulated.
pub(crate) fn blocks(policy: PolicyId, capacity: u64) -> Result<Box<dyn BlockCache>, Problem> {
    if capacity == UNLIMITED {
        return Ok(Box::new(unbounded::Unbounded::default()));
    }
    Ok(policy::new(policy, usize::try_from(capacity).unwrap_or(usize::MAX))?)
}

/// The cache.
pub(crate) struct Cache {
    pub(crate) blocks: Box<dyn BlockCache>,
    /// Blocks on their way, with the input that brings them.
    pub(crate) coming: FxHashMap<u64, u32>,
    dirty: FxHashMap<u64, u32>,
    /// Dirty blocks by age; entries that are clean again are dropped when they come up.
    ages: VecDeque<u64>,
    pub(crate) dirty_bytes: u64,
    block_bytes: u64,
}

/// A run of dirty blocks that goes out in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Errors
    /// When the policy cannot work block by block, or the cache is larger than can be simulated.
    pub(crate) fn new(config: &CacheConfig) -> Result<Cache, Problem> {
        let capacity = if config.bytes == UNLIMITED { UNLIMITED } else { config.bytes / config.block_bytes };
        Ok(Cache {
            blocks: blocks(config.policy, capacity)?,
            coming: FxHashMap::default(),
            dirty: FxHashMap::default(),
            ages: VecDeque::new(),
            dirty_bytes: 0,
            block_bytes: config.block_bytes,
        })
    }

    /// Puts a block in. A dirty one that had to leave for it must be written.
    pub(crate) fn insert(&mut self, key: u64, flushes: &mut Vec<Flush>) {
        let Cache { blocks, dirty, dirty_bytes, block_bytes, .. } = self;
        blocks.insert(key, &mut |gone| {
            if let Some(bytes) = dirty.remove(&gone) {
                *dirty_bytes -= u64::from(bytes);
                flushes.push(flush_of(gone, u64::from(bytes), *block_bytes));
            }
        });
    }

    /// A block was written to.
    pub(crate) fn soil(&mut self, key: u64, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.dirty.insert(key, bytes).is_none() {
            self.dirty_bytes += u64::from(bytes);
            self.forget_clean();
            self.ages.push_back(key);
        } else if let Some(kept) = self.dirty.get_mut(&key) {
            // Dirty already, and counted.
            *kept = bytes;
        }
    }

    /// Drops the ages of blocks that are clean again, once they are more than the dirty ones: a cache that never comes to
    /// write back must not remember every block that it gave up.
    fn forget_clean(&mut self) {
        if self.ages.len() > 2 * self.dirty.len() + MIN_AGES {
            let dirty = &self.dirty;
            let mut kept = rustc_hash::FxHashSet::default();
            // A block that became dirty again is as old as it was first.
            self.ages.retain(|key| dirty.contains_key(key) && kept.insert(*key));
        }
    }

    /// The oldest run of dirty blocks, clean from now on.
    pub(crate) fn clean_oldest(&mut self, most_bytes: u64) -> Option<Flush> {
        let first = loop {
            let key = self.ages.pop_front()?;
            if self.dirty.contains_key(&key) {
                break key;
            }
        };
        let mut run = flush_of(first, u64::from(self.take(first)?), self.block_bytes);
        let mut next = first + 1;
        while first & WHOLE == 0 && run.bytes + self.block_bytes <= most_bytes {
            let Some(bytes) = self.take(next) else { break };
            run.bytes += u64::from(bytes);
            next += 1;
        }
        Some(run)
    }

    /// Forgets a block, dirty or not.
    pub(crate) fn discard(&mut self, key: u64) {
        self.blocks.remove(key);
        self.take(key);
    }

    fn take(&mut self, key: u64) -> Option<u32> {
        let bytes = self.dirty.remove(&key)?;
        self.dirty_bytes -= u64::from(bytes);
        Some(bytes)
    }
}

fn flush_of(key: u64, bytes: u64, block_bytes: u64) -> Flush {
    let start = if key & WHOLE != 0 { (key & !WHOLE) * 512 } else { key * block_bytes };
    Flush { start, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn cache(blocks: u64) -> Cache {
        let mut config = Machine::default().cache;
        config.bytes = blocks * config.block_bytes;
        Cache::new(&config).unwrap()
    }

    #[test]
    fn dirty_blocks_go_out_in_runs_and_are_counted() {
        let mut cache = cache(100);
        for key in [5, 6, 7, 20, 6] {
            cache.soil(key, 4096);
        }
        assert_eq!(cache.dirty_bytes, 4 * 4096);
        assert_eq!(cache.clean_oldest(1 << 20), Some(Flush { start: 5 * 4096, bytes: 3 * 4096 }));
        assert_eq!(cache.clean_oldest(1 << 20), Some(Flush { start: 20 * 4096, bytes: 4096 }));
        assert_eq!((cache.clean_oldest(1 << 20), cache.dirty_bytes), (None, 0));
    }

    #[test]
    fn a_dirty_block_that_leaves_must_be_written() {
        let mut cache = cache(1);
        let mut out = Vec::new();
        cache.insert(1, &mut out);
        cache.soil(1, 4096);
        cache.insert(2, &mut out);
        assert_eq!((out.as_slice(), cache.dirty_bytes), (&[Flush { start: 4096, bytes: 4096 }][..], 0));
        cache.insert(3, &mut out);
        assert_eq!(out.len(), 1, "a clean one just leaves");
    }
}
