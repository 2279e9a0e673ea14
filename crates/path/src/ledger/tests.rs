//! Ledgers of cells with known contents.

use super::*;
use crate::calibration::CalibrationCell;
use crate::synthetic::{Rounds, Truth, facts};
use iowhy_core::cell::CellRun;
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::layer::Layer;
use iowhy_core::model::LayerCost;
use iowhy_core::model::{Cost, Part, StackModel};
use iowhy_core::workload::Direction;
use iowhy_core::workload::{CacheState, Method, Workload};
use proptest::prelude::*;

fn context<'a>(model: &'a StackModel, facts: Option<&'a TargetFacts>) -> LedgerContext<'a> {
    LedgerContext { model, facts, harness_ns: 0.0 }
}

#[test]
fn the_models_own_cells_leave_nothing_unexplained() {
    let model = Truth::EXAMPLE.model();
    use CalibrationCell::*;
    for cell in [Syscall, EndOfFile, CachedFile, MappedFile, DirectFile, ColdFile] {
        for bytes in [4096, 65_536] {
            let run = Truth::EXAMPLE.cell(cell, bytes, 0.0, 1);
            let split = ledger(&run, &context(&model, None)).unwrap();
            assert!(split.unexplained_share().abs() < 1e-6, "{cell:?} {bytes}: {split:?}");
            assert!((split.layers.total_ns() - split.total_ns).abs() < 1e-6);
            let w = &run.workload;
            let predicted = model.predict(w.method, w.state, bytes).unwrap();
            for e in predicted.entries() {
                let found = split.layers.get(e.id).total_ns();
                assert!((found - e.total_ns()).abs() < 1e-6 * e.total_ns().max(1.0), "{cell:?} {e:?}");
            }
        }
    }
}

#[test]
fn the_character_and_memory_cells_are_explained_from_their_parts() {
    let model = Truth::EXAMPLE.model();
    for (cell, kind, name) in [
        (CalibrationCell::NullDevice, TargetKind::CharDevice, "/dev/null"),
        (CalibrationCell::ZeroDevice, TargetKind::CharDevice, "/dev/zero"),
        (CalibrationCell::Memory, TargetKind::Memory, "memfd"),
    ] {
        let target = TargetFacts { kind, name: name.into(), memory_backed: true, ..facts(1 << 30) };
        let run = Truth::EXAMPLE.cell(cell, 4096, 0.0, 1);
        let split = ledger(&run, &context(&model, Some(&target))).unwrap();
        assert!(split.unexplained_share().abs() < 1e-6, "{cell:?}: {split:?}");
    }
}

fn with_parts(parts: &[(Part, f64)]) -> StackModel {
    let mut model = Truth::EXAMPLE.model();
    model.parts.extend(
        parts.iter().map(|&(p, ns)| (p, LayerCost::exact(Cost { per_call_ns: ns, ..Cost::default() }))),
    );
    model
}

#[test]
fn a_depth_between_the_measured_ones_is_predicted() {
    let t = Truth::EXAMPLE;
    let model = with_parts(&[(Part::Ring, t.ring), (Part::Deep, t.deep.0), (Part::Batch, t.deep.1)]);
    for depth in [MANY_IN_FLIGHT, 32] {
        let split = ledger(&t.deep_cell(depth, 0.0, 1), &context(&model, None)).unwrap();
        assert!(split.unexplained_share().abs() < 1e-9, "{depth}: {split:?}");
        assert!((split.layers.get(Layer::Call).busy_ns - t.ring).abs() < 1e-9);
        let block = t.deep.0 + t.deep.1 / depth as f64;
        assert!((split.layers.get(Layer::Block).busy_ns - block).abs() < 1e-6);
        assert!((split.layers.get(Layer::Device).wait_ns - 7000.0).abs() < 1e-3, "no more than was waited");
        assert!(split.notes.is_empty(), "{:?}", split.notes);
    }
    let cached = ledger(&t.cell(CalibrationCell::RingMemory, 4096, 0.0, 1), &context(&model, None)).unwrap();
    assert!(cached.unexplained_share().abs() < 1e-9, "{cached:?}");
}

#[test]
fn a_few_in_flight_and_unmeasured_queues_are_booked_as_one_request_and_said_so() {
    let t = Truth::EXAMPLE;
    let full = with_parts(&[(Part::Ring, t.ring), (Part::Deep, t.deep.0), (Part::Batch, t.deep.1)]);
    let no_ring = with_parts(&[(Part::Deep, t.deep.0)]);
    let cases = [
        (&full, 4, t.call, t.block.0, "between those of one and of many"),
        (&t.model(), 32, t.call, t.block.0, "which was not measured"),
        (&no_ring, 32, 0.0, t.deep.0, "its cost is part of `block`"),
    ];
    for (model, depth, call, block_at_least, words) in cases {
        let split = ledger(&t.deep_cell(depth, 0.0, 1), &context(model, None)).unwrap();
        assert!((split.layers.get(Layer::Call).busy_ns - call).abs() < 1e-9, "{words}");
        let block = split.layers.get(Layer::Block).busy_ns;
        assert!(block >= block_at_least && block < block_at_least + 100.0, "{words}: {block}");
        assert!(split.notes.iter().any(|n| n.contains(words)), "{words}: {:?}", split.notes);
    }
}

#[test]
fn a_request_split_by_the_block_layer_pays_the_deep_cost_for_each_part() {
    let t = Truth::EXAMPLE;
    let model = with_parts(&[(Part::Ring, t.ring), (Part::Deep, t.deep.0), (Part::Batch, t.deep.1)]);
    let mut w = Workload::reads(Method::Uring, CacheState::Direct, 1 << 20, 1 << 30);
    w.depth = 16;
    let run = Rounds::new(w).busy(20_000.0).wait(7e5).device(3.0, (1 << 20) as f64, 9e6).build();
    let split = ledger(&run, &context(&model, None)).unwrap();
    let block = split.layers.get(Layer::Block).busy_ns;
    assert!((block - 3.0 * (t.deep.0 + t.deep.1 / 16.0)).abs() < 1e-6, "{block}");
    assert!(split.notes.iter().any(|n| n.contains("requests of one page")), "{:?}", split.notes);
    // A page cannot be split: more requests than ours are another program's.
    let mut page = t.deep_cell(16, 0.0, 1);
    page.samples.iter_mut().for_each(|s| s.device_requests = s.device_requests.map(|n| n * 5));
    assert!(ledger(&page, &context(&model, None)).unwrap().unexplained_share().abs() < 1e-9);
}

#[test]
fn a_memory_file_pays_its_own_costs_unless_it_is_what_the_model_was_fitted_on() {
    let t = Truth::EXAMPLE;
    let mut model = t.model();
    let own = Cost { per_call_ns: 40.0, per_page_ns: 300.0, per_byte_ns: 0.1 };
    model.parts.insert(Part::MemoryFile, LayerCost::exact(own));
    let run = t.cell(CalibrationCell::Memory, 65_536, 0.0, 1);
    let split = |name: &str| {
        let target = TargetFacts {
            kind: TargetKind::Memory,
            name: name.into(),
            memory_backed: true,
            ..facts(1 << 30)
        };
        ledger(&run, &context(&model, Some(&target))).unwrap().layers
    };
    let other = split("memory");
    assert!((other.get(Layer::Filesystem).busy_ns - t.vfs).abs() < 1e-9);
    assert!((other.get(Layer::Cache).busy_ns - (40.0 + 300.0 * 16.0)).abs() < 1e-9);
    assert!((other.get(Layer::Copy).busy_ns - 6553.6).abs() < 1e-9);
    let same = split(&model.name);
    assert!((same.get(Layer::Filesystem).busy_ns - t.vfs - t.file).abs() < 1e-9);
    assert!((same.get(Layer::Copy).busy_ns - t.copy * 65_536.0).abs() < 1e-9);
}

#[test]
fn of_an_even_number_of_rounds_the_split_sums_to_the_median_between_two() {
    let model = Truth::EXAMPLE.model();
    let mut run = Truth::EXAMPLE.cell(CalibrationCell::CachedFile, 4096, 0.0, 1);
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
    let fuse = TargetFacts { served_by: Some("a program".into()), ..facts(1 << 30) };
    let served = ledger(&direct(None), &context(&model, Some(&fuse))).unwrap();
    assert_eq!(served.layers.get(Layer::Device).wait_ns, 0.0, "no device is claimed where there is none");
    assert!((served.layers.get(Layer::Elsewhere).wait_ns - 100_000.0).abs() < 1e-3, "{served:?}");
    assert!(served.notes.iter().any(|n| n.contains("a program serves the bytes")), "{:?}", served.notes);
    let counted = ledger(&direct(Some(60_000.0)), &context(&model, Some(&fuse))).unwrap();
    assert_eq!(counted.layers, covered.layers, "what a device counted is its own");
}

fn write(method: Method, state: CacheState, threads: usize) -> Rounds {
    let mut w = Workload::reads(method, state, 4096, 1 << 30);
    (w.direction, w.threads) = (Direction::Write, threads);
    Rounds::new(w).busy(9000.0).wait(500_000.0)
}

#[test]
fn what_a_stack_holds_longer_than_its_devices_is_the_block_layers() {
    let (t, model) = (Truth::EXAMPLE, Truth::EXAMPLE.model());
    let wait = t.cell_ns(CalibrationCell::DirectFile, 4096).1;
    // Of the wait the device covers a fifth; the stack claims three fifths, or more than there is.
    for (stack, held) in [(0.6, 0.4), (5.0, 0.8), (0.1, 0.0)] {
        let mut run = t.cell(CalibrationCell::DirectFile, 4096, 0.0, 1);
        for s in &mut run.samples {
            s.device_request_ns = Some((wait * 0.2) as u64 * s.requests);
            s.stack_request_ns = Some((wait * stack) as u64 * s.requests);
        }
        let split = ledger(&run, &context(&model, None)).unwrap();
        let found = split.layers.get(Layer::Block).wait_ns;
        assert!((found - wait * held).abs() < 2.0, "{stack}: {found} of {wait}");
        assert!((split.layers.total_ns() - split.total_ns).abs() < 1e-6);
    }
}

#[test]
fn what_a_write_waits_beyond_the_device_is_no_layers_time() {
    let model = Truth::EXAMPLE.model();
    let cases = [
        (Method::PwriteFdatasync, CacheState::None, 1),
        (Method::Pwrite, CacheState::None, 1),
        (Method::Pwrite, CacheState::None, 4),
        (Method::Direct, CacheState::Direct, 1),
        (Method::PwriteEndFdatasync, CacheState::None, 1),
    ];
    for (method, state, threads) in cases {
        for (counted, device_ns) in [(Some(200_000.0), 200_000.0), (Some(9e5), 500_000.0), (None, 0.0)] {
            let cell = write(method, state, threads);
            let run = match counted {
                Some(ns) => cell.device(2.0, 8192.0, ns).build(),
                None => cell.build(),
            };
            let split = ledger(&run, &context(&model, None)).unwrap();
            let wait = |layer| split.layers.get(layer).wait_ns;
            assert!((wait(Layer::Device) - device_ns).abs() < 1e-3, "{method:?} {counted:?}: {split:?}");
            assert!((wait(Layer::Unexplained) - (500_000.0 - device_ns)).abs() < 1e-3, "{split:?}");
            assert_eq!(wait(Layer::Writeback), 0.0, "nothing measures it");
            let said = split.notes.iter().any(|n| n.contains("not separated"));
            assert_eq!(said, device_ns < 500_000.0, "{:?}", split.notes);
            let undivided = split.notes.iter().any(|n| n.ends_with("together"));
            assert_eq!(
                undivided,
                method == Method::PwriteEndFdatasync && device_ns > 0.0,
                "{:?}",
                split.notes
            );
        }
    }
}

#[test]
fn a_synchronous_write_pays_the_block_layer_for_its_own_requests() {
    let model = Truth::EXAMPLE.model();
    let run = write(Method::PwriteFdatasync, CacheState::None, 1).device(2.0, 8192.0, 200_000.0).build();
    let split = ledger(&run, &context(&model, None)).unwrap();
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
        let run = Rounds::new(Workload::reads(method, CacheState::None, 4096, 1 << 30)).busy(800.0).build();
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
        depth in 0usize..100,
        deep in any::<bool>(),
        block_bytes in 0u64..(1 << 24),
        totals in (0u64..10_000_000, 0u64..(1 << 50), 0u64..(1 << 50), 0u64..(1 << 50)),
        counters in proptest::option::of((0u64..(1 << 40), 0u64..(1 << 50), 0u64..(1 << 50))),
        stack in proptest::option::of(0u64..(1 << 50)),
        memory_backed in any::<bool>(),
        harness_ns in 0.0..500.0f64,
    ) {
        let mut w = Workload::reads(method, state, block_bytes, 1 << 30);
        w.direction = if write { Direction::Write } else { Direction::Read };
        w.threads = threads;
        w.depth = depth;
        let mut run = Rounds::new(w).rounds(1).build();
        let s = &mut run.samples[0];
        (s.requests, s.thread_ns, s.cpu_ns, s.run_delay_ns) = totals;
        s.device_requests = counters.map(|c| c.0);
        s.device_bytes = counters.map(|c| c.1);
        s.device_request_ns = counters.map(|c| c.2);
        s.stack_request_ns = stack;
        let expected = s.ns_per_request();
        let parts = [(Part::Ring, 70.0), (Part::Deep, 1800.0), (Part::Batch, 30_000.0)];
        let model = with_parts(if deep { &parts } else { &[] });
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
