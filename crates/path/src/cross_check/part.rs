//! The parts of a request that account and samples are compared by.
//!
//! The account calls a layer what a calibration cell costs more than the one below it; a sample belongs to the layer that was
//! on the CPU when the clock fired. Only boundaries that both see are compared, and each part says why it is drawn so.

use iowhy_core::layer::Layer;
use iowhy_core::workload::{CacheState, Method, Workload};

use iowhy_diagnose::classify::Operation;

/// One or several layers that are compared as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Stable identifier: the layers joined by `+`, with `-wait` for time off the CPU.
    pub(super) id: &'static str,
    /// Layers of the account that belong to it: their waiting for [`Seen::Waits`], else their CPU time.
    pub(super) fitted: &'static [Layer],
    /// What was seen of it.
    pub(super) seen: Seen,
    /// Why layers are compared as a sum.
    pub(super) why: Option<&'static str>,
}

/// Which samples or sleeps belong to a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    /// Samples in these layers.
    Layers(&'static [Layer]),
    /// Samples that are in no other part, interrupts included.
    Rest,
    /// Sleeps in the layers of the account.
    Waits,
}

/// Layers that a request waits in for storage.
pub(super) const IO_WAIT: &[Layer] = &[Layer::Block, Layer::Device, Layer::Journal, Layer::Writeback];

const WAIT: Part = Part {
    id: "block+device+journal+writeback-wait",
    fitted: IO_WAIT,
    seen: Seen::Waits,
    why: Some("the account knows waiting from the device's counters, flushes and queueing included"),
};
/// A read at the end of the file, which the account begins with, and what lies beyond it.
const TO_END: Part = Part {
    id: "program+call+filesystem",
    fitted: &[Layer::Program, Layer::Call, Layer::Filesystem],
    seen: Seen::Layers(&[Layer::Program, Layer::Call, Layer::Filesystem]),
    why: Some(
        "the clock cannot fire while the kernel is entered or left; it fires right after, in the program, the call or \
         the file system",
    ),
};
const BYTES: Part = Part {
    id: "cache+copy",
    fitted: &[Layer::Cache, Layer::Copy],
    seen: Seen::Rest,
    why: Some(
        "the account books what a read of one byte costs under `cache`, its copy included, and the look-up of further \
         pages under `copy`",
    ),
};
const CALL: Part = Part {
    id: "program+call",
    fitted: &[Layer::Program, Layer::Call],
    seen: Seen::Layers(&[Layer::Program, Layer::Call]),
    why: TO_END.why,
};
const BELOW: Part = Part {
    id: "filesystem+cache+memory+block+device",
    fitted: &[Layer::Filesystem, Layer::Cache, Layer::Memory, Layer::Block, Layer::Device],
    seen: Seen::Rest,
    why: Some(
        "the account books under `block` all CPU time that a request to the device costs beyond a read that ends at \
         once: page allocation, extent mapping, the driver (in a virtual machine its exits), completion interrupts, the switch",
    ),
};
/// Identifier of all CPU time.
pub(super) const BUSY_ID: &str = "busy";
/// All CPU time.
const BUSY: Part = Part {
    id: BUSY_ID,
    fitted: &[
        Layer::Program,
        Layer::Call,
        Layer::Filesystem,
        Layer::Cache,
        Layer::Copy,
        Layer::Memory,
        Layer::Block,
        Layer::Device,
    ],
    seen: Seen::Rest,
    why: None,
};
const MAPPED: Part = Part {
    why: Some(
        "the account books all that a fault costs under `memory`, the load that waits for the new mapping included; the \
         clock cannot fire at its beginning and end, and fires right after, in the program",
    ),
    ..BUSY
};
const RING: Part = Part {
    why: Some(
        "the account knows the ring's own work from cached reads; of direct ones a part of it is done where they are \
         submitted and completed",
    ),
    ..BUSY
};
const COLD_READ: Part = Part {
    why: Some(
        "copying is slower while the device writes to memory, which no calibration cell shows, so that cells and samples do \
         not see the same boundary between `copy` and `block`",
    ),
    ..BUSY
};
const WRITE: Part = Part {
    why: Some(
        "what it costs to make a write durable is in part paid by the next one (the journal), so that calibration cells \
         and samples do not see the same boundary between the two",
    ),
    ..BUSY
};

/// The parts of a cell's requests. Together they hold every layer that the account books for such requests, each once.
pub(super) fn parts(w: &Workload) -> &'static [Part] {
    const CACHED: &[Part] = &[TO_END, BYTES, WAIT];
    const COLD: &[Part] = &[COLD_READ, WAIT];
    const DIRECT: &[Part] = &[CALL, BELOW, WAIT];
    const RINGS: &[Part] = &[RING, WAIT];
    const FAULTS: &[Part] = &[MAPPED, WAIT];
    const WRITES: &[Part] = &[WRITE, WAIT];
    if w.method.mapped() {
        FAULTS
    } else if w.state == CacheState::Direct {
        if w.method.asynchronous() { RINGS } else { DIRECT }
    } else if w.direction.writes() {
        WRITES
    } else if w.state == CacheState::Cold {
        COLD
    } else {
        CACHED
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
