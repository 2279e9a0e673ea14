//! What of the test can be done in one directory of this machine: the tree unpacked, its readers cold, a long read and a large
//! write. What may not enter: stripes, and figures of the model.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::published::Experiment;
use iowhy_core::cell::StateCheck;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use iowhy_probe::campaign::{Cell, Outcome};
use iowhy_probe::interrupt;
use iowhy_probe::target::{Needs, Target};
use iowhy_probe::tree::{self, Files, Operation, Order, Pass, Phase, Shape, State, Tree};

use crate::lab::{Lab, cell, reads};
use crate::report::{Report, Row};

/// Files by default: a tree that is made and removed in seconds.
const DEFAULT_FILES: u64 = 12_000;
/// Files that the post made.
const MAX_FILES: u64 = 1_200_000;
/// Passes at least and at most.
const PASSES: (usize, usize) = (3, 7);
/// How often a tree that is not kept is unpacked.
const UNPACKINGS: usize = 3;
/// The large file, and the pieces it is moved in.
const LARGE_BYTES: u64 = 64 << 20;
const PIECE: u64 = 64 << 10;

/// Measures, and begins the record.
///
/// # Errors
/// What making and reading the tree says.
pub(super) fn measure(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    if !Path::new(lab.spec).is_dir() {
        let nothing = Outcome { cells: Vec::new(), rounds: 0, interrupted: false };
        let mut record = lab.report(&[], &[], &nothing);
        record.section("here", "Here", "figure");
        record.say(format!("not measured: `{}` is no directory, and the tree needs one.", lab.spec));
        return Ok(record);
    }
    let shape = shape(lab, experiment)?;
    let mut record = large(lab)?;
    small(lab, experiment, shape, &mut record)?;
    Ok(record)
}

/// The long read and the large write of one file.
fn large(lab: &Lab<'_>) -> Result<Report, Problem> {
    let needs = Needs { scratch_bytes: lab.size.unwrap_or(LARGE_BYTES), write: true, destroy_data: None };
    let target = lab.world.resolve(lab.spec, &needs)?;
    lab.world.spare(&[&target])?;
    let mut cells: Vec<Cell<'_>> = Vec::new();
    if !target.facts.memory_backed {
        cells.push(cell(
            "long-read".to_owned(),
            reads(Method::Pread, CacheState::Cold, PIECE, LARGE_BYTES),
            &target,
        ));
    }
    if target.facts.direct_supported == Some(true) && target.writable() {
        cells.push(cell("large-write".to_owned(), direct_write(&target), &target));
    }
    let outcome = Lab { time: lab.time / 4, ..*lab }.measure(&mut cells);
    let mut record = lab.report(&[&target], &cells, &outcome);
    record.section(
        "here-large",
        "One large file here, in one directory without a stripe, 64 KiB at a time",
        "load",
    );
    for (key, label) in [("long-read", "long read, cold"), ("large-write", "large write, past the cache")] {
        let row = Row::new("here-large", label, "throughput", Unit::BytesPerSecond).key("load", key);
        record.row(match record.figure(key, |cell| cell.summary.throughput) {
            Ok(rate) => row.now(Some(rate)),
            Err(why) => row.remark(why),
        });
    }
    Ok(record)
}

fn direct_write(target: &Target) -> Workload {
    let bytes = target.facts.size_bytes.min(LARGE_BYTES);
    Workload { direction: Direction::Write, ..reads(Method::Direct, CacheState::Direct, PIECE, bytes) }
}

fn shape(lab: &Lab<'_>, experiment: &Experiment) -> Result<Shape, Problem> {
    let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
    let shape = Shape {
        files: lab.files.unwrap_or(DEFAULT_FILES),
        directories: fact("directories").max(1),
        sizes: ["size-small", "size-middle", "size-large"].into_iter().map(fact).collect(),
    };
    let readers = fact("readers").max(1);
    if (readers..=MAX_FILES).contains(&shape.files) {
        return Ok(shape);
    }
    Err(Problem::refused(format!("`--files {}` is not from {readers} to {MAX_FILES}", shape.files))
        .hint("for example `--files 12000`"))
}

/// The news tree, unpacked and read.
fn small(lab: &Lab<'_>, experiment: &Experiment, shape: Shape, record: &mut Report) -> Result<(), Problem> {
    let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
    let (readers, count, directories) = (fact("readers").max(1), shape.files, shape.directories);
    let each = fact("files-each").min(count / readers).max(1);
    record.section("here", "The news tree here, in the same directory", "figure");
    // Under sudo the tree belongs to the caller. Declared first, so that the tree is removed as the same user.
    let _files = lab.world.files_of_the_user()?;
    let Trees { tree, mut files, unpacked } = trees(lab, shape)?;
    let lists = files.lists(readers as usize, Some(each), Order::Random, lab.seed);
    let (passes, resident) = passes(lab, &tree, &mut files, &lists)?;
    let made = tree.made();
    drop(tree);
    record.rounds = record.rounds.max(passes.len() as u32);
    fill_unpacked(lab, record, &unpacked);
    fill_passes(lab, record, &passes, &resident);
    record.say(format!(
        "{count} files{} in {directories} directories. Unpacked by one writer, one directory after the other, and synced; \
         then {readers} readers of {each} files each from fixed lists, told for the 30000 files of the post. Their data is \
         cold, as seen before each pass; names and inodes are not, which only root could empty for the whole machine.",
        if lab.keep.is_some() { format!(" ({made} made now)") } else { String::new() },
    ));
    Ok(())
}

/// A tree with its files, and what unpacking it took.
struct Trees {
    tree: Tree,
    files: Files,
    unpacked: Vec<(Pass, Pass)>,
}

fn trees(lab: &Lab<'_>, shape: Shape) -> Result<Trees, Problem> {
    let (place, all) = (Path::new(lab.spec), shape.files);
    let begun = Instant::now();
    let told = |share: f64, what: &str| {
        let spent = begun.elapsed().as_secs_f64();
        let left = if share > 0.0 { spent / share - spent } else { 0.0 };
        lab.world.at(share, Duration::from_secs_f64(left.max(0.0)), what);
    };
    if lab.keep.is_some() {
        let tree = Tree::make(place, lab.keep, shape, &mut |done, all| {
            told(done as f64 / all.max(1) as f64, "making the tree of small files");
        })?;
        let files = tree.files();
        return Ok(Trees { tree, files, unpacked: Vec::new() });
    }
    let tree = Tree::lay_out(place, None, shape)?;
    let mut files = tree.files();
    let tar = files.lists(1, None, Order::Directory, lab.seed);
    let mut unpacked = Vec::new();
    for round in 0..UNPACKINGS {
        let mut phase = |phase: Phase| {
            tree::run(phase, &mut files, &tar, Some(&tree), &mut |done| {
                let share = (round as f64 + done as f64 / all.max(1) as f64) / UNPACKINGS as f64;
                told(share, "unpacking the tree of small files");
            })
        };
        if round > 0 {
            phase(Phase::Delete)?;
        }
        let (create, sync) = (phase(Phase::Create)?, phase(Phase::Sync)?);
        if interrupt::requested() {
            return Err(Problem::failed("interrupted while the tree was unpacked; it is removed"));
        }
        unpacked.push((create, sync));
    }
    Ok(Trees { tree, files, unpacked })
}

/// Cold passes of the readers, with the share of pages that were in the cache before each.
type Passes = (Vec<Pass>, Vec<Option<f64>>);

fn passes(lab: &Lab<'_>, tree: &Tree, files: &mut Files, lists: &[Vec<u32>]) -> Result<Passes, Problem> {
    let begun = Instant::now();
    let (mut passes, mut resident) = (Vec::new(), Vec::new());
    while passes.len() < PASSES.1 && (passes.len() < PASSES.0 || begun.elapsed() < lab.time / 2) {
        let share = passes.len() as f64 / PASSES.1 as f64;
        let left = begun.elapsed().mul_f64((1.0 - share) / share.max(0.1));
        lab.world.at(share, left, "30 readers");
        let there = tree::set_state(files, lists, State::Cold, &mut |_| {})?;
        let pass = tree::run(Phase::Read, files, lists, Some(tree), &mut |_| {})?;
        if pass.interrupted {
            break;
        }
        passes.push(pass);
        resident.push(there);
    }
    Ok((passes, resident))
}

fn fill_unpacked(lab: &Lab<'_>, record: &mut Report, unpacked: &[(Pass, Pass)]) {
    let rates: Vec<f64> = unpacked
        .iter()
        .map(|(create, sync)| {
            create.files as f64 * 1e9 / (create.last_done_ns + sync.last_done_ns).max(1) as f64
        })
        .collect();
    let row = Row::new("here", "untar: files, durable", "files made and synced", Unit::PerSecond)
        .key("figure", "untar");
    record.row(match stats::bootstrap_median(&rates, lab.seed, Unit::PerSecond) {
        Some(rate) => row.now(Some(rate)),
        None => row.remark("not measured: a kept tree is made once"),
    });
}

fn fill_passes(lab: &Lab<'_>, record: &mut Report, passes: &[Pass], resident: &[Option<f64>]) {
    const POSTED_FILES: f64 = 30_000.0;
    let seen = resident.iter().all(Option::is_some);
    let cold = resident.iter().flatten().all(|share| *share <= StateCheck::TOLERANCE);
    let per_file = |of: fn(&Pass) -> u64, files: f64| -> Option<Estimate> {
        let values: Vec<f64> = passes.iter().map(|p| of(p) as f64 / p.files.max(1) as f64 * files).collect();
        stats::bootstrap_median(&values, lab.seed, Unit::Nanoseconds).filter(|_| cold)
    };
    let figures: [(&str, &str, Option<Estimate>); 5] = [
        ("last-done", "all readers done", per_file(|p| p.last_done_ns, POSTED_FILES)),
        ("first-done", "first reader done", per_file(|p| p.first_done_ns, POSTED_FILES)),
        ("open", "open, each", per_file(|p| p.sum_ns(Operation::Open), 1.0)),
        ("read", "read, each", per_file(|p| p.sum_ns(Operation::Read), 1.0)),
        ("close", "close, each", per_file(|p| p.sum_ns(Operation::Close), 1.0)),
    ];
    for (id, label, now) in figures {
        let row = Row::new("here", label, format!("{label}, time"), Unit::Nanoseconds)
            .key("figure", id)
            .key("cold", cold && seen);
        let row = match now {
            Some(estimate) => row.now(Some(estimate)),
            None if !cold => row.remark("not cold: the files could not be taken out of the cache"),
            None => row.remark("too few passes"),
        };
        record.row(if seen { row } else { row.remark("cold could not be seen") });
    }
    let rates: Vec<f64> =
        passes.iter().map(|p| p.files as f64 * 1e9 / p.last_done_ns.max(1) as f64).collect();
    if let Some(rate) = stats::bootstrap_median(&rates, lab.seed, Unit::PerSecond).filter(|_| cold) {
        record.verdicts.push(format!(
            "Here 30 readers together read small cold files at {}; the best of the post, on three disks at interleave \
             2048, at 26.3 /s.",
            units::estimate(&rate)
        ));
    }
}
