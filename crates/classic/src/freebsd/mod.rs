//! `freebsd-2006`: cached reads by block size, sequential and random, over a part that the CPU's caches hold and over one
//! that they do not; and what the pool of buffers did to them then. What may not enter: the kernel's profile (`profile`), the
//! structures in which buffers are found (`lookup`).

pub mod functions;
mod lookup;
pub mod pool;
mod profile;

use self::pool::{Costs, Split};
use crate::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method};
use iowhy_probe::campaign::Cell;
use iowhy_probe::machine::{self, CpuCache};
use iowhy_probe::target::Target;
use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::workload::Workload as Simulated;

use crate::lab::{Lab, cell, reads};
use crate::report::with_now;
use crate::report::{Grid, Report, Row};

/// Block sizes.
const BLOCKS: [u64; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// What the post reads.
const POSTED_BYTES: u64 = 400 << 20;
/// The small part where the kernel does not tell the sizes of caches, and its bounds: half of the second-level cache.
const SMALL_BYTES: u64 = 512 << 10;
const SMALL_BOUNDS: (u64, u64) = (128 << 10, 2 << 20);
/// The large part: twice the last cache, but not less, and not more, than this.
const LARGE_BOUNDS: (u64, u64) = (256 << 20, 1 << 30);
/// With less time than this the large part is the smallest one: it must be written and read first.
const TIME_FOR_LARGE: std::time::Duration = std::time::Duration::from_secs(15);

/// The parts that are read.
#[derive(Clone, Copy)]
struct Parts {
    small: u64,
    large: u64,
}

impl Parts {
    /// Below and above the CPU's caches, as far as that can be had.
    fn wanted(lab: &Lab<'_>, caches: &[CpuCache]) -> Parts {
        let second =
            caches.iter().find(|cache| cache.level == 2).map_or(SMALL_BYTES, |cache| cache.bytes / 2);
        let last = caches.last().map_or(0, |cache| cache.bytes);
        let memory = machine::memory_available_bytes().unwrap_or(LARGE_BOUNDS.1);
        let most = LARGE_BOUNDS.1.min(memory / 4).max(LARGE_BOUNDS.0);
        let large = match lab.time {
            time if time < TIME_FOR_LARGE => LARGE_BOUNDS.0,
            _ => last.saturating_mul(2).next_multiple_of(1 << 20).clamp(LARGE_BOUNDS.0, most),
        };
        let small = second.clamp(SMALL_BOUNDS.0, SMALL_BOUNDS.1).next_multiple_of(BLOCKS[7]);
        Parts { small, large: lab.size.unwrap_or(large) }
    }

    fn all(self) -> [(&'static str, u64); 2] {
        [("small", self.small), ("large", self.large)]
    }
}

/// The caches in words, and which of them holds a part.
fn against_caches(bytes: u64, caches: &[CpuCache]) -> String {
    match caches.iter().find(|cache| cache.bytes >= bytes) {
        Some(cache) => format!("held by the CPU's level {} cache of {}", cache.level, Bytes(cache.bytes)),
        None => match caches.last() {
            Some(last) => format!("more than the CPU's last cache of {}", Bytes(last.bytes)),
            None => "the sizes of the CPU's caches are not known".to_owned(),
        },
    }
}

/// Runs it.
///
/// # Errors
/// What resolving the target says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    let caches = machine::cpu_caches();
    let wanted = Parts::wanted(lab, &caches);
    let target = lab.target(wanted.large)?;
    let parts = Parts { large: target.facts.size_bytes.min(wanted.large), ..wanted };
    if parts.large < 2 * parts.small {
        return Err(Problem::refused(format!(
            "`{}` is too small: {} at least is needed",
            target.facts.name,
            Bytes(2 * parts.small)
        ))
        .hint("name a larger file, or a directory"));
    }
    let mut cells: Vec<Cell<'_>> = Vec::new();
    plan(&mut cells, &target, parts);
    let outcome = lab.measure(&mut cells);
    let mut record = lab.report(&[&target], &cells, &outcome);
    fill_runs(&mut record, experiment, parts.large);
    fill_blocks(&mut record, parts, &caches);
    fill_split(&mut record, experiment);
    let profiled: Vec<(String, String)> =
        [(4096, "random"), (4096, "sequential"), (16_384, "random"), (16_384, "sequential")]
            .into_iter()
            .map(|(block, order)| (key(block, order, "large"), format!("{} {order}", Bytes(block))))
            .collect();
    profile::fill(lab, &mut record, &cells, &profiled);
    fill_reuse(&mut record, experiment, lab.seed);
    if let Err(problem) = fill_floppies(&mut record, lab.seed) {
        record.not_done.push(format!("the simulated floppy: {problem}"));
    }
    // Virtual time has no memory to find anything in.
    if target.script().is_none() {
        lookup::fill(lab, &mut record, experiment);
    }
    conclude(&mut record, experiment);
    Ok(record)
}

fn key(block: u64, order: &str, part: &str) -> String {
    format!("{part}-{order}-{block}")
}

fn plan<'a>(cells: &mut Vec<Cell<'a>>, target: &'a Target, parts: Parts) {
    for (part, bytes) in parts.all() {
        for (order, pattern) in [("sequential", Pattern::Sequential), ("random", Pattern::Random)] {
            for block in BLOCKS {
                let mut read = reads(Method::Pread, CacheState::Warm, block, bytes);
                read.pattern = pattern;
                cells.push(cell(key(block, order, part), read, target));
            }
        }
    }
}

fn fill_runs(record: &mut Report, experiment: &Experiment, large: u64) {
    record.section(
        "runs",
        "400 MB from the cache (then without the profiler's own functions, from its tables)",
        "run",
    );
    let buffer = experiment.fact("buffer").unwrap_or(16_384.0);
    let random_reuse = reuse_of(experiment, "random");
    for (block, order) in [(4096, "random"), (4096, "sequential"), (16_384, "random"), (16_384, "sequential")]
    {
        let run = format!("{}k-{order}", block >> 10);
        let reuse = match order {
            "random" => random_reuse,
            _ => Some(pool::sequential_reuse(block as f64, buffer)),
        };
        let costs = Costs::from_experiment(experiment, &format!("4k-{order}"));
        let model = costs.zip(reuse).map(|(costs, reuse)| costs.predict(block as f64, reuse));
        let label = format!("{} {order}", Bytes(block));
        let row = Row::new("runs", label, "time to read 400 MiB from the cache", Unit::Nanoseconds)
            .key("block_bytes", block)
            .key("order", order)
            .key("with_profiler_ns", published_run(experiment, block, order))
            .then(pool::split(experiment, &run).map(|split| split.net()))
            .model(model);
        let row = with_now(row, record.time_for(&key(block, order, "large"), POSTED_BYTES));
        record.row(if block == 4096 { row.remark("model: fitted") } else { row.remark("model: predicted") });
    }
    record.say(format!(
        "model: copy, look-up, mapping and the rest of a 4 KiB read in the same order, with the reuse of the pool; the \
         16 KiB runs are predicted. measured: the first {} of the target.",
        Bytes(large)
    ));
}

fn published_run(experiment: &Experiment, block: u64, order: &str) -> Option<f64> {
    let runs = experiment.table("runs")?;
    (0..runs.rows.len())
        .find(|&row| {
            runs.figure(row, "block") == Some(block as f64) && runs.text(row, "order") == Some(order)
        })
        .and_then(|row| runs.figure(row, "time"))
}

fn reuse_of(experiment: &Experiment, order: &str) -> Option<f64> {
    let table = experiment.table("reuse")?;
    table.figure(table.row_of("order", order)?, "reuse")
}

fn fill_blocks(record: &mut Report, parts: Parts, caches: &[CpuCache]) {
    for (part, bytes) in parts.all() {
        record.section(
            part,
            format!(
                "Here, by block size: random reads of {} in the page cache ({})",
                Bytes(bytes),
                against_caches(bytes, caches)
            ),
            "block",
        );
        for block in BLOCKS {
            let random = record.figure(&key(block, "random", part), |cell| cell.summary.time_per_request);
            let order = record.figure(&key(block, "sequential", part), |cell| cell.summary.time_per_request);
            let mut row = Row::new(part, Bytes(block).to_string(), "time per read", Unit::Nanoseconds)
                .key("block_bytes", block)
                .key("order", "random")
                .key("region_bytes", bytes);
            row = match (random, order) {
                (Ok(random), Ok(order)) => {
                    let text = format!("{:.2} x sequential", random.value / order.value);
                    row.key("sequential_ns", order.value).now(Some(random)).remark(text)
                }
                (Err(why), _) | (_, Err(why)) => row.remark(why),
            };
            record.row(row);
        }
    }
}

fn fill_split(record: &mut Report, experiment: &Experiment) {
    record.section(
        "split",
        "Where a read's time went then (a read of 4 KiB or 16 KiB, from the profiles)",
        "run, part",
    );
    for run in ["4k-random", "4k-sequential", "16k-random", "16k-sequential"] {
        let reads = experiment
            .table(&format!("profile-{run}"))
            .and_then(|table| table.figure(table.row_of("function", "copyout")?, "calls"));
        let Some((split, reads)) = pool::split(experiment, run).zip(reads) else { continue };
        let net = split.net();
        let Split { copy, mapping, lookup, rest, .. } = split;
        for (part, value) in [("copy", copy), ("mapping", mapping), ("look-up", lookup), ("rest", rest)] {
            record.row(
                Row::new("split", format!("{run}, {part}"), "time per read", Unit::Nanoseconds)
                    .key("run", run)
                    .key("part", part)
                    .then(Some(value / reads))
                    .remark(format!("{:.0} %", value / net * 100.0)),
            );
        }
    }
    record.say(
        "Self times of the functions that the post shows, the profiler's left out; rest: rows that it leaves out.",
    );
}

fn fill_reuse(record: &mut Report, experiment: &Experiment, seed: u64) {
    record.section("reuse", "Probability that a read finds its buffer in the pool", "order");
    let mut missing = Vec::new();
    for order in ["sequential", "random"] {
        let model = match simulated_reuse(order, seed) {
            Ok(reuse) => reuse,
            Err(problem) => {
                missing.push(format!("the simulation of the pool failed: {problem}"));
                None
            }
        };
        let run = format!("4k-{order}");
        let counted = pool::published_reuse(experiment, &run)
            .map_or_else(String::new, |reuse| format!("{reuse:.2} by the calls of its profile"));
        record.row(
            Row::new("reuse", order, "share of reads", Unit::Ratio)
                .key("order", order)
                .then(reuse_of(experiment, order))
                .model(model)
                .remark(counted),
        );
    }
    record.say(
        "model: 102400 simulated reads of 4 KiB through a pool of 3328 buffers of 16 KiB, `a few thousand`. Sequential \
         reuse follows from the sizes alone (1 - 4/16); the random one is the pool's share of the file, so the size of the \
         pool was chosen by it. measured: Linux maps its whole page cache and has no such pool.",
    );
    record.not_done.extend(missing);
}

/// A floppy of 1200 KB in blocks of 512 bytes: buffers, and bytes of the cache below them (`None`: nothing below).
const FLOPPIES: [(&str, u64, Option<&str>); 3] = [
    ("256 buffers, nothing below", 256, None),
    ("256 buffers over a VM cache", 256, Some("2m")),
    ("2400 buffers over a VM cache", 2400, Some("2m")),
];

/// Small blocks: what the post says of floppies, three passes over one.
fn fill_floppies(record: &mut Report, seed: u64) -> Result<(), Problem> {
    record.section(
        "floppy",
        "File systems with small blocks: a 1200 KB floppy read three times, simulated",
        "pool",
    );
    let mut grid =
        Grid { header: vec!["from the disk".to_owned(), "buffer there".to_owned()], lines: Vec::new() };
    for (words, buffers, below) in FLOPPIES {
        let Some(mut machine) = Machine::shipped("floppy-pool") else { return Ok(()) };
        if let Some(bytes) = below {
            machine.set("cache.bytes", &Value::Text(bytes.to_owned()))?;
            machine.set("pool.buffers", &Value::Text(buffers.to_string()))?;
        }
        let load = Simulated::parse("readers=1,requests=7200,bytes=512,size=1200k")?.load(seed);
        let outcome = iowhy_sim::run(&machine, load, seed)?;
        let fetched = outcome.miss_ratio();
        // Where nothing is below, a buffer that is there is a hit of the cache itself.
        let reuse = outcome.pool_reuse().or(fetched.map(|miss| 1.0 - miss));
        let shown =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |s| format!("{:.0} %", s * 100.0));
        grid.lines.push(vec![words.to_owned(), shown(fetched), shown(reuse)]);
        record.row(
            Row::new("floppy", words, "share of reads that go to the disk", Unit::Ratio)
                .key("buffers", buffers)
                .key("reuse", reuse)
                .model(fetched)
                .remark("the post gives words: enormous thrashing; in memory only; barely fits"),
        );
    }
    record.grid(grid);
    record.say(
        "The post: 256 buffers manage \"a whole 128KB\" and thrash; over a VM cache \"the thrashing only occurs in memory\"; \
         with a few thousand the floppy \"barely fits\".",
    );
    Ok(())
}

/// Reuse of the pool in the simulated machine. `None` when it saw no look-up.
fn simulated_reuse(order: &str, seed: u64) -> Result<Option<f64>, Problem> {
    let Some(machine) = Machine::shipped("freebsd-2006") else { return Ok(None) };
    let load = Simulated::parse(&format!("cached-{order}-2006"))?.load(seed);
    Ok(iowhy_sim::run(&machine, load, seed)?.pool_reuse())
}

fn conclude(record: &mut Report, experiment: &Experiment) {
    let then = pool::split(experiment, "4k-random").zip(pool::split(experiment, "4k-sequential"));
    let now = record.figure(&key(4096, "random", "large"), |cell| cell.summary.time_per_request).and_then(
        |random| {
            Ok((
                random,
                record.figure(&key(4096, "sequential", "large"), |cell| cell.summary.time_per_request)?,
            ))
        },
    );
    let then = then.map(|(random, sequential)| random.net() / sequential.net());
    match (then, now) {
        (Some(then), Ok((random, sequential))) => {
            let ratio = ratio(&random, &sequential);
            let why = if ratio.low > 1.05 {
                "what is left of the difference is the CPU's caches and the look-up, not mappings"
            } else if ratio.high < 1.3 {
                "the difference is gone"
            } else {
                "the interval is too wide to tell; repeat it when the machine is idle"
            };
            record.verdicts.push(format!(
                "Random cached reads of 4 KiB took {then:.1} times as long as sequential ones then, because 87 of 100 had \
                 to make a buffer's mapping anew, and not 25; here {:.2} times (between {:.2} and {:.2}): {why}.",
                ratio.value, ratio.low, ratio.high
            ));
        }
        (_, Err(why)) => record.verdicts.push(format!("No verdict for this machine: {why}.")),
        (None, Ok(_)) => {}
    }
}

/// Ratio of two estimates, with the widest ends.
fn ratio(over: &Estimate, under: &Estimate) -> Estimate {
    Estimate {
        value: over.value / under.value,
        low: over.low / under.high,
        high: over.high / under.low,
        unit: Unit::Ratio,
        n: over.n.min(under.n),
    }
}
