//! Upper bound of a run's memory, before anything is built.

use super::{What, Workload};
use crate::machine::{LayoutKind, Machine, UNLIMITED};

/// A client with its request and its entry in every queue (1270 bytes measured, with a million of them).
const CLIENT_BYTES: u64 = 1400;
/// A block that a cache holds, at the moment when its tables double.
const BLOCK_BYTES: u64 = 64;
/// The same of a block that is dirty, too.
const DIRTY_BYTES: u64 = 64;
/// A file: its number in the order of reading, and its address.
const FILE_BYTES: u64 = 16;
/// The same with a list of runs as its address.
const FFS_FILE_BYTES: u64 = 128;

impl Workload {
    /// Bytes of memory that a run on this machine takes at most, estimated: clients, files, and blocks in caches.
    pub fn memory_bytes(&self, machine: &Machine) -> u64 {
        let block = machine.cache.block_bytes.max(1);
        let capacity = match machine.cache.bytes {
            UNLIMITED => u64::MAX,
            bytes => bytes / block,
        };
        let (files, file_blocks, blocks_each, writes) = match &self.what {
            What::Tree { sizes, population, .. } => {
                let largest = sizes.iter().copied().max().unwrap_or(0).div_ceil(block);
                // A directory and an inode beside the data.
                (*population, largest, largest.saturating_add(2), false)
            }
            What::Region { size, bytes, own, write_percent, .. } => {
                let files = if *own { u64::from(self.clients) } else { 1 };
                (files, size.div_ceil(block), (bytes / block).saturating_add(2), *write_percent > 0)
            }
        };
        let there = files.saturating_mul(file_blocks);
        let ahead = machine.read_ahead.bytes / block;
        let asked = self.requests().saturating_mul(blocks_each.saturating_add(ahead));
        let held = if self.warm { there } else { there.min(asked) }.min(capacity);
        let each = if writes { BLOCK_BYTES + DIRTY_BYTES } else { BLOCK_BYTES };
        let file = if machine.layout.kind == LayoutKind::Ffs { FFS_FILE_BYTES } else { FILE_BYTES };
        (u64::from(self.clients).saturating_mul(CLIENT_BYTES))
            .saturating_add(files.saturating_mul(file))
            .saturating_add(held.saturating_mul(each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(load: &str, cache: u64) -> u64 {
        let mut machine = Machine::shipped("nvme").unwrap();
        machine.cache.bytes = cache;
        Workload::parse(load).unwrap().memory_bytes(&machine)
    }

    #[test]
    fn warm_files_and_many_readers_take_memory_and_a_small_cache_bounds_it() {
        let warm = "readers=1,size=1t,requests=10,warm=yes";
        assert!(needed(warm, 2 << 40) > 16 << 30);
        assert!(needed(warm, 1 << 30) < 64 << 20);
        assert!(needed("readers=1,size=1t,requests=10", 2 << 40) < 1 << 20, "only what is asked for");
        assert!(needed("readers=1000000,requests=1,size=64m", 1 << 30) > 1 << 30);
        assert!(needed("news-1999", UNLIMITED) < 1 << 30);
    }
}
