//! `netbsd-1999`: the published table beside two simulated ones: with the cylinder groups that newfs makes by itself, and
//! with another size of groups. Which of them reproduces what is said, not tuned away. For real: the news tree and its
//! readers in one directory of PATH, without a stripe.

use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_explain::classic::published::{Experiment, Table};
use iowhy_probe::campaign::Outcome;
use iowhy_probe::interrupt;
use iowhy_probe::tree::{Pass, Shape, Tree};
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

/// Files by default: a tree that is made and removed in seconds.
const DEFAULT_FILES: u64 = 12_000;
/// Files that the post made.
const MOST_FILES: u64 = 1_200_000;
/// Passes at least and at most.
const PASSES: (usize, usize) = (3, 7);

/// Runs it.
///
/// # Errors
/// What the simulator says of its own machine; what making and reading the tree says.
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
    here(lab, experiment, &mut record)?;
    record.interrupted = interrupt::requested();
    record.not_done.push(
        "real stripes at each interleave: the tree lies in one directory; block sizes 4k and 8k, the untar test, long \
         reads and large writes"
            .to_owned(),
    );
    Ok(record)
}

/// The news tree of the post in a directory, its readers, cold.
fn here(lab: &Lab<'_>, experiment: &Experiment, record: &mut ClassicRecord) -> Result<(), Problem> {
    record.section("here", "The news tree here, in one directory without a stripe", "figure");
    let place = Path::new(lab.spec);
    if !place.is_dir() {
        record.say(format!("now: not measured: `{}` is no directory, and the tree needs one.", lab.spec));
        return Ok(());
    }
    let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
    let shape = Shape {
        files: lab.files.unwrap_or(DEFAULT_FILES),
        directories: fact("directories").max(1),
        sizes: ["size-small", "size-middle", "size-large"].into_iter().map(fact).collect(),
    };
    let readers = fact("readers").max(1);
    if !(readers..=MOST_FILES).contains(&shape.files) {
        return Err(Problem::refused(format!(
            "`--files {}` is not from {readers} to {MOST_FILES}",
            shape.files
        ))
        .hint("for example `--files 12000`"));
    }
    let each = fact("files-each").min(shape.files / readers).max(1);
    let lists = lists(shape.files, readers, each, lab.seed);
    let begun = Instant::now();
    let files = shape.files;
    let tree = Tree::make(place, lab.keep, shape, &mut |done, all| {
        let share = done as f64 / all.max(1) as f64;
        let spent = begun.elapsed().as_secs_f64();
        let left = if share > 0.0 { spent / share - spent } else { 0.0 };
        lab.progress.at(share, Duration::from_secs_f64(left.max(0.0)), "making the tree of small files");
    })?;
    let making = begun.elapsed();
    let begun = Instant::now();
    let mut passes: Vec<Pass> = Vec::new();
    while passes.len() < PASSES.1 && (passes.len() < PASSES.0 || begun.elapsed() < lab.budget / 2) {
        let share = passes.len() as f64 / PASSES.1 as f64;
        lab.progress.at(share, Duration::ZERO, "30 readers");
        let pass = tree.read(&lists)?;
        if pass.interrupted {
            break;
        }
        passes.push(pass);
    }
    let made = tree.made();
    drop(tree);
    record.rounds = passes.len() as u32;
    fill_here(lab, record, &passes);
    record.say(format!(
        "{files} files ({made} made now, in {:.1} s) in {} directories, {readers} readers of {each} files each from fixed \
         lists, told for the 30000 files of the post. Their data is cold, as seen before each pass; names and inodes are \
         not, which only root could empty for the whole machine.",
        making.as_secs_f64(),
        fact("directories")
    ));
    Ok(())
}

/// Disjoint lists of files, the same for the same seed.
fn lists(files: u64, readers: u64, each: u64, seed: u64) -> Vec<Vec<u64>> {
    let mut all: Vec<u64> = (0..files).collect();
    Rng::new(seed).shuffle(&mut all);
    all.chunks(each.max(1) as usize).take(readers as usize).map(<[u64]>::to_vec).collect()
}

fn fill_here(lab: &Lab<'_>, record: &mut ClassicRecord, passes: &[Pass]) {
    const POSTED_FILES: f64 = 30_000.0;
    let cold =
        passes.iter().all(|pass| pass.resident_before.is_none_or(|share| share <= StateCheck::TOLERANCE));
    let seen = passes.iter().all(|pass| pass.resident_before.is_some());
    type Of = fn(&Pass) -> f64;
    let per_file: [(&str, &str, f64, Of); 5] = [
        ("last-done", "all readers done", POSTED_FILES, |p| p.last_done_ns as f64 / p.files.max(1) as f64),
        ("first-done", "first reader done", POSTED_FILES, |p| p.first_done_ns as f64 / p.files.max(1) as f64),
        ("open", "open, each", 1.0, |p| p.open_ns as f64 / p.files.max(1) as f64),
        ("read", "read, each", 1.0, |p| p.read_ns as f64 / p.files.max(1) as f64),
        ("close", "close, each", 1.0, |p| p.close_ns as f64 / p.files.max(1) as f64),
    ];
    for (id, label, files, of) in per_file {
        let values: Vec<f64> = passes.iter().map(|pass| of(pass) * files).collect();
        let now = stats::bootstrap_median(&values, lab.seed, Unit::Nanoseconds);
        let row = RowRecord::new("here", label, format!("{label}, time"), Unit::Nanoseconds)
            .key("figure", id)
            .key("cold", cold && seen);
        let row = match now.filter(|_| cold) {
            Some(estimate) => row.now(Some(estimate)),
            None if !cold => row.remark("not cold: the files could not be taken out of the cache"),
            None => row.remark("too few passes"),
        };
        record.row(if seen { row } else { row.remark("cold could not be seen") });
    }
    let values: Vec<f64> =
        passes.iter().map(|p| p.files as f64 * 1e9 / p.last_done_ns.max(1) as f64).collect();
    if let Some(rate) = stats::bootstrap_median(&values, lab.seed, Unit::PerSecond).filter(|_| cold) {
        record.verdicts.push(format!(
            "Here 30 readers together read small cold files at {}; the best of the post, on three disks at interleave \
             2048, at 26.3 /s.",
            units::estimate(&rate)
        ));
    }
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
        lab.progress.at(share, Duration::ZERO, "simulating three disks");
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
    let title = format!("Time over that of interleave 2048 (in blocks of 512 bytes); model: {words}");
    record.section(id, title, "interleave");
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
