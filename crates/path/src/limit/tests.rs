//! Limits of cells with known contents.

use super::*;
use crate::synthetic::{Rounds, Truth};
use iowhy_core::estimate::Unit;
use iowhy_core::workload::{CacheState, Method, Workload};

/// A cell with `busy` and `wait` nanoseconds of thread time a request.
fn cell(state: CacheState, block_bytes: u64, threads: usize, busy: f64, wait: f64) -> CellRun {
    let mut w = Workload::reads(Method::Pread, state, block_bytes, 1 << 30);
    w.threads = threads;
    Rounds::new(w).busy(busy).wait(wait).noise(0.01).build()
}

fn direct(busy: f64, wait: f64) -> CellRun {
    cell(CacheState::Direct, 4096, 1, busy, wait)
}

/// Every sentence of evidence has an interval, unless it names a missing measurement; n is said once.
fn assert_numbers(limit: &Limit) {
    for e in &limit.evidence {
        let names = e == "n = 9 rounds" || e.contains("measure ") || e.contains("next limit");
        assert!(names || e.contains('[') || e.contains('±'), "{e}");
        assert!(e.chars().count() <= 106, "four columns stand before it: {e}");
    }
    assert_eq!(limit.evidence.iter().filter(|e| e.contains("n = 9 rounds")).count(), 1, "{limit:?}");
}

fn memcpy(rate: f64) -> Option<Estimate> {
    Some(Estimate { value: rate, low: rate * 0.99, high: rate * 1.01, unit: Unit::BytesPerSecond, n: 9 })
}

#[test]
fn cpu() {
    let one = cell(CacheState::Warm, 4096, 1, 800.0, 5.0);
    let found = limits(&Evidence { cpus: 1, cached_small: Some(&one), ..Evidence::default() }).cached;
    assert_eq!(found.id, LimitId::Cpu, "{found:?}");
    assert_numbers(&found);
    let found = limits(&Evidence { cpus: 2, cached_small: Some(&one), ..Evidence::default() }).cached;
    assert_eq!(found.id, LimitId::Unknown, "one of two CPUs: {found:?}");
}

#[test]
fn kernel_threads_count_as_busy_cpus() {
    let mut one = cell(CacheState::Warm, 4096, 1, 500.0, 500.0);
    for s in &mut one.samples {
        s.kernel_thread_ns = Some(s.wall_ns * 49 / 100);
    }
    let found = limits(&Evidence { cpus: 1, cached_small: Some(&one), ..Evidence::default() }).cached;
    assert_eq!(found.id, LimitId::Cpu, "{found:?}");
}

#[test]
fn one_thread_needs_the_second_thread_to_add() {
    let one = cell(CacheState::Warm, 4096, 1, 800.0, 5.0);
    let doubles = cell(CacheState::Warm, 4096, 2, 820.0, 5.0);
    let contends = cell(CacheState::Warm, 4096, 2, 1500.0, 5.0);
    let nearly = cell(CacheState::Warm, 4096, 2, 1340.0, 0.0);
    let ask = |two| {
        limits(&Evidence {
            cpus: 4,
            cached_small: Some(&one),
            cached_small_threads: two,
            ..Evidence::default()
        })
        .cached
    };
    let found = ask(Some(&doubles));
    assert_eq!(found.id, LimitId::OneThread);
    assert_numbers(&found);
    assert_eq!(ask(Some(&contends)).id, LimitId::Unknown);
    let near = ask(Some(&nearly));
    assert!(near.id == LimitId::Unknown && near.evidence[0].starts_with("near one-thread: "), "{near:?}");
    assert!(near.evidence[0].contains(", threshold 1.20 ±2 %"), "{near:?}");
    assert_numbers(&near);
    let missing = ask(None);
    assert!(missing.evidence.iter().any(|e| e.contains("two threads")), "{missing:?}");
}

#[test]
fn copy_bandwidth_needs_the_share_and_the_rate() {
    let model = Truth::EXAMPLE.model();
    let bytes = 1u64 << 20;
    let large = cell(CacheState::Warm, bytes, 1, Truth::EXAMPLE.copy * bytes as f64 / 0.9, 0.0);
    let rate = 0.9e9 / Truth::EXAMPLE.copy;
    let ask = |model, memcpy| {
        limits(&Evidence { cpus: 4, model, memcpy, cached_large: Some(&large), ..Evidence::default() }).cached
    };
    let found = ask(Some(&model), memcpy(rate * 1.1));
    assert_eq!(found.id, LimitId::CopyBandwidth, "{found:?}");
    assert_numbers(&found);
    assert_eq!(ask(Some(&model), memcpy(rate * 2.0)).id, LimitId::Unknown);
    assert_eq!(ask(Some(&model), memcpy(rate / 0.75)).id, LimitId::Unknown, "at the threshold");
    assert_eq!(ask(None, memcpy(rate)).id, LimitId::Unknown);
}

#[test]
fn copying_is_no_limit_where_a_second_thread_copies_as_much_again() {
    let model = Truth::EXAMPLE.model();
    let bytes = 1u64 << 20;
    let large = cell(CacheState::Warm, bytes, 1, Truth::EXAMPLE.copy * bytes as f64 / 0.9, 0.0);
    let small = cell(CacheState::Warm, 4096, 1, 1000.0, 0.0);
    // Thread time of one request: as much with two threads, or twice as much where they share the bandwidth.
    for (two_ns, limit) in [(1000.0, LimitId::OneThread), (2000.0, LimitId::CopyBandwidth)] {
        let two = cell(CacheState::Warm, 4096, 2, two_ns, 0.0);
        let found = limits(&Evidence {
            cpus: 4,
            model: Some(&model),
            memcpy: memcpy(0.9e9 / Truth::EXAMPLE.copy * 1.1),
            cached_small: Some(&small),
            cached_small_threads: Some(&two),
            cached_large: Some(&large),
            ..Evidence::default()
        });
        assert_eq!(found.cached.id, limit, "{:?}", found.cached);
    }
}

#[test]
fn depth_and_what_comes_after_it() {
    let one = direct(3000.0, 90_000.0);
    let deep = direct(2900.0, 100.0);
    let two = cell(CacheState::Direct, 4096, 2, 3000.0, 200.0);
    let e = Evidence {
        cpus: 4,
        random_one: Some(&one),
        random_deep: Some(&deep),
        random_threads: Some(&two),
        ..Evidence::default()
    };
    let found = limits(&e).random;
    assert_eq!(found.id, LimitId::Depth, "{found:?}");
    assert!(found.evidence.iter().any(|e| e.contains("next limit is one-thread")), "{found:?}");
    assert_numbers(&found);
}

#[test]
fn device_when_depth_adds_nothing_and_inconclusive_between() {
    let one = direct(3000.0, 90_000.0);
    let ask = |deep: &CellRun| {
        limits(&Evidence { cpus: 4, random_one: Some(&one), random_deep: Some(deep), ..Evidence::default() })
            .random
    };
    let found = ask(&direct(3000.0, 89_000.0));
    assert_eq!(found.id, LimitId::Device, "{found:?}");
    assert_numbers(&found);
    assert_eq!(ask(&direct(3000.0, 69_000.0)).id, LimitId::Unknown, "a gain of 1.29 is neither");
    assert_eq!(ask(&direct(3000.0, 59_000.0)).id, LimitId::Unknown, "a gain of 1.5 is on the threshold");
    assert_eq!(ask(&direct(3000.0, 81_500.0)).id, LimitId::Unknown, "a gain of 1.10 is on the threshold");
}

#[test]
fn saturation_between_16_and_64_is_the_limit_beyond_depth() {
    let (one, deep) = (direct(3000.0, 90_000.0), direct(2000.0, 8000.0));
    let (half, full) = (direct(2000.0, 8100.0), direct(2000.0, 7950.0));
    let e = Evidence {
        cpus: 4,
        random_one: Some(&one),
        random_deep: Some(&deep),
        random_half: Some(&half),
        random_full: Some(&full),
        ..Evidence::default()
    };
    let found = limits(&e).random;
    assert!(found.evidence.iter().any(|e| e.contains("next limit is device")), "{found:?}");
}

#[test]
fn the_headline_is_the_slowest_decided_question_and_a_throttle_comes_first() {
    let (one, deep) = (direct(3000.0, 90_000.0), direct(2900.0, 10_000.0));
    let cached = cell(CacheState::Warm, 4096, 1, 800.0, 5.0);
    let two = cell(CacheState::Warm, 4096, 2, 800.0, 5.0);
    let e = Evidence {
        cpus: 4,
        cached_small: Some(&cached),
        cached_small_threads: Some(&two),
        random_one: Some(&one),
        random_deep: Some(&deep),
        ..Evidence::default()
    };
    assert_eq!(limit(&e).id, LimitId::Depth);
    assert_eq!(limit(&Evidence { random_one: None, ..e }).id, LimitId::OneThread);
    let throttled = throttle::tests::bucket(3000.0, 6);
    assert_eq!(limit(&Evidence { direct_sequential: Some(&throttled), ..e }).id, LimitId::Throttle);
    let nothing = limit(&Evidence::default());
    assert_eq!(nothing.id, LimitId::Unknown);
    assert!(nothing.evidence.iter().any(|e| e.contains("measure")), "{nothing:?}");
}

#[test]
fn an_open_headline_is_one_question_alone_and_says_each_fact_once() {
    let one = direct(3000.0, 90_000.0);
    let deep = direct(3000.0, 69_000.0);
    let cached = cell(CacheState::Warm, 4096, 1, 500.0, 500.0);
    let all = limits(&Evidence {
        cpus: 4,
        cached_small: Some(&cached),
        random_one: Some(&one),
        random_deep: Some(&deep),
        ..Evidence::default()
    });
    assert_eq!(all.headline, all.random);
    assert_eq!(all.headline.id, LimitId::Unknown);
    let gains: Vec<_> = all.headline.evidence.iter().filter(|e| e.contains("gives 1.2")).collect();
    assert!(gains.len() == 1 && gains[0].starts_with("neither depth nor device"), "{gains:?}");
}

/// Cached reads by one thread and by two that double the throughput, all of them kept from a CPU for this long.
fn crowded(busy: f64, wait: f64, delays: [f64; 2]) -> [CellRun; 2] {
    [1, 2].map(|threads| {
        let mut w = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 30);
        w.threads = threads;
        Rounds::new(w).busy(busy).wait(wait).run_delay(delays[threads - 1]).noise(0.01).build()
    })
}

#[test]
fn a_busy_machine_does_not_decide_about_cached_reads() {
    let ask = |cpus, [one, two]: &[CellRun; 2]| {
        let e = Evidence { cpus, cached_small: Some(one), ..Evidence::default() };
        limits(&Evidence { cached_small_threads: Some(two), ..e }).cached
    };
    assert_eq!(ask(4, &crowded(800.0, 5.0, [0.0, 0.0])).id, LimitId::OneThread);
    let busy = ask(4, &crowded(800.0, 5.0, [300.0, 900.0]));
    assert_eq!(busy.id, LimitId::OneThread, "{busy:?}");
    assert!(busy.evidence[1].contains("gives 2.0") || busy.evidence[1].contains("gives 1.99"), "{busy:?}");
    let contended = ask(1, &crowded(800.0, 40.0, [0.0, 840.0]));
    assert_ne!(contended.id, LimitId::OneThread, "two threads on one CPU: {contended:?}");
}

#[test]
fn a_borderline_limit_says_what_is_known_and_what_would_decide() {
    let ask = |busy, delay| {
        let [one, two] = crowded(busy, 1000.0 - busy, [delay; 2]);
        let e = Evidence { cpus: 4, cached_small: Some(&one), ..Evidence::default() };
        let limits = limits(&Evidence { cached_small_threads: Some(&two), ..e });
        (limits.cached, limits.open)
    };
    let (at, open) = ask(900.0, 10.0);
    assert!(
        at.id == LimitId::Unknown && open.is_empty(),
        "no rounds decide a value at the threshold: {at:?}"
    );
    let known = "limit unknown: one thread is on the CPU for 90.00 % [90.00, 90.00] of its time, threshold 90 % (one-thread), equal within 4 %";
    assert!(at.sentence.contains(known), "{at:?}");
    let (shared, open) = ask(900.0, 100.0);
    assert!(shared.sentence.contains("CPU contention") && open.is_empty(), "{shared:?}");
    assert!(shared.evidence.iter().any(|e| e.contains("wait for a CPU for 9.")), "{shared:?}");
}

#[test]
fn a_wide_interval_leaves_its_question_open_and_says_how_much_narrower_it_must_be() {
    // A second thread gives 1.0 to 1.8 times the throughput: a median of 1.4 whose interval holds 1.2.
    let one = cell(CacheState::Warm, 4096, 1, 800.0, 5.0);
    let mut two = cell(CacheState::Warm, 4096, 2, 800.0, 5.0);
    for (i, sample) in two.samples.iter_mut().enumerate() {
        for ns in [&mut sample.thread_ns, &mut sample.wall_ns, &mut sample.cpu_ns] {
            *ns = *ns * 20 / (10 + i as u64);
        }
    }
    let e = Evidence {
        cpus: 4,
        cached_small: Some(&one),
        cached_small_threads: Some(&two),
        ..Evidence::default()
    };
    let limits = limits(&e);
    assert_eq!(limits.open, [Question::Cached], "{limits:?}");
    let sentence = &limits.cached.sentence;
    assert!(sentence.contains("(one-thread), interval ") && sentence.contains("x too wide"), "{sentence}");
    assert!(!sentence.contains("more rounds"), "{sentence}");
}

#[test]
fn a_device_that_works_for_another_program_is_not_our_limit() {
    // Requests of 4 KiB; the device moved `factor` times that.
    let ask = |factor: f64| {
        let cell = |depth: usize, wait: f64| {
            let mut w = Workload::reads(Method::Direct, CacheState::Direct, 4096, 1 << 30);
            (w.depth, w.method) = (depth, if depth > 1 { Method::Uring } else { Method::Direct });
            Rounds::new(w).busy(5000.0).wait(wait).device(factor, 4096.0 * factor, 70_000.0).build()
        };
        let (one, deep) = (cell(1, 70_000.0), cell(32, 5000.0));
        limits(&Evidence { cpus: 4, random_one: Some(&one), random_deep: Some(&deep), ..Evidence::default() })
    };
    assert_eq!(ask(1.0).random.id, LimitId::Depth);
    // A log line is no other load.
    assert_eq!(ask(1.2).random.id, LimitId::Depth);
    let shared = ask(4.0);
    assert_eq!(shared.random.id, LimitId::Unknown);
    assert!(shared.random.sentence.contains("device contention"), "{shared:?}");
    assert_eq!(shared.random.evidence.len(), 2, "both cells: {shared:?}");
    assert!(
        shared.random.evidence.iter().all(|e| e.contains("for another program") && e.chars().count() <= 106)
    );
}
