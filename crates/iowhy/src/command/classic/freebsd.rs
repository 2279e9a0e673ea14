//! `freebsd-2006`: cached reads by block size, in order and by chance, over a part that the CPU's caches hold and over one
//! that they do not; and what the pool of buffers did to them then.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::pattern::Pattern;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method};
use iowhy_explain::classic::pool::{self, Costs, Split};
use iowhy_explain::classic::published::Experiment;
use iowhy_probe::campaign::Cell;
use iowhy_probe::target::Target;
use iowhy_sim::machine::Machine;
use iowhy_sim::workload::Workload as Simulated;

use super::lab::{Lab, cell, reads, with_now};
use crate::record::classic::{ClassicRecord, RowRecord};

/// Block sizes.
const BLOCKS: [u64; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// What the post reads.
const POSTED_BYTES: u64 = 400 << 20;
/// A part that the second-level cache of a CPU holds.
const SMALL_BYTES: u64 = 512 << 10;
/// A part that no CPU's cache of the day holds, unless the machine says otherwise.
const LARGE_BYTES: u64 = 256 << 20;

/// Runs it.
///
/// # Errors
/// What resolving the target says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<ClassicRecord, Problem> {
    let target = lab.target(LARGE_BYTES)?;
    let large = target.facts.size_bytes.min(lab.size.unwrap_or(LARGE_BYTES));
    if large < 2 * SMALL_BYTES {
        return Err(Problem::refused(format!(
            "`{}` is too small: 1 MiB at least is needed",
            target.facts.name
        ))
        .hint("name a larger file, or a directory"));
    }
    let mut cells: Vec<Cell<'_>> = Vec::new();
    plan(&mut cells, &target, large);
    let outcome = lab.measure(&mut cells);
    let mut record = lab.record(experiment, &[&target], &cells, &outcome);
    fill_runs(&mut record, experiment, large);
    fill_blocks(&mut record, large);
    fill_split(&mut record, experiment);
    fill_reuse(&mut record, experiment, lab.seed);
    conclude(&mut record, experiment, large);
    record.not_done.push(
        "a kernel profile of these reads with self and total time per function: `iowhy -- dd if=FILE of=/dev/null bs=4k` \
         shows where a program's reads spend their time; look-up structures (splay, hash, radix) are not timed"
            .to_owned(),
    );
    Ok(record)
}

fn key(block: u64, order: &str, bytes: u64) -> String {
    let part = if bytes == SMALL_BYTES { "small" } else { "large" };
    format!("{part}-{order}-{block}")
}

fn plan<'a>(cells: &mut Vec<Cell<'a>>, target: &'a Target, large: u64) {
    for bytes in [SMALL_BYTES, large] {
        for (order, pattern) in [("sequential", Pattern::Sequential), ("random", Pattern::Random)] {
            for block in BLOCKS {
                let mut read = reads(Method::Pread, CacheState::Warm, block, bytes);
                read.pattern = pattern;
                cells.push(cell(key(block, order, bytes), read, target));
            }
        }
    }
}

fn fill_runs(record: &mut ClassicRecord, experiment: &Experiment, large: u64) {
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
        let costs = Costs::of(experiment, &format!("4k-{order}"));
        let model = costs.zip(reuse).map(|(costs, reuse)| costs.predict(block as f64, reuse));
        let label = format!("{} {order}", Bytes(block));
        let row = RowRecord::new("runs", label, "time to read 400 MiB from the cache", Unit::Nanoseconds)
            .key("block_bytes", block)
            .key("order", order)
            .key("with_profiler_ns", published_run(experiment, block, order))
            .then(pool::split(experiment, &run).map(|split| split.net()))
            .model(model);
        let row = with_now(row, record.time_for(&key(block, order, large), POSTED_BYTES));
        record.row(if block == 4096 { row.remark("model: fitted") } else { row.remark("model: predicted") });
    }
    record.say(format!(
        "model: copy, look-up, mapping and the rest of a 4 KiB read in the same order, with the reuse of the pool; the \
         16 KiB runs are predicted. now: the first {} of the target.",
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

fn fill_blocks(record: &mut ClassicRecord, large: u64) {
    for bytes in [SMALL_BYTES, large] {
        let part = if bytes == SMALL_BYTES { "small" } else { "large" };
        record.section(
            part,
            format!("Here, by block size: random reads of {} in the page cache", Bytes(bytes)),
            "block",
        );
        for block in BLOCKS {
            let random = record.figure(&key(block, "random", bytes), |cell| cell.time_per_request);
            let order = record.figure(&key(block, "sequential", bytes), |cell| cell.time_per_request);
            let mut row = RowRecord::new(part, Bytes(block).to_string(), "time per read", Unit::Nanoseconds)
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

fn fill_split(record: &mut ClassicRecord, experiment: &Experiment) {
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
                RowRecord::new("split", format!("{run}, {part}"), "time per read", Unit::Nanoseconds)
                    .key("run", run)
                    .key("part", part)
                    .then(Some(value / reads))
                    .remark(format!("{:.0} %", value / net * 100.0)),
            );
        }
    }
    record.say(
        "Self times of the functions that the post shows, the profiler's left out; rest: rows that it leaves out. now: \
         `iowhy -- dd if=FILE of=/dev/null bs=4k` splits a program's own reads.",
    );
}

fn fill_reuse(record: &mut ClassicRecord, experiment: &Experiment, seed: u64) {
    record.section("reuse", "Probability that a read finds its buffer in the pool", "order");
    let mut lacks = Vec::new();
    for order in ["sequential", "random"] {
        let model = match simulated_reuse(order, seed) {
            Ok(reuse) => reuse,
            Err(problem) => {
                lacks.push(format!("the simulation of the pool failed: {problem}"));
                None
            }
        };
        let run = format!("4k-{order}");
        let counted = pool::published_reuse(experiment, &run)
            .map_or_else(String::new, |reuse| format!("{reuse:.2} by the calls of its profile"));
        record.row(
            RowRecord::new("reuse", order, "share of reads", Unit::Ratio)
                .key("order", order)
                .then(reuse_of(experiment, order))
                .model(model)
                .remark(counted),
        );
    }
    record.say(
        "model: 102400 simulated reads of 4 KiB through a pool of 3328 buffers of 16 KiB, `a few thousand`. Sequential \
         reuse follows from the sizes alone (1 - 4/16); the random one is the pool's share of the file, so the size of the \
         pool was chosen by it. now: Linux maps its whole page cache and has no such pool.",
    );
    record.not_done.extend(lacks);
}

/// Reuse of the pool in the simulated machine. `None` when it saw no look-up.
fn simulated_reuse(order: &str, seed: u64) -> Result<Option<f64>, Problem> {
    let Some(machine) = Machine::shipped("freebsd-2006") else { return Ok(None) };
    let load = Simulated::parse(&format!("cached-{order}-2006"))?.load(seed);
    Ok(iowhy_sim::run(&machine, load, seed)?.pool_reuse())
}

fn conclude(record: &mut ClassicRecord, experiment: &Experiment, large: u64) {
    let then = pool::split(experiment, "4k-random").zip(pool::split(experiment, "4k-sequential"));
    let now = record.figure(&key(4096, "random", large), |cell| cell.time_per_request).and_then(|random| {
        Ok((random, record.figure(&key(4096, "sequential", large), |cell| cell.time_per_request)?))
    });
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
