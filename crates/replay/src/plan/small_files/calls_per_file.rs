//! The calls on each small file: recorded counts, in the only order in which they can be made.
//!
//! Recorded stat calls by name and by descriptor look alike: each descriptor is taken to be examined once, as C libraries do.

use std::collections::HashSet;

use iowhy_core::profile::{Access, CallCount, CallCounts, FileUse, PatternFile, Step, StepKind};
use iowhy_core::replay::{OnFile, Touch};

use iowhy_diagnose::findings::{DESCRIPTOR_CALLS, Facts};

use super::super::open_flags::{O_APPEND, O_CREAT};

/// Larger files are not small.
pub(super) const SMALL_BYTES: u64 = 65_536;
/// Fewer opens than this tell nothing of what is done with each file.
const ENOUGH_OPENS: f64 = 20.0;
/// What is done with fewer files than this part of them is left out.
const SELDOM: f64 = 0.05;
/// Counts are rounded within this part: the first and the last files of a run are treated differently.
const EDGE: f64 = 0.1;
/// A file that takes more calls of a kind than this is no small file.
const MAX_CALLS: f64 = 64.0;

const OPEN: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// By descriptor; by name; either.
const EXAMINE_OPEN: [&str; 1] = ["fstat"];
const EXAMINE_NAME: [&str; 7] =
    ["stat", "lstat", "access", "faccessat", "faccessat2", "readlink", "readlinkat"];
const EXAMINE: [&str; 2] = ["newfstatat", "statx"];
const REMOVE: [&str; 2] = ["unlink", "unlinkat"];
const LISTING: [&str; 2] = ["getdents64", "getdents"];
const NEW_FOLDER: [&str; 2] = ["mkdir", "mkdirat"];
const OTHER_NAMES: [&str; 14] = [
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "truncate",
    "ftruncate",
    "utimensat",
    "fchmod",
];

/// What is done with each file, and which part of the program's calls that is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Life {
    pub(super) touches: Vec<Touch>,
    /// Bytes of a file.
    pub(super) bytes: u64,
    /// Folders for each file.
    pub(super) folders_each: f64,
    /// Whether it examines by statx.
    pub(super) statx: bool,
    /// Part of the time in reads, and so on, that is on these files.
    pub(super) part_of_reads: f64,
    pub(super) part_of_writes: f64,
    pub(super) part_of_names: f64,
    /// Part of the time in calls on names that makes folders: no call of the plan, and gone with the files.
    pub(super) part_of_new_folders: f64,
    pub(super) part_of_descriptor: f64,
    /// Part of all system calls.
    pub(super) part_of_calls: f64,
    /// What the program does and the plan does not, in words.
    pub(super) left_out: Option<String>,
    opens_each: f64,
    /// Calls that read or write a file by bytes of the program's memory.
    transfers_each: f64,
    /// Part of the calls, and of the bytes read, that are on these files.
    part_of_transfers: [f64; 2],
    part_of_bytes_read: f64,
}

/// Reads or writes: of small files, and of all.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: f64,
    bytes: f64,
    time_ns: f64,
}

impl Sum {
    fn add(&mut self, access: &Access) {
        self.calls += access.calls as f64;
        self.bytes += access.bytes as f64;
        self.time_ns += access.time_ns as f64;
    }

    /// The part of the time in these calls. Calls on files that were open for a moment are counted without their time.
    fn part_of_time(&self, all: &Sum) -> f64 {
        if self.time_ns > 0.0 { part(self.time_ns, all.time_ns) } else { part(self.calls, all.calls) }
    }
}

/// Counts of system calls.
struct Counts<'a>(&'a CallCounts);

impl Counts<'_> {
    fn named(&self, names: &[&str]) -> impl Iterator<Item = &CallCount> {
        self.0.calls.iter().filter(move |c| names.contains(&c.name.as_str()))
    }

    fn done(&self, names: &[&str]) -> f64 {
        self.named(names).map(|c| c.calls.saturating_sub(c.failed) as f64).sum()
    }

    fn failed(&self, names: &[&str]) -> f64 {
        self.named(names).map(|c| c.failed as f64).sum()
    }

    fn time_ns(&self, names: &[&str]) -> f64 {
        self.named(names).map(|c| c.time_ns as f64).sum()
    }
}

/// Whether a file is one of many small ones, as far as that can be told: its name is not known, or it is small and was
/// opened during the run.
fn is_of_tree(file: &FileUse) -> bool {
    let small = file.size_bytes.is_some_and(|size| size <= SMALL_BYTES);
    file.kind == "unknown" || (file.kind == "regular" && file.opens > 0 && small && !file.mapped)
}

fn part(of: f64, all: f64) -> f64 {
    if all > 0.0 { (of / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// A mean count, rounded where it is near a whole number.
fn near_whole(mean: f64) -> f64 {
    let whole = mean.round();
    let near = if (mean - whole).abs() <= EDGE * whole.max(1.0) { whole } else { mean };
    if near < SELDOM { 0.0 } else { near.min(MAX_CALLS) }
}

impl Life {
    pub(super) fn from_facts(facts: &Facts<'_>) -> Result<Life, String> {
        let sample = facts
            .profile
            .calls
            .as_ref()
            .ok_or("the record has no counts of system calls (they need tier observer)".to_owned())?;
        let seen = Seen::new(facts, sample)?;
        let bytes = seen.bytes();
        if bytes > SMALL_BYTES {
            return Err("the files that are opened for a moment are not small".to_owned());
        }
        let each = Each::new(facts, &seen);
        let touches = touches(&seen, &each, bytes.max(1));
        let (counts, [reads, writes]) = (&seen.counts, [0, 1].map(|side| (seen.ours[side], seen.all[side])));
        let calls: f64 = touches.iter().map(|t| t.each * t.what.calls() as f64).sum();
        let all_calls: f64 = sample.calls.iter().map(|c| c.calls as f64).sum();
        let changes_names = counts.done(&OTHER_NAMES) > SELDOM * seen.files;
        Ok(Life {
            touches,
            bytes,
            folders_each: seen.folders / seen.files,
            statx: counts.done(&["statx"]) > counts.done(&["newfstatat", "fstat", "stat", "lstat"]),
            part_of_reads: reads.0.part_of_time(&reads.1),
            part_of_writes: writes.0.part_of_time(&writes.1),
            part_of_names: each.part_of_names(counts),
            part_of_new_folders: if seen.making { part_of_new_folders(counts) } else { 0.0 },
            part_of_descriptor: each.part_of_descriptor(counts),
            part_of_calls: part(calls * seen.files, all_calls),
            left_out: changes_names
                .then(|| "renames, new directories and other changes of names are not replayed".to_owned()),
            opens_each: seen.opens_each,
            transfers_each: each.reads + each.writes,
            part_of_transfers: [reads, writes].map(|(ours, all)| part(ours.calls, all.calls)),
            part_of_bytes_read: part(reads.0.bytes, reads.1.bytes),
        })
    }

    pub(super) fn does(&self, what: OnFile) -> bool {
        self.touches.iter().any(|touch| touch.what == what)
    }

    /// Files in the whole run, one that comes again counted again: by the kernel's own counts of calls, where there are
    /// such calls, else of bytes (what copies within the kernel is no call that reads), else of opens.
    pub(super) fn files_of_run(&self, facts: &Facts<'_>) -> Result<f64, String> {
        let io = &facts.profile.io;
        let [reads, writes] = self.part_of_transfers;
        if !self.does(OnFile::Copy)
            && self.transfers_each >= 0.5
            && let Some((read, written)) = io.read_calls.zip(io.write_calls)
        {
            return Ok((read as f64 * reads + written as f64 * writes) / self.transfers_each);
        }
        if self.does(OnFile::Copy)
            && self.bytes > 0
            && let Some(read) = io.read_bytes
        {
            return Ok(read as f64 * self.part_of_bytes_read / self.bytes as f64);
        }
        let opens = facts.counted_calls(&OPEN).map(|opens| opens / self.opens_each);
        opens.ok_or_else(|| "how many files the program opened is not known".to_owned())
    }
}

/// What was recorded of the files that were open for a moment.
struct Seen<'a> {
    counts: Counts<'a>,
    /// Reads and writes of these files.
    ours: [Sum; 2],
    /// Reads and writes of all files.
    all: [Sum; 2],
    listings: f64,
    copies: f64,
    /// Folders that were opened, or made.
    folders: f64,
    /// Whether files are read, and whether files are made.
    reading: bool,
    making: bool,
    opens_each: f64,
    files: f64,
}

impl Seen<'_> {
    fn new<'a>(facts: &Facts<'_>, sample: &'a CallCounts) -> Result<Seen<'a>, String> {
        let counts = Counts(sample);
        let (mut ours, mut all) = ([Sum::default(); 2], [Sum::default(); 2]);
        let mut opens = 0.0;
        for file in &facts.profile.files {
            for (side, access) in [&file.reads, &file.writes].into_iter().enumerate() {
                all[side].add(access);
                if is_of_tree(file) {
                    ours[side].add(access);
                }
            }
            opens += if is_of_tree(file) { file.opens as f64 } else { 0.0 };
        }
        let directories = facts.profile.files.iter().filter(|f| f.kind == "directory");
        let named_folders: f64 = directories.map(|f| f.opens as f64).sum();
        // A listing ends with a call that finds no more.
        let listings = counts.done(&["getdents64", "getdents"]) / 2.0;
        opens -= (listings - named_folders).max(0.0);
        if opens < ENOUGH_OPENS {
            return Err("too few opens were recorded to know the calls on each file".to_owned());
        }
        let copies = counts.done(&["copy_file_range"]);
        let [reads, writes] = ours.map(|sum| near_whole((sum.calls - copies).max(0.0) / opens));
        let copied = near_whole(copies / opens) > 0.0;
        let (reading, making) = (reads > 0.0 || copied, writes > 0.0 || copied);
        if making && !copied {
            made_anew(facts)?;
        }
        let folders = if reading || !making { listings.max(named_folders) } else { counts.done(&NEW_FOLDER) };
        let opens_each = if reading && making { 2.0 } else { 1.0 };
        let files = opens / opens_each;
        Ok(Seen { counts, ours, all, listings, copies, folders, reading, making, opens_each, files })
    }

    /// Bytes of a file: those of a call times the calls of a file.
    fn bytes(&self) -> u64 {
        let moved = if self.reading { self.ours[0] } else { self.ours[1] };
        let bytes = moved.bytes / moved.calls.max(1.0) * near_whole(moved.calls / self.files);
        bytes.round() as u64
    }
}

/// Calls on each file.
struct Each {
    listed: f64,
    examined_by_name: f64,
    examined_open: f64,
    missed: f64,
    asked: f64,
    advised: f64,
    sought: f64,
    reads: f64,
    writes: f64,
    copied: f64,
    removed: f64,
    /// Part of all seeks that are on these files.
    part_of_seeks: f64,
}

impl Each {
    fn new(facts: &Facts<'_>, seen: &Seen<'_>) -> Each {
        let counts = &seen.counts;
        let each = |calls: f64| near_whole(calls / seen.files);
        let by_name = each(counts.done(&EXAMINE_NAME));
        let examined = each(counts.done(&EXAMINE) + counts.done(&EXAMINE_OPEN));
        let examined_open = examined.min(seen.opens_each);
        let (seeks_each, part_of_seeks) = seeks(facts);
        let [reads, writes] = seen.ours.map(|sum| each((sum.calls - seen.copies).max(0.0)));
        Each {
            // Who only makes files lists no folder of theirs: that was the start of the program.
            listed: if seen.reading || !seen.making { seen.listings / seen.files } else { 0.0 },
            examined_by_name: examined - examined_open + by_name,
            examined_open,
            missed: each(counts.failed(&OPEN) + counts.failed(&EXAMINE) + counts.failed(&EXAMINE_NAME)),
            asked: each(counts.failed(&["ioctl"])),
            advised: each(counts.done(&["fadvise64"])),
            sought: near_whole(seeks_each * seen.opens_each),
            reads,
            writes,
            copied: each(seen.copies),
            removed: if seen.making { each(counts.done(&REMOVE)).min(1.0) } else { 0.0 },
            part_of_seeks,
        }
    }

    fn part_of_names(&self, counts: &Counts<'_>) -> f64 {
        let (listing, removing) = (counts.time_ns(&LISTING), counts.time_ns(&REMOVE));
        let ours = (if self.listed > 0.0 { listing } else { 0.0 })
            + (if self.removed > 0.0 { removing } else { 0.0 });
        part(ours, listing + removing + counts.time_ns(&OTHER_NAMES))
    }

    fn part_of_descriptor(&self, counts: &Counts<'_>) -> f64 {
        let ours = counts.time_ns(&["lseek"]) * self.part_of_seeks
            + (if self.asked > 0.0 { counts.time_ns(&["ioctl"]) } else { 0.0 })
            + (if self.advised > 0.0 { counts.time_ns(&["fadvise64"]) } else { 0.0 });
        part(ours, counts.time_ns(&DESCRIPTOR_CALLS))
    }
}

fn part_of_new_folders(counts: &Counts<'_>) -> f64 {
    let all = counts.time_ns(&LISTING) + counts.time_ns(&REMOVE) + counts.time_ns(&OTHER_NAMES);
    part(counts.time_ns(&NEW_FOLDER), all)
}

/// The calls on a file of these bytes, in their order.
fn touches(seen: &Seen<'_>, each: &Each, bytes: u64) -> Vec<Touch> {
    use OnFile::*;
    let &Seen { reading, making, opens_each, .. } = seen;
    let piece = |calls: f64| (bytes as f64 / calls.max(1.0)).ceil() as u64;
    let on_source = if making { 0.5 } else { 1.0 };
    let on_target = 1.0 - if reading { on_source } else { 0.0 };
    let mut touches =
        vec![(List, 0, each.listed), (Examine, 0, each.examined_by_name), (Miss, 0, each.missed)];
    if reading || !making {
        touches.extend([
            (Open, 0, 1.0),
            (ExamineOpen, 0, each.examined_open * on_source),
            (Ask, 0, if making { 0.0 } else { each.asked }),
            (Seek, 0, each.sought * on_source),
            (Advise, 0, if making { 0.0 } else { each.advised }),
            // The last read of a file finds no more.
            (Read, piece(each.reads - 1.0), each.reads),
        ]);
    }
    if making {
        touches.extend([
            (Make, 0, 1.0),
            (ExamineOpen, 0, each.examined_open * on_target),
            (Ask, 0, each.asked),
            (Seek, 0, each.sought * on_target),
            (Advise, 0, each.advised),
            (Write, piece(each.writes), each.writes),
            (Copy, bytes, each.copied),
        ]);
    }
    touches.extend([(Close, 0, opens_each), (Remove, 0, each.removed)]);
    let touch = |(what, bytes, each)| Touch { what, bytes, each };
    touches.into_iter().filter(|(_, _, each)| *each > 0.0).map(touch).collect()
}

/// Which files of the pattern are of the tree, by their index.
fn tree_files(facts: &Facts<'_>) -> Vec<bool> {
    let tree: HashSet<&str> =
        facts.profile.files.iter().filter(|f| is_of_tree(f)).map(|f| f.path.as_str()).collect();
    let of_tree = |file: &PatternFile| file.kind == "unknown" || tree.contains(file.path.as_str());
    facts.profile.pattern.files.iter().map(of_tree).collect()
}

/// Of files that are written by calls: that they are made, as far as their flags were recorded. An open file does not tell that it was
/// made, the call that opened it does.
fn made_anew(facts: &Facts<'_>) -> Result<(), String> {
    let pattern = &facts.profile.pattern;
    let of_tree = tree_files(facts);
    let steps = || pattern.stretches.iter().flat_map(|s| &s.steps);
    let opens = steps().filter(|s| s.kind == StepKind::Open && s.argument & O_CREAT != 0);
    let made_by_name: HashSet<u32> = opens.filter_map(|s| s.file).collect();
    let (mut made, mut appended, mut there) = (0_u64, 0_u64, 0_u64);
    for step in steps().filter(|s| s.kind == StepKind::Write) {
        let file = step.file.map(|file| file as usize).filter(|file| of_tree.get(*file) == Some(&true));
        let Some(flags) = file.and_then(|file| pattern.files[file].flags) else { continue };
        let calls = u64::from(step.count);
        let is_made = step.file.is_some_and(|file| made_by_name.contains(&file));
        match flags {
            f if f & O_APPEND != 0 => appended += calls,
            f if f & O_CREAT != 0 || is_made => made += calls,
            _ => there += calls,
        }
    }
    if appended > made + there {
        return Err("files are opened to append: whether it is one file or many is not visible".to_owned());
    }
    if there > made {
        return Err("existing files are overwritten, which cannot be replayed".to_owned());
    }
    Ok(())
}

/// Seeks on files of the tree for each open, and the part of all seeks that they are.
fn seeks(facts: &Facts<'_>) -> (f64, f64) {
    let pattern = &facts.profile.pattern;
    let steps = || pattern.stretches.iter().flat_map(|s| &s.steps);
    let count = |pick: &dyn Fn(&Step) -> bool| -> f64 {
        steps().filter(|s| pick(s)).map(|s| f64::from(s.count.max(1))).sum()
    };
    let of_tree = tree_files(facts);
    let ours = |s: &Step| s.file.is_some_and(|file| of_tree.get(file as usize) == Some(&true));
    let (all, ours) = (count(&|s| s.kind == StepKind::Seek), count(&|s| s.kind == StepKind::Seek && ours(s)));
    let opens = count(&|s| s.kind == StepKind::Open);
    (if opens > 0.0 { ours / opens } else { 0.0 }, part(ours, all))
}
