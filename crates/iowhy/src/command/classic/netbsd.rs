//! `netbsd-1999`: the published table beside two simulated ones: with the cylinder groups that newfs makes by itself, and
//! with a size of groups that gives the published pattern. Which of them reproduces what is said, not tuned away.
//!
//! Nothing is measured here: the tree of small files and the stripes are not built, and the screen says so.

use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_core::units;
use iowhy_explain::classic::published::{Experiment, Table};
use iowhy_probe::campaign::Outcome;
use iowhy_probe::interrupt;
use iowhy_sim::machine::Machine;
use iowhy_sim::workload::Workload as Simulated;

use super::lab::Lab;
use crate::record::classic::{ClassicRecord, RowRecord};

/// Sectors of the cylinder groups: what newfs makes of the fake geometry of ccd, and one that a label with the geometry of
/// a real disk may give: a multiple of 3 x 128, but not of 3 x 2048.
const GROUPS: [(&str, u64, &str); 2] = [
    ("interleave", 32_768, "groups of 16 MiB, as newfs makes them"),
    ("other-groups", 19_968, "groups of 19968 sectors, a hypothesis"),
];
/// Groups of the row that says so: 4 cylinders of 2048 sectors.
const SMALL_GROUP: u64 = 8192;
/// The interleave that the others are held against.
const REFERENCE: f64 = 2048.0;

/// Runs it: nothing is measured.
///
/// # Errors
/// What the simulator says of its own machine.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<ClassicRecord, Problem> {
    let nothing = Outcome { cells: Vec::new(), rounds: 0, interrupted: false };
    let mut record = lab.record(experiment, &[], &[], &nothing);
    let Some(table) = experiment.table("interleave") else { return Ok(record) };
    for (number, (id, group, words)) in GROUPS.iter().enumerate() {
        let times = simulate(lab, table, *group, number)?;
        fill(&mut record, table, id, words, &times);
        judge(&mut record, table, words, &times);
    }
    record.say(
        "model: three simulated ST32171W behind one bus, 30 readers of 1000 files of 1.2 million, 8 MiB of cache. The disks \
         of the post are not named and its cache is not known, so times are of another size; the shares are to be compared.",
    );
    record.say("now: not measured.");
    record.interrupted = interrupt::requested();
    record.not_done.push(
        "for real: the news tree, its 30 readers, and stripes at each interleave; block sizes 4k and 8k, the untar test, \
         long reads and large writes"
            .to_owned(),
    );
    Ok(record)
}

/// Interleave of a row in sectors.
fn sectors(table: &Table, row: usize) -> Option<f64> {
    table.figure(row, "interleave").map(|bytes| bytes / 512.0)
}

/// Simulated times by row, ns.
fn simulate(lab: &Lab<'_>, table: &Table, group: u64, number: usize) -> Result<Vec<Option<f64>>, Problem> {
    let mut times: Vec<Option<f64>> = Vec::new();
    for row in 0..table.rows.len() {
        let share = (number * table.rows.len() + row) as f64 / (GROUPS.len() * table.rows.len()) as f64;
        lab.progress.at(share, std::time::Duration::ZERO, "simulating three disks");
        let Some((interleave, mut machine)) = sectors(table, row).zip(Machine::shipped("netbsd-1999")) else {
            times.push(None);
            continue;
        };
        if interrupt::requested() {
            times.push(None);
            continue;
        }
        // Two rows of one interleave are two runs of one arrangement.
        if row > 0 && sectors(table, row - 1) == Some(interleave) {
            times.push(times.last().copied().flatten());
            continue;
        }
        let small = table.text(row, "notes").is_some_and(|note| note.contains("4 cyls"));
        machine.volume.interleave = interleave as u64;
        machine.layout.group_sectors = if small { SMALL_GROUP } else { group };
        let load = Simulated::parse("news-1999")?.load(lab.seed);
        times.push(Some(iowhy_sim::run(&machine, load, lab.seed)?.time_ns as f64));
    }
    Ok(times)
}

/// A time over that of the reference interleave.
fn share(table: &Table, times: &[Option<f64>], row: usize) -> Option<f64> {
    let reference = (0..times.len()).find(|&row| sectors(table, row) == Some(REFERENCE))?;
    Some(times.get(row).copied().flatten()? / times.get(reference).copied().flatten()?)
}

fn published(table: &Table) -> Vec<Option<f64>> {
    (0..table.rows.len()).map(|row| table.figure(row, "time")).collect()
}

fn fill(record: &mut ClassicRecord, table: &Table, id: &str, words: &str, times: &[Option<f64>]) {
    record.section(id, format!("{}, over that of 2048; model: {words}", table.title), "interleave");
    let posted = published(table);
    for row in 0..table.rows.len() {
        let label = sectors(table, row).map_or_else(String::new, |s| format!("{s:.0}"));
        let mut remarks = Vec::new();
        if let Some(ns) = posted[row] {
            remarks.push(units::time(ns));
        }
        if let Some(ns) = times[row] {
            remarks.push(format!("model {}", units::time(ns)));
        }
        remarks.extend(table.text(row, "notes").filter(|note| !note.is_empty()).map(str::to_owned));
        record.row(
            RowRecord::new(id, label, "time over that of interleave 2048", Unit::Ratio)
                .key("interleave_sectors", sectors(table, row))
                .key("published_ns", posted[row])
                .key("model_ns", times[row])
                .then(share(table, &posted, row))
                .model(share(table, times, row))
                .remark(remarks.join("; ")),
        );
    }
}

/// A difference of less than this is not told from the choice of lists.
const NOTABLE: f64 = 0.05;

fn judge(record: &mut ClassicRecord, table: &Table, words: &str, times: &[Option<f64>]) {
    let at = |times: &[Option<f64>], interleave: f64| {
        (0..times.len()).find(|&row| sectors(table, row) == Some(interleave)).and_then(|row| times[row])
    };
    let posted = published(table);
    let ratio = |times: &[Option<f64>]| Some(at(times, 126.0)? / at(times, 128.0)?);
    let Some((then, model)) = ratio(&posted).zip(ratio(times)) else { return };
    let odd = match () {
        () if model < 1.0 - 2.0 * NOTABLE => "explained in direction",
        () if model < 1.0 - NOTABLE => "hinted at, not explained",
        () => "not explained",
    };
    let slowest = times.iter().flatten().copied().fold(0.0, f64::max);
    let eight = match at(times, 8.0) {
        Some(time) if time >= slowest => "8 is the slowest, as in the post",
        _ => "8 is not the slowest, unlike in the post",
    };
    record.verdicts.push(format!(
        "With {words}: 126 takes {model:.2} of the time of 128, in the post {then:.2}: {odd}; {eight}."
    ));
}
