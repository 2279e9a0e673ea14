//! `minix-1989`: five devices by block size, the verdict of the post, read-ahead off and on, and the costs that were
//! fitted on the lower tables alone. Changed settings of the machine are in `queue`.

pub mod costs;
mod null_block;
mod queue;
pub mod shape;

use self::costs::{BLOCKS, POSTED_BYTES};
use self::costs::{Costs, Device};
use self::shape::Shape;
use crate::published::{Experiment, Table};
use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method};
use iowhy_probe::campaign::Cell;
use iowhy_probe::target::{self, Needs, Target};
use iowhy_sim::machine::Machine;
use iowhy_sim::workload::Workload as Simulated;

use self::null_block::NullBlock;
use crate::lab::{Lab, cell, reads};
use crate::report::{Grid, Report, Row, factor};
use crate::report::{rate, with_now};
use iowhy_path::targets;

/// What is read here at most in one cell and round: 2 MB are over before a clock can tell.
const REGION_BYTES: u64 = 64 << 20;
/// What is measured here for a device of the post.
struct Stand {
    /// Table of the post.
    table: &'static str,
    /// What the model calls it; `None`: fitted, not predicted.
    device: Device,
    /// Whether the model was fitted on this table.
    fitted: bool,
    /// What it is here, in words; a reason when it cannot be had.
    here: Result<String, String>,
}

/// Runs it.
///
/// # Errors
/// What resolving the target says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    let target = lab.target(REGION_BYTES)?;
    let below = targets::calibration_targets(&target)?;
    // Nothing real has a place beside virtual time.
    let null_block = match target.script() {
        None => null_block::find(lab)?,
        Some(_) => Err("a script has no null block device".to_owned()),
    };
    let device = block_device(&target);
    let region = target.facts.size_bytes.min(lab.size.unwrap_or(REGION_BYTES));
    if region < BLOCKS[4] {
        return Err(Problem::refused(format!(
            "`{}` is smaller than the largest block, 16 KiB",
            target.facts.name
        ))
        .hint("name a larger file, or a directory"));
    }
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let stands = [
        plan_null(&mut cells, below.null_device.as_ref()),
        plan_bnull(&mut cells, &null_block, &target),
        plan_raw(&mut cells, &target, region),
        plan_block_device(&mut cells, device.as_ref(), region),
        plan_file(&mut cells, &target, region),
    ];
    plan_read_ahead(&mut cells, &target, region);
    let outcome = lab.measure(&mut cells);
    let mut record = lab.report(&[&target], &cells, &outcome);
    let costs = Costs::fit(experiment, lab.seed);
    for stand in &stands {
        fill_calibration(&mut record, experiment, stand, costs.as_ref());
    }
    if let Err(problem) = fill_turns(lab, &mut record, experiment) {
        record.not_done.push(format!("the simulated disk: {problem}"));
    }
    fill_read_ahead(&mut record, experiment, costs.as_ref());
    if lab.queue_read_ahead {
        queue::fill(lab, &mut record, &target, region);
    } else {
        record.not_done.push(
            "the disk's queue with its read-ahead off and on (`--queue-read-ahead`): it holds for every program, so only when \
             asked for; the advice of posix_fadvise holds for our descriptor alone"
                .to_owned(),
        );
    }
    fill_machines(&mut record, experiment);
    fill_costs(&mut record, experiment, costs.as_ref());
    conclude(&mut record, experiment);
    Ok(record)
}
/// The block device under the file, or why it cannot be read.
fn block_device(file: &Target) -> Result<Target, String> {
    let needs = Needs { scratch_bytes: 0, write: false, destroy_data: None };
    let path = targets::raw_device(file)
        .ok_or_else(|| "there is not exactly one block device under it".to_owned())?;
    target::resolve(&path, &needs, &mut |_, _| {}).map_err(|problem| problem.to_string())
}

fn key(table: &str, block: u64) -> String {
    format!("{table}-{block}")
}

fn plan_null<'a>(cells: &mut Vec<Cell<'a>>, device: Option<&'a Target>) -> Stand {
    let here = match device {
        Some(device) => {
            for block in BLOCKS {
                let read = reads(Method::Pread, CacheState::None, block, REGION_BYTES);
                cells.push(cell(key("null", block), read, device));
            }
            Ok("/dev/null: entry, descriptor, exit".to_owned())
        }
        None => Err("/dev/null cannot be read here".to_owned()),
    };
    Stand { table: "null", device: Device::Null, fitted: true, here }
}

fn plan_bnull<'a>(
    cells: &mut Vec<Cell<'a>>,
    device: &'a Result<NullBlock, String>,
    file: &'a Target,
) -> Stand {
    let here = match device {
        Ok(NullBlock { target: device, words }) => {
            let region = device.facts.size_bytes.min(REGION_BYTES);
            for block in BLOCKS {
                cells.push(cell(
                    key("bnull", block),
                    reads(Method::Pread, CacheState::Cold, block, region),
                    device,
                ));
            }
            Ok(words.clone())
        }
        Err(why) => {
            for block in BLOCKS {
                let read = reads(Method::PreadEnd, CacheState::None, block, REGION_BYTES);
                cells.push(cell(key("bnull", block), read, file));
            }
            Ok(format!(
                "{why}: a read at the end of the file stands in, which moves as few blocks as one of no blocks does"
            ))
        }
    };
    Stand { table: "bnull", device: Device::Bnull, fitted: true, here }
}

fn plan_raw<'a>(cells: &mut Vec<Cell<'a>>, file: &'a Target, region: u64) -> Stand {
    let alignment = file.facts.direct_alignment_bytes.unwrap_or(512).max(1);
    let here = if file.facts.direct_supported == Some(false) || file.facts.memory_backed {
        Err("no O_DIRECT here: not measured".to_owned())
    } else {
        for block in BLOCKS.into_iter().filter(|block| block.is_multiple_of(alignment)) {
            cells.push(cell(
                key("rhd2", block),
                reads(Method::Direct, CacheState::Direct, block, region),
                file,
            ));
        }
        Ok("the file's own blocks with O_DIRECT, past the cache".to_owned())
    };
    Stand { table: "rhd2", device: Device::Raw, fitted: true, here }
}

/// The block device through the cache. Its middle is read: what the file system keeps at the start is in use.
fn plan_block_device<'a>(
    cells: &mut Vec<Cell<'a>>,
    device: Result<&'a Target, &String>,
    region: u64,
) -> Stand {
    const GRAIN: u64 = 1 << 20;
    let here = match device {
        Ok(device) if device.facts.size_bytes / 2 > region => {
            for block in BLOCKS {
                let mut read = reads(Method::Pread, CacheState::Cold, block, region);
                read.region_offset = device.facts.size_bytes / 2 / GRAIN * GRAIN;
                cells.push(cell(key("hd2", block), read, device));
            }
            Ok(format!(
                "{} through the cache, cold, from its middle: other bytes than the file's, perhaps never written",
                device.facts.name
            ))
        }
        Ok(device) => Err(format!("not measured: {} is too small", device.facts.name)),
        Err(why) => Err(format!("not measured: {why}")),
    };
    Stand { table: "hd2", device: Device::Cached, fitted: false, here }
}

fn plan_file<'a>(cells: &mut Vec<Cell<'a>>, file: &'a Target, region: u64) -> Stand {
    let (state, words) = cold_or_warm(file);
    for block in BLOCKS {
        cells.push(cell(key("file", block), reads(Method::Pread, state, block, region), file));
    }
    Stand { table: "file", device: Device::Cached, fitted: false, here: Ok(words.to_owned()) }
}

fn cold_or_warm(file: &Target) -> (CacheState, &'static str) {
    if file.facts.memory_backed {
        (CacheState::Warm, "the file, which lives in memory and cannot be cold")
    } else {
        (CacheState::Cold, "the file, cold, with the kernel's read-ahead as it is")
    }
}

fn plan_read_ahead<'a>(cells: &mut Vec<Cell<'a>>, file: &'a Target, region: u64) {
    // There is nothing to read ahead from memory, and no advice in a script.
    if file.facts.memory_backed || file.script().is_some() {
        return;
    }
    for block in BLOCKS {
        for (name, method) in [("off", Method::PreadRandom), ("large", Method::PreadSequential)] {
            cells.push(cell(key(name, block), reads(method, CacheState::Cold, block, region), file));
        }
    }
}

/// A time of the post by block size.
fn published(table: &Table, block: u64, column: &str) -> Option<f64> {
    table.pairs("block", column).into_iter().find(|(b, _)| *b == block as f64).map(|(_, value)| value)
}

fn row(table: &str, block: u64) -> Row {
    Row::new(table, Bytes(block).to_string(), "time to read 2 MiB", Unit::Nanoseconds)
        .key("block_bytes", block)
}

fn fill_calibration(record: &mut Report, experiment: &Experiment, stand: &Stand, costs: Option<&Costs>) {
    let Some(table) = experiment.table(stand.table) else { return };
    let title = format!("{} (time to read 2 MiB)", table.title);
    record.section(stand.table, title, "block");
    for block in BLOCKS {
        let mut row = row(stand.table, block).then(published(table, block, "time"));
        row = row.model(costs.map(|costs| costs.predict(stand.device, block)));
        if stand.here.is_ok() {
            row = with_now(row, record.time_for(&key(stand.table, block), POSTED_BYTES));
        }
        record.row(row);
    }
    let (Ok(words) | Err(words)) = &stand.here;
    record.say(format!("measured: {words}."));
    if stand.fitted {
        record.say("model: fitted on this table, so its errors are residuals.");
    } else {
        record.say("model: predicted from the null, bnull and rhd2 tables alone, in chunks of 1 KiB.");
    }
    if let Some(words) = shapes(record, table, stand.table) {
        record.say(words);
    }
}

/// Speeds of this machine, by block size.
fn speeds(record: &Report, table: &str) -> Vec<(f64, f64)> {
    BLOCKS
        .into_iter()
        .filter_map(|block| {
            let time = record.time_for(&key(table, block), POSTED_BYTES).ok()?;
            Some((block as f64, rate(&time, POSTED_BYTES as f64).value))
        })
        .collect()
}

fn shapes(record: &Report, table: &Table, id: &str) -> Option<String> {
    let then = shape::shape(&table.pairs("block", "speed"))?;
    let speeds = speeds(record, id);
    let now = shape::shape(&speeds).map_or_else(
        || "inconclusive".to_owned(),
        |shape| {
            format!(
                "{}, {} times the speed for {} times the block",
                shape.meaning(),
                gain(&speeds),
                span(&speeds)
            )
        },
    );
    Some(format!("verdict then: {}. Now: {now}.", then.meaning()))
}

fn gain(speeds: &[(f64, f64)]) -> String {
    let ratio = speeds.first().zip(speeds.last()).map_or(f64::NAN, |(first, last)| last.1 / first.1);
    factor(ratio)
}

fn span(speeds: &[(f64, f64)]) -> String {
    let ratio = speeds.first().zip(speeds.last()).map_or(f64::NAN, |(first, last)| last.0 / first.0);
    format!("{ratio:.0}")
}

/// The file and the read-ahead on the simulated machine, whose disk turns: what the fitted costs cannot know.
fn fill_turns(lab: &Lab<'_>, record: &mut Report, experiment: &Experiment) -> Result<(), Problem> {
    record.section("turns", "The file on a simulated disk that turns (time to read 2 MiB)", "block");
    let mut grid = Grid {
        header: ["published", "model", "error", "read-ahead, published", "model", "error"]
            .map(str::to_owned)
            .to_vec(),
        lines: Vec::new(),
    };
    for block in BLOCKS {
        let mut line = vec![Bytes(block).to_string()];
        for (machine, table) in [("minix-1989", "file"), ("minix-1989-readahead", "readahead")] {
            let then = experiment.table(table).and_then(|table| published(table, block, "time"));
            let load =
                format!("readers=1,requests={},bytes={block},size={POSTED_BYTES}", POSTED_BYTES / block);
            let model = match Machine::shipped(machine) {
                Some(machine) => {
                    let load = Simulated::parse(&load)?.load(lab.seed);
                    Some(iowhy_sim::run(&machine, load, lab.seed)?.time_ns as f64)
                }
                None => None,
            };
            let row = row("turns", block).key("machine", machine).then(then).model(model);
            line.push(then.map_or_else(|| "-".to_owned(), units::time));
            line.push(model.map_or_else(|| "-".to_owned(), units::time));
            line.push(row.error_percent.map_or_else(|| "-".to_owned(), |e| units::signed_per_cent(e, 0)));
            record.row(row.remark("simulated: a block that is asked for too late costs a turn"));
        }
        grid.lines.push(line);
    }
    record.grid(grid);
    record.say(
        "model: `iowhy sim --machine minix-1989`, whose driver takes 7.2 ms for a request, from the raw disk's table alone. The next \
         block passes the head 17.6 ms behind the last one, or a turn of 16.7 ms later: the 2048 blocks would take 43 s with \
         a turn each, 76 s where each misses one; the 91 s of the post are 2.4 turns each. Which of them a block misses \
         hangs on a few milliseconds of the driver, which no table of the post gives.",
    );
    Ok(())
}

fn fill_read_ahead(record: &mut Report, experiment: &Experiment, costs: Option<&Costs>) {
    let Some(table) = experiment.table("readahead") else { return };
    record.section("readahead", format!("{} (time to read 2 MiB)", table.title), "block");
    let least = experiment.fact("driver-read-ahead").unwrap_or(4096.0) as u64;
    for block in BLOCKS {
        let was = published(table, block, "was").map(|speed| POSTED_BYTES as f64 / speed * 1e9);
        let then = published(table, block, "time");
        let on = record.time_for(&key("file", block), POSTED_BYTES);
        let off = record.time_for(&key("off", block), POSTED_BYTES);
        let mut row = row("readahead", block)
            .key("was_ns", was)
            .key("was_now_ns", off.as_ref().ok().map(|e| e.value))
            .then(then)
            .model(costs.map(|costs| costs.predict(Device::ReadAhead(least), block)));
        if let (Some(was), Some(then)) = (was, then) {
            row = row.remark(format!("was {} without: {:.1} x", units::time(was), was / then));
        }
        let said = match (&on, &off) {
            (Ok(on), Ok(off)) => {
                format!("now {} without: {:.1} x", units::time(off.value), off.value / on.value)
            }
            (_, Err(why)) | (Err(why), _) => why.clone(),
        };
        row.measured = on.ok();
        record.row(row.remark(said));
    }
    record.say(
        "measured: as the kernel does it by itself, against POSIX_FADV_RANDOM (`without`). model: a request of the disk for \
         each 4 KiB; the cost of a message to the driver cannot be separated by the three tables and is left out.",
    );
    let larger: Vec<String> = BLOCKS
        .into_iter()
        .filter_map(|block| {
            let (on, large) = (
                record.time_for(&key("file", block), 1 << 20).ok()?,
                record.time_for(&key("large", block), 1 << 20).ok()?,
            );
            Some(format!("{} {:.2} x", Bytes(block), on.value / large.value))
        })
        .collect();
    if !larger.is_empty() {
        record.say(format!("POSIX_FADV_SEQUENTIAL, a larger window, on top of that: {}.", larger.join(", ")));
    }
}

fn fill_machines(record: &mut Report, experiment: &Experiment) {
    const MACHINES: [(&str, &str); 3] =
        [("sun-3-50", "Sun 3/50"), ("sun-3-260", "Sun 3/260"), ("compaq-386-20", "Compaq 386/20")];
    let Some(table) = experiment.table("machines") else { return };
    record.section("machines", format!("{} (speed of the file test)", table.title), "block");
    let blocks: Vec<u64> = BLOCKS.into_iter().filter(|block| *block <= 8192).collect();
    let mut grid = Grid { header: vec!["Atari ST".to_owned()], lines: Vec::new() };
    grid.header.extend(MACHINES.map(|(_, name)| name.to_owned()));
    grid.header.extend(["here".to_owned(), "here over Sun 3/260".to_owned()]);
    for block in &blocks {
        let atari = experiment.table("file").and_then(|file| published(file, *block, "speed"));
        let now =
            record.time_for(&key("file", *block), POSTED_BYTES).map(|time| rate(&time, POSTED_BYTES as f64));
        let mut line = vec![Bytes(*block).to_string(), shown(atari)];
        for (column, name) in MACHINES {
            let then = published(table, *block, column);
            let label = format!("{name}, {}", Bytes(*block));
            let row = Row::new("machines", label, "speed of a file read", Unit::BytesPerSecond)
                .key("machine", column)
                .key("block_bytes", *block)
                .then(then);
            let mut row = with_now(row, now.clone());
            if let (Some(then), Some(atari)) = (then, atari) {
                row = row.remark(format!("{:.1} x the Atari", then / atari));
            }
            record.row(row);
            line.push(shown(then));
        }
        line.push(now.as_ref().map_or_else(|_| "-".to_owned(), units::estimate_narrow));
        let best = published(table, *block, "sun-3-260");
        let over = now.as_ref().ok().zip(best).map(|(now, best)| factor(now.value / best));
        line.push(over.unwrap_or_else(|| "-".to_owned()));
        grid.lines.push(line);
    }
    record.grid(grid);
    for (column, name) in MACHINES {
        if let Some(shape) = shape::shape(&table.pairs("block", column)) {
            record.say(format!("{name}: {}.", shape.meaning()));
        }
    }
}

fn shown(speed: Option<f64>) -> String {
    speed.map_or_else(|| "-".to_owned(), units::rate_bytes)
}

fn fill_costs(record: &mut Report, experiment: &Experiment, costs: Option<&Costs>) {
    let Some(costs) = costs else { return };
    record.section("costs", "What the three lower tables say a piece costs", "cost");
    for (id, label, estimate, scale, unit) in [
        ("call", "a call", &costs.call, 1.0, Unit::Nanoseconds),
        ("lookup", "a look-up in the cache", &costs.lookup, 1.0, Unit::Nanoseconds),
        ("request", "a request to the disk", &costs.request, 1.0, Unit::Nanoseconds),
        ("byte", "1 KiB from the disk", &costs.byte, 1024.0, Unit::Nanoseconds),
    ] {
        let row = Row::new("costs", label, "cost", unit)
            .key("cost", id)
            .key("low", estimate.low * scale)
            .key("high", estimate.high * scale)
            .model(Some(estimate.value * scale))
            .remark(format!(
                "{} to {}",
                units::time(estimate.low * scale),
                units::time(estimate.high * scale)
            ));
        record.row(row);
    }
    record.say("Ranges: what the rounding of the times to whole seconds leaves open.");
    if let Some(calls) = experiment.fact("calls") {
        record.say(format!(
            "calls a second: the post says {calls:.0}, the fit {:.0}; /dev/null here: {}.",
            1e9 / costs.call.value,
            record
                .figure(&key("null", 512), |cell| cell.summary.requests_per_second)
                .map_or_else(|why| why, |e| units::estimate(&e))
        ));
    }
}

fn conclude(record: &mut Report, experiment: &Experiment) {
    let then = experiment.table("file").and_then(|table| shape::shape(&table.pairs("block", "speed")));
    let speeds = speeds(record, "file");
    let now = shape::shape(&speeds);
    let sentence = match (then, now) {
        (Some(then), Some(now)) if then == now => {
            format!("A file in pieces of 512 bytes to 16 KiB: then and now {}.", now.meaning())
        }
        (Some(then), Some(now)) => {
            let why = match now {
                Shape::Growing | Shape::Both => {
                    "What was the disk's and the cache's time has become the call's: read-ahead hides the device, so \
                     larger blocks pay now"
                }
                Shape::Flat => "The call has become cheap against what lies below it",
            };
            format!(
                "A file in pieces of 512 bytes to 16 KiB: then {}; now {}, {} times the speed. {why}.",
                then.meaning(),
                now.meaning(),
                gain(&speeds)
            )
        }
        _ => "The file could not be measured here, so there is no verdict.".to_owned(),
    };
    record.verdicts.push(sentence);
    let (on, off) = (
        record.time_for(&key("file", 16_384), POSTED_BYTES),
        record.time_for(&key("off", 16_384), POSTED_BYTES),
    );
    if let (Ok(on), Ok(off)) = (on, off) {
        record.verdicts.push(format!(
            "Read-ahead: then 1.3 x at 16 KiB blocks, in the driver, without the overlap that the author hoped for from \
             the cache; now {:.1} x, in the cache, as he proposed.",
            off.value / on.value
        ));
    }
}
