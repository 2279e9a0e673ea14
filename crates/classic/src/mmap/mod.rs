//! `linux-mmap-1999`: two targets, a thread each, read in large pieces by every way there is; does the second thread add
//! throughput, and what CPU does a byte cost?

pub mod overlap;

use std::time::Duration;

use self::overlap::Second;
use crate::published::Experiment;
use iowhy_core::cell::Sample;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_path::reconcile::Verdict;
use iowhy_probe::campaign::{Cell, Outcome};
use iowhy_probe::target::Target;
use iowhy_sim::machine::Machine;
use iowhy_sim::workload::Workload as Simulated;

use crate::lab::{Lab, cell_of};
use crate::report::MeasuredCell;
use crate::report::{Report, Row};

/// The pieces of the post.
const PIECE: u64 = 10 << 20;
/// What each thread of the post reads.
const POSTED_BYTES: u64 = 90 * PIECE;
/// What each thread reads here in one round.
const REGION_BYTES: u64 = 6 * PIECE;
/// Block of the ways that take a mapping as it is: a thread touches its pages in pieces of this.
const TOUCHED: u64 = 1 << 20;

/// Ways: method, state, block, depth, what it is.
const WAYS: [(Method, CacheState, u64, usize, &str); 8] = [
    (Method::Read, CacheState::Cold, PIECE, 1, "read, as in the post"),
    (Method::MmapLock, CacheState::Cold, PIECE, 1, "mmap+mlock, as in the post"),
    (Method::Mmap, CacheState::Cold, TOUCHED, 1, "mmap"),
    (Method::MmapSequential, CacheState::Cold, TOUCHED, 1, "mmap, MADV_SEQUENTIAL"),
    (Method::MmapPopulate, CacheState::Cold, PIECE, 1, "mmap, MAP_POPULATE"),
    (Method::Direct, CacheState::Direct, PIECE, 1, "read with O_DIRECT"),
    (Method::Uring, CacheState::Direct, TOUCHED, 4, "io_uring, O_DIRECT, 4 x 1 MiB"),
    (Method::Uring, CacheState::Cold, TOUCHED, 4, "io_uring, buffered, 4 x 1 MiB"),
];

/// Runs it.
///
/// # Errors
/// What resolving the targets says; a refusal for more than two.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    let (first, second) = match lab.specs {
        [one] => (one.clone(), one.clone()),
        [one, two] => (one.clone(), two.clone()),
        more => {
            return Err(Problem::refused(format!(
                "`{}` names {} targets; two are wanted",
                lab.spec,
                more.len()
            ))
            .hint("name one or two, as in `iowhy classic linux-mmap-1999 /mnt/a:/mnt/b`"));
        }
    };
    let a = Lab { spec: &first, ..*lab }.target(REGION_BYTES)?;
    let b = Lab { spec: &second, ..*lab }.target(REGION_BYTES)?;
    let size = a.facts.size_bytes.min(b.facts.size_bytes).min(lab.size.unwrap_or(REGION_BYTES));
    if size < PIECE {
        return Err(Problem::refused(format!("`{}` is smaller than one piece, 10 MiB", a.facts.name))
            .hint("name a larger file, or a directory"));
    }
    let same = a.identity().is_some() && a.identity() == b.identity();
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for (index, way) in WAYS.iter().enumerate() {
        if let Some(workload) = workload(way, &a, size) {
            // Each reads its region once, however long that takes.
            let mut alone = cell_of(alone_key(index), vec![(workload.clone(), &a)]);
            let mut both = cell_of(both_key(index), vec![(workload.clone(), &a), (workload, &b)]);
            for cell in [&mut alone, &mut both] {
                cell.bounds.wall = Duration::MAX;
                cell.bounds.requests_per_thread = size / way.2;
            }
            cells.push(alone);
            cells.push(both);
        }
    }
    if cells.is_empty() {
        return Err(Problem::refused(format!("`{}` cannot be cold: it lives in memory", a.facts.name))
            .hint("name a directory on a disk"));
    }
    let outcome = lab.run(&cells);
    let mut record = lab.report(&[&a, &b], &cells, &outcome);
    let gains = gains(&cells, &outcome, lab.seed);
    fill_times(&mut record, experiment, &a, &b, lab.seed);
    fill_gains(&mut record, &gains);
    fill_cpu(&mut record, experiment);
    conclude(&mut record, experiment, &gains);
    if same {
        record.say("both threads read the same file: the second finds in the cache what the first has read.");
    } else if a.counted_devices() == b.counted_devices() {
        record.not_done.push(
            "two disks: both targets lie on the same device, which two threads share; name two, as in \
             `iowhy classic linux-mmap-1999 /mnt/a:/mnt/b`"
                .to_owned(),
        );
    }
    Ok(record)
}

/// The workload of a way; `None` where the target cannot do it by nature.
fn workload(way: &(Method, CacheState, u64, usize, &str), target: &Target, size: u64) -> Option<Workload> {
    let (method, state, block, depth, _) = *way;
    if target.facts.memory_backed
        || (state == CacheState::Direct && target.facts.direct_supported == Some(false))
    {
        return None;
    }
    let mut workload = Workload::reads(method, state, block, size / block * block);
    workload.depth = depth;
    Some(workload)
}

fn id(index: usize) -> String {
    let (method, state, ..) = WAYS[index];
    format!("{}-{}", method.id(), state.id())
}

fn alone_key(index: usize) -> String {
    format!("{}-alone", id(index))
}

fn both_key(index: usize) -> String {
    format!("{}-both", id(index))
}

/// Cells of both arms have the target in their key; scratch files of one directory have the same name.
fn arms<'r>(record: &'r Report, key: &str) -> Vec<&'r MeasuredCell> {
    let prefix = format!("{key}@");
    record.cells.iter().filter(|cell| cell.run.key.starts_with(&prefix)).collect()
}

/// Wall time of both threads for the bytes of the post: the later one's.
fn both_time(record: &Report, index: usize) -> Result<Estimate, String> {
    let mut latest: Option<Estimate> = None;
    let arms = arms(record, &both_key(index));
    for cell in &arms {
        if let Some(failure) = &cell.run.failure {
            return Err(format!("failed: {failure}"));
        }
        if cell.verdict == Verdict::Mislabelled {
            return Err(format!("not {}: {}", cell.run.workload.state.id(), cell.bytes_verdict));
        }
        let requests = POSTED_BYTES as f64 / cell.run.workload.block_bytes.max(1) as f64;
        // At depth above 1 requests overlap: the wall clock, not the thread time of a request.
        let rate = cell.summary.requests_per_second.ok_or_else(|| "too few rounds".to_owned())?;
        let time = rate.reciprocal(requests * 1e9, Unit::Nanoseconds);
        if latest.is_none_or(|l| time.value > l.value) {
            latest = Some(time);
        }
    }
    latest.ok_or_else(|| "not measured here".to_owned())
}

fn fill_times(record: &mut Report, experiment: &Experiment, a: &Target, b: &Target, seed: u64) {
    record.section("times", "Two threads, a target each, 90 pieces of 10 MiB each: time of both", "way");
    let mut missing = Vec::new();
    for (index, way) in WAYS.iter().enumerate() {
        let (published, model) = match way.0 {
            Method::Read => (posted(experiment, 0), simulated("read", seed)),
            Method::MmapLock => (posted(experiment, 1), simulated("mlock", seed)),
            Method::Mmap => (None, simulated("mapped", seed)),
            _ => (None, Ok(None)),
        };
        let model = model.unwrap_or_else(|problem| {
            missing.push(format!("the simulation of two disks failed: {problem}"));
            None
        });
        let mut row = Row::new("times", way.4, "time of both threads for 900 MiB each", Unit::Nanoseconds)
            .key("method", way.0.id())
            .key("state", way.1.id())
            .then(published)
            .model(model);
        row = match both_time(record, index) {
            Ok(time) => row.now(Some(time)).changed(),
            Err(why) => row.remark(why),
        };
        record.row(row);
    }
    let places = match a.facts.name == b.facts.name {
        true => format!("two scratch files in `{}`", a.facts.name),
        false => format!("`{}` and `{}`", a.facts.name, b.facts.name),
    };
    record.say(format!(
        "measured: {} of each of {places} in a round, cold, told for 900 MiB. model: two simulated Deskstar 14GXP, read \
         by two threads; with mlock serialised within the process, with a plain mapping not: what the lock costs is lost \
         overlap.",
        Bytes(a.facts.size_bytes.min(REGION_BYTES))
    ));
    record.not_done.extend(missing);
}

fn posted(experiment: &Experiment, row: usize) -> Option<f64> {
    experiment.table("methods")?.figure(row, "time")
}

/// Time of the simulated machine, ns.
fn simulated(method: &str, seed: u64) -> Result<Option<f64>, Problem> {
    let Some(machine) = Machine::shipped("linux-1999-ide") else { return Ok(None) };
    let text = format!("readers=2,requests=90,bytes=10m,size=900m,own=yes,method={method}");
    let load = Simulated::parse(&text)?.load(seed);
    Ok(Some(iowhy_sim::run(&machine, load, seed)?.time_ns as f64))
}

/// Throughput of both over that of one alone, paired within rounds, by way.
type Gains = Vec<(usize, Option<Estimate>)>;

fn gains(cells: &[Cell<'_>], outcome: &Outcome, seed: u64) -> Gains {
    let of = |key: &str| cells.iter().position(|cell| cell.key == key).and_then(|i| outcome.cells.get(i));
    (0..WAYS.len())
        .filter_map(|index| {
            let (alone, both) = (of(&alone_key(index))?.first()?, of(&both_key(index))?);
            let (a, b) = (both.first()?, both.get(1)?);
            let ratios: Vec<f64> = alone
                .samples
                .iter()
                .filter_map(|one| {
                    let of_round =
                        |samples: &[Sample]| samples.iter().find(|s| s.round == one.round).cloned();
                    let (x, y) = (of_round(&a.samples)?, of_round(&b.samples)?);
                    let wall = x.wall_ns.max(y.wall_ns).max(1) as f64;
                    let together = (x.claimed_bytes + y.claimed_bytes) as f64 / wall;
                    Some(together / (one.claimed_bytes as f64 / one.wall_ns.max(1) as f64))
                })
                .collect();
            Some((index, stats::bootstrap_median(&ratios, seed, Unit::Ratio)))
        })
        .collect()
}

fn fill_gains(record: &mut Report, gains: &Gains) {
    record.section("second-thread", "Throughput of both threads over that of one alone", "way");
    for (index, gain) in gains {
        let way = &WAYS[*index];
        let row = Row::new("second-thread", way.4, "throughput of two over one", Unit::Ratio)
            .key("method", way.0.id())
            .key("state", way.1.id());
        record.row(match gain {
            Some(gain) => row.now(Some(*gain)).remark(overlap::second(gain.low, gain.high).words()),
            None => row.remark("too few rounds"),
        });
    }
}

fn fill_cpu(record: &mut Report, experiment: &Experiment) {
    let rate = experiment.fact("rate").unwrap_or(30e6);
    record.section("cpu", "Share of one CPU at the rate of the post, 30 MB/s", "way");
    for (index, way) in WAYS.iter().enumerate() {
        let then = if way.0 == Method::Read { experiment.fact("cpu-share") } else { None };
        let row = Row::new("cpu", way.4, "share of one CPU at 30 MB/s", Unit::Ratio)
            .key("method", way.0.id())
            .key("state", way.1.id())
            .then(then);
        let now =
            record.figure(&alone_key(index), |cell| cell.summary.cpu_per_byte).map(|per_byte| Estimate {
                value: per_byte.value * rate / 1e9,
                low: per_byte.low * rate / 1e9,
                high: per_byte.high * rate / 1e9,
                unit: Unit::Ratio,
                n: per_byte.n,
            });
        record.row(match now {
            Ok(share) => row.now(Some(share)).remark(format!("{:.2} ns a byte", share.value / rate * 1e9)),
            Err(why) => row.remark(why),
        });
    }
    record.say("measured: CPU time of the reading thread alone; the kernel's own threads are not in it.");
}

fn conclude(record: &mut Report, experiment: &Experiment, gains: &Gains) {
    if let Some((read, locked)) = posted(experiment, 0).zip(posted(experiment, 1))
        && let Some(lost) = overlap::lost(locked, read)
    {
        record.verdicts.push(format!(
            "Then mlock was serialised within the process: 107 s for 70 s is {:.0} % of the overlap of two disks lost.",
            lost * 100.0
        ));
        let model = |method: Method| {
            let of = |row: &&Row| {
                row.key.get("table").is_some_and(|t| t == "times")
                    && row.key.get("method").is_some_and(|m| m == method.id())
            };
            record.rows.iter().find(of).and_then(|row| row.model)
        };
        if let (Some(locked), Some(free)) = (model(Method::MmapLock), model(Method::Mmap)) {
            record.verdicts.push(format!(
                "In the simulator the lock alone makes {} of {}: one disk stands still while the other is read.",
                units::time(locked),
                units::time(free)
            ));
        }
    }
    let gain = |method: Method| {
        gains.iter().find(|(index, _)| WAYS[*index].0 == method).and_then(|(_, gain)| gain.as_ref())
    };
    if let (Some(read), Some(locked)) = (gain(Method::Read), gain(Method::MmapLock)) {
        let words =
            |e: &Estimate| format!("{} ({})", overlap::second(e.low, e.high).words(), units::factor(e));
        let serialised = overlap::second(locked.low, locked.high) == Second::Nothing
            && overlap::second(read.low, read.high) != Second::Nothing;
        record.verdicts.push(format!(
            "Here, with read: {}; with mmap+mlock: {}. {}",
            words(read),
            words(locked),
            if serialised {
                "mlock still serialises."
            } else if [read, locked].iter().any(|e| overlap::second(e.low, e.high) == Second::Inconclusive) {
                "This run does not show whether mlock serialises; repeat it when the machine is idle."
            } else if overlap::second(read.low, read.high) == Second::Nothing {
                "The device is full with one reader, so this machine cannot show a serialisation."
            } else {
                "No serialisation by mlock shows."
            }
        ));
    }
    if let Ok(per_byte) = record.figure(&alone_key(0), |cell| cell.summary.cpu_per_byte) {
        record.verdicts.push(format!(
            "read() at 30 MB/s took 45 % of a CPU then and takes {:.1} % here.",
            per_byte.value * 30e6 / 1e9 * 100.0
        ));
    }
}
