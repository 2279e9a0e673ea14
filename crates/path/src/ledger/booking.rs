//! The split of one round. Busy layers get their fitted costs, unscaled; waiting is booked only as far as the kernel's counters
//! cover it; the rest is `unexplained`, which may be negative. No rule knows the remainder.
//!
//! From `MANY_IN_FLIGHT` requests on, a ring pays `Part::Ring` for `call`, and a direct request in it `Part::Deep` and its share
//! of a batch for `block`. They are calibrated at other depths, so the ledger of a depth between them is a prediction.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::{Cost, Part, StackModel};
use iowhy_core::workload::{CacheState, Method, Workload};

use super::method_path::path;
use super::queue::Queue;
use crate::per_request::{
    block_busy_ns, busy_ns, device_bytes, device_request_ns, device_requests, mean_pages, median_rounds,
    stack_request_ns, wait_ns,
};

/// What is known beside the cell.
#[derive(Clone, Copy, Debug)]
pub struct LedgerContext<'a> {
    /// The fitted costs.
    pub model: &'a StackModel,
    /// What was found on the target, when it was looked at.
    pub facts: Option<&'a TargetFacts>,
    /// Cost of iowhy itself per request (the `null` method), booked under `program`; 0 when not known.
    pub harness_ns: f64,
}

/// One request of a cell, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestLedger {
    /// Thread time of the median round, for one request.
    pub total_ns: f64,
    /// Of which on the CPU.
    pub busy_ns: f64,
    /// The split; sums to `total_ns`.
    pub layers: Ledger,
    /// What rests on an assumption, one sentence each.
    pub notes: Vec<String>,
}

impl RequestLedger {
    /// The unexplained time over the total: signed, 0 when nothing was measured.
    pub fn unexplained_share(&self) -> f64 {
        if self.total_ns == 0.0 {
            0.0
        } else {
            self.layers.get(Layer::Unexplained).total_ns() / self.total_ns
        }
    }
}

/// Splits the median round of a cell; of an even number of rounds the mean of the two in the middle, so that the split
/// sums to the median that is printed beside it. `None` when no request was completed.
pub fn ledger(run: &CellRun, context: &LedgerContext<'_>) -> Option<RequestLedger> {
    of_middle(run, &median_rounds(run), context)
}

/// The mean split of these rounds.
pub(super) fn of_middle(
    run: &CellRun,
    middle: &[&Sample],
    context: &LedgerContext<'_>,
) -> Option<RequestLedger> {
    let rounds: Vec<RequestLedger> = middle.iter().map(|sample| of_round(run, sample, context)).collect();
    let share = 1.0 / rounds.len() as f64;
    let mut mean =
        RequestLedger { total_ns: 0.0, busy_ns: 0.0, layers: Ledger::default(), notes: Vec::new() };
    for round in rounds {
        mean.total_ns += round.total_ns * share;
        mean.busy_ns += round.busy_ns * share;
        for entry in round.layers.entries() {
            mean.layers.add(entry.id, entry.busy_ns * share, entry.wait_ns * share);
        }
        for note in round.notes {
            if !mean.notes.contains(&note) {
                mean.notes.push(note);
            }
        }
    }
    (!middle.is_empty()).then_some(mean)
}

/// Waiting of one round by the counts of scheduler and device, per request, and what rests on an assumption.
pub(crate) fn waits(run: &CellRun, sample: &Sample, context: &LedgerContext<'_>) -> (Ledger, Vec<String>) {
    let mut booking =
        Booking { w: &run.workload, sample, context, layers: Ledger::default(), notes: Vec::new() };
    booking.wait();
    (booking.layers, booking.notes)
}

/// Splits one round.
fn of_round(run: &CellRun, sample: &Sample, context: &LedgerContext<'_>) -> RequestLedger {
    let total_ns = sample.ns_per_request();
    let busy = busy_ns(sample);
    let mut booking =
        Booking { w: &run.workload, sample, context, layers: Ledger::default(), notes: Vec::new() };
    booking.layers.add(Layer::Program, context.harness_ns, 0.0);
    booking.busy();
    booking.wait();
    let Booking { mut layers, notes, .. } = booking;
    layers.close(busy, total_ns - busy);
    RequestLedger { total_ns, busy_ns: busy, layers, notes }
}

/// One round on its way into a ledger.
struct Booking<'a> {
    w: &'a Workload,
    sample: &'a Sample,
    context: &'a LedgerContext<'a>,
    layers: Ledger,
    notes: Vec<String>,
}

impl Booking<'_> {
    /// Books CPU time by the model's costs along the method's path.
    fn busy(&mut self) {
        let (w, sample, model) = (self.w, self.sample, self.context.model);
        let kind = self.context.facts.map(|f| f.kind);
        let Some(path) = path(w, kind) else {
            self.notes.push(format!("the model has no costs for method {}", w.method.id()));
            return;
        };
        self.notes.extend(path.note.map(str::to_owned));
        let (pages, bytes) = (mean_pages(w.block_bytes, model.page_bytes), w.block_bytes as f64);
        let other_memory_file =
            kind == Some(TargetKind::Memory) && self.context.facts.is_some_and(|f| f.name != model.name);
        let queue = Queue::of(w, path.layers.contains(&Layer::Block), model);
        self.notes.extend(queue.note(w, pages).map(str::to_owned));
        for &layer in path.layers {
            let busy_ns = match (layer, queue) {
                (Layer::Call, Queue::Many { .. }) => model.part(Part::Ring).per_call_ns,
                (Layer::Block, Queue::Many { .. }) => {
                    let batch = model.part(Part::Batch).per_call_ns / w.depth.max(1) as f64;
                    let each = model.part(Part::Deep).per_call_ns + batch;
                    each * parts(sample, pages)
                }
                (Layer::Call, _) => model.cost(layer).total_ns(pages, bytes) * path.calls,
                _ if other_memory_file => memory_file_cost(model, layer).total_ns(pages, bytes),
                _ => model.cost(layer).total_ns(pages, bytes),
            };
            self.layers.add(layer, busy_ns, 0.0);
        }
        self.layers.add(Layer::Filesystem, model.part(Part::Vfs).per_call_ns * path.extra_vfs, 0.0);
        if kind == Some(TargetKind::CharDevice) && self.context.facts.is_some_and(|f| f.name == "/dev/zero") {
            self.layers.add(Layer::Memory, model.part(Part::Zero).total_ns(pages, bytes), 0.0);
        }
        let through_the_cache = !path.layers.contains(&Layer::Block) && !path.layers.is_empty();
        if through_the_cache && (w.state == CacheState::Cold || w.direction.writes()) {
            self.device_work();
        }
    }

    /// CPU time that a request through the cache spends below it: insertion of pages read and building of requests,
    /// by the device's own counts. Work of kernel threads is not in the CPU time of the measuring threads and makes
    /// `unexplained` negative.
    fn device_work(&mut self) {
        let (w, sample, model) = (self.w, self.sample, self.context.model);
        let counted = device_requests(sample).zip(device_bytes(sample));
        let (requests, bytes) = match counted {
            Some(counted) => counted,
            None if w.direction.writes() => return,
            None => {
                self.notes
                    .push("block: no device counters, requests were counted from the read-ahead size".into());
                let ahead = model.read_ahead_bytes.max(w.block_bytes).max(1) as f64;
                (w.block_bytes as f64 / ahead, w.block_bytes as f64)
            }
        };
        // Plain cached writes are written back by kernel threads, not by the caller.
        if !w.direction.writes() || waits_for_storage(w.method) {
            self.layers.add(
                Layer::Block,
                block_busy_ns(&model.cost(Layer::Block), requests, bytes, model.page_bytes),
                0.0,
            );
        }
        if !w.direction.writes() {
            let inserted_pages = bytes / model.page_bytes.max(1) as f64;
            self.layers.add(Layer::Cache, model.part(Part::Insert).total_ns(inserted_pages, bytes), 0.0);
        }
    }

    /// Books waiting by the counts of scheduler and device.
    ///
    /// The rules of waiting, in order:
    /// 1. `cpu-queue`: the scheduler's own count of time runnable without a CPU, exactly.
    /// 2. `device`: as far as the block layer's request times reach, and not at all for bytes that live in memory.
    ///    Without counters: all of it for cold and direct reads, with a note; none for warm reads and for writes; and where
    ///    a program or another machine serves the bytes, what would be the device's is `elsewhere`. At depth
    ///    `d` the thread's time per request is about `1 / d` of a request's latency, and the block layer's time per
    ///    request is the whole latency, counted once for each request under way. So it reaches further than the wait, and
    ///    the wait is the bound: a thread that waits in a ring waits while at least one of its requests is under way.
    /// 3. `block`: as far as a stacked device (dm, md) held requests longer than the devices below it did.
    /// 4. What a write waits beyond that (journal commit, flush, dirty throttling, the inode lock) no counter
    ///    separates. It stays unexplained, with a note.
    fn wait(&mut self) {
        let (w, sample) = (self.w, self.sample);
        self.layers.add(Layer::CpuQueue, 0.0, sample.run_delay_ns as f64 / sample.requests.max(1) as f64);
        let left = wait_ns(sample).max(0.0);
        if self.context.facts.is_some_and(|f| f.memory_backed || f.kind == TargetKind::CharDevice) {
            return;
        }
        let counted = device_request_ns(sample);
        let served_by = self.context.facts.and_then(|f| f.served_by.as_deref());
        if let (None, Some(server)) = (counted, served_by) {
            if device_expected(w) {
                self.notes.push(format!(
                    "elsewhere: {server} serves the bytes; all waiting is booked there, none as device time"
                ));
                self.layers.add(Layer::Elsewhere, 0.0, left);
            }
            return;
        }
        let device = match counted {
            Some(under_way) => under_way.min(left),
            None if device_expected(w) && left > 0.0 => {
                self.notes.push(
                    "device: not checked: its counters could not be read, and all waiting is booked as device time"
                        .into(),
                );
                left
            }
            None => 0.0,
        };
        self.layers.add(Layer::Device, 0.0, device);
        if w.method == Method::PwriteEndFdatasync && device > 0.0 {
            self.notes.push("device is device, block and journal together".into());
        }
        let held = stack_request_ns(sample).zip(device_request_ns(sample));
        let held = held.map_or(0.0, |(stack, below)| (stack - below).clamp(0.0, left - device));
        self.layers.add(Layer::Block, 0.0, held);
        let device = device + held;
        if w.direction.writes() && device < left {
            self.notes.push(
                "unexplained: what a write waits for beyond the device's requests (journal commit, flush, dirty \
                 throttling, locks) is not separated"
                    .into(),
            );
        }
    }
}

/// Requests of the block layer that one direct request became. A page is never split, whatever another program's
/// requests add to the counters.
fn parts(sample: &Sample, pages: f64) -> f64 {
    if pages <= 1.0 { 1.0 } else { device_requests(sample).unwrap_or(1.0).max(1.0) }
}

/// What a memory file pays that the model was not fitted on: its own costs where they were measured, else those of the
/// file without its file system.
fn memory_file_cost(model: &StackModel, layer: Layer) -> Cost {
    let own = model.parts.get(&Part::MemoryFile).map(|c| c.cost);
    match (layer, own) {
        (Layer::Filesystem, _) => model.part(Part::Vfs),
        (Layer::Cache, Some(own)) => Cost { per_byte_ns: 0.0, ..own },
        (Layer::Copy, Some(own)) => Cost { per_byte_ns: own.per_byte_ns, ..Cost::default() },
        _ => model.cost(layer),
    }
}

/// Whether waiting in this cell is for a device unless something says otherwise.
fn device_expected(w: &Workload) -> bool {
    let reaches_it = match w.state {
        CacheState::Direct => !w.method.mapped(),
        CacheState::Cold => true,
        CacheState::Warm | CacheState::None => false,
    };
    reaches_it && !w.direction.writes()
}

/// Whether a call of this method ends only when the data is on stable storage.
pub(crate) fn waits_for_storage(method: Method) -> bool {
    matches!(
        method,
        Method::PwriteDsync
            | Method::PwriteFsync
            | Method::PwriteFdatasync
            | Method::PwriteEndFdatasync
            | Method::MmapStore
    )
}
