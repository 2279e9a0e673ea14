//! Long reads and large writes for real, one request at a time, on the same stripes: what a big interleave must lose, for only
//! one member works at a time. Writes go to scratch files only.

use std::time::Duration;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;
use iowhy_core::summary;
use iowhy_core::units;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use iowhy_probe::campaign::{Cell, Outcome};
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::Target;

use super::members::Members;
use super::model::{LongRate, Point, REFERENCE};
use crate::lab::Lab;
use crate::report::{Report, Row};

/// One request: twice the 126 sectors that the post's disks call a track, and more; a quarter of a turn at 2048.
const PIECE: u64 = 256 << 10;
/// The file.
const FILE_BYTES: u64 = 64 << 20;
/// Share of the time of the experiment.
const SHARE: u32 = 4;
/// A throttle of a control group lets a tenth of a second's worth through at once: slices must be long against that.
const THROTTLED_SLICE: Duration = Duration::from_millis(400);
/// Ratios that differ by less count as equal.
const NOTABLE: f64 = 0.05;

/// A load: its id in the model's rows, and words.
const LOADS: [(&str, &str, Direction); 2] =
    [("long-reads", "read", Direction::Read), ("large-writes", "write", Direction::Write)];

fn key(interleave: u64, word: &str) -> String {
    format!("stripe-{interleave}-{word}")
}

/// The row of a load at an interleave, with its ratio to the reference.
fn row(
    (id, word, _): &(&str, &str, Direction),
    interleave: u64,
    outcome: &Outcome,
    rates: &[LongRate],
    seed: u64,
) -> (Row, Option<Estimate>) {
    let run_at = |interleave| {
        let key = key(interleave, word);
        outcome.cells.iter().flatten().find(move |run| run.key == key)
    };
    let model = |wanted: u64| {
        let same = |rate: &&LongRate| rate.load == *id && rate.interleave == wanted;
        rates.iter().find(same).and_then(|rate| rate.bytes_per_second)
    };
    let run = run_at(interleave);
    let ratio = run.zip(run_at(REFERENCE)).and_then(|(a, b)| over(a, b, seed));
    let rate = run.and_then(|run| summary::summarize(run, seed).throughput);
    let row = Row::new(
        "stripe-long",
        format!("{word}, {interleave}"),
        format!("throughput of one {word}r over that at interleave 2048"),
        Unit::Ratio,
    )
    .key("load", *id)
    .key("interleave_sectors", interleave)
    .key("throughput", serde_json::to_value(rate).unwrap_or_default())
    .model(model(interleave).zip(model(REFERENCE)).map(|(a, b)| a / b));
    let words = rate.map_or_else(|| "too few rounds".to_owned(), |rate| units::estimate(&rate));
    match run.and_then(|run| run.failure.as_ref()) {
        Some(failure) => (row.remark(format!("failed: {failure}")), None),
        None if interleave == REFERENCE => (row.remark(format!("the reference: {words}")), None),
        None => (row.now(ratio).remark(words), ratio),
    }
}

/// Measures, and adds rows and sentences.
pub(super) fn measure(
    lab: &Lab<'_>,
    members: &Members,
    stripes: &[(Point, Target)],
    rates: &[LongRate],
    record: &mut Report,
) {
    // The row with groups of its own is about the file system; files of 8 sectors split every request many times over.
    let stripes: Vec<&(Point, Target)> = stripes.iter().filter(|((_, small), _)| !small).collect();
    let targets: Vec<&Target> = stripes.iter().map(|(_, target)| target).collect();
    let (method, state) = members.how(&targets);
    let writable = targets.iter().all(|target| target.writable()) && state == CacheState::Direct;
    let virtual_time = targets.iter().any(|target| target.script().is_some());
    record.section(
        "stripe-long",
        "One large file for real, 256 KiB at a time and one at a time: throughput over that at interleave 2048",
        "load, interleave",
    );
    let directions = |direction: Direction| !direction.writes() || (writable && !virtual_time);
    let loads: Vec<&(&str, &str, Direction)> = LOADS.iter().filter(|load| directions(load.2)).collect();
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for (_, word, direction) in &loads {
        for ((interleave, _), target) in &stripes {
            let workload = load(lab, target, method, state, *direction);
            let bounds = Bounds { wall: Duration::from_millis(10), requests_per_thread: requests(&workload) };
            let arms = vec![(workload, target)];
            cells.push(Cell {
                key: key(*interleave, word),
                arms,
                bounds,
                listed: None,
                group: None,
                request_bytes: None,
            });
        }
    }
    let lab = &Lab { time: lab.time / SHARE, ..*lab };
    let outcome = if members.throttled {
        cells.iter_mut().for_each(|cell| cell.bounds.wall = THROTTLED_SLICE);
        lab.run(&cells)
    } else {
        lab.measure(&mut cells)
    };
    let mut own = lab.report(&[], &cells, &outcome);
    record.cells.append(&mut own.cells);
    record.rounds = record.rounds.max(outcome.rounds);
    let mut found: Vec<(usize, u64, Estimate)> = Vec::new();
    for (number, load) in loads.into_iter().enumerate() {
        for ((interleave, _), _) in &stripes {
            let (row, ratio) = row(load, *interleave, &outcome, rates, lab.seed);
            record.row(row);
            found.extend(ratio.map(|ratio| (number, *interleave, ratio)));
        }
    }
    if virtual_time {
        record.say("writes: not measured, these members are scripted.");
    } else if !writable {
        record.say(match state {
            CacheState::Direct => "writes: not measured, for these members are the user's and are only read.",
            _ => "writes: not measured, for these members allow no direct requests of 1 KiB.",
        });
    }
    record.say(
        "model: one file of 64 MiB on the simulated disks, by 64 KiB and with the read-ahead and the 1 MiB of delayed writes of \
         its file system; here nothing runs ahead.",
    );
    conclude(members, &found, record);
}

fn load(lab: &Lab<'_>, target: &Target, method: Method, state: CacheState, direction: Direction) -> Workload {
    let bytes = target.facts.size_bytes.min(FILE_BYTES) / PIECE * PIECE;
    // Through the cache a reader of one file is read ahead for, as any program is.
    let method = if state == CacheState::Cold { Method::Pread } else { method };
    Workload { direction, seed: lab.seed, ..Workload::reads(method, state, PIECE, bytes) }
}

/// Cold blocks can be asked for once.
fn requests(workload: &Workload) -> u64 {
    if workload.state == CacheState::Cold { workload.blocks().max(1) } else { u64::MAX }
}

/// Throughput over another's, within rounds.
fn over(run: &CellRun, reference: &CellRun, seed: u64) -> Option<Estimate> {
    let rate = |run: &CellRun, round: u32| {
        let sample = run.samples.iter().find(|sample| sample.round == round);
        sample.map_or(f64::NAN, |s| s.claimed_bytes as f64 / s.wall_ns.max(1) as f64)
    };
    let rounds: Vec<u32> = reference.samples.iter().map(|sample| sample.round).collect();
    let of = |run: &CellRun| rounds.iter().map(|round| rate(run, *round)).collect::<Vec<f64>>();
    stats::paired_ratio(&of(run), &of(reference), seed)
}

fn conclude(members: &Members, found: &[(usize, u64, Estimate)], record: &mut Report) {
    for (number, (_, word, _)) in LOADS.iter().enumerate() {
        let rows = || found.iter().filter(|(load, interleave, _)| *load == number && *interleave < REFERENCE);
        let Some((_, interleave, ratio)) = rows().max_by(|a, b| a.2.value.total_cmp(&b.2.value)) else {
            continue;
        };
        let factor = units::factor(ratio);
        let verdict = match () {
            () if ratio.low > 1.0 + NOTABLE => "the big interleave loses, as the post says",
            () if ratio.high < 1.0 - NOTABLE => "the big interleave wins, against the post",
            () if ratio.low >= 1.0 - NOTABLE && ratio.high <= 1.0 + NOTABLE => {
                "no difference of more than 5 %"
            }
            () => "inconclusive",
        };
        let why = match members.one_disk {
            true if ratio.low <= 1.0 + NOTABLE => {
                " (one disk serves all members, so that several at once gain little)"
            }
            _ => "",
        };
        record.verdicts.push(format!(
            "One long {word} at a time on real stripes here: the best of the small interleaves, {interleave}, moves {factor} \
             times what 2048 does: {verdict}{why}."
        ));
    }
}
