//! `linux-sg-1999`: one command, many sizes, with and without the last copy. Through /dev/sg where PATH is one; else cold
//! buffered reads against direct ones, with cached reads for the copy alone.

pub mod transfer;

use self::transfer::{Need, Transfer};
use crate::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method};
use iowhy_probe::campaign::Cell;
use iowhy_probe::target::Target;

use crate::lab::{Lab, cell, reads};
use crate::report::MeasuredCell;
use crate::report::with_now;
use crate::report::{Report, Row};

/// Buffer sizes of the post, KiB.
const BUFFERS_KIB: [u64; 8] = [488, 256, 128, 64, 32, 16, 8, 4];
/// What the post reads.
const POSTED_BYTES: u64 = 200 << 20;
/// What is read here in one cell and round at most.
const REGION_BYTES: u64 = 64 << 20;

/// Which cells stand for what.
struct Ways {
    /// Columns: id, method, state, what it is.
    arms: Vec<(&'static str, Method, CacheState)>,
    said: &'static str,
}

fn ways(target: &Target) -> Ways {
    if iowhy_path::facts::is_scsi_generic(&target.facts) {
        return Ways {
            arms: vec![
                ("to-user", Method::Sg, CacheState::None),
                ("to-kernel", Method::SgNoCopy, CacheState::None),
            ],
            said: "measured: READ BUFFER, as in the post.",
        };
    }
    if target.facts.memory_backed || target.facts.direct_supported == Some(false) {
        return Ways {
            arms: vec![("copy", Method::Pread, CacheState::Warm)],
            said: "measured: no device and no O_DIRECT here: only the copy is measured, by cached reads.",
        };
    }
    Ways {
        arms: vec![
            ("to-user", Method::Pread, CacheState::Cold),
            ("to-kernel", Method::Direct, CacheState::Direct),
            ("copy", Method::Pread, CacheState::Warm),
        ],
        said: "measured: there is no /dev/sg device in this run. `to user` is a cold buffered read, which the kernel reads ahead \
               of; `to kernel` a direct read, which has no copy; `copy` a cached read, which is nothing but call and copy.",
    }
}

/// Runs it.
///
/// # Errors
/// What resolving the target says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    let target = lab.target(REGION_BYTES)?;
    let ways = ways(&target);
    let generic = iowhy_path::facts::is_scsi_generic(&target.facts);
    let region =
        if generic { REGION_BYTES } else { target.facts.size_bytes.min(lab.size.unwrap_or(REGION_BYTES)) };
    let alignment = target.facts.direct_alignment_bytes.unwrap_or(512).max(1);
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for (id, method, state) in &ways.arms {
        for kib in BUFFERS_KIB {
            let bytes = kib << 10;
            let aligned = *state != CacheState::Direct || bytes.is_multiple_of(alignment);
            if bytes <= region && aligned {
                cells.push(cell(key(id, kib), reads(*method, *state, bytes, region), &target));
            }
        }
    }
    if cells.is_empty() {
        return Err(Problem::refused(format!(
            "`{}` is smaller than the smallest buffer, 4 KiB",
            target.facts.name
        ))
        .hint("name a larger file, or a directory"));
    }
    let outcome = lab.measure(&mut cells);
    let mut record = lab.report(&[&target], &cells, &outcome);
    let then = Fits::published(experiment, lab.seed);
    fill_tables(&mut record, experiment, &then);
    record.say(ways.said);
    let now = Fits::here(&record, lab.seed);
    fill_fits(&mut record, experiment, &then, &now);
    conclude(&mut record, lab.rate, &then, &now);
    if !generic {
        record.not_done.push(
            "READ BUFFER on this machine: name a device, `sudo iowhy classic linux-sg-1999 /dev/sg0`"
                .to_owned(),
        );
    }
    Ok(record)
}

fn key(column: &str, kib: u64) -> String {
    format!("{column}-{kib}k")
}

/// Overhead, rate and copy of one machine.
struct Fits {
    to_kernel: Option<Transfer>,
    copy: Option<Estimate>,
}

impl Fits {
    fn published(experiment: &Experiment, seed: u64) -> Fits {
        let Some((table, total)) = experiment.table("read-buffer").zip(experiment.fact("total")) else {
            return Fits { to_kernel: None, copy: None };
        };
        let commands: Vec<(f64, f64)> = table
            .pairs("buffer", "to-kernel")
            .iter()
            .map(|(bytes, time)| (*bytes, time * bytes / total))
            .collect();
        let times =
            |column: &str| -> Vec<f64> { table.pairs("buffer", column).iter().map(|p| p.1).collect() };
        Fits {
            to_kernel: Transfer::fit(&commands, seed),
            copy: transfer::copy_rate(total, &times("to-user"), &times("to-kernel"), seed),
        }
    }

    fn here(record: &Report, seed: u64) -> Fits {
        let points_of = |column: &str, of: fn(&MeasuredCell) -> Option<Estimate>| -> Vec<(f64, f64)> {
            let each =
                |kib: u64| Some(((kib << 10) as f64, record.figure(&key(column, kib), of).ok()?.value));
            BUFFERS_KIB.into_iter().filter_map(each).collect()
        };
        let points = |column: &str| points_of(column, |cell| cell.summary.time_per_request);
        // The copy is the CPU's work, and a busy machine does not lengthen its CPU time.
        let copy = match Transfer::fit(&points_of("copy", |cell| cell.summary.cpu_per_request), seed) {
            Some(cached) => cached.rate(),
            // With /dev/sg the copy is the difference, as in the post.
            None => {
                let (user, kernel) = (points("to-user"), points("to-kernel"));
                let whole = |points: &[(f64, f64)]| -> Vec<f64> {
                    points.iter().map(|(bytes, time)| time * POSTED_BYTES as f64 / bytes).collect()
                };
                let alike = user.len() == kernel.len();
                alike
                    .then(|| transfer::copy_rate(POSTED_BYTES as f64, &whole(&user), &whole(&kernel), seed))
                    .flatten()
            }
        };
        Fits { to_kernel: Transfer::fit(&points("to-kernel"), seed), copy }
    }
}

fn fill_tables(record: &mut Report, experiment: &Experiment, then: &Fits) {
    let Some(table) = experiment.table("read-buffer") else { return };
    let total = experiment.fact("total").unwrap_or(POSTED_BYTES as f64);
    let copy_time = then.copy.as_ref().map(|copy| total / copy.value * 1e9);
    for (column, title) in [
        ("to-user", "To user space: time for 200 MiB, by buffer"),
        ("to-kernel", "To the kernel only, without the last copy: time for 200 MiB, by buffer"),
        ("copy", "The last copy alone: difference of the two then, cached reads now"),
    ] {
        record.section(column, title, "buffer");
        for (index, kib) in BUFFERS_KIB.into_iter().enumerate() {
            let of = |name: &str| table.figure(index, name);
            let commands = total / (kib << 10) as f64;
            let kernel = then.to_kernel.as_ref().map(|fit| commands * fit.predict((kib << 10) as f64));
            let (published, model) = match column {
                "to-user" => (of("to-user"), kernel.zip(copy_time).map(|(kernel, copy)| kernel + copy)),
                "to-kernel" => (of("to-kernel"), kernel),
                _ => (of("to-user").zip(of("to-kernel")).map(|(user, kernel)| user - kernel), copy_time),
            };
            let label = Bytes(kib << 10).to_string();
            let mut row = Row::new(column, label, "time to read 200 MiB", Unit::Nanoseconds)
                .key("block_bytes", kib << 10)
                .then(published)
                .model(model);
            row = with_now(row, record.time_for(&key(column, kib), POSTED_BYTES));
            if let (Some(_), Some(share)) = (&row.measured, record.cpu_share(&key(column, kib))) {
                row = row.remark(format!("CPU {:.0} %", share * 100.0));
            }
            record.row(row);
        }
        if column == "to-user" {
            record.say("model: two numbers, command overhead and bus rate, fitted on the table without the copy; and a copy rate.");
        }
    }
}

fn fill_fits(record: &mut Report, experiment: &Experiment, then: &Fits, now: &Fits) {
    record.section("fit", "The numbers that explain the table", "number");
    let interval =
        |e: Option<&Estimate>| e.map_or_else(String::new, |e| format!("model {}", units::interval(e)));
    let command = then.to_kernel.as_ref().map(|fit| fit.command);
    let bus = then.to_kernel.as_ref().and_then(Transfer::rate);
    for (id, label, unit, fact, model, measured) in [
        (
            "command-overhead",
            "a command",
            Unit::Nanoseconds,
            "command-overhead",
            command,
            now.to_kernel.as_ref().map(|fit| fit.command).filter(|e| e.value > 0.0),
        ),
        (
            "bus-rate",
            "the bus",
            Unit::BytesPerSecond,
            "bus-rate",
            bus,
            now.to_kernel.as_ref().and_then(Transfer::rate),
        ),
        ("copy-rate", "the copy", Unit::BytesPerSecond, "copy-rate", then.copy, now.copy),
    ] {
        let mut row = Row::new("fit", label, id, unit)
            .key("number", id)
            .key("model_low", model.map(|e| e.low))
            .key("model_high", model.map(|e| e.high))
            .then(experiment.fact(fact))
            .model(model.map(|e| e.value));
        row = match measured {
            Some(e) => row.now(Some(e)).changed(),
            None => row.remark("not measured here"),
        };
        record.row(row.remark(interval(model.as_ref())));
    }
    record.say("published: the post's own round figures; model: fitted on its table, with the interval of resampled rows; measured: the same fit here, the copy by \
         its CPU time.");
}

fn conclude(record: &mut Report, rate: f64, then: &Fits, now: &Fits) {
    let asked = units::rate_bytes(rate);
    let answer = |copy: &Estimate, when: &str| {
        let (share, need) = transfer::need(rate, copy.value)?;
        let percent = share * 100.0;
        Some(match need {
            Need::Yes => format!(
                "{when} one CPU copied {}, so {asked} would have needed {percent:.0} % of it: direct I/O is needed.",
                units::rate_bytes(copy.value)
            ),
            Need::Costly => format!(
                "{when} one CPU copies {}: {asked} costs {percent:.0} % of it, so direct I/O is not needed, but frees that.",
                units::rate_bytes(copy.value)
            ),
            Need::No => format!(
                "{when} one CPU copies {}: {asked} costs {percent:.1} % of it. No, direct I/O is not needed for that.",
                units::rate_bytes(copy.value)
            ),
        })
    };
    let question = format!("Do you need direct I/O for {asked}?");
    let told: Vec<String> = [(&then.copy, "Then"), (&now.copy, "Here")]
        .into_iter()
        .filter_map(|(copy, when)| answer(copy.as_ref()?, when))
        .collect();
    record.verdicts.push(format!("{question} {}", told.join(" ")));
    if now.copy.is_none() {
        record.verdicts.push(
            "Here the copy could not be told from the rest, so there is no answer for this machine."
                .to_owned(),
        );
    }
}
