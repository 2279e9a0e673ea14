//! Read-ahead: one state machine per file, all behind [`ReadAhead`]. They count in cache blocks of
//! the volume and do not know the cache's content.

mod bsd;
mod driver;
mod linux;

use std::ops::Range;

pub(crate) use driver::DriverBuffer;

use crate::machine::{Machine, ReadAheadKind};

/// Blocks to fetch for one access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// End of the blocks fetched with the missing ones, synchronously.
    pub fetch_end: u64,
    /// Fetched asynchronously.
    pub ahead: Range<u64>,
}

/// A read-ahead.
pub trait ReadAhead: std::fmt::Debug + Send {
    /// Blocks `asked` of a stream (an open file) are read; `missing` says whether some are not cached. Nothing at or
    /// behind `limit` belongs to the file.
    fn access(&mut self, stream: u64, asked: Range<u64>, missing: bool, limit: u64) -> Advice;
}

/// The state machine of a machine.
pub fn new(machine: &Machine) -> Box<dyn ReadAhead> {
    let most = (machine.read_ahead.bytes / machine.cache.block_bytes).max(1);
    match machine.read_ahead.kind {
        // The driver's works below the cache.
        ReadAheadKind::None | ReadAheadKind::Driver => Box::new(Nothing),
        ReadAheadKind::Fixed => Box::new(Fixed { blocks: most }),
        ReadAheadKind::Linux => Box::new(linux::OnDemand::new(most)),
        ReadAheadKind::Bsd => Box::new(bsd::Cluster::new(most)),
    }
}

/// Streams that are remembered; more are forgotten all at once, as if their files were opened anew.
const MAX_STREAMS: usize = 1 << 20;

/// No read-ahead.
#[derive(Debug)]
struct Nothing;

impl ReadAhead for Nothing {
    fn access(&mut self, _: u64, asked: Range<u64>, _: bool, _: u64) -> Advice {
        Advice { fetch_end: asked.end, ahead: 0..0 }
    }
}

/// Minimum blocks per miss.
#[derive(Debug)]
struct Fixed {
    blocks: u64,
}

impl ReadAhead for Fixed {
    fn access(&mut self, _: u64, asked: Range<u64>, missing: bool, limit: u64) -> Advice {
        let least = asked.start.saturating_add(self.blocks).min(limit);
        Advice { fetch_end: if missing { asked.end.max(least) } else { asked.end }, ahead: 0..0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_reads_on_after_a_miss_and_stops_at_the_end_of_the_file() {
        let mut fixed = Fixed { blocks: 4 };
        assert_eq!(fixed.access(0, 10..11, true, 100).fetch_end, 14);
        assert_eq!(fixed.access(0, 10..11, false, 100).fetch_end, 11);
        assert_eq!(fixed.access(0, 10..11, true, 12).fetch_end, 12);
        assert_eq!(fixed.access(0, 10..20, true, 100).fetch_end, 20);
    }
}
