//! Units of a run: cache blocks, pages of costs, pieces looked up at once. Fixed when it begins.

use crate::machine::Machine;
use crate::unit::Unit;
use crate::workload::Method;

/// The units of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Blocks of the cache.
    pub(super) block: Unit,
    /// Pages, which costs are counted in.
    pub(super) page: Unit,
    /// Bytes of a request that are looked up at once: a cluster of a fault, or the cache's largest input.
    pub(super) piece: Unit,
    /// Blocks of the cache's largest read.
    pub(super) io_blocks: u64,
    /// Whole blocks of the volume.
    pub(super) volume_blocks: u64,
}

impl Grid {
    pub(super) fn new(machine: &Machine, method: Method, volume_bytes: u64) -> Grid {
        let (block, page) = (Unit::new(machine.cache.block_bytes), Unit::new(machine.page_bytes));
        // Whole blocks, and one at least: a block is not looked up or fetched in parts, whatever an input may hold.
        let io_blocks = block.floor(machine.cache.io_bytes).max(1);
        let piece = match method {
            // A fault brings a page in at least.
            Method::Mapped | Method::Mlock => machine.fault_bytes.max(page.size()),
            Method::Read | Method::Direct => io_blocks.saturating_mul(block.size()),
        };
        Grid { block, page, piece: Unit::new(piece), io_blocks, volume_blocks: block.floor(volume_bytes) }
    }

    /// Keys of the blocks that a range touches.
    #[inline]
    pub(super) fn keys(&self, whole: bool, start: u64, bytes: u64) -> std::ops::Range<u64> {
        if whole {
            let key = crate::cache::whole_key(start);
            return key..key + 1;
        }
        if bytes == 0 {
            return 0..0;
        }
        self.block.floor(start)..self.block.floor(start + bytes - 1) + 1
    }
}
