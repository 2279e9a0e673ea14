//! What each rung pays, as equations: which costs stand in its time per request, and how often.
//!
//! Goal: the definition of the ladder in one table, shared by the fit and by the predictions for held-out sizes.
//! Invariant: for power-of-two sizes a cached, mapped or direct rung pays what `StackModel::predict` says.

use std::collections::BTreeMap;

use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, LayerCost, Part};

use crate::ladder::Rung;
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
    MemoryFileCall,
    /// What a memory file costs beyond the file system, for each page; no part of the model.
    MemoryFilePage,
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
}

/// Which cost of the model a term belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Home {
    Layer(Layer),
    Part(Part),
}

/// Busy time or waiting time of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Busy,
    Wait,
}

/// What a rung pays for one request of this size: each term with its count.
pub(crate) fn equation(rung: Rung, side: Side, block_bytes: u64, page_bytes: u64) -> Vec<(Term, f64)> {
    use Term::*;
    let bytes = block_bytes as f64;
    let pages = mean_pages(block_bytes, page_bytes);
    if side == Side::Wait {
        return match rung {
            Rung::DirectFile | Rung::RawDevice => vec![(DeviceCall, 1.0), (DeviceByte, bytes)],
            _ => Vec::new(),
        };
    }
    match rung {
        Rung::Syscall => vec![(Call, 1.0)],
        Rung::NullDevice => vec![(Call, 1.0), (Vfs, 1.0)],
        Rung::ZeroDevice => vec![(Call, 1.0), (Vfs, 1.0), (Zero, bytes)],
        Rung::Memory => vec![
            (Call, 1.0),
            (Vfs, 1.0),
            (CacheCall, 1.0),
            (CachePage, pages),
            (Copy, bytes),
            (MemoryFileCall, 1.0),
            (MemoryFilePage, pages),
        ],
        Rung::CachedFile => vec![
            (Call, 1.0),
            (Vfs, 1.0),
            (FileCall, 1.0),
            (FilePage, pages),
            (CacheCall, 1.0),
            (CachePage, pages),
            (Copy, bytes),
        ],
        Rung::MappedFile => vec![(MapCall, 1.0), (MapPage, pages), (MapByte, bytes)],
        Rung::DirectFile => vec![
            (Call, 1.0),
            (Vfs, 1.0),
            (FileCall, 1.0),
            (FilePage, pages),
            (BlockCall, 1.0),
            (BlockPage, pages),
            (BlockByte, bytes),
        ],
        // A raw device pays no file system; it stands in for the direct file when the target is a device.
        Rung::RawDevice => {
            vec![(Call, 1.0), (Vfs, 1.0), (BlockCall, 1.0), (BlockPage, pages), (BlockByte, bytes)]
        }
        Rung::Copy => vec![(Copy, bytes)],
        // Fitted after the rest, because it needs the device's request counts.
        Rung::ColdFile => Vec::new(),
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
        Term::MemoryFileCall | Term::MemoryFilePage => Vec::new(),
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
            Term::FilePage | Term::MemoryFileCall | Term::MemoryFilePage | Term::MapByte => 0.0,
        };
        for rung in [
            Rung::Syscall,
            Rung::NullDevice,
            Rung::ZeroDevice,
            Rung::Memory,
            Rung::CachedFile,
            Rung::MappedFile,
            Rung::DirectFile,
        ] {
            for bytes in [512, 4096, 1 << 20] {
                let sum = |side| {
                    equation(rung, side, bytes, 4096).iter().map(|&(term, n)| n * value(term)).sum::<f64>()
                };
                let (busy, wait) = t.rung_ns(rung, bytes);
                assert!((sum(Side::Busy) - busy).abs() < 1e-9 * busy, "{rung:?} {bytes}");
                assert!((sum(Side::Wait) - wait).abs() < 1e-9 * wait.max(1.0), "{rung:?} {bytes}");
            }
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
