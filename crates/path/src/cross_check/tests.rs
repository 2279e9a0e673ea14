//! Known answers: what was put into a false watch must come out against a known model.

use std::collections::BTreeMap;

use iowhy_core::model::{Cost, LayerCost, Part as ModelPart, StackModel};
use iowhy_core::profile::{Profile, StackTime, State, Symbol, Thread};
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use proptest::prelude::*;

use super::part::parts;
use super::*;
use crate::ledger::{LedgerContext, ledger};
use crate::synthetic::Rounds;
use iowhy_diagnose::account::account;
use iowhy_diagnose::classify::Classifier;

const MEASURING: u32 = 2;

/// A watch of one measuring thread: state, kernel functions (innermost first), time, samples or sleeps. A second thread
/// prepares; it reads as well and must not count.
fn profile(pieces: &[(State, &[&str], u64, u64)]) -> Profile {
    let mut p = Profile::default();
    p.sight.tier = Tier::Clock;
    p.observer.switch_duty = 1.0;
    p.threads = vec![
        Thread { tid: 1, count: 1, ..Thread::default() },
        Thread { tid: MEASURING, count: 1, ..Thread::default() },
    ];
    let preparing: (State, &[&str], u64, u64) =
        (State::Running, &["filemap_read", "vfs_read", "__x64_sys_pread64"], 5_000_000, 5000);
    for (thread, (state, kernel, time, events)) in
        pieces.iter().map(|piece| (1, piece)).chain(std::iter::once((0, &preparing)))
    {
        let kernel = kernel
            .iter()
            .map(|name| {
                p.symbols.push(Symbol { name: (*name).to_owned(), ..Symbol::default() });
                (p.symbols.len() - 1) as u32
            })
            .collect();
        let t = &mut p.threads[thread];
        t.lifetime_ns += time;
        *match state {
            State::Running => &mut t.running_ns,
            State::Queued => &mut t.queued_ns,
            State::Blocked => &mut t.blocked_ns,
        } += time;
        p.stacks.push(StackTime {
            thread: thread as u32,
            state: *state,
            kernel,
            user: Vec::new(),
            known: true,
            time_ns: *time as f64,
            wall_ns: *time as f64,
            events: *events,
            seen_ns: *time as f64,
            requests: None,
        });
    }
    p
}

fn seen(p: &Profile, w: &Workload) -> Observed {
    observed(p, &account(p, &Classifier::new()), w, |t| t.tid == MEASURING)
}

fn cost(per_call_ns: f64) -> LayerCost {
    LayerCost::exact(Cost { per_call_ns, ..Cost::default() })
}

/// A cached read of 600 ns: 100 call, 100 file system, 200 cache, 200 copy, and 50 of our own.
fn model(cache_ns: f64) -> StackModel {
    StackModel {
        schema: 1,
        name: "known".to_owned(),
        page_bytes: 4096,
        device_parallelism: 1.0,
        read_ahead_bytes: 131_072,
        layers: BTreeMap::from([
            (Layer::Call, cost(100.0)),
            (Layer::Filesystem, cost(100.0)),
            (Layer::Cache, cost(cache_ns)),
            (Layer::Copy, cost(200.0)),
            (Layer::Block, cost(3000.0)),
        ]),
        parts: BTreeMap::from([(ModelPart::Vfs, cost(50.0))]),
    }
}

const CALL: &[&str] = &["do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
const FILE_SYSTEM: &[&str] = &["vfs_read", "__x64_sys_pread64", "do_syscall_64"];
const CACHE: &[&str] =
    &["filemap_get_pages", "filemap_read", "vfs_read", "__x64_sys_pread64", "do_syscall_64"];
const COPY: &[&str] = &["_copy_to_iter", "filemap_read", "vfs_read", "__x64_sys_pread64", "do_syscall_64"];
const SETUP: &[&str] = &["do_mmap", "vm_mmap_pgoff", "__x64_sys_mmap", "do_syscall_64"];

/// 6500 samples of cached reads that cost what [`model`] says with a cache of 200 ns.
fn cached() -> Profile {
    profile(&[
        (State::Running, &[], 500_000, 500),
        (State::Running, CALL, 1_000_000, 1000),
        (State::Running, FILE_SYSTEM, 1_000_000, 1000),
        (State::Running, CACHE, 2_000_000, 2000),
        (State::Running, COPY, 2_000_000, 2000),
        // Before and after the requests.
        (State::Running, SETUP, 9_000_000, 9000),
    ])
}

fn cached_cell(busy_ns: f64) -> CellRun {
    Rounds::new(Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20)).busy(busy_ns).build()
}

fn held(p: &Profile, run: &CellRun, measured: &CellRun, model: &StackModel) -> CrossCheck {
    let context = LedgerContext { model, facts: None, harness_ns: 50.0 };
    let layers = Layers {
        ledger: Some(ledger(measured, &context).unwrap().layers),
        own_cells: true,
        ..Layers::default()
    };
    compare(&seen(p, &run.workload), run, measured, &layers).unwrap()
}

fn part<'a>(check: &'a CrossCheck, id: &str) -> &'a PartCheck {
    check.layers.iter().find(|p| p.id == id).unwrap_or_else(|| panic!("{id}: {check:?}"))
}

#[test]
fn two_accounts_of_the_same_costs_confirm_each_other() {
    let run = cached_cell(650.0);
    let check = held(&cached(), &run, &run, &model(200.0));
    assert_eq!(check.verdict, Verdict::Confirmed, "{check:?}");
    assert_eq!(check.samples, 6500, "what was done before the requests does not count");
    let entry = part(&check, "program+call+filesystem");
    assert!((entry.seen.value - 250.0).abs() < 1e-9 && entry.events == 2500 && entry.seen.n == 6500);
    assert_eq!(entry.fitted.map(|f| f.value_ns), Some(250.0));
    assert!((part(&check, "cache+copy").seen.value - 400.0).abs() < 1e-9);
    let sum: f64 = check.layers.iter().map(|p| p.seen.value).sum();
    assert!((sum - check.time_ns).abs() < 1e-6, "{sum}");
}

#[test]
fn parts_sum_to_the_whole_where_clocks_contradict_each_other() {
    let run = cached_cell(650.0);
    // By its own clock the thread ran for longer than there was time: the queue is counted by a third one.
    let workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
    let measured = Rounds::new(workload).busy(650.0).wait(-65.0).build();
    let check = held(&cached(), &run, &measured, &model(200.0));
    let sum: f64 = check.layers.iter().map(|p| p.seen.value).sum();
    assert!((check.time_ns - 650.0).abs() < 1e-6 && (sum - check.time_ns).abs() < 1e-6, "{check:?}");
}

#[test]
fn a_fit_that_says_less_than_was_seen_is_contradicted() {
    let run = cached_cell(650.0);
    let check = held(&cached(), &run, &run, &model(80.0));
    assert_eq!(check.verdict, Verdict::Disagrees);
    let wrong: Vec<&str> =
        check.layers.iter().filter(|p| p.result == Agreement::Disagrees).map(|p| p.id.as_str()).collect();
    assert_eq!(wrong, ["cache+copy"]);
    // 3 % of the request: whatever the samples leave open lies within 5 %.
    assert_eq!(held(&cached(), &run, &run, &model(180.0)).verdict, Verdict::Confirmed);
    // 4.5 %: they leave open on which side of 5 % it lies, and more of them may tell.
    let near = held(&cached(), &run, &run, &model(171.0));
    assert!(near.verdict == Verdict::Inconclusive && near.is_undecided(), "{near:?}");
}

#[test]
fn few_samples_and_another_pace_are_inconclusive() {
    let few = profile(&[
        (State::Running, CALL, 9000, 9),
        (State::Running, FILE_SYSTEM, 6000, 6),
        (State::Running, CACHE, 12_000, 12),
        (State::Running, COPY, 12_000, 12),
    ]);
    let run = cached_cell(650.0);
    let check = held(&few, &run, &run, &model(200.0));
    assert_eq!(check.verdict, Verdict::Inconclusive, "{check:?}");
    assert!(check.reason.unwrap().contains("too wide"));
    let slower = held(&cached(), &cached_cell(900.0), &run, &model(80.0));
    assert_eq!(slower.verdict, Verdict::Inconclusive);
    assert!(slower.reason.unwrap().contains("1.38x"));
    let none = held(&profile(&[]), &run, &run, &model(200.0));
    assert_eq!((none.verdict, none.samples), (Verdict::Inconclusive, 0));
    // What recording took is no other pace.
    let mut costly = cached();
    let watched = cached_cell(900.0);
    let requests: u64 = watched.samples.iter().map(|s| s.requests).sum();
    costly.observer.in_program_ns = 250.0 * requests as f64;
    assert_eq!(held(&costly, &watched, &run, &model(200.0)).verdict, Verdict::Confirmed);
}

/// Requests of a direct read that sleeps 60 us each.
fn direct(asleep_ns: u64) -> (Profile, impl Fn(f64) -> CellRun) {
    let asleep: &[&str] =
        &["schedule", "io_schedule", "blk_io_schedule", "__iomap_dio_rw", "vfs_read", "__x64_sys_pread64"];
    let submit: &[&str] = &["submit_bio", "__iomap_dio_rw", "vfs_read", "__x64_sys_pread64"];
    let w = Workload::reads(Method::Direct, CacheState::Direct, 4096, 1 << 20);
    let watch = profile(&[
        (State::Running, &[], 1_000_000, 200),
        (State::Running, submit, 20_000_000, 4000),
        (State::Blocked, asleep, asleep_ns, 2000),
    ]);
    let run = move |device_ns: f64| {
        Rounds::new(w.clone()).busy(3250.0).wait(60_000.0).device(1.0, 4096.0, device_ns).build()
    };
    (watch, run)
}

#[test]
fn sleeps_are_shares_of_the_waiting_and_compared_with_what_the_counters_say() {
    // Whether all sleeps were recorded or few, their shares are the same.
    for asleep_ns in [1_000_000, 60_000_000_000] {
        let (watch, run) = direct(asleep_ns);
        let right = held(&watch, &run(61_000.0), &run(61_000.0), &model(0.0));
        assert_eq!(right.verdict, Verdict::Confirmed, "{right:?}");
        let wait = part(&right, "block+device+journal+writeback-wait");
        assert!((wait.seen.value - 60_000.0).abs() < 1.0 && wait.seen.n == 2000);
        let wrong = held(&watch, &run(30_000.0), &run(30_000.0), &model(0.0));
        assert_eq!(wrong.verdict, Verdict::Disagrees, "{wrong:?}");
        assert_eq!(part(&wrong, "block+device+journal+writeback-wait").result, Agreement::Disagrees);
    }
}

#[test]
fn samples_split_what_cells_know_as_a_sum_and_what_they_lack() {
    let run = cached_cell(650.0);
    // The cells say 300 cache and 100 copy; of the samples, as many are in both.
    let mut layers = Layers { own_cells: true, ..Layers::default() };
    let mut point = Ledger::default();
    for (layer, ns) in
        [(Layer::Program, 50.0), (Layer::Call, 100.0), (Layer::Cache, 400.0), (Layer::Copy, 100.0)]
    {
        point.add(layer, ns, 0.0);
    }
    layers.ledger = Some(point.clone());
    layers.draws = vec![point.clone(); 100];
    layers.notes = vec!["copy is copy and look-up of further pages together".to_owned()];
    let w = run.workload.clone();
    let of = |layers: &Layers| split(&seen(&cached(), &w), &run, layers.clone(), 1);
    let by_samples = of(&layers);
    let ledger = by_samples.ledger.clone().unwrap();
    for (layer, ns) in [
        (Layer::Program, 50.0),
        (Layer::Call, 100.0),
        (Layer::Filesystem, 100.0),
        (Layer::Cache, 200.0),
        (Layer::Copy, 200.0),
    ] {
        assert!((ledger.get(layer).busy_ns - ns).abs() < 1e-9, "{layer:?}: {ledger:?}");
    }
    assert!((ledger.total_ns() - point.total_ns()).abs() < 1e-9);
    assert!(by_samples.draws.iter().all(|draw| (draw.total_ns() - 650.0).abs() < 1e-9));
    assert!(by_samples.notes.iter().all(|note| !note.ends_with("together")), "{:?}", by_samples.notes);
    // 60 that the cells do not explain were measured, and are where the samples are: 5,000 of 6,500 below the call. Of 160, which leave
    // more there than samples are, the rest stays unexplained.
    for (lacking, below, rest) in [(60.0, 500.0, 0.0), (160.0, 5.0 / 6.5 * 750.0, 23.08)] {
        let mut short = Ledger::default();
        let cells =
            [(Layer::Program, 50.0), (Layer::Call, 100.0), (Layer::Cache, 340.0), (Layer::Copy, 100.0)];
        cells.iter().for_each(|(layer, ns)| short.add(*layer, *ns, 0.0));
        short.add(Layer::Unexplained, lacking, 0.0);
        let split = of(&Layers { ledger: Some(short), ..layers.clone() }).ledger.unwrap();
        assert!((split.get(Layer::Copy).busy_ns - 0.4 * below).abs() < 1e-6, "{split:?}");
        assert!((split.get(Layer::Unexplained).busy_ns - rest).abs() < 0.01, "{split:?}");
    }
    // A fit over all cells, and too few samples, stay as they are.
    let fitted = Layers { own_cells: false, ..layers.clone() };
    assert_eq!(of(&fitted).ledger, Some(point.clone()));
    let none = split(&seen(&profile(&[]), &w), &run, layers, 1);
    assert_eq!(none.ledger, Some(point));
}

#[test]
fn samples_split_all_that_the_requests_of_a_deep_ring_take_in_the_kernel() {
    let mut run = cached_cell(650.0);
    let w = run.workload.clone();
    let mut fitted = Ledger::default();
    let costs =
        [(Layer::Program, 50.0), (Layer::Call, 20.0), (Layer::Block, 400.0), (Layer::Unexplained, 180.0)];
    costs.iter().for_each(|(layer, ns)| fitted.add(*layer, *ns, 0.0));
    let layers = Layers { ledger: Some(fitted.clone()), ..Layers::default() };
    let of = |run: &CellRun| split(&seen(&cached(), &w), run, layers.clone(), 1).ledger.unwrap();
    (run.workload.method, run.workload.depth) = (Method::Uring, 32);
    let ring = of(&run);
    for (layer, ns) in
        [(Layer::Program, 50.0), (Layer::Call, 100.0), (Layer::Copy, 200.0), (Layer::Unexplained, 0.0)]
    {
        assert!((ring.get(layer).busy_ns - ns).abs() < 1e-9, "{layer:?}: {ring:?}");
    }
    // One in flight has an entry of its own, which no sample shows.
    run.workload.depth = 1;
    assert_eq!(of(&run), fitted);
}

#[test]
fn what_sizes_lack_of_a_mapped_page_is_the_mappings() {
    let mut run = cached_cell(227.0);
    let mut short = Ledger::default();
    [(Layer::Program, 38.0), (Layer::Memory, 177.0), (Layer::Unexplained, 12.0)]
        .iter()
        .for_each(|(layer, ns)| short.add(*layer, *ns, 0.0));
    let layers = Layers { own_cells: true, ledger: Some(short.clone()), ..Layers::default() };
    let w = run.workload.clone();
    let of = |run: &CellRun| split(&seen(&cached(), &w), run, layers.clone(), 1).ledger.unwrap();
    run.workload.method = Method::Mmap;
    let mapped = of(&run);
    assert_eq!(mapped.get(Layer::Unexplained).busy_ns, 0.0);
    assert!((mapped.get(Layer::Memory).busy_ns - 189.0).abs() < 1e-9, "{mapped:?}");
    assert!((mapped.total_ns() - short.total_ns()).abs() < 1e-9);
    // The same of a read, which has a call and other layers below it, is not.
    run.workload.method = Method::Pread;
    assert_ne!(of(&run).get(Layer::Memory).busy_ns, 189.0);
}

#[test]
fn every_layer_of_an_account_is_in_one_part_and_in_one_only() {
    let of_accounts = [
        Layer::Program,
        Layer::Call,
        Layer::Filesystem,
        Layer::Cache,
        Layer::Copy,
        Layer::Memory,
        Layer::Block,
        Layer::Device,
    ];
    for (method, state) in [
        (Method::Pread, CacheState::Cold),
        (Method::Direct, CacheState::Direct),
        (Method::Uring, CacheState::Direct),
        (Method::Mmap, CacheState::Warm),
        (Method::Pread, CacheState::Warm),
    ] {
        let table = parts(&Workload::reads(method, state, 4096, 1 << 20));
        let busy = || table.iter().filter(|p| p.seen != Seen::Waits);
        for layer in of_accounts {
            let times = busy().filter(|p| p.fitted.contains(&layer)).count();
            assert!(times <= 1, "{method:?} {state:?} {layer:?}");
            // Cached reads pay no block layer, and direct ones copy nothing.
            if state == CacheState::Cold {
                assert_eq!(times, 1, "{layer:?}");
            }
        }
        assert_eq!(busy().filter(|p| p.seen == Seen::Rest).count(), 1, "each sample is in a part");
        assert_eq!(table.len() - busy().count(), 1);
    }
}

#[test]
fn costs_that_were_fitted_on_reads_say_nothing_of_writes() {
    let mut w = Workload::reads(Method::PwriteFdatasync, CacheState::None, 4096, 1 << 20);
    w.direction = Direction::Write;
    let run = Rounds::new(w).busy(650.0).build();
    let mut point = Ledger::default();
    point.add(Layer::Copy, 650.0, 0.0);
    let check = |own_cells| {
        let layers = Layers { ledger: Some(point.clone()), own_cells, ..Layers::default() };
        compare(&seen(&cached(), &run.workload), &run, &run, &layers).unwrap()
    };
    assert!(check(false).layers.iter().all(|part| part.result == Agreement::NotFitted));
    assert_eq!(check(true).verdict, Verdict::Confirmed);
}

proptest! {
    /// Whatever was sampled and whatever is fitted: a disagreement is beyond the margin, an agreement within it, and every
    /// interval holds its value.
    #[test]
    fn verdicts_lie_on_their_sides_of_the_margin(
        fitted in 0.0..1000.0f64, down in 0.0..100.0f64, up in 0.0..100.0f64,
        hits in 0u64..2000, others in 0u64..2000, total in 1.0..2000.0f64,
    ) {
        let observed = Observed { samples: hits + others, ..Observed::default() };
        let estimate = observed.busy_estimate(hits, total);
        prop_assert!(estimate.low <= estimate.value + 1e-9 && estimate.value <= estimate.high + 1e-9);
        let fitted = Fitted { value_ns: fitted, low_ns: (fitted - down).max(0.0), high_ns: fitted + up };
        let difference = (fitted.value_ns - estimate.value).abs();
        match agreement(&fitted, &estimate, total) {
            Agreement::Disagrees => prop_assert!(difference > MARGIN * total),
            Agreement::Agrees => prop_assert!(difference <= MARGIN * total),
            _ => {}
        }
    }
}
