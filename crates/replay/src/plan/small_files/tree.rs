//! The baseline of many small files: a scratch tree of their number and size, with the calls on each of them.

use iowhy_core::replay::{Action, OnFile, Op, Plan, PlanTree, State};
use iowhy_core::units::{Bytes, count};

use super::calls_per_file::Life;
use super::directory;
use crate::plan::baseline::Baseline;
use crate::plan::duration::{Bounds, passes, wall_ns};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, own_ns};

/// Bytes of a tree, in all of its files, at most; the rest of the run is scale.
const MAX_BYTES: f64 = (256 << 20) as f64;
/// Fewer files than this are no tree.
const MIN_FILES: f64 = 20.0;
/// Of what was read, the device must have brought this part for the files to have been cold; with less than the other part
/// nothing was.
const COLD: f64 = 0.5;
const LITTLE: f64 = 0.05;
/// A part of the run that is worth a note.
const MUCH: f64 = 0.1;
/// What a file takes at the least, read from a device.
const PAGE: f64 = 4096.0;
/// Threads that handle files.
const MAX_THREADS: usize = 64;

/// The plan.
///
/// # Errors
/// Why there can be none, in words that end a sentence.
pub(crate) fn baseline(facts: &Facts<'_>, bounds: &Bounds) -> Result<Baseline, String> {
    let place = directory::place(facts)?;
    let life = Life::from_facts(facts)?;
    let all = life.files_of_run(facts)?;
    if all < MIN_FILES {
        return Err("fewer than 20 files were opened".to_owned());
    }
    let program_io_ns = program_io_ns(facts, &life);
    if program_io_ns <= 0.0 {
        return Err("no time in calls on files was recorded".to_owned());
    }
    let own = own_ns(facts) * life.part_of_calls;
    let each_ns = (program_io_ns + own) / all;
    let (reads, makes) = (life.does(OnFile::Open), life.does(OnFile::Make));
    let copies = if reads && makes { 2.0 } else { 1.0 };
    let room = copies * (life.bytes as f64 / PAGE).ceil() * PAGE + PAGE / 8.0;
    let files = all.min(bounds.files).min(MAX_BYTES / room).min(bounds.max_arm_ns / each_ns).floor().max(1.0);
    let (state, from_device) = state(facts, &life, all);
    // What was made or fetched once is not there to be made or fetched again.
    let again = if makes || state == State::Cold { 1.0 } else { all / files };
    let passes = passes((each_ns * files).max(1.0), again, bounds);
    let scale = all / (files * f64::from(passes));
    let folders = (files * life.folders_each).ceil().clamp(1.0, files);
    let threads = threads(facts).min(files as usize).max(1);
    let tree = PlanTree {
        parent: place.parent,
        file_system: Some(place.file_system),
        files: files as u64,
        folders: folders as u64,
        bytes: life.bytes,
        state,
        statx: life.statx,
        life: life.touches.clone(),
    };
    let notes = notes(facts, &life, &tree, from_device);
    let plan = Plan {
        threads: shared_out(tree.files, threads, own / all),
        tree: Some(tree),
        passes,
        depth: 1,
        ..Plan::default()
    };
    Ok(Baseline {
        plan,
        scale,
        program_io_ns,
        recorded: None,
        recording: None,
        touching_ns: 0.0,
        goes_along_ns: wall_ns(facts, &[Operation::Names]) * life.part_of_new_folders,
        notes,
    })
}

/// What the tree replaces, and what differs. `from_device`: part of what was read that the device brought.
fn notes(facts: &Facts<'_>, life: &Life, tree: &PlanTree, from_device: f64) -> Vec<String> {
    let (reads, makes) = (life.does(OnFile::Open), life.does(OnFile::Make));
    let mut notes = vec![format!(
        "a scratch tree in `{}` replaces the program's files: {} files of {} ({}), removed afterwards; each open is \
         taken to be of another file",
        tree.parent,
        count(tree.files),
        Bytes(tree.bytes),
        folders_in_words(tree.folders)
    )];
    if reads && makes {
        notes.push(
            "files that are read and files that are created share a directory in the replay".to_owned(),
        );
    }
    match tree.state {
        State::Cold => notes.push(
            "file data is cold, names and inodes are not: only root can drop those caches, and only for the whole \
             machine"
                .to_owned(),
        ),
        State::Warm if from_device > LITTLE => notes.push(format!(
            "{:.0} % of the bytes came from the device; the replay starts with cached files",
            100.0 * from_device.min(1.0)
        )),
        State::Warm => {}
    }
    notes.extend(life.left_out.clone());
    if makes && much_in(facts, "recently_deleted") {
        notes.push(
            "much of the run was ext4 without a journal skipping recently freed inodes: a replay seldom meets as many"
                .to_owned(),
        );
    }
    notes
}

/// Whether much of the run was in this function of the kernel.
fn much_in(facts: &Facts<'_>, function: &str) -> bool {
    let profile = facts.profile;
    let there = |s: &&iowhy_core::profile::StackTime| profile.kernel_names(s).any(|name| name == function);
    let wall: f64 = profile.stacks.iter().filter(there).map(|s| s.wall_ns).sum();
    wall > MUCH * facts.account.wall_ns
}

fn folders_in_words(folders: u64) -> String {
    match folders {
        1 => "1 folder".to_owned(),
        n => format!("{} folders", count(n)),
    }
}

/// Each thread handles a part of the files.
fn shared_out(files: u64, threads: usize, think_ns: f64) -> Vec<Vec<Action>> {
    let threads = threads as u64;
    let begin = |thread: u64| files * thread / threads;
    let part = |thread: u64| {
        let (from, to) = (begin(thread), begin(thread + 1));
        let count = u32::try_from(to - from).unwrap_or(u32::MAX);
        vec![Action { count, stride: 1, ..Action::one(Op::SmallFile, 0, from, 0, think_ns) }]
    };
    (0..threads).map(part).collect()
}

/// Threads that were seen to open files.
fn threads(facts: &Facts<'_>) -> usize {
    let opens = |s: &&iowhy_core::profile::Step| s.kind == iowhy_core::profile::StepKind::Open;
    let steps = facts.profile.pattern.stretches.iter().flat_map(|s| &s.steps);
    let mut threads: Vec<u32> = steps.filter(opens).map(|s| s.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    threads.len().clamp(1, MAX_THREADS)
}

/// Wall time of the program in what is done with each file.
fn program_io_ns(facts: &Facts<'_>, life: &Life) -> f64 {
    let wall = |operation| wall_ns(facts, &[operation]);
    [Operation::Open, Operation::Close, Operation::Stat].into_iter().map(wall).sum::<f64>()
        + wall(Operation::Read) * life.part_of_reads
        + wall(Operation::Write) * life.part_of_writes
        + wall(Operation::Names) * life.part_of_names
        + wall(Operation::Descriptor) * life.part_of_descriptor
        + facts.entering_wall_ns() * life.part_of_calls
}

/// Whether the files were cold, and the part of what was read that came from the device.
fn state(facts: &Facts<'_>, life: &Life, files: f64) -> (State, f64) {
    if !life.does(OnFile::Open) {
        return (State::Warm, 0.0);
    }
    let fetched = facts.profile.io.device_read_bytes.unwrap_or(0) as f64;
    let read = files * (life.bytes as f64).max(PAGE);
    let part = if read > 0.0 { fetched / read } else { 0.0 };
    (if part > COLD { State::Cold } else { State::Warm }, part)
}
