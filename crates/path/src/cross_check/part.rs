//! The parts of a request that fit and samples are compared by.
//!
//! The fit calls a layer what a calibration cell costs more than the one below it; a sample belongs to the layer that was on
//! the CPU when the clock fired. Where these differ, only a sum that both define alike is compared, and the part says why.

use iowhy_core::layer::Layer;
use iowhy_core::workload::{CacheState, Method, Workload};

use iowhy_diagnose::classify::Operation;

/// One or several layers that are compared as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Stable identifier: the layers joined by `+`, with `-wait` for time off the CPU.
    pub(super) id: &'static str,
    /// Layers whose CPU time belongs to it.
    pub(super) busy: &'static [Layer],
    /// Layers whose waiting belongs to it.
    pub(super) wait: &'static [Layer],
    /// Whether interrupts that hit the thread belong to it.
    pub(super) interrupts: bool,
    /// Whether the fit has a cost for it.
    pub(super) fitted: bool,
    /// Why layers are compared as a sum, or not at all.
    pub(super) why: Option<&'static str>,
}

const fn busy(id: &'static str, layers: &'static [Layer], why: Option<&'static str>) -> Part {
    Part { id, busy: layers, wait: &[], interrupts: false, fitted: true, why }
}

/// Entering and leaving the kernel runs with interrupts off.
const ENTRY: Part = busy(
    "program+call",
    &[Layer::Program, Layer::Call],
    Some(
        "the clock cannot fire while the kernel is entered or left; it fires right after, in the program or in the call",
    ),
);
const COPY: Part = busy("copy", &[Layer::Copy], None);
const FILESYSTEM: Part = busy("filesystem", &[Layer::Filesystem], None);
const CACHE: Part = busy("cache", &[Layer::Cache], None);
const CACHED_BYTES: Part = busy(
    "cache+copy",
    &[Layer::Cache, Layer::Copy],
    Some("the account books the look-up of pages after the first under `copy`"),
);
const MAPPED: Part = busy(
    "program+call+cache+memory",
    &[Layer::Program, Layer::Call, Layer::Cache, Layer::Memory],
    Some(
        "the fit books all that a fault costs under `memory`, the load that waits for the new mapping included; the \
         clock cannot fire at its beginning and end, and fires right after, in the program",
    ),
);
const BELOW: Part = Part {
    interrupts: true,
    ..busy(
        "filesystem+block+device",
        &[Layer::Filesystem, Layer::Block, Layer::Device],
        Some(
            "the fit books under `block` all CPU time that a request to the device costs beyond a read that ends at \
             once: page allocation, extent mapping, the driver (in a virtual machine its exits), completion interrupts, the switch",
        ),
    )
};
const DIRECT_BELOW: Part = Part {
    busy: &[Layer::Filesystem, Layer::Cache, Layer::Memory, Layer::Block, Layer::Device],
    id: "filesystem+cache+memory+block+device",
    ..BELOW
};
/// Sleeps of requests that should reach no device.
const NO_DEVICE: Part = Part {
    id: "block+device-wait",
    busy: &[],
    wait: &[Layer::Block, Layer::Device],
    interrupts: false,
    fitted: true,
    why: None,
};
const WAIT: Part = Part {
    id: "block+device+cpu-queue-wait",
    wait: &[Layer::Block, Layer::Device, Layer::CpuQueue],
    why: Some(
        "the fit books the time that requests queue under `device`; a profile shows when a sleeper runs again, not \
         when it was woken, and books the wait for a CPU in between as sleep",
    ),
    ..NO_DEVICE
};
const WRITE_WAIT: Part = Part {
    id: "block+device+journal+writeback+cpu-queue-wait",
    wait: &[Layer::Block, Layer::Device, Layer::Journal, Layer::Writeback, Layer::CpuQueue],
    why: Some(
        "the fit knows waiting from the device's counters, flushes included, and does not separate write-back; a \
         profile books the wait for a CPU after a sleep as sleep",
    ),
    ..NO_DEVICE
};
/// What a write does on the CPU.
const WRITE_BUSY: Part = Part {
    id: "busy",
    busy: &[
        Layer::Program,
        Layer::Call,
        Layer::Filesystem,
        Layer::Cache,
        Layer::Copy,
        Layer::Memory,
        Layer::Block,
        Layer::Device,
    ],
    interrupts: true,
    fitted: false,
    why: Some("the costs were fitted on reads: allocation and journal work are not modelled"),
    wait: &[],
};

/// Requests that touch more than a page or two have no cell that tells the look-up of those from their copy.
const SMALL_BYTES: u64 = 4096;

/// The parts of a cell's requests. Together they hold every layer that the fit books for such requests, each once. The
/// wait for a CPU is left to the scheduler where nothing sleeps: both have it from there.
pub(super) fn parts(w: &Workload) -> &'static [Part] {
    const CACHED: &[Part] = &[ENTRY, FILESYSTEM, CACHE, COPY, NO_DEVICE];
    const LARGE: &[Part] = &[ENTRY, FILESYSTEM, CACHED_BYTES, NO_DEVICE];
    const COLD: &[Part] = &[ENTRY, DIRECT_BELOW, COPY, WAIT];
    const DIRECT: &[Part] = &[ENTRY, DIRECT_BELOW, WAIT];
    const FAULTS: &[Part] = &[MAPPED, NO_DEVICE];
    const COLD_FAULTS: &[Part] = &[MAPPED, BELOW, WAIT];
    const WRITES: &[Part] = &[WRITE_BUSY, WRITE_WAIT];
    if w.direction.writes() {
        WRITES
    } else if w.method.mapped() {
        if w.state == CacheState::Warm { FAULTS } else { COLD_FAULTS }
    } else {
        match w.state {
            CacheState::Direct => DIRECT,
            CacheState::Cold => COLD,
            CacheState::Warm | CacheState::None if w.block_bytes > SMALL_BYTES => LARGE,
            CacheState::Warm | CacheState::None => CACHED,
        }
    }
}

/// Whether time in this operation belongs to the cell's requests, and not to what is done before and after them.
pub(super) fn belongs(w: &Workload, operation: Operation) -> bool {
    use Operation as O;
    match operation {
        O::User | O::Interrupt => true,
        // Entry and exit of a call whose number was not in the stack.
        O::Unknown => true,
        O::Ring => matches!(w.method, Method::Uring | Method::UringSqpoll | Method::UringIopoll),
        O::Fault => w.method.mapped(),
        O::Map => matches!(w.method, Method::MmapPopulate | Method::MmapLock),
        O::Read => !w.method.mapped(),
        O::Write | O::Sync => w.direction.writes(),
        _ => false,
    }
}
