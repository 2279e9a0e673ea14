//! Known answers: calibrations generated from a model give the model back.

use super::*;
use crate::synthetic::Truth;
use iowhy_core::cell::CellRun;
use iowhy_core::layer::Layer;
use iowhy_core::model::Part;
use proptest::prelude::*;

const SIZES: [u64; 8] = [512, 1024, 2048, 4096, 16_384, 65_536, 262_144, 1 << 20];
const CELLS: [CalibrationCell; 7] = [
    CalibrationCell::Syscall,
    CalibrationCell::NullDevice,
    CalibrationCell::ZeroDevice,
    CalibrationCell::Memory,
    CalibrationCell::CachedFile,
    CalibrationCell::MappedFile,
    CalibrationCell::DirectFile,
];

/// The calibration with the calibration cell that tells the file system from the cache.
fn with_end_of_file() -> Vec<CalibrationCell> {
    let mut cells = CELLS.to_vec();
    cells.push(CalibrationCell::EndOfFile);
    cells
}

fn calibrated(
    truth: &Truth,
    cells: &[CalibrationCell],
    sizes: &[u64],
    noise: f64,
    seed: u64,
) -> Vec<(CalibrationCell, CellRun)> {
    cells.iter().flat_map(|&r| sizes.iter().map(move |&s| (r, truth.cell(r, s, noise, seed)))).collect()
}

fn fitted(cells: &[(CalibrationCell, CellRun)], options: &FitOptions) -> Fit {
    let runs: Vec<CalibrationRun<'_>> =
        cells.iter().map(|(cell, run)| CalibrationRun { cell: *cell, run }).collect();
    fit(&runs, options)
}

fn options(replicates: usize) -> FitOptions {
    FitOptions { replicates, ..FitOptions::new("test", 4096, 42) }
}

/// Every cost of the truth with the fitted one.
fn pairs(truth: &Truth, fit: &Fit) -> Vec<(String, f64, LayerCost)> {
    let wanted = truth.model();
    let layers = wanted
        .layers
        .iter()
        .map(|(l, c)| (l.id().to_owned(), c.cost, fit.model.layers.get(l).copied().unwrap_or_default()));
    let parts = wanted
        .parts
        .iter()
        .map(|(p, c)| (format!("{p:?}"), c.cost, fit.model.parts.get(p).copied().unwrap_or_default()));
    let field = |cost: fn(&Cost) -> f64, c: &LayerCost| LayerCost {
        cost: Cost { per_call_ns: cost(&c.cost), ..Cost::default() },
        low: Cost { per_call_ns: cost(&c.low), ..Cost::default() },
        high: Cost { per_call_ns: cost(&c.high), ..Cost::default() },
    };
    type Field = (&'static str, fn(&Cost) -> f64);
    let fields: [Field; 3] =
        [("call", |c| c.per_call_ns), ("page", |c| c.per_page_ns), ("byte", |c| c.per_byte_ns)];
    layers
        .chain(parts)
        .flat_map(|(name, wanted, found)| {
            fields.map(|(per, cost)| (format!("{name} per {per}"), cost(&wanted), field(cost, &found)))
        })
        .collect()
}

fn assert_recovered(truth: &Truth, fit: &Fit) {
    for (name, wanted, found) in pairs(truth, fit) {
        let found = found.cost.per_call_ns;
        assert!(
            (found - wanted).abs() <= 1e-6 * wanted + 1e-9,
            "{name}: {found} for {wanted}\n{:?}",
            fit.notes
        );
    }
}

#[test]
fn an_exact_calibration_gives_back_every_cost() {
    for cells in [&CELLS[..], &with_end_of_file()] {
        let cells = calibrated(&Truth::EXAMPLE, cells, &SIZES, 0.0, 1);
        let fit = fitted(&cells, &options(20));
        assert_recovered(&Truth::EXAMPLE, &fit);
        assert!(fit.residual_percent < 1e-6, "{}", fit.residual_percent);
        assert!(fit.notes.is_empty(), "{:?}", fit.notes);
    }
}

#[test]
fn held_out_sizes_are_predicted_and_do_not_steer_the_fit() {
    let mut cells = calibrated(&Truth::EXAMPLE, &CELLS, &SIZES, 0.0, 1);
    let options = FitOptions { held_out: vec![16_384], ..options(5) };
    let clean = fitted(&cells, &options);
    assert_eq!(clean.held_out.len(), 5, "every cell whose cost depends on the size: {:?}", clean.held_out);
    assert!(clean.held_out.iter().all(|h| h.block_bytes == 16_384 && h.error_percent.abs() < 1e-4));
    // A held-out cell that doubles its time changes its own error and nothing else.
    let direct =
        cells.iter_mut().find(|c| c.0 == CalibrationCell::DirectFile && c.1.workload.block_bytes == 16_384);
    for s in &mut direct.unwrap().1.samples {
        s.thread_ns *= 2;
    }
    let bent = fitted(&cells, &options);
    assert_eq!(bent.model, clean.model);
    let error = bent.held_out.iter().find(|h| h.cell == CalibrationCell::DirectFile).unwrap().error_percent;
    assert!((error + 50.0).abs() < 1e-4, "{error}");
}

#[test]
fn noise_of_two_per_cent_leaves_most_truths_inside_their_intervals() {
    let (mut inside, mut all) = (0, 0);
    for seed in 1..=6 {
        let cells = if seed % 2 == 0 { CELLS.to_vec() } else { with_end_of_file() };
        let cells = calibrated(&Truth::EXAMPLE, &cells, &SIZES, 0.02, seed * 7919);
        let fit = fitted(&cells, &FitOptions { seed, ..options(120) });
        assert!(fit.residual_percent < 4.0, "{}", fit.residual_percent);
        for (_, wanted, found) in pairs(&Truth::EXAMPLE, &fit).iter().filter(|p| p.1 > 0.0) {
            all += 1;
            let holds = found.low.per_call_ns <= *wanted && *wanted <= found.high.per_call_ns;
            inside += usize::from(holds);
            assert!(found.low.per_call_ns <= found.cost.per_call_ns);
            assert!(found.cost.per_call_ns <= found.high.per_call_ns);
        }
    }
    assert!(inside * 100 >= all * 80, "{inside} of {all}");
}

#[test]
fn the_same_record_gives_the_same_model() {
    let cells = calibrated(&Truth::EXAMPLE, &CELLS, &SIZES, 0.05, 3);
    assert_eq!(fitted(&cells, &options(30)), fitted(&cells, &options(30)));
}

#[test]
fn missing_cells_are_noted_and_the_rest_still_predicts() {
    let cells =
        calibrated(&Truth::EXAMPLE, &[CalibrationCell::Syscall, CalibrationCell::CachedFile], &SIZES, 0.0, 1);
    let fit = fitted(&cells, &FitOptions { held_out: vec![4096], ..options(5) });
    assert!(!fit.model.layers.contains_key(&Layer::Device) && !fit.model.layers.contains_key(&Layer::Block));
    for needle in ["/dev/null", "memory-file", "no direct cell"] {
        assert!(fit.notes.iter().any(|n| n.contains(needle)), "{needle}: {:?}", fit.notes);
    }
    assert!(fit.held_out[0].error_percent.abs() < 1e-4, "{:?}", fit.held_out);
    let t = Truth::EXAMPLE;
    let cache = fit.model.cost(Layer::Cache).per_call_ns;
    assert!((cache - (t.vfs + t.file + t.cache.0)).abs() < 1e-4, "the gap is booked under cache: {cache}");
    let nothing = fitted(&[], &options(5));
    assert!(nothing.model.layers.is_empty() && nothing.held_out.is_empty());
}

#[test]
fn direct_reads_that_no_device_answered_give_no_device_layer() {
    let mut cells = calibrated(&Truth::EXAMPLE, &CELLS, &SIZES, 0.0, 1);
    for (_, run) in cells.iter_mut().filter(|c| c.0 == CalibrationCell::DirectFile) {
        run.samples.iter_mut().for_each(|s| s.device_bytes = Some(0));
    }
    let unwritten = fitted(&cells, &options(5));
    assert!(!unwritten.model.layers.contains_key(&Layer::Device));
    assert!(unwritten.notes.iter().any(|n| n.contains("the device moved nothing")), "{:?}", unwritten.notes);
    let cells = calibrated(&Truth::EXAMPLE, &CELLS, &SIZES, 0.0, 1);
    let tmpfs = fitted(&cells, &FitOptions { memory_backed: true, ..options(5) });
    assert!(!tmpfs.model.layers.contains_key(&Layer::Device));
}

#[test]
fn sizes_of_whole_pages_say_that_pages_and_bytes_are_one() {
    let sizes = [4096, 16_384, 65_536, 1 << 20];
    let cells = calibrated(&Truth::EXAMPLE, &CELLS, &sizes, 0.0, 1);
    let fit = fitted(&cells, &options(5));
    let t = Truth::EXAMPLE;
    let copy = fit.model.cost(Layer::Copy).per_byte_ns;
    assert!((copy - (t.copy + t.cache.1 / 4096.0)).abs() < 1e-8, "{copy}");
    let block = fit.model.cost(Layer::Block);
    assert!((block.per_page_ns - (t.block.1 + t.block.2 * 4096.0)).abs() < 1e-4, "{block:?}");
    assert!(fit.notes.iter().any(|n| n.contains("no cached size below the page")));
}

#[test]
fn a_memory_file_dearer_than_the_file_system_does_not_bend_the_file() {
    let t = Truth::EXAMPLE;
    let mut cells = calibrated(&t, &CELLS, &SIZES, 0.0, 1);
    for (_, run) in cells.iter_mut().filter(|c| c.0 == CalibrationCell::Memory) {
        let pages = run.workload.block_bytes.div_ceil(4096);
        for s in &mut run.samples {
            s.cpu_ns += s.requests * 50 * pages;
            s.thread_ns += s.requests * 50 * pages;
        }
    }
    let fit = fitted(&cells, &options(5));
    assert!(fit.residual_percent < 1e-4, "{}", fit.residual_percent);
    assert!((fit.model.cost(Layer::Cache).per_page_ns - t.cache.1).abs() < 1e-4);
    assert!(fit.notes.iter().any(|n| n.contains("50.0 ns more per page")), "{:?}", fit.notes);
}

#[test]
fn with_the_end_of_the_file_a_memory_file_of_any_kind_bends_nothing_and_has_its_own_costs() {
    let t = Truth::EXAMPLE;
    let mut cells = calibrated(&t, &with_end_of_file(), &SIZES, 0.0, 1);
    let options = FitOptions { held_out: vec![65_536], ..options(5) };
    let plain = fitted(&cells, &options);
    assert!(!plain.notes.iter().any(|n| n.contains("memory file")), "{:?}", plain.notes);
    // Small pages that cost more each, and no linear form at all: a step at a size.
    for (_, run) in cells.iter_mut().filter(|c| c.0 == CalibrationCell::Memory) {
        let bytes = run.workload.block_bytes;
        let extra = 200 * bytes.div_ceil(4096) + if bytes > 8192 { 5000 } else { 0 };
        for s in &mut run.samples {
            s.cpu_ns += s.requests * extra;
            s.thread_ns += s.requests * extra;
        }
    }
    let bent = fitted(&cells, &options);
    assert_recovered(&t, &bent);
    let file = |fit: &Fit| {
        let mut model = fit.model.clone();
        model.parts.remove(&Part::MemoryFile);
        model
    };
    assert_eq!(file(&bent), file(&plain));
    let own = |fit: &Fit| fit.model.part(Part::MemoryFile);
    assert!(
        (own(&plain).per_page_ns - t.cache.1).abs() < 1e-4 && (own(&plain).per_byte_ns - t.copy).abs() < 1e-7
    );
    assert!((own(&plain).per_call_ns - t.cache.0).abs() < 1e-4);
    assert!(own(&bent).per_page_ns > own(&plain).per_page_ns);
    let of_memory =
        |fit: &Fit| fit.held_out.iter().find(|h| h.cell == CalibrationCell::Memory).unwrap().error_percent;
    assert!(of_memory(&plain).abs() < 1e-4 && of_memory(&bent).abs() > 1.0);
}

#[test]
fn nothing_above_the_end_of_the_file_reaches_the_costs_below_it() {
    let t = Truth::EXAMPLE;
    let mut cells = calibrated(&t, &with_end_of_file(), &SIZES, 0.0, 1);
    // Large reads fall out of the processor's cache: no line goes through these sizes.
    for (_, run) in
        cells.iter_mut().filter(|c| matches!(c.0, CalibrationCell::CachedFile | CalibrationCell::ZeroDevice))
    {
        if run.workload.block_bytes >= 65_536 {
            run.samples.iter_mut().for_each(|s| s.cpu_ns *= 2);
        }
    }
    let fit = fitted(&cells, &options(5));
    assert!((fit.model.cost(Layer::Call).per_call_ns - t.call).abs() < 1e-6);
    assert!((fit.model.cost(Layer::Filesystem).per_call_ns - t.vfs - t.file).abs() < 1e-6);
    assert!((fit.model.part(Part::Vfs).per_call_ns - t.vfs).abs() < 1e-6);
}

#[test]
fn where_no_file_was_read_the_memory_file_is_the_cached_file() {
    let t = Truth::EXAMPLE;
    let cells = [
        CalibrationCell::Syscall,
        CalibrationCell::NullDevice,
        CalibrationCell::EndOfFile,
        CalibrationCell::Memory,
        CalibrationCell::RingMemory,
    ];
    let mut cells = calibrated(&t, &cells, &SIZES, 0.0, 1);
    // Its own file system stands on the way to its bytes too.
    for s in cells.iter_mut().filter(|c| c.0 == CalibrationCell::Memory).flat_map(|c| &mut c.1.samples) {
        s.cpu_ns += (s.requests as f64 * t.file) as u64;
    }
    let fit = fitted(&cells, &FitOptions { memory_backed: true, ..options(5) });
    let (cache, wanted) = (fit.model.cost(Layer::Cache), t.model().cost(Layer::Cache));
    assert!((cache.per_call_ns - wanted.per_call_ns).abs() < 1e-4, "{cache:?}");
    assert!((cache.per_page_ns - wanted.per_page_ns).abs() < 1e-4, "{cache:?}");
    assert!(!fit.model.parts.contains_key(&Part::MemoryFile));
}

/// The calibration with a ring and deep queues on top.
fn deep_cells(truth: &Truth, depths: &[usize]) -> Vec<(CalibrationCell, CellRun)> {
    let mut cells = calibrated(truth, &with_end_of_file(), &SIZES, 0.0, 1);
    cells.push((CalibrationCell::RingMemory, truth.cell(CalibrationCell::RingMemory, 4096, 0.0, 1)));
    cells.extend(depths.iter().map(|&d| (CalibrationCell::DirectDeep, truth.deep_cell(d, 0.0, 1))));
    cells
}

#[test]
fn ring_and_deep_queue_are_recovered_from_two_depths() {
    let t = Truth::EXAMPLE;
    let fit = fitted(&deep_cells(&t, &[16, 64]), &options(5));
    assert_recovered(&t, &fit);
    for (part, wanted) in [(Part::Ring, t.ring), (Part::Deep, t.deep.0), (Part::Batch, t.deep.1)] {
        let found = fit.model.part(part).per_call_ns;
        assert!((found - wanted).abs() < 1e-6 * wanted, "{part:?}: {found} for {wanted}");
    }
    assert!(fit.notes.is_empty(), "{:?}", fit.notes);
    let one = fitted(&deep_cells(&t, &[32]), &options(5));
    let deep = one.model.part(Part::Deep).per_call_ns;
    assert!((deep - t.deep.0 - t.deep.1 / 32.0).abs() < 1e-4, "{deep}");
    assert!(!one.model.parts.contains_key(&Part::Batch));
    assert!(one.notes.iter().any(|n| n.contains("one deep queue")), "{:?}", one.notes);
}

#[test]
fn a_ring_that_saves_more_than_it_costs_is_taken_as_free_and_said_so() {
    let t = Truth { ring: -60.0, ..Truth::EXAMPLE };
    let fit = fitted(&deep_cells(&t, &[16, 64]), &options(5));
    assert_eq!(fit.model.part(Part::Ring).per_call_ns, 0.0);
    assert!(fit.notes.iter().any(|n| n.contains("60 ns less")), "{:?}", fit.notes);
    // What the ring saves is saved in the deep queue too: the sum stays what was measured.
    let sum = fit.model.cost(Layer::Filesystem).per_call_ns
        + fit.model.part(Part::Deep).per_call_ns
        + fit.model.part(Part::Batch).per_call_ns / 32.0;
    assert!((sum - t.deep_busy_ns(32)).abs() < 1e-3, "{sum}");
}

#[test]
fn without_call_or_cached_file_a_ring_is_not_separated() {
    let cells =
        [(CalibrationCell::RingMemory, Truth::EXAMPLE.cell(CalibrationCell::RingMemory, 4096, 0.0, 1))];
    let fit = fitted(&cells, &options(5));
    assert!(!fit.model.parts.contains_key(&Part::Ring));
    assert!(fit.notes.iter().any(|n| n.contains("the cost of a ring is not separated")), "{:?}", fit.notes);
}

#[test]
fn insertion_comes_from_cold_cells_with_the_device_counters() {
    let t = Truth::EXAMPLE;
    let mut cells = CELLS.to_vec();
    cells.push(CalibrationCell::ColdFile);
    let mut cells = calibrated(&t, &cells, &SIZES, 0.0, 1);
    for (_, run) in cells.iter_mut().filter(|c| c.0 == CalibrationCell::ColdFile) {
        let insert = 130.0 * run.workload.block_bytes as f64 / 4096.0;
        for s in &mut run.samples {
            s.cpu_ns += (s.requests as f64 * insert) as u64;
        }
    }
    let fit = fitted(&cells, &options(5));
    // A cold read below the page shares its page's insertion with others.
    let insert = fit.model.part(Part::Insert).per_page_ns;
    assert!((insert - 130.0).abs() < 1e-3, "{insert}");
    assert_recovered(&t, &fit);
}

#[test]
fn our_own_cost_is_taken_off_before_fitting() {
    let t = Truth::EXAMPLE;
    let mut cells = calibrated(&t, &CELLS, &SIZES, 0.0, 1);
    for s in cells.iter_mut().flat_map(|c| &mut c.1.samples) {
        s.cpu_ns += s.requests * 40;
        s.thread_ns += s.requests * 40;
    }
    assert_recovered(&t, &fitted(&cells, &FitOptions { harness_ns: 40.0, ..options(5) }));
}

#[test]
fn a_violated_cell_is_left_out_by_name() {
    let mut cells = calibrated(&Truth::EXAMPLE, &CELLS, &SIZES, 0.0, 1);
    let bad =
        cells.iter_mut().find(|c| c.0 == CalibrationCell::CachedFile && c.1.workload.block_bytes == 65_536);
    let bad = &mut bad.unwrap().1;
    bad.state_check = StateCheck::Violated { reason: "31 % resident".into() };
    bad.samples.iter_mut().for_each(|s| s.cpu_ns *= 9);
    let fit = fitted(&cells, &options(5));
    assert_recovered(&Truth::EXAMPLE, &fit);
    assert!(fit.notes[0].contains("65536") && fit.notes[0].contains("31 % resident"), "{:?}", fit.notes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_models_are_recovered(
        call in 20.0..500.0f64, vfs in 5.0..200.0f64, file in 0.0..300.0f64, zero in 0.005..0.2f64,
        cache in (5.0..200.0f64, 1.0..200.0f64), copy in 0.01..0.5f64, memory in (1.0..50.0f64, 20.0..900.0f64),
        block in (200.0..9000.0f64, 1.0..200.0f64, 0.0..0.1f64), device in (2e3..8e6f64, 0.05..20.0f64),
    ) {
        let truth = Truth { call, vfs, file, zero, cache, copy, memory, block, device, ..Truth::EXAMPLE };
        for cells in [&CELLS[..], &with_end_of_file()] {
            let fit = fitted(&calibrated(&truth, cells, &SIZES, 0.0, 1), &options(2));
            for (name, wanted, found) in pairs(&truth, &fit) {
                let found = found.cost.per_call_ns;
                prop_assert!((found - wanted).abs() <= 1e-5 * wanted + 1e-7, "{name}: {found} for {wanted}");
            }
        }
    }
}
