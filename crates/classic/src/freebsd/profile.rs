//! A kernel profile of the cached reads of this machine, flat and around the function that reads from the page cache, as the
//! post prints one of its own: self and total per read. Needs kernel stacks.

use crate::freebsd::functions::{self, Function};
use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::profile::{Profile, SampledShare, Thread};
use iowhy_core::units;
use iowhy_probe::campaign::Cell;
use iowhy_probe::interrupt;

use crate::lab::Lab;
use crate::report::{Grid, Report, Row};

/// Functions of a profile that are shown.
const SHOWN: usize = 8;
/// With fewer samples nothing is said.
const MIN_SAMPLES: u64 = 30;
/// The function of Linux that takes the place of `getblk`: it finds pages and copies them out.
const CENTRE: &str = "filemap_read";

/// Profiles the cells of these keys, with the words for each.
pub(super) fn fill(lab: &Lab<'_>, record: &mut Report, cells: &[Cell<'_>], keys: &[(String, String)]) {
    record.section("profile", "Kernel profile of these reads here, from the CPU clock's samples", "function");
    // Nothing real happens in virtual time.
    let real = |cell: &&Cell<'_>| cell.arms.iter().all(|(_, target)| target.script().is_none());
    if let Some(why) = lab.world.no_stacks() {
        record.say(format!("not permitted: {why}"));
        return;
    }
    let mut grid = Grid {
        header: ["self", "self per read", "total per read"].map(str::to_owned).to_vec(),
        lines: Vec::new(),
    };
    for (key, words) in keys {
        let Some(cell) = cells.iter().find(|cell| cell.key == *key).filter(real) else { continue };
        if interrupt::requested() {
            break;
        }
        lab.world.at(1.0, std::time::Duration::from_millis(500), &format!("kernel profile: {words}"));
        match lab.world.profile(cell, lab.seed) {
            Ok(Some((run, profile))) => one(record, &mut grid, words, &run, &profile),
            Ok(None) => record.say(format!("{words}: the profiled reads failed")),
            Err(why) => record.say(format!("{words}: {why}")),
        }
    }
    if grid.lines.is_empty() {
        record.say("not measured here.");
    } else {
        record.grid(grid);
        record.say(
            "self: where the clock hit; total: with what it called. Samples do not count calls, so costs are per read; `user` is the program's own part. Intervals by Wilson's formula are in the record.",
        );
    }
}

/// The calling thread prepares and waits; the threads that it starts measure.
fn measuring() -> impl Fn(&Thread) -> bool {
    let this = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    move |thread: &Thread| thread.tid != this
}

fn one(record: &mut Report, grid: &mut Grid, words: &str, run: &CellRun, profile: &Profile) {
    let measuring = measuring();
    let functions = functions::flat(profile, &measuring);
    let n = functions.first().map_or(0, |function| function.own.n);
    let (cpu_ns, requests) = run.samples.iter().fold((0u64, 0u64), |(cpu, requests), s| {
        (cpu.saturating_add(s.cpu_ns), requests.saturating_add(s.requests))
    });
    if n < MIN_SAMPLES || requests == 0 {
        record.say(format!("{words}: only {n} samples hit the reads."));
        return;
    }
    let read_ns = cpu_ns as f64 / requests as f64;
    for (index, function) in functions.iter().filter(|function| function.own.hits > 0).take(SHOWN).enumerate()
    {
        let (Some(own), Some(total)) = (cost(function.own, read_ns), cost(function.total, read_ns)) else {
            continue;
        };
        if index == 0 {
            let nothing = || String::new();
            grid.lines.push(vec![format!("{words}, {n} samples"), nothing(), nothing(), nothing()]);
        }
        grid.lines.push(vec![
            format!("  {}", function.name),
            format!("{:.1} %", function.own.value().unwrap_or(0.0) * 100.0),
            units::estimate_narrow(&own),
            units::time(total.value),
        ]);
        record.row(row(words, function, &own, &total));
    }
    let near = functions::around(profile, &measuring, CENTRE);
    if !near.callees.is_empty() {
        let list = |found: &[(String, SampledShare)]| {
            let words: Vec<String> = found
                .iter()
                .take(4)
                .map(|(name, share)| format!("{name} {:.0} %", share.value().unwrap_or(0.0) * 100.0))
                .collect();
            words.join(", ")
        };
        record.say(format!(
            "{words}, call graph around {CENTRE}: called by {}; calls {}.",
            list(&near.callers),
            list(&near.callees)
        ));
    }
}

fn row(words: &str, function: &Function, own: &Estimate, total: &Estimate) -> Row {
    Row::new("profile", function.name.clone(), "CPU time of the function itself, per read", Unit::Nanoseconds)
        .key("run", words)
        .key("function", function.name.clone())
        .key("total_ns", total.value)
        .key("total_low_ns", total.low)
        .key("total_high_ns", total.high)
        .now(Some(*own))
}

/// A share of the samples as time of a read.
fn cost(share: SampledShare, read_ns: f64) -> Option<Estimate> {
    let (value, (low, high)) = (share.value()?, share.interval()?);
    Some(Estimate {
        value: value * read_ns,
        low: low.min(value) * read_ns,
        high: high.max(value) * read_ns,
        unit: Unit::Nanoseconds,
        n: share.n,
    })
}
