//! The equation of each calibration cell: which costs its time per request contains, and how often. The fit and the
//! predictions of held-out sizes share this table.
//!
//! Invariant: for power-of-two sizes a cached, mapped or direct cell costs what `StackModel::predict` says.

use std::collections::BTreeMap;

use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, LayerCost, Part};

use crate::calibration::CalibrationCell;
use crate::per_request::mean_pages;

/// One unknown cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Term {
    /// Entry, descriptor look-up, exit, for each call.
    Call,
    /// Dispatch through the VFS, for each call.
    Vfs,
    /// Zeroing, for each byte.
    Zero,
    /// Cache, for each call.
    CacheCall,
    /// Cache, for each page looked up.
    CachePage,
    /// Copy, for each byte.
    Copy,
    /// What the file system adds to a memory file, for each call.
    FileCall,
    /// What the file system adds to a memory file, for each page.
    FilePage,
    /// What a memory file costs beyond the file system, for each call; no part of the model.
    MemoryExcessCall,
    /// What a memory file costs beyond the file system, for each page; no part of the model.
    MemoryExcessPage,
    /// A memory file that is fitted on its own, above the VFS, for each call.
    MemoryCall,
    /// The same for each page.
    MemoryPage,
    /// The same for each byte.
    MemoryByte,
    /// Mapped reading, for each call.
    MapCall,
    /// Mapped reading, for each page.
    MapPage,
    /// Mapped reading, for each byte.
    MapByte,
    /// Block layer, for each request.
    BlockCall,
    /// Block layer, for each page.
    BlockPage,
    /// Block layer, for each byte.
    BlockByte,
    /// Waiting for the device, for each request.
    DeviceCall,
    /// Waiting for the device, for each byte.
    DeviceByte,
    /// In place of `Call` for a request in a ring with many others.
    Ring,
    /// In place of `BlockCall` for a request of one page with many in flight.
    DeepCall,
    /// Handing a batch of requests to the driver, for each batch.
    DeepBatch,
}

/// Which cost of the model a term belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Home {
    Layer(Layer),
    Part(Part),
}

/// Busy time or waiting time of a calibration cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Busy,
    Wait,
}

/// What the table of equations depends on beside the calibration cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Page size of the machine.
    pub(crate) page_bytes: u64,
    /// A memory file has costs of its own instead of the cached file's: its pages may be smaller.
    pub(crate) memory_apart: bool,
}

/// What a calibration cell pays for one request of this size with this many in flight: each term with its count.
pub(crate) fn equation(
    table: Table,
    cell: CalibrationCell,
    side: Side,
    block_bytes: u64,
    depth: usize,
) -> Vec<(Term, f64)> {
    use Term::*;
    let bytes = block_bytes as f64;
    let pages = mean_pages(block_bytes, table.page_bytes);
    if side == Side::Wait {
        return match cell {
            CalibrationCell::DirectFile | CalibrationCell::RawDevice => {
                vec![(DeviceCall, 1.0), (DeviceByte, bytes)]
            }
            _ => Vec::new(),
        };
    }
    match cell {
        CalibrationCell::Syscall => vec![(Call, 1.0)],
        CalibrationCell::NullDevice => vec![(Call, 1.0), (Vfs, 1.0)],
        CalibrationCell::EndOfFile => vec![(Call, 1.0), (Vfs, 1.0), (FileCall, 1.0)],
        CalibrationCell::ZeroDevice => vec![(Call, 1.0), (Vfs, 1.0), (Zero, bytes)],
        CalibrationCell::Memory if table.memory_apart => {
            vec![(Call, 1.0), (Vfs, 1.0), (MemoryCall, 1.0), (MemoryPage, pages), (MemoryByte, bytes)]
        }
        CalibrationCell::Memory => vec![
            (Call, 1.0),
            (Vfs, 1.0),
            (CacheCall, 1.0),
            (CachePage, pages),
            (Copy, bytes),
            (MemoryExcessCall, 1.0),
            (MemoryExcessPage, pages),
        ],
        CalibrationCell::CachedFile | CalibrationCell::RingMemory => vec![
            (if cell == CalibrationCell::RingMemory { Ring } else { Call }, 1.0),
            (Vfs, 1.0),
            (FileCall, 1.0),
            (FilePage, pages),
            (CacheCall, 1.0),
            (CachePage, pages),
            (Copy, bytes),
        ],
        CalibrationCell::MappedFile => vec![(MapCall, 1.0), (MapPage, pages), (MapByte, bytes)],
        CalibrationCell::DirectFile => vec![
            (Call, 1.0),
            (Vfs, 1.0),
            (FileCall, 1.0),
            (FilePage, pages),
            (BlockCall, 1.0),
            (BlockPage, pages),
            (BlockByte, bytes),
        ],
        // A raw device pays no file system; it stands in for the direct file when the target is a device.
        CalibrationCell::RawDevice => {
            vec![(Call, 1.0), (Vfs, 1.0), (BlockCall, 1.0), (BlockPage, pages), (BlockByte, bytes)]
        }
        CalibrationCell::DirectDeep => vec![
            (Ring, 1.0),
            (Vfs, 1.0),
            (FileCall, 1.0),
            (FilePage, pages),
            (DeepCall, 1.0),
            (DeepBatch, 1.0 / depth.max(1) as f64),
        ],
        // Fitted after the rest, because it needs the device's request counts.
        CalibrationCell::ColdFile => Vec::new(),
    }
}

/// Gathers solved terms into the costs of the model. A term without a value adds nothing.
pub(crate) fn costs(solved: &BTreeMap<Term, f64>) -> BTreeMap<Home, Cost> {
    let mut costs: BTreeMap<Home, Cost> = BTreeMap::new();
    for (&term, &ns) in solved {
        for (home, per) in homes(term) {
            let cost = costs.entry(home).or_default();
            match per {
                Per::Call => cost.per_call_ns += ns,
                Per::Page => cost.per_page_ns += ns,
                Per::Byte => cost.per_byte_ns += ns,
            }
        }
    }
    costs
}

enum Per {
    Call,
    Page,
    Byte,
}

fn homes(term: Term) -> Vec<(Home, Per)> {
    use Home::{Layer as L, Part as P};
    match term {
        Term::Call => vec![(L(Layer::Call), Per::Call)],
        Term::Vfs => vec![(L(Layer::Filesystem), Per::Call), (P(Part::Vfs), Per::Call)],
        Term::Zero => vec![(P(Part::Zero), Per::Byte)],
        Term::CacheCall => vec![(L(Layer::Cache), Per::Call)],
        Term::CachePage => vec![(L(Layer::Cache), Per::Page)],
        Term::Copy => vec![(L(Layer::Copy), Per::Byte)],
        Term::FileCall => vec![(L(Layer::Filesystem), Per::Call)],
        Term::FilePage => vec![(L(Layer::Filesystem), Per::Page)],
        Term::MemoryExcessCall | Term::MemoryExcessPage => Vec::new(),
        Term::MemoryCall => vec![(P(Part::MemoryFile), Per::Call)],
        Term::MemoryPage => vec![(P(Part::MemoryFile), Per::Page)],
        Term::MemoryByte => vec![(P(Part::MemoryFile), Per::Byte)],
        Term::Ring => vec![(P(Part::Ring), Per::Call)],
        Term::DeepCall => vec![(P(Part::Deep), Per::Call)],
        Term::DeepBatch => vec![(P(Part::Batch), Per::Call)],
        Term::MapCall => vec![(L(Layer::Memory), Per::Call)],
        Term::MapPage => vec![(L(Layer::Memory), Per::Page)],
        Term::MapByte => vec![(L(Layer::Memory), Per::Byte)],
        Term::BlockCall => vec![(L(Layer::Block), Per::Call)],
        Term::BlockPage => vec![(L(Layer::Block), Per::Page)],
        Term::BlockByte => vec![(L(Layer::Block), Per::Byte)],
        Term::DeviceCall => vec![(L(Layer::Device), Per::Call)],
        Term::DeviceByte => vec![(L(Layer::Device), Per::Byte)],
    }
}

/// Puts the interval around a point cost: the 2.5th and 97.5th percentile of the replicates, widened to hold the
/// point itself.
pub(crate) fn with_interval(cost: Cost, replicates: &[Cost]) -> LayerCost {
    let ends = |field: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = replicates.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        let at =
            |share: f64| values.get(((values.len().max(1) - 1) as f64 * share).round() as usize).copied();
        let point = field(&cost);
        (at(0.025).map_or(point, |v| v.min(point)), at(0.975).map_or(point, |v| v.max(point)))
    };
    let (call, page, byte) = (ends(|c| c.per_call_ns), ends(|c| c.per_page_ns), ends(|c| c.per_byte_ns));
    LayerCost {
        cost,
        low: Cost { per_call_ns: call.0, per_page_ns: page.0, per_byte_ns: byte.0 },
        high: Cost { per_call_ns: call.1, per_page_ns: page.1, per_byte_ns: byte.1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Truth;

    #[test]
    fn the_table_agrees_with_the_predictor() {
        let t = Truth::EXAMPLE;
        let value = |term| match term {
            Term::Call => t.call,
            Term::Vfs => t.vfs,
            Term::Zero => t.zero,
            Term::CacheCall => t.cache.0,
            Term::CachePage => t.cache.1,
            Term::Copy => t.copy,
            Term::FileCall => t.file,
            Term::MapCall => t.memory.0,
            Term::MapPage => t.memory.1,
            Term::BlockCall => t.block.0,
            Term::BlockPage => t.block.1,
            Term::BlockByte => t.block.2,
            Term::DeviceCall => t.device.0,
            Term::DeviceByte => t.device.1,
            Term::Ring => t.ring,
            Term::DeepCall => t.deep.0,
            Term::DeepBatch => t.deep.1,
            Term::MemoryCall => t.cache.0,
            Term::MemoryPage => t.cache.1,
            Term::MemoryByte => t.copy,
            Term::FilePage | Term::MemoryExcessCall | Term::MemoryExcessPage | Term::MapByte => 0.0,
        };
        for cell in [
            CalibrationCell::Syscall,
            CalibrationCell::NullDevice,
            CalibrationCell::EndOfFile,
            CalibrationCell::ZeroDevice,
            CalibrationCell::Memory,
            CalibrationCell::CachedFile,
            CalibrationCell::MappedFile,
            CalibrationCell::DirectFile,
            CalibrationCell::RingMemory,
        ] {
            for (bytes, memory_apart) in [(512, false), (4096, true), (1 << 20, false), (1 << 20, true)] {
                let table = Table { page_bytes: 4096, memory_apart };
                let sum = |side| {
                    equation(table, cell, side, bytes, 1)
                        .iter()
                        .map(|&(term, n)| n * value(term))
                        .sum::<f64>()
                };
                let (busy, wait) = t.cell_ns(cell, bytes);
                assert!((sum(Side::Busy) - busy).abs() < 1e-9 * busy, "{cell:?} {bytes}");
                assert!((sum(Side::Wait) - wait).abs() < 1e-9 * wait.max(1.0), "{cell:?} {bytes}");
            }
        }
        let table = Table { page_bytes: 4096, memory_apart: true };
        for depth in [16, 64] {
            let found: f64 = equation(table, CalibrationCell::DirectDeep, Side::Busy, 4096, depth)
                .iter()
                .map(|&(term, n)| n * value(term))
                .sum();
            assert!((found - t.deep_busy_ns(depth)).abs() < 1e-9, "depth {depth}");
        }
    }

    #[test]
    fn an_interval_holds_its_point() {
        let c = |ns| Cost { per_call_ns: ns, ..Cost::default() };
        let around = with_interval(c(10.0), &[c(11.0), c(12.0), c(13.0)]);
        assert_eq!((around.low.per_call_ns, around.high.per_call_ns), (10.0, 13.0));
        assert_eq!(with_interval(c(10.0), &[]).low.per_call_ns, 10.0);
    }
}
