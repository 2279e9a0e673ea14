//! The file read with the read-ahead of the disk's queue off and on, alternating by round. The setting holds for every
//! program; it is put back whatever happens.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::units::{self, Bytes};
use iowhy_core::workload::{CacheState, Method};
use iowhy_probe::campaign::{self, Cell, Effort};
use iowhy_probe::interrupt;
use iowhy_probe::setting::ChangedSetting;
use iowhy_probe::target::Target;

use super::costs::{BLOCKS, POSTED_BYTES};
use crate::lab::{Lab, cell, reads};
use crate::report::{MeasuredCell, Report, Row};
use iowhy_path::reconcile::Verdict;

/// Rounds: the fewest that give an interval by resampling.
const ROUNDS: usize = 5;

/// Times for 2 MiB by block size: off, and on.
type Times = Vec<[Vec<f64>; 2]>;

/// Measures and fills the rows, or says why not.
pub(super) fn fill(lab: &Lab<'_>, record: &mut Report, target: &Target, region: u64) {
    record.section(
        "queue",
        "The same with the read-ahead of the disk's queue off and on (time to read 2 MiB)",
        "block",
    );
    match measure(lab, target, region) {
        Ok((times, was_kib)) => rows(lab, record, &times, was_kib),
        Err(problem) => {
            let fix = problem.hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            record.say(format!("not measured: {}{fix}", problem.message));
        }
    }
}

fn measure(lab: &Lab<'_>, target: &Target, region: u64) -> Result<(Times, u64), Problem> {
    let [device] = target.counted_devices() else {
        return Err(Problem::refused("there is not exactly one disk under the target"));
    };
    if target.facts.memory_backed || target.script().is_some() {
        return Err(Problem::refused("the target has no disk"));
    }
    let cells: Vec<Cell<'_>> = BLOCKS
        .iter()
        .map(|block| {
            let read = reads(Method::Pread, CacheState::Cold, *block, region);
            let mut cell = cell(format!("queue-{block}"), read, target);
            cell.bounds.wall = lab.time.mul_f64(0.5) / (2 * ROUNDS * BLOCKS.len()) as u32;
            cell
        })
        .collect();
    let held = ChangedSetting::read_ahead(device)?;
    let was_kib: u64 = held.old_value().parse().unwrap_or(0);
    let mut times: Times = vec![Default::default(); BLOCKS.len()];
    for round in 0..ROUNDS {
        for (column, kib) in [0, was_kib].into_iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            lab.world.at(round as f64 / ROUNDS as f64, lab.time / 2, "read-ahead of the queue off and on");
            held.set(&kib.to_string())?;
            let seed = lab.seed.wrapping_add(round as u64);
            let effort = Effort { min_rounds: 1, max_rounds: 1, time: lab.time, precision: 0.0, seed };
            let outcome = campaign::run(&cells, effort, &mut |_| {});
            for (block, runs) in outcome.cells.iter().enumerate() {
                let Some(run) = runs.first() else { continue };
                let seen = MeasuredCell::new(run, target, Some(kib * 1024), seed);
                if run.failure.is_none() && seen.verdict != Verdict::Mislabelled {
                    times[block][column].extend(run.samples.iter().filter(|s| s.requests > 0).map(|s| {
                        s.thread_ns as f64 / s.requests as f64 * (POSTED_BYTES / BLOCKS[block]) as f64
                    }));
                }
            }
        }
    }
    Ok((times, was_kib))
}

fn rows(lab: &Lab<'_>, record: &mut Report, times: &Times, was_kib: u64) {
    for (block, [off, on]) in BLOCKS.iter().zip(times) {
        let median = |values: &[f64]| stats::bootstrap_median(values, lab.seed, Unit::Nanoseconds);
        let row = Row::new(
            "queue",
            Bytes(*block).to_string(),
            "time to read 2 MiB, read-ahead on",
            Unit::Nanoseconds,
        )
        .key("block_bytes", *block);
        record.row(match (median(off), median(on)) {
            (Some(off), Some(on)) => {
                let words = format!("was {} without: {:.1} x", units::estimate(&off), off.value / on.value);
                with_off(row, &off).now(Some(on)).remark(words)
            }
            _ => row.remark("too few rounds that were cold"),
        });
    }
    record.say(format!(
        "measured: with the queue's own {}, against 0, in turn, {ROUNDS} rounds; it is put back.",
        Bytes(was_kib * 1024)
    ));
}

fn with_off(row: Row, off: &Estimate) -> Row {
    row.key("off_ns", off.value).key("off_low_ns", off.low).key("off_high_ns", off.high)
}
