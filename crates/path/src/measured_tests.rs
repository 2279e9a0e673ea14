//! Calibration cells as they were once measured, on ext4 with large folios in a virtual machine: CPU time per request, medians of
//! ten rounds. They do not follow the linear form, and a page of a memory file costs more than one of the file.

use crate::calibration::{CalibrationCell, CalibrationRun};
use crate::fit::{Fit, FitOptions, fit};
use crate::ledger::{LedgerContext, ledger};
use crate::synthetic::Rounds;
use iowhy_core::cell::CellRun;
use iowhy_core::layer::Layer;
use iowhy_core::model::Part;
use iowhy_core::workload::{CacheState, Method, Workload};

const HARNESS_NS: f64 = 21.3;

/// CalibrationCell, block size and nanoseconds of CPU.
const MEASURED: [(CalibrationCell, u64, f64); 22] = [
    (CalibrationCell::Syscall, 4096, 146.2),
    (CalibrationCell::NullDevice, 4096, 159.2),
    (CalibrationCell::EndOfFile, 4096, 174.9),
    (CalibrationCell::ZeroDevice, 4096, 210.3),
    (CalibrationCell::ZeroDevice, 65_536, 1678.5),
    (CalibrationCell::ZeroDevice, 1 << 20, 24_045.0),
    (CalibrationCell::Memory, 512, 334.5),
    (CalibrationCell::Memory, 1024, 413.5),
    (CalibrationCell::Memory, 2048, 663.0),
    (CalibrationCell::Memory, 4096, 956.8),
    (CalibrationCell::Memory, 32_768, 6605.9),
    (CalibrationCell::Memory, 262_144, 50_117.0),
    (CalibrationCell::CachedFile, 512, 302.8),
    (CalibrationCell::CachedFile, 1024, 336.5),
    (CalibrationCell::CachedFile, 2048, 542.5),
    (CalibrationCell::CachedFile, 4096, 691.1),
    (CalibrationCell::CachedFile, 32_768, 3992.8),
    (CalibrationCell::CachedFile, 262_144, 28_698.0),
    (CalibrationCell::RingMemory, 4096, 582.0),
    (CalibrationCell::DirectFile, 4096, 20_974.0),
    (CalibrationCell::DirectFile, 32_768, 21_679.0),
    (CalibrationCell::DirectFile, 262_144, 30_338.0),
];
/// Depth, nanoseconds of CPU and of waiting for a direct page through a ring.
const DEEP: [(usize, f64, f64); 3] = [(16, 4002.0, 8603.0), (32, 2507.0, 8625.0), (64, 2061.0, 7055.0)];

fn deep(depth: usize, busy_ns: f64, wait_ns: f64) -> CellRun {
    let mut w = Workload::reads(Method::Uring, CacheState::Direct, 4096, 1 << 26);
    w.depth = depth;
    Rounds::new(w).busy(busy_ns).wait(wait_ns).device(1.0, 4096.0, wait_ns * depth as f64).build()
}

fn fitted() -> Fit {
    let mut cells: Vec<(CalibrationCell, CellRun)> = MEASURED
        .iter()
        .map(|&(cell, bytes, busy_ns)| {
            let w = Workload::reads(Method::Pread, CacheState::Warm, bytes, 1 << 26);
            (cell, Rounds::new(w).busy(busy_ns).build())
        })
        .collect();
    cells.extend(
        [DEEP[0], DEEP[2]]
            .map(|(d, busy_ns, wait_ns)| (CalibrationCell::DirectDeep, deep(d, busy_ns, wait_ns))),
    );
    let runs: Vec<CalibrationRun<'_>> =
        cells.iter().map(|(cell, run)| CalibrationRun { cell: *cell, run }).collect();
    fit(&runs, &FitOptions { harness_ns: HARNESS_NS, replicates: 5, ..FitOptions::new("file", 4096, 1) })
}

#[test]
fn file_system_and_cache_are_told_apart_although_memory_is_dearer() {
    let model = fitted().model;
    let per_call = |layer| model.cost(layer).per_call_ns;
    assert!((per_call(Layer::Call) - (146.2 - HARNESS_NS)).abs() < 1e-6);
    assert!((per_call(Layer::Filesystem) - (174.9 - 146.2)).abs() < 1e-6, "{}", per_call(Layer::Filesystem));
    assert!((model.part(Part::Vfs).per_call_ns - (159.2 - 146.2)).abs() < 1e-6);
    assert!(per_call(Layer::Cache) > 0.0, "the look-up of a page is not free");
    let copy = model.cost(Layer::Copy).per_byte_ns + model.cost(Layer::Cache).per_page_ns / 4096.0;
    assert!((0.10..0.12).contains(&copy), "the file's, not the memory file's 0.19: {copy}");
    let memory = model.part(Part::MemoryFile);
    assert!((0.18..0.21).contains(&(memory.per_byte_ns + memory.per_page_ns / 4096.0)), "{memory:?}");
}

#[test]
fn the_depth_between_two_measured_ones_is_predicted() {
    let fit = fitted();
    let (depth, busy_ns, wait_ns) = DEEP[1];
    let run = deep(depth, busy_ns, wait_ns);
    let context = LedgerContext { model: &fit.model, facts: None, harness_ns: HARNESS_NS };
    let split = ledger(&run, &context).unwrap();
    assert!(split.unexplained_share().abs() < 0.05, "{split:?}");
    let busy_share = split.layers.get(Layer::Unexplained).busy_ns / busy_ns;
    assert!(busy_share.abs() < 0.15, "{busy_share}");
    // Booked as one request in flight it would be explained many times over.
    assert!(fit.model.cost(Layer::Block).per_call_ns > 5.0 * busy_ns);
}
