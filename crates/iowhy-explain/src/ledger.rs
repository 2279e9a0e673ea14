//! A measured cell, split over the layers: a ledger per request that sums to the measured thread time.
//!
//! Goal: every nanosecond booked by a rule that does not know the remainder. Invariants: busy layers get their
//! independently fitted costs, unscaled; waiting is booked no further than the kernel's own counters cover it, and
//! where there are none the note says "not checked"; what is left stands under `unexplained`, and may be negative.
//!
//! The rules of waiting, in order:
//! 1. `cpu-queue`: the scheduler's own count of time runnable without a CPU, exactly.
//! 2. `device` for reads: as far as the block layer's request times reach, and not at all for bytes that live in
//!    memory. Without counters: all of it for cold and direct reads, with a note; none for warm ones.
//! 3. `device` for writes: as for reads; then, for methods that wait for stable storage, the rest is `writeback`
//!    (journal commit and flush: the thread sleeps on nothing else inside such a call). For a single thread of
//!    plain cached writes the rest is `writeback` too (dirty throttling). Several threads may as well wait for the
//!    inode lock: unexplained.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::{Cost, Part, StackModel};
use iowhy_core::workload::{CacheState, Method, Workload};

use crate::per_request::{
    busy_ns, device_bytes, device_request_ns, device_requests, mean_pages, median_rounds, wait_ns,
};

/// What the ledger is told beside the cell.
#[derive(Clone, Copy, Debug)]
pub struct LedgerContext<'a> {
    /// The fitted costs.
    pub model: &'a StackModel,
    /// What was found on the target, when it was looked at.
    pub facts: Option<&'a TargetFacts>,
    /// Our own cost per request (measured on the `null` method), booked under `program`; 0 when not known.
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
    let middle = median_rounds(run);
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

/// Splits one round.
fn of_round(run: &CellRun, sample: &Sample, context: &LedgerContext<'_>) -> RequestLedger {
    let total_ns = sample.ns_per_request();
    let busy = busy_ns(sample);
    let mut notes = Vec::new();
    let mut layers = Ledger::default();
    layers.add(Layer::Program, context.harness_ns, 0.0);
    book_busy(&mut layers, &run.workload, sample, context, &mut notes);
    book_wait(&mut layers, &run.workload, sample, context, &mut notes);
    layers.close(busy, total_ns - busy);
    RequestLedger { total_ns, busy_ns: busy, layers, notes }
}

/// CPU time of the block layer for one request of ours that became `requests` block requests of `bytes` in all.
pub fn block_busy_ns(cost: &Cost, requests: f64, bytes: f64, page_bytes: u64) -> f64 {
    cost.per_call_ns * requests
        + cost.per_page_ns * bytes / page_bytes.max(1) as f64
        + cost.per_byte_ns * bytes
}

/// Which fitted costs a method pays on the CPU.
struct Path {
    /// System calls for one request.
    calls: f64,
    /// Trips through the VFS beyond those that `filesystem` counts once.
    extra_vfs: f64,
    layers: &'static [Layer],
    note: Option<&'static str>,
}

/// The path of a method, from the model's own rungs where they fit and from the nearest ones where not.
/// `None` where nothing measured stands near: the time stays unexplained.
fn path(w: &Workload, kind: Option<TargetKind>) -> Option<Path> {
    use Layer::{Block, Cache, Call, Copy, Filesystem, Memory};
    use Method as M;
    const CACHED: &[Layer] = &[Call, Filesystem, Cache, Copy];
    const DIRECT: &[Layer] = &[Call, Filesystem, Block];
    let plain = |layers| Path { calls: 1.0, extra_vfs: 0.0, layers, note: None };
    let noted = |calls, extra_vfs, layers, note| Path { calls, extra_vfs, layers, note: Some(note) };
    let character = kind == Some(TargetKind::CharDevice);
    Some(match w.method {
        M::Null => plain(&[]),
        M::Syscall => plain(&[Call]),
        M::PreadEnd => plain(&[Call, Filesystem]),
        // The rungs /dev/null and /dev/zero: no cache below them.
        m if character && m.copies() => Path { calls: 1.0, extra_vfs: 1.0, layers: &[Call], note: None },
        M::Direct => plain(DIRECT),
        M::Uring if w.state == CacheState::Direct => {
            noted(1.0, 0.0, DIRECT, "ring: costs of a direct pread; batching makes the call cheaper")
        }
        M::UringIopoll => noted(
            1.0,
            0.0,
            DIRECT,
            "polling: the spin while the device works is busy time and stays unexplained",
        ),
        M::UringSqpoll => return None,
        M::Mmap | M::MmapRandom | M::MmapSequential => plain(&[Memory]),
        M::MmapPopulate => noted(
            2.0,
            0.0,
            &[Call, Memory],
            "memory: the cost was fitted on a standing mapping, not on mapping anew",
        ),
        M::MmapLock => noted(
            4.0,
            0.0,
            &[Call, Memory],
            "memory: the cost was fitted on a standing mapping, not on locking anew",
        ),
        M::Sendfile => noted(
            1.0,
            0.0,
            &[Call, Filesystem, Cache],
            "no copy to user memory; the pipe inside is not modelled",
        ),
        M::Splice => noted(
            2.0,
            1.0,
            &[Call, Filesystem, Cache],
            "no copy to user memory; the pipe itself is not modelled",
        ),
        M::Preadv2Nowait if w.state == CacheState::Cold => {
            noted(2.0, 1.0, CACHED, "the first, refused call is booked as an empty one")
        }
        M::PwriteFsync | M::PwriteFdatasync => noted(
            2.0,
            1.0,
            CACHED,
            "writes: costs were fitted on reads; allocation and journal work are not modelled",
        ),
        M::Write | M::Pwrite | M::PwriteDsync => noted(
            1.0,
            0.0,
            CACHED,
            "writes: costs were fitted on reads; allocation and journal work are not modelled",
        ),
        M::MmapStore => noted(
            1.0,
            1.0,
            &[Call, Memory],
            "mapped store: faults as for reads; write-protection is not modelled",
        ),
        M::Fallocate => noted(1.0, 1.0, &[Call], "allocation is not modelled"),
        M::Sg | M::SgDirect | M::SgMmap | M::SgNoCopy => return None,
        M::Read | M::Pread | M::Readv | M::Preadv2 | M::Preadv2Nowait | M::Preadv2Dontcache | M::Uring => {
            plain(CACHED)
        }
    })
}

fn book_busy(
    ledger: &mut Ledger,
    w: &Workload,
    sample: &Sample,
    context: &LedgerContext<'_>,
    notes: &mut Vec<String>,
) {
    let model = context.model;
    let kind = context.facts.map(|f| f.kind);
    let Some(path) = path(w, kind) else {
        notes.push(format!("the model has no opinion about method {}", w.method.id()));
        return;
    };
    notes.extend(path.note.map(str::to_owned));
    let (pages, bytes) = (mean_pages(w.block_bytes, model.page_bytes), w.block_bytes as f64);
    for &layer in path.layers {
        let times = if layer == Layer::Call { path.calls } else { 1.0 };
        let cost = if layer == Layer::Filesystem && kind == Some(TargetKind::Memory) {
            model.part(Part::Vfs)
        } else {
            model.cost(layer)
        };
        ledger.add(layer, cost.of(pages, bytes) * times, 0.0);
    }
    ledger.add(Layer::Filesystem, model.part(Part::Vfs).per_call_ns * path.extra_vfs, 0.0);
    if kind == Some(TargetKind::CharDevice) && context.facts.is_some_and(|f| f.name == "/dev/zero") {
        ledger.add(Layer::Memory, model.part(Part::Zero).of(pages, bytes), 0.0);
    }
    let through_the_cache = !path.layers.contains(&Layer::Block) && !path.layers.is_empty();
    if through_the_cache && (w.state == CacheState::Cold || w.direction.writes()) {
        book_device_work(ledger, w, sample, context, notes);
    }
}

/// CPU time that a request through the cache spends below it: insertion of pages read and building of requests,
/// by the device's own counts. Work that the kernel's threads did for us is not in our CPU time and makes
/// `unexplained` negative.
fn book_device_work(
    ledger: &mut Ledger,
    w: &Workload,
    sample: &Sample,
    context: &LedgerContext<'_>,
    notes: &mut Vec<String>,
) {
    let model = context.model;
    let counted = device_requests(sample).zip(device_bytes(sample));
    let (requests, bytes) = match counted {
        Some(counted) => counted,
        None if w.direction.writes() => return,
        None => {
            notes.push("block: no device counters, requests were reckoned from the read-ahead size".into());
            let ahead = model.read_ahead_bytes.max(w.block_bytes).max(1) as f64;
            (w.block_bytes as f64 / ahead, w.block_bytes as f64)
        }
    };
    // Plain cached writes are written back by kernel threads, not by us.
    if !w.direction.writes() || waits_for_storage(w.method) {
        ledger.add(
            Layer::Block,
            block_busy_ns(&model.cost(Layer::Block), requests, bytes, model.page_bytes),
            0.0,
        );
    }
    if !w.direction.writes() {
        let inserted_pages = bytes / model.page_bytes.max(1) as f64;
        ledger.add(Layer::Cache, model.part(Part::Insert).of(inserted_pages, bytes), 0.0);
    }
}

fn book_wait(
    ledger: &mut Ledger,
    w: &Workload,
    sample: &Sample,
    context: &LedgerContext<'_>,
    notes: &mut Vec<String>,
) {
    ledger.add(Layer::CpuQueue, 0.0, sample.run_delay_ns as f64 / sample.requests.max(1) as f64);
    let left = wait_ns(sample).max(0.0);
    let in_memory = context.facts.is_some_and(|f| f.memory_backed || f.kind == TargetKind::CharDevice);
    let device = match device_request_ns(sample) {
        _ if in_memory => 0.0,
        Some(under_way) => under_way.min(left),
        None if device_expected(w) && left > 0.0 => {
            notes.push("device: not checked, its counters could not be read".into());
            left
        }
        None => 0.0,
    };
    ledger.add(Layer::Device, 0.0, device);
    if w.direction.writes() && !in_memory {
        let rest = left - device;
        if waits_for_storage(w.method) || (w.threads <= 1 && through_cache_write(w)) {
            ledger.add(Layer::Writeback, 0.0, rest);
        } else if rest > 0.0 && w.threads > 1 {
            notes.push(
                "several threads write: waiting for the inode lock and for write-back are not told apart"
                    .into(),
            );
        }
    }
}

/// Whether waiting in this cell is for a device unless something says otherwise.
fn device_expected(w: &Workload) -> bool {
    match w.state {
        CacheState::Direct => !w.method.mapped(),
        CacheState::Cold => !w.direction.writes(),
        CacheState::Warm | CacheState::None => false,
    }
}

/// Whether a call of this method ends only when the data is on stable storage.
pub(crate) fn waits_for_storage(method: Method) -> bool {
    matches!(method, Method::PwriteDsync | Method::PwriteFsync | Method::PwriteFdatasync | Method::MmapStore)
}

fn through_cache_write(w: &Workload) -> bool {
    matches!(w.method, Method::Write | Method::Pwrite | Method::Uring) && w.state != CacheState::Direct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Rung;
    use crate::synthetic::{Rounds, Truth, facts};
    use iowhy_core::workload::Direction;
    use proptest::prelude::*;

    fn context<'a>(model: &'a StackModel, facts: Option<&'a TargetFacts>) -> LedgerContext<'a> {
        LedgerContext { model, facts, harness_ns: 0.0 }
    }

    #[test]
    fn the_models_own_rungs_leave_nothing_unexplained() {
        let model = Truth::EXAMPLE.model();
        for rung in [Rung::Syscall, Rung::CachedFile, Rung::MappedFile, Rung::DirectFile, Rung::ColdFile] {
            for bytes in [4096, 65_536] {
                let run = Truth::EXAMPLE.cell(rung, bytes, 0.0, 1);
                let split = ledger(&run, &context(&model, None)).unwrap();
                assert!(split.unexplained_share().abs() < 1e-6, "{rung:?} {bytes}: {split:?}");
                assert!((split.layers.total_ns() - split.total_ns).abs() < 1e-6);
                let w = &run.workload;
                let predicted = model.predict(w.method, w.state, bytes).unwrap();
                for e in predicted.entries() {
                    let found = split.layers.get(e.id).total_ns();
                    assert!((found - e.total_ns()).abs() < 1e-6 * e.total_ns().max(1.0), "{rung:?} {e:?}");
                }
            }
        }
    }

    #[test]
    fn the_character_and_memory_rungs_are_explained_from_their_parts() {
        let model = Truth::EXAMPLE.model();
        for (rung, kind, name) in [
            (Rung::NullDevice, TargetKind::CharDevice, "/dev/null"),
            (Rung::ZeroDevice, TargetKind::CharDevice, "/dev/zero"),
            (Rung::Memory, TargetKind::Memory, "memfd"),
        ] {
            let target = TargetFacts { kind, name: name.into(), memory_backed: true, ..facts(1 << 30) };
            let run = Truth::EXAMPLE.cell(rung, 4096, 0.0, 1);
            let split = ledger(&run, &context(&model, Some(&target))).unwrap();
            assert!(split.unexplained_share().abs() < 1e-6, "{rung:?}: {split:?}");
        }
    }

    #[test]
    fn of_an_even_number_of_rounds_the_split_sums_to_the_median_between_two() {
        let model = Truth::EXAMPLE.model();
        let mut run = Truth::EXAMPLE.cell(Rung::CachedFile, 4096, 0.0, 1);
        run.samples.truncate(4);
        for (i, sample) in run.samples.iter_mut().enumerate() {
            sample.thread_ns = sample.requests * (1000 + 100 * i as u64);
        }
        let split = ledger(&run, &context(&model, None)).unwrap();
        assert!((split.total_ns - 1150.0).abs() < 1e-6, "{split:?}");
        assert!((split.layers.total_ns() - split.total_ns).abs() < 1e-6, "{split:?}");
    }

    #[test]
    fn device_time_is_booked_only_as_far_as_the_counters_cover_it() {
        let model = Truth::EXAMPLE.model();
        let direct = |device: Option<f64>| {
            let cell = Rounds::new(Workload::reads(Method::Direct, CacheState::Direct, 4096, 1 << 30))
                .busy(3000.0)
                .wait(100_000.0)
                .run_delay(700.0);
            match device {
                Some(ns) => cell.device(1.0, 4096.0, ns).build(),
                None => cell.build(),
            }
        };
        let split = |run: &CellRun| ledger(run, &context(&model, None)).unwrap();
        let covered = split(&direct(Some(60_000.0)));
        assert!((covered.layers.get(Layer::Device).wait_ns - 60_000.0).abs() < 1e-3);
        assert!((covered.layers.get(Layer::Unexplained).wait_ns - 40_000.0).abs() < 1e-3);
        assert!((covered.layers.get(Layer::CpuQueue).wait_ns - 700.0).abs() < 1e-3);
        let deep = split(&direct(Some(900_000.0)));
        assert!((deep.layers.get(Layer::Device).wait_ns - 100_000.0).abs() < 1e-3, "no more than was waited");
        let blind = split(&direct(None));
        assert!((blind.layers.get(Layer::Device).wait_ns - 100_000.0).abs() < 1e-3);
        assert!(blind.notes.iter().any(|n| n.contains("not checked")), "{:?}", blind.notes);
        let tmpfs = TargetFacts { memory_backed: true, ..facts(1 << 30) };
        let memory = ledger(&direct(None), &context(&model, Some(&tmpfs))).unwrap();
        assert_eq!(memory.layers.get(Layer::Device).wait_ns, 0.0);
    }

    #[test]
    fn a_synchronous_write_waits_for_the_device_and_then_for_writeback() {
        let model = Truth::EXAMPLE.model();
        let mut w = Workload::reads(Method::PwriteFdatasync, CacheState::None, 4096, 1 << 30);
        w.direction = Direction::Write;
        let run = Rounds::new(w).busy(9000.0).wait(500_000.0).device(2.0, 8192.0, 200_000.0).build();
        let split = ledger(&run, &context(&model, None)).unwrap();
        assert!((split.layers.get(Layer::Device).wait_ns - 200_000.0).abs() < 1e-3);
        assert!((split.layers.get(Layer::Writeback).wait_ns - 300_000.0).abs() < 1e-3);
        let block = split.layers.get(Layer::Block).busy_ns;
        assert!((block - (2.0 * 2500.0 + 2.0 * 35.0 + 8192.0 * 0.01)).abs() < 1e-6, "{block}");
    }

    #[test]
    fn waiting_in_warm_reads_without_the_device_stays_unexplained() {
        let model = Truth::EXAMPLE.model();
        let run = Rounds::new(Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 30))
            .busy(500.0)
            .wait(250.0)
            .device(0.0, 0.0, 0.0)
            .build();
        let split = ledger(&run, &context(&model, None)).unwrap();
        assert!((split.layers.get(Layer::Unexplained).wait_ns - 250.0).abs() < 1e-6);
    }

    #[test]
    fn explaining_too_much_is_kept_as_negative_time() {
        let model = Truth::EXAMPLE.model();
        let run =
            Rounds::new(Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 30)).busy(100.0).build();
        let split = ledger(&run, &context(&model, None)).unwrap();
        assert!(split.unexplained_share() < -1.0);
        assert!((split.layers.total_ns() - 100.0).abs() < 1e-6);
    }

    #[test]
    fn methods_without_near_knowledge_are_honest() {
        let model = Truth::EXAMPLE.model();
        for method in [Method::Sg, Method::UringSqpoll] {
            let run =
                Rounds::new(Workload::reads(method, CacheState::None, 4096, 1 << 30)).busy(800.0).build();
            let split = ledger(&run, &context(&model, None)).unwrap();
            assert!((split.unexplained_share() - 1.0).abs() < 1e-9);
            assert!(split.notes[0].contains(method.id()));
        }
        let sendfile =
            Rounds::new(Workload::reads(Method::Sendfile, CacheState::Warm, 65_536, 1 << 30)).busy(9000.0);
        let split = ledger(&sendfile.build(), &context(&model, None)).unwrap();
        assert_eq!(split.layers.get(Layer::Copy).busy_ns, 0.0);
        assert!(split.layers.get(Layer::Cache).busy_ns > 0.0);
    }

    proptest! {
        #[test]
        fn every_ledger_sums_to_the_measured_time(
            method in proptest::sample::select(Method::ALL.to_vec()),
            state in proptest::sample::select(vec![CacheState::Cold, CacheState::Warm, CacheState::Direct, CacheState::None]),
            write in any::<bool>(),
            threads in 0usize..5,
            block_bytes in 0u64..(1 << 24),
            totals in (0u64..10_000_000, 0u64..(1 << 50), 0u64..(1 << 50), 0u64..(1 << 50)),
            counters in proptest::option::of((0u64..(1 << 40), 0u64..(1 << 50), 0u64..(1 << 50))),
            memory_backed in any::<bool>(),
            harness_ns in 0.0..500.0f64,
        ) {
            let mut w = Workload::reads(method, state, block_bytes, 1 << 30);
            w.direction = if write { Direction::Write } else { Direction::Read };
            w.threads = threads;
            let mut run = Rounds::new(w).rounds(1).build();
            let s = &mut run.samples[0];
            (s.requests, s.thread_ns, s.cpu_ns, s.run_delay_ns) = totals;
            s.device_requests = counters.map(|c| c.0);
            s.device_bytes = counters.map(|c| c.1);
            s.device_request_ns = counters.map(|c| c.2);
            let expected = s.ns_per_request();
            let model = Truth::EXAMPLE.model();
            let target = TargetFacts { memory_backed, ..facts(1 << 30) };
            let context = LedgerContext { model: &model, facts: Some(&target), harness_ns };
            match ledger(&run, &context) {
                None => prop_assert_eq!(totals.0, 0),
                Some(split) => {
                    let magnitude: f64 = split.layers.entries().iter().map(|e| e.busy_ns.abs() + e.wait_ns.abs()).sum();
                    prop_assert!((split.layers.total_ns() - expected).abs() <= 1e-9 * magnitude.max(1.0));
                    let named = split.layers.entries().iter().filter(|e| e.id != Layer::Unexplained);
                    for e in named {
                        prop_assert!(e.busy_ns >= 0.0 && e.wait_ns >= 0.0, "{:?}", e);
                    }
                }
            }
        }
    }
}
