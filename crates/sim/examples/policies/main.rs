//! Cache policies on the published traces: are their miss ratios the published ones to four digits, how fast are they, and
//! what memory do they take? `cargo xtask bench policies` builds and runs this;
//! `cargo xtask bench mrc` has it write the first of the traces (`--write FILE`).
//!
//! Speeds are the best of a few rounds, by the time that the thread was on a CPU: whatever else runs here only slows them
//! down. Fails when a miss
//! ratio differs; never for a speed.

mod numpy;
#[path = "../common/on_cpu.rs"]
mod on_cpu;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use iowhy_sim::curve::ids::IdTable;
use iowhy_sim::curve::lru::LruCounter;
use iowhy_sim::curve::shards::{Sampling, Shards};
use iowhy_sim::policy::{self, PolicyId, belady};

const SEED: u32 = 42;
const REFERENCES: usize = 20_000_000;
const OBJECTS: u32 = 1_000_000;
const ROOM: usize = 100_000;

/// What libCacheSim (commit aa0fc409) reports for these traces at 100,000 objects, sizes ignored, and the speed aimed at in
/// millions a second: at zipf 1.0, then at 0.8.
#[allow(clippy::approx_constant, reason = "miss ratios, not logarithms")]
const PUBLISHED: [(PolicyId, [f64; 2], [Option<f64>; 2]); 10] = [
    (PolicyId::Fifo, [0.2519, 0.5525], [Some(30.0), Some(20.0)]),
    (PolicyId::Lru, [0.2219, 0.5138], [Some(30.0), Some(20.0)]),
    (PolicyId::Clock, [0.2150, 0.5020], [Some(30.0), Some(20.0)]),
    (PolicyId::Sieve, [0.1850, 0.4419], [Some(30.0), Some(20.0)]),
    (PolicyId::S3Fifo, [0.1834, 0.4343], [Some(15.0), Some(8.0)]),
    (PolicyId::Arc, [0.1869, 0.4448], [Some(24.0), Some(11.0)]),
    (PolicyId::TwoQ, [0.1941, 0.4536], [None, None]),
    (PolicyId::Slru, [0.1866, 0.4393], [None, None]),
    (PolicyId::Lfu, [0.1850, 0.4422], [None, None]),
    (PolicyId::Belady, [0.1284, 0.3029], [None, None]),
];

/// Distinct objects of the published traces.
const DISTINCT: [u32; 2] = [914_864, 997_047];

/// Writes the trace of zipf 1.0 as oracleGeneral: what other simulators read.
fn write(path: &str) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for (number, id) in numpy::zipf(SEED, 1.0, REFERENCES, OBJECTS).into_iter().enumerate() {
        let second = (number / REFERENCES_EACH_SECOND) as u32;
        file.write_all(&second.to_le_bytes())?;
        file.write_all(&(u64::from(id) + 1).to_le_bytes())?;
        file.write_all(&4096u32.to_le_bytes())?;
        file.write_all(&(-1i64).to_le_bytes())?;
    }
    file.flush()
}

const REFERENCES_EACH_SECOND: usize = 10_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == "--write") {
        return match write(&std::env::args().nth(2).unwrap_or_default()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write the trace: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(3);
    let mut wrong = 0;
    for (which, alpha) in [1.0, 0.8].into_iter().enumerate() {
        wrong += trace(which, alpha, rounds);
    }
    if wrong > 0 {
        println!("{wrong} figures differ from the published ones");
        return ExitCode::FAILURE;
    }
    println!("all miss ratios are the published ones to four digits");
    ExitCode::SUCCESS
}

/// One published trace; answers how many figures differ.
fn trace(which: usize, alpha: f64, rounds: usize) -> u32 {
    let ids = numpy::zipf(SEED, alpha, REFERENCES, OBJECTS);
    let keys: Vec<u64> = ids.iter().map(|id| u64::from(*id) + 1).collect();
    let mut wrong = 0;
    println!(
        "zipf {alpha}: {REFERENCES} references, {OBJECTS} objects, seed {SEED}; room {ROOM}; best of {rounds} rounds, one thread, time on CPU\n\
         policy    miss ratio  published   dense M/s  aim    any M/s   bytes/cached object (any)  dense"
    );
    for (id, published, aims) in PUBLISHED {
        let (misses, dense, any, each) = match id {
            PolicyId::Belady => bound(&ids, rounds),
            _ => cache(id, &ids, &keys, rounds),
        };
        let ratio = misses as f64 / REFERENCES as f64;
        let same = (ratio - published[which]).abs() <= 0.000_05 + 1e-12;
        wrong += u32::from(!same);
        println!(
            "{id:8}  {ratio:.4}      {:.4}{}  {dense:8.1}  {:>5}  {any:8}   {each}",
            published[which],
            if same { "  " } else { " !" },
            aims[which].map_or("-".to_owned(), |aim| format!("{aim}")),
        );
    }
    wrong + curve(which, &ids, &keys, rounds)
}

/// The best time of some rounds, in seconds, and the last answer.
fn best<T>(rounds: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut once = || on_cpu::timed(&mut run);
    let first = once();
    (1..rounds).fold(first, |(least, _), _| {
        let (seconds, answer) = once();
        (least.min(seconds), answer)
    })
}

fn rate(seconds: f64) -> f64 {
    REFERENCES as f64 / seconds / 1e6
}

/// Misses, and speeds with dense numbers and with any, and memory.
fn cache(id: PolicyId, ids: &[u32], keys: &[u64], rounds: usize) -> (u64, f64, String, String) {
    let refused = "a cache of this size can be made";
    let (dense_s, (misses, dense_bytes)) = best(rounds, || {
        let mut cache = policy::bulk(id, ROOM).expect(refused);
        (cache.references(ids), cache.memory_bytes())
    });
    let (any_s, (again, any_bytes)) = best(rounds, || {
        let mut cache = policy::bulk_of_any(id, ROOM).expect(refused);
        (cache.references(keys), cache.memory_bytes())
    });
    assert_eq!(misses, again, "{id}: the two indices disagree");
    let each = |bytes: u64| bytes as f64 / ROOM as f64;
    let memory = format!("{:>8.1}                   {:>8.1}", each(any_bytes), each(dense_bytes));
    (misses, rate(dense_s), format!("{:.1}", rate(any_s)), memory)
}

fn bound(ids: &[u32], rounds: usize) -> (u64, f64, String, String) {
    let (seconds, misses) = best(rounds, || {
        let next = belady::next_uses(ids.to_vec(), OBJECTS).expect("numbers are below the number of objects");
        belady::misses(&next, ROOM as u64)
    });
    let memory = "       4 bytes a reference".to_owned();
    (misses, rate(seconds), "-".to_owned(), memory)
}

/// Numbering of keys, the exact curve against one LRU run, and sampled curves.
fn curve(which: usize, ids: &[u32], keys: &[u64], rounds: usize) -> u32 {
    let (numbering_s, distinct) = best(rounds, || {
        let mut table = IdTable::default();
        let mut out = Vec::new();
        for piece in keys.chunks(1 << 16) {
            out.clear();
            table.numbers(piece, &mut out).expect("a million fit");
        }
        (table.distinct(), table.memory_bytes())
    });
    let (run_s, misses) =
        best(rounds, || policy::bulk(PolicyId::Lru, ROOM).expect("made above").references(ids));
    let (curve_s, (curve, bytes)) = best(rounds, || {
        let mut counter = LruCounter::new();
        counter.references(ids);
        let bytes = counter.memory_bytes();
        (counter.finish(), bytes)
    });
    let mut wrong = u32::from(curve.misses(ROOM as u64) != misses);
    wrong += u32::from(distinct.0 != DISTINCT[which] || curve.distinct() != u64::from(DISTINCT[which]));
    println!(
        "numbering of keys: {:.1} M/s, {} distinct, {:.1} bytes each\n\
         LRU curve of all sizes: {curve_s:.3} s = {:.2} x one LRU run of {run_s:.3} s (aim: at most 4), {:.1} bytes a distinct object",
        rate(numbering_s),
        distinct.0,
        distinct.1 as f64 / f64::from(distinct.0),
        curve_s / run_s,
        bytes as f64 / curve.distinct() as f64,
    );
    for (name, sampling) in [
        ("rate 0.01", Sampling::Rate(0.01)),
        ("rate 0.001", Sampling::Rate(0.001)),
        ("8192 blocks", Sampling::Blocks(8192)),
    ] {
        let (seconds, sampled) = best(rounds, || {
            let mut shards = Shards::new(sampling);
            shards.references(keys);
            shards.finish()
        });
        let sizes: Vec<u64> = (1..=100).map(|i| i * u64::from(OBJECTS) / 100).collect();
        let off: Vec<f64> = sizes
            .iter()
            .filter_map(|size| Some((sampled.miss_ratio(*size)? - curve.miss_ratio(*size)).abs()))
            .collect();
        let covered = sizes
            .iter()
            .zip(&off)
            .filter(|(size, off)| sampled.error(**size).is_some_and(|error| **off <= error))
            .count();
        println!(
            "  sampled, {name}: {:.1} M/s; of 100 sizes mean error {:.4}, worst {:.4}; stated 95 % error covers {covered}",
            rate(seconds),
            off.iter().sum::<f64>() / off.len().max(1) as f64,
            off.iter().fold(0.0, |most: f64, off| most.max(*off)),
        );
    }
    println!();
    wrong
}
