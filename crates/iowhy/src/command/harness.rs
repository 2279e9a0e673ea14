//! The overhead of iowhy itself, measured on the target `null`, which answers at once.

use std::time::Duration;

use iowhy_core::pattern::Pattern;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_probe::campaign::Cell;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::Target;

/// The cell that measures the overhead, with the pattern of the others: drawing an offset is part of it.
pub(super) fn cell(target: &Target, pattern: Pattern) -> Cell<'_> {
    let mut workload = Workload::reads(Method::Null, CacheState::None, 4096, 1 << 30);
    workload.pattern = pattern;
    Cell {
        key: "null".to_owned(),
        arms: vec![(workload, target)],
        bounds: Bounds { wall: Duration::from_millis(2), requests_per_thread: u64::MAX },
        listed: None,
    }
}
