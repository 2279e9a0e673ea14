//! What holds the path back: one verdict each for cached, sequential and random reads, and the headline.
//!
//! Goal: a verdict only where the measurements decide, with every number it rests on. Non-goal: advice.
//! Invariants: a ratio counts as over or under a threshold only when its whole interval is, and its value is clear
//! of it by [`CLEARANCE`]; what is nearer than that, or was not measured, gives `cannot-tell` and names the
//! measurement that would decide.

mod rules;
mod sequential;
mod throttle;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::limit::{Limit, LimitId};
use iowhy_core::model::StackModel;

use crate::per_request::{bytes_per_second, median};

pub use self::rules::CLEARANCE;
use self::rules::Ruling;
use self::sequential::Streams;

/// What was measured. Every cell is optional; a rule without its cells does not decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// CPUs this process may use.
    pub cpus: usize,
    /// A configured throttle in the environment's words.
    pub throttle: Option<&'a str>,
    /// What one thread copies in user memory, in bytes per second.
    pub memcpy: Option<Estimate>,
    /// The fitted model, for the share of the copy.
    pub model: Option<&'a StackModel>,
    /// Cached reads of 4 KiB, one thread.
    pub cached_small: Option<&'a CellRun>,
    /// The same with two threads.
    pub cached_small_threads: Option<&'a CellRun>,
    /// Cached reads of 1 MiB, one thread.
    pub cached_large: Option<&'a CellRun>,
    /// Sequential reads of a file that is not in the cache, one thread.
    pub cold_sequential: Option<&'a CellRun>,
    /// The same with two threads.
    pub cold_sequential_threads: Option<&'a CellRun>,
    /// Large direct sequential reads, depth 1.
    pub direct_sequential: Option<&'a CellRun>,
    /// The same, several in flight.
    pub direct_sequential_deep: Option<&'a CellRun>,
    /// Small direct random reads, depth 1, one thread.
    pub random_one: Option<&'a CellRun>,
    /// The same, 16 in flight.
    pub random_half: Option<&'a CellRun>,
    /// The same, 32 in flight.
    pub random_deep: Option<&'a CellRun>,
    /// The same, 64 in flight.
    pub random_full: Option<&'a CellRun>,
    /// 32 in flight on each of two threads.
    pub random_threads: Option<&'a CellRun>,
}

/// The three questions and the headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// See [`limit`].
    pub headline: Limit,
    /// What limits reads from the page cache.
    pub cached: Limit,
    /// What limits sequential reads from the device.
    pub sequential: Limit,
    /// What limits small random reads from the device.
    pub random: Limit,
}

/// The headline: what an ordinary program, which keeps one request in flight, meets first. A throttle found by any
/// question comes before all else, because it caps every program. Otherwise it is the verdict of the question whose
/// depth-1 cell moves the fewest bytes per second, among those that were decided; of all when none was.
pub fn limit(evidence: &Evidence<'_>) -> Limit {
    limits(evidence).headline
}

/// All verdicts.
pub fn limits(evidence: &Evidence<'_>) -> Limits {
    let (cached, sequential, random) = (cached(evidence), sequential(evidence), random(evidence));
    let rate =
        |cell: Option<&CellRun>| cell.and_then(|c| median(c, bytes_per_second)).unwrap_or(f64::INFINITY);
    let mut questions = [
        (rate(evidence.random_one), &random),
        (rate(evidence.cold_sequential.or(evidence.direct_sequential)), &sequential),
        (rate(evidence.cached_small.or(evidence.cached_large)), &cached),
    ];
    questions.sort_by(|a, b| a.0.total_cmp(&b.0));
    let throttled = questions.iter().find(|q| q.1.id == LimitId::Throttle);
    let decided = || questions.iter().find(|q| q.1.id != LimitId::CannotTell);
    // Of questions that are all open the slowest speaks for itself: what others leave open is no evidence for it.
    let headline = throttled.or_else(decided).unwrap_or(&questions[0]).1.clone();
    Limits { headline, cached, sequential, random }
}

fn cached(e: &Evidence<'_>) -> Limit {
    let question = "cached reads";
    let small = e.cached_small.or(e.cached_large);
    let cells = [small, e.cached_large, e.cached_small_threads];
    decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Cpu, rules::cpu(small, e.cpus)),
            (LimitId::CopyBandwidth, rules::copy_bandwidth(e.cached_large, e.model, e.memcpy)),
            (LimitId::OneThread, rules::one_thread_cached(small, e.cached_small_threads, e.cpus)),
        ],
    )
}

fn sequential(e: &Evidence<'_>) -> Limit {
    let question = "sequential reads from the device";
    let streams = Streams {
        cold: e.cold_sequential,
        cold_threads: e.cold_sequential_threads,
        direct: e.direct_sequential,
        deep: e.direct_sequential_deep,
    };
    let base = streams.cold.or(streams.direct);
    let cells = [streams.cold, streams.cold_threads, streams.direct, streams.deep];
    let throttle = throttle::throttle(&[streams.deep, streams.direct, base], e.throttle);
    let mut found = decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Throttle, throttle),
            (LimitId::Cpu, rules::cpu(base, e.cpus)),
            (LimitId::OneThread, streams.one_thread()),
            (LimitId::Depth, streams.depth()),
            (LimitId::Device, streams.device()),
        ],
    );
    if found.id == LimitId::Depth && streams.cold.is_some() {
        found.sentence = format!(
            "The limit of {question} is depth: read-ahead keeps too little in flight, the device could give more."
        );
    }
    found
}

/// With one request in flight the depth comes before whatever limits a deep queue; that next limit is added to the
/// evidence.
fn random(e: &Evidence<'_>) -> Limit {
    let question = "random reads from the device";
    let beyond = [
        (LimitId::Cpu, rules::cpu(e.random_threads.or(e.random_deep), e.cpus)),
        (LimitId::OneThread, rules::one_thread(e.random_deep, e.random_threads)),
        (LimitId::Device, rules::device(e.random_half, e.random_full)),
    ];
    let cells = [e.random_one, e.random_deep, e.random_threads];
    let mut found = decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Throttle, throttle::throttle(&[e.random_deep, e.random_one], e.throttle)),
            (LimitId::Cpu, rules::cpu(e.random_one, e.cpus)),
            (LimitId::Depth, rules::depth(e.random_one, e.random_deep)),
            (LimitId::Device, rules::device(e.random_one, e.random_deep)),
            (LimitId::OneThread, rules::one_thread(e.random_deep, e.random_threads)),
        ],
    );
    let next = beyond.into_iter().find_map(|(id, ruling)| match ruling {
        Ruling::Holds(evidence) if found.id == LimitId::Depth => Some((id, evidence)),
        _ => None,
    });
    if let Some((id, evidence)) = next {
        found.evidence.push(format!("with more in flight the next limit is {}", id.id()));
        found.evidence.extend(evidence);
    }
    found
}

/// The first rule that holds; else `cannot-tell` with what came near and what was not measured. `shared` says that
/// the CPUs were not ours alone: then more rounds would not help.
fn decide(question: &str, shared: Option<String>, rulings: Vec<(LimitId, Ruling)>) -> Limit {
    let mut near = Vec::new();
    let mut missing = Vec::new();
    let mut failed: Vec<(Vec<&str>, String)> = Vec::new();
    for (id, ruling) in rulings {
        match ruling {
            Ruling::Holds(mut evidence) => {
                evidence.append(&mut near);
                return Limit { id, sentence: sentence(question, id), evidence };
            }
            Ruling::Near(fact) => near.push(format!("{} is near its threshold: {fact}", id.id())),
            Ruling::Fails(fact) => match failed.iter_mut().find(|f| f.1 == fact) {
                Some((ids, _)) => ids.push(id.id()),
                None => failed.push((vec![id.id()], fact)),
            },
            Ruling::Missing(what) => missing.push(format!("{} was not tested: measure {what}", id.id())),
        }
    }
    let why = match (near.is_empty(), missing.is_empty()) {
        (true, false) => "a measurement is missing",
        _ if shared.is_some() => "another program uses the CPUs; repeat it on an idle machine",
        (false, _) => "a measurement is too near its threshold; more rounds would decide",
        (true, true) => "none of the known limits fits",
    };
    let failed = failed.into_iter().map(|(ids, fact)| match ids.as_slice() {
        [id] => format!("not {id}: {fact}"),
        ids => format!("neither {}: {fact}", ids.join(" nor ")),
    });
    let evidence = near.into_iter().chain(shared).chain(missing).chain(failed).collect();
    Limit {
        id: LimitId::CannotTell,
        sentence: format!("Cannot tell what limits {question}: {why}."),
        evidence,
    }
}

fn sentence(question: &str, id: LimitId) -> String {
    let what = match id {
        LimitId::Cpu => "the CPUs: all that this process may use are busy",
        LimitId::OneThread => "one thread's CPU: a second thread adds throughput",
        LimitId::Depth => "depth: the device waits for requests, more in flight would be faster",
        LimitId::CopyBandwidth => "copy bandwidth: moving bytes from kernel to user memory",
        LimitId::Device => "the device: more requests in flight add nothing",
        LimitId::Throttle => "a throttle: a configured or metered rate",
        LimitId::CannotTell => "not known",
    };
    format!("The limit of {question} is {what}.")
}

#[cfg(test)]
mod tests {
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

    /// Every sentence of evidence has a digit, unless it names a missing measurement.
    fn assert_numbers(limit: &Limit) {
        assert!(!limit.evidence.is_empty(), "{limit:?}");
        for e in &limit.evidence {
            let names = e.contains("measure ") || e.contains("next limit");
            assert!(names || e.chars().any(|c| c.is_ascii_digit()), "{e}");
        }
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
        assert_eq!(found.id, LimitId::CannotTell, "one of two CPUs: {found:?}");
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
        assert_eq!(ask(Some(&contends)).id, LimitId::CannotTell);
        let near = ask(Some(&nearly));
        assert!(near.id == LimitId::CannotTell && near.evidence[0].contains("near"), "{near:?}");
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
            limits(&Evidence { cpus: 4, model, memcpy, cached_large: Some(&large), ..Evidence::default() })
                .cached
        };
        let found = ask(Some(&model), memcpy(rate * 1.1));
        assert_eq!(found.id, LimitId::CopyBandwidth, "{found:?}");
        assert_numbers(&found);
        assert_eq!(ask(Some(&model), memcpy(rate * 2.0)).id, LimitId::CannotTell);
        assert_eq!(ask(Some(&model), memcpy(rate / 0.75)).id, LimitId::CannotTell, "at the threshold");
        assert_eq!(ask(None, memcpy(rate)).id, LimitId::CannotTell);
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
    fn device_when_depth_adds_nothing_and_cannot_tell_between() {
        let one = direct(3000.0, 90_000.0);
        let ask = |deep: &CellRun| {
            limits(&Evidence {
                cpus: 4,
                random_one: Some(&one),
                random_deep: Some(deep),
                ..Evidence::default()
            })
            .random
        };
        let found = ask(&direct(3000.0, 89_000.0));
        assert_eq!(found.id, LimitId::Device, "{found:?}");
        assert_numbers(&found);
        assert_eq!(ask(&direct(3000.0, 69_000.0)).id, LimitId::CannotTell, "a gain of 1.29 is neither");
        assert_eq!(
            ask(&direct(3000.0, 59_000.0)).id,
            LimitId::CannotTell,
            "a gain of 1.5 is on the threshold"
        );
        assert_eq!(
            ask(&direct(3000.0, 81_500.0)).id,
            LimitId::CannotTell,
            "a gain of 1.10 is on the threshold"
        );
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
        assert_eq!(nothing.id, LimitId::CannotTell);
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
        assert_eq!(all.headline.id, LimitId::CannotTell);
        let gains: Vec<_> = all.headline.evidence.iter().filter(|e| e.contains("1.29 times")).collect();
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
        assert!(
            busy.evidence[1].contains("2.00 times") || busy.evidence[1].contains("1.99 times"),
            "{busy:?}"
        );
        let contended = ask(1, &crowded(800.0, 40.0, [0.0, 840.0]));
        assert_ne!(contended.id, LimitId::OneThread, "two threads on one CPU: {contended:?}");
    }

    #[test]
    fn more_rounds_are_not_advised_where_the_cpus_are_shared() {
        let ask = |delay| {
            let [one, two] = crowded(900.0, 100.0, [delay; 2]);
            let e = Evidence { cpus: 4, cached_small: Some(&one), ..Evidence::default() };
            limits(&Evidence { cached_small_threads: Some(&two), ..e }).cached
        };
        let idle = ask(10.0);
        assert!(idle.id == LimitId::CannotTell && idle.sentence.contains("more rounds"), "{idle:?}");
        let shared = ask(100.0);
        assert!(shared.sentence.contains("another program uses the CPUs"), "{shared:?}");
        assert!(!shared.sentence.contains("more rounds"), "{shared:?}");
        assert!(shared.evidence.iter().any(|e| e.contains("wait for a CPU for 9.1 %")), "{shared:?}");
    }
}
