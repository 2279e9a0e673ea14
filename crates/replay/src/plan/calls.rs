//! The baseline from the record of every call: the same calls in the same order, with their sizes, offsets and think times; where asked
//! for, with the touches of mapped files between them.
//! Invariant: each step of the record's part that is on a file of the plan is in the plan once, with all its calls.

mod in_turn;
mod moments;
mod rest;
mod roles;
pub(super) mod touches;

use std::collections::{HashMap, HashSet};

use iowhy_core::layer::Layer;
use iowhy_core::profile::{CompleteRecord, PatternFile, Step, StepKind, StepTotal, Stretch, buffer_offset};
use iowhy_core::replay::{Action, Advice, Op, Plan, PlanFile, Role};
use iowhy_core::units::{count, time};

use super::baseline::{Baseline, Recording};
use super::duration::{Bounds, recording_share, wall_ns};
use super::not_replayed::NOT_REPLAYED;
use super::open_flags::{O_DIRECT, O_DSYNC};
use super::source::Source;
use crate::parts::Parts;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::repair::buffers;
use iowhy_diagnose::repair::order;
use touches::Touches;

const PAGE: u64 = 4096;
/// MAP_POPULATE.
pub(super) const POPULATE: u32 = 0x8000;
/// POSIX_FADV_RANDOM, _SEQUENTIAL, _DONTNEED.
const FADV: [u32; 3] = [1, 2, 4];
/// FALLOC_FL_KEEP_SIZE.
const FALLOC_KEEP_SIZE: u32 = 1;

/// A thread with so much of the time in calls has all of it.
const ALONE: f64 = 0.95;
/// A share of the time that is worth a note.
const MUCH: f64 = 0.01;

/// Calls that no plan of calls has, but for files that are made for a moment. Nobody sees whether the program makes them for the calls that
/// a repair removes.
const ON_NAMES: [Operation; 4] = [Operation::Open, Operation::Close, Operation::Stat, Operation::Names];

/// What is written to them goes nowhere.
const SINKS: [&str; 2] = ["/dev/null", "/dev/zero"];
/// Files that the kernel answers itself.
const KERNEL: [&str; 2] = ["/proc/", "/sys/"];

/// Requests that are no larger are left as they are, however small their file.
const LARGE_BYTES: u64 = 16 << 20;
/// No call moves more (MAX_RW_COUNT of Linux, with pages of 4 KiB; with larger ones it is a little less).
const MAX_OF_A_CALL: u64 = 0x7fff_f000;

/// Repairs look at each call of a pass; a record that was changed may hold any number of them. No part of a record has as many.
const MAX_CALLS: u64 = 1 << 24;

/// The plan. Touches of mappings are the program's own time.
pub(super) fn baseline(facts: &Facts<'_>, source: &Source<'_>, bounds: &Bounds) -> Result<Baseline, String> {
    with_touches(facts, source, bounds, &HashSet::new())
}

/// The plan with the touches of these files of the pattern.
pub(super) fn with_touches(
    facts: &Facts<'_>,
    source: &Source<'_>,
    bounds: &Bounds,
    files: &HashSet<u32>,
) -> Result<Baseline, String> {
    let source = &source.with_touches_of(files);
    let one = in_turn::one_sequence(&source.part, facts.profile.pattern.overlap, !source.is_window());
    let part = one.as_ref().unwrap_or(&source.part);
    let mut builder = Builder::new(facts, part, *bounds);
    let steps = builder.part(&part.steps);
    let whole = steps.len() == part.steps.len();
    builder.finish(source, steps, whole)
}

/// A thread of the plan: one of the record, and after its last step the next that begins, for instance the next child of a shell.
struct PlannedThread {
    thread: u32,
    /// Index of the last step of that thread.
    last: usize,
    /// Recorded time in calls.
    time_ns: u64,
}

/// Time that recording took out of the program at its calls: without that of sleeps, which are within calls, and of page faults.
fn recording_of_calls_ns(facts: &Facts<'_>) -> f64 {
    let observer = &facts.profile.observer;
    let sleeps = facts.account.sum(|e| !e.busy).events as f64;
    let record = facts.profile.pattern.record.as_ref();
    let faults_ns = record.map_or(0.0, |r| r.faults as f64 * r.fault_cost_ns.unwrap_or(0.0));
    (observer.in_program_ns - sleeps * observer.switch_cost_ns.unwrap_or(0.0) - faults_ns).max(0.0)
}

/// A plan that grows.
struct Builder<'a> {
    facts: &'a Facts<'a>,
    files: &'a [PatternFile],
    plan: Plan,
    /// Index in the plan of each file of the pattern, where it takes part.
    taken: Vec<Option<Option<u32>>>,
    /// The same of files that are made for a moment, by the thread that makes them.
    moments: HashMap<(u32, Option<u32>), Option<u32>>,
    /// Threads that open a file of the pattern.
    openers: HashMap<u32, Vec<u32>>,
    /// Flags with which files of the pattern are opened.
    opened: HashMap<u32, u32>,
    /// Files of the pattern that are read, written or made durable: a seek alone moves nothing.
    moved: HashSet<u32>,
    /// Those that are written, or made durable.
    written: HashSet<u32>,
    /// Where the last transfer on each file of the plan ended.
    ends: Vec<u64>,
    threads: Vec<PlannedThread>,
    /// The last step of each thread of the record.
    last_steps: HashMap<u32, usize>,
    /// Index of the step that is added.
    at: usize,
    /// Time in the calls of the plan by kind, tracing included, and their number, in the same parts.
    recorded: Parts,
    recorded_calls: Parts,
    /// Time in calls that are not replayed, because their file cannot be.
    left_out_ns: u64,
    /// The part of it on files that were opened: no pipes and sockets.
    left_out_of_files_ns: u64,
    /// Time in calls that allocate: of those that work on names and sizes, no others are in the plan.
    allocated_ns: u64,
    /// Whether files that are made for a moment stay to the end.
    made_files_stay: bool,
    /// By how much tracing lengthens a call, and the time before it.
    in_call_ns: f64,
    before_call_ns: f64,
    touches: Touches,
    bounds: Bounds,
}

impl<'a> Builder<'a> {
    fn new(facts: &'a Facts<'a>, part: &Stretch, bounds: Bounds) -> Builder<'a> {
        let mut openers: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut opened: HashMap<u32, u32> = HashMap::new();
        for step in part.steps.iter().filter(|s| s.kind == StepKind::Open) {
            if let Some(file) = step.file {
                *opened.entry(file).or_default() |= step.argument;
            }
            let threads = step.file.map(|file| openers.entry(file).or_default());
            if let Some(threads) = threads.filter(|threads| !threads.contains(&step.thread)) {
                threads.push(step.thread);
            }
        }
        let writes = |s: &&Step| matches!(s.kind, StepKind::Write | StepKind::Sync);
        let moves =
            |s: &&Step| matches!(s.kind, StepKind::Read | StepKind::Write | StepKind::Sync | StepKind::Touch);
        let pattern = &facts.profile.pattern;
        let record = pattern.record.as_ref();
        let in_call_ns = record.and_then(|record| record.excess_ns).unwrap_or(0.0);
        let counted = || facts.profile.calls.iter().flat_map(|c| &c.calls).map(|call| call.calls).sum();
        let calls = record.map_or_else(counted, |record| record.calls);
        let each_ns = recording_of_calls_ns(facts) / (calls.max(1) as f64);
        Builder {
            facts,
            files: &pattern.files,
            plan: Plan { passes: 1, depth: 1, ..Plan::default() },
            taken: vec![None; pattern.files.len()],
            moments: HashMap::new(),
            openers,
            opened,
            moved: part.steps.iter().filter(moves).filter_map(|s| s.file).collect(),
            written: part.steps.iter().filter(writes).filter_map(|s| s.file).collect(),
            ends: Vec::new(),
            threads: Vec::new(),
            last_steps: part.steps.iter().enumerate().map(|(at, step)| (step.thread, at)).collect(),
            at: 0,
            recorded: Parts::default(),
            recorded_calls: Parts::default(),
            left_out_ns: 0,
            left_out_of_files_ns: 0,
            allocated_ns: 0,
            made_files_stay: moments::made_files_stay(facts),
            in_call_ns,
            before_call_ns: (each_ns - in_call_ns).max(0.0),
            touches: Touches::new(record),
            bounds,
        }
    }

    /// Takes steps, as far as a replay may write and make files that stay. Returns those.
    fn part<'s>(&mut self, steps: &'s [Step]) -> &'s [Step] {
        let (mut written, mut made) = (0u64, 0u64);
        for (at, step) in steps.iter().enumerate() {
            if step.kind == StepKind::Write && !self.is_sink(step) {
                written = written.saturating_add(step.bytes.saturating_mul(u64::from(step.count)));
            }
            let makes = self.made_files_stay && step.kind == StepKind::Open;
            made += u64::from(makes && self.is_made_for_a_moment(step.file));
            if (written > self.bounds.written_bytes || made > self.bounds.made_files) && at > 0 {
                return &steps[..at];
            }
            self.at = at;
            self.step(step);
        }
        steps
    }

    fn is_sink(&self, step: &Step) -> bool {
        let file = step.file.and_then(|file| self.files.get(file as usize));
        file.is_some_and(|file| SINKS.contains(&file.path.as_str()))
    }

    /// One step of the record; what steers nothing is left out.
    fn step(&mut self, step: &Step) {
        let what = match step.kind {
            StepKind::Read => Op::Read { fresh: step.fresh },
            StepKind::Write => Op::Write,
            StepKind::Touch => Op::TouchPages,
            StepKind::Seek => Op::Seek,
            StepKind::Sync => Op::Fsync { metadata: step.argument == 1 },
            StepKind::Open => {
                if self.is_made_for_a_moment(step.file)
                    && let Some(file) = self.file_of(step)
                {
                    self.push(
                        step,
                        Action::one(Op::MakeFile { stays: self.made_files_stay }, file, 0, 0, 0.0),
                    );
                    self.ends[file as usize] = 0;
                }
                return;
            }
            StepKind::Allocate => match step.argument {
                0 => Op::Allocate { keep_size: false },
                FALLOC_KEEP_SIZE => Op::Allocate { keep_size: true },
                // Holes that are made, and ranges that move.
                _ => return,
            },
            StepKind::Advise if step.argument == FADV[2] => Op::FadviseDontNeed,
            StepKind::Advise => {
                if let Some(file) = self.file(step.file) {
                    self.plan.files[file as usize].advice = match step.argument {
                        a if a == FADV[0] => Advice::Random,
                        a if a == FADV[1] => Advice::Sequential,
                        _ => return,
                    };
                }
                return;
            }
            _ => return,
        };
        if step.kind == StepKind::Sync
            && let Some(file) = self.moment_in(step.file, Some(step.thread))
        {
            let action = Action::one(Op::SyncDirectory, file, 0, 0, 0.0);
            self.push(step, Action { count: step.count.max(1), ..action });
            return;
        }
        let Some(file) = self.file_of(step) else {
            self.left_out_ns += step.time_ns;
            if step.file.is_some_and(|file| self.opened.contains_key(&file)) {
                self.left_out_of_files_ns += step.time_ns;
            }
            return;
        };
        let transfer = order::has_place(what);
        let count = step.count.max(1);
        let (offset, stride) = match step.place {
            Some(place) => (place, step.stride),
            // What appends at an offset that says nothing.
            None if transfer => (self.ends[file as usize], i64::try_from(step.bytes).unwrap_or(0)),
            None => (0, step.stride),
        };
        let action =
            Action { op: what, file, offset, bytes: self.bytes(step, file), count, stride, think_ns: 0.0 };
        if transfer {
            self.ends[file as usize] = action.at(count - 1).saturating_add(step.bytes);
        }
        self.push(step, action);
    }

    /// What a call moves: who asks for far more than a file has does not get it, and needs no memory for it here.
    fn bytes(&self, step: &Step, file: u32) -> u64 {
        if step.kind == StepKind::Allocate {
            // No replay writes more.
            return step.bytes.min(self.bounds.written_bytes);
        }
        let file = &self.plan.files[file as usize];
        let most = file.size_bytes.clamp(LARGE_BYTES, MAX_OF_A_CALL);
        if step.kind == StepKind::Read && file.identity.is_some() { step.bytes.min(most) } else { step.bytes }
    }

    /// Adds the calls of a step, with the program's own time before each.
    fn push(&mut self, step: &Step, action: Action) {
        let calls = f64::from(action.count.max(1));
        let touches = action.op == Op::TouchPages;
        let before_ns = if touches { self.touches.before_ns } else { self.before_call_ns };
        let think_ns = (step.gap_ns as f64 / calls - before_ns).max(0.0);
        if touches {
            self.touches.take(action.file, step);
        }
        *self.recorded.of(action.op) += step.time_ns as f64;
        if matches!(action.op, Op::Allocate { .. }) {
            self.allocated_ns += step.time_ns;
        }
        *self.recorded_calls.of(action.op) += calls;
        let at = self.thread(step.thread);
        self.threads[at].time_ns = self.threads[at].time_ns.saturating_add(step.time_ns);
        self.plan.threads[at].push(Action { think_ns, ..action });
    }

    /// The thread of the plan for one of the record.
    fn thread(&mut self, thread: u32) -> usize {
        if let Some(known) = self.threads.iter().position(|t| t.thread == thread) {
            return known;
        }
        let last = self.last_steps.get(&thread).copied().unwrap_or(usize::MAX);
        if let Some(over) = self.threads.iter().position(|t| t.last < self.at) {
            let planned = &mut self.threads[over];
            (planned.thread, planned.last) = (thread, last);
            return over;
        }
        self.threads.push(PlannedThread { thread, last, time_ns: 0 });
        self.plan.threads.push(Vec::new());
        self.threads.len() - 1
    }

    /// Whether one thread of the plan has nearly all of the time in calls.
    fn has_one_thread(&self) -> bool {
        let times = self.threads.iter().map(|t| t.time_ns as f64);
        times.clone().fold(0.0, f64::max) >= ALONE * times.sum::<f64>()
    }

    fn is_written(&self, index: Option<u32>) -> bool {
        index.is_some_and(|index| self.written.contains(&index))
    }

    /// The file of the plan that a step works on: of those that are made for a moment, each thread that makes them has its
    /// own.
    fn file_of(&mut self, step: &Step) -> Option<u32> {
        if !self.is_made_for_a_moment(step.file) {
            return self.file(step.file);
        }
        let key = self.moment(step.file?, step.thread);
        if let Some(known) = self.moments.get(&key) {
            return *known;
        }
        let made = self.planned_at(key.0 as usize).map(|file| self.add(file));
        self.moments.insert(key, made);
        made
    }

    /// That file, where it is known already.
    fn known(&self, step: &Step) -> Option<u32> {
        let index = step.file?;
        let of_a_thread = self.moments.get(&self.moment(index, step.thread)).copied();
        of_a_thread.unwrap_or_else(|| self.taken.get(index as usize).copied().flatten().flatten())
    }

    fn planned_at(&self, index: usize) -> Option<PlanFile> {
        let file = self.files.get(index)?;
        self.planned(file).or_else(|| self.in_its_directory(index, file)).or_else(|| self.in_place_of(index))
    }

    /// A written file whose name is gone: a scratch file in its directory.
    fn in_its_directory(&self, index: usize, file: &PatternFile) -> Option<PlanFile> {
        let path = file.path.strip_suffix(" (deleted)")?;
        let known = file.kind == "regular" && path.starts_with('/') && self.is_written(Some(index as u32));
        let file_system = self.file_system(file).filter(|_| known)?;
        let flags = file.flags.unwrap_or(0);
        Some(PlanFile {
            file_system: Some(file_system),
            direct: flags & O_DIRECT != 0,
            durable: flags & O_DSYNC != 0,
            ..PlanFile::new(path, Role::User)
        })
    }

    fn add(&mut self, file: PlanFile) -> u32 {
        self.plan.files.push(file);
        self.ends.push(0);
        self.plan.files.len() as u32 - 1
    }

    /// The file of the plan; `None` where it cannot take part.
    fn file(&mut self, index: Option<u32>) -> Option<u32> {
        let index = index? as usize;
        if let Some(known) = *self.taken.get(index)? {
            return known;
        }
        let planned = self.planned_at(index).filter(|_| self.moved.contains(&(index as u32)));
        // What a program opens again, with its flags seen once and once not, is one file.
        let same = |file: &PlanFile| {
            let alike = |known: &PlanFile| {
                known.path == file.path
                    && known.identity == file.identity
                    && (known.direct, known.durable) == (file.direct, file.durable)
            };
            self.plan.files.iter().position(alike).filter(|_| file.identity.is_some())
        };
        if let Some(known) = planned.as_ref().and_then(same) {
            self.taken[index] = Some(Some(known as u32));
            return Some(known as u32);
        }
        let made = planned.map(|file| self.add(file));
        self.taken[index] = Some(made);
        made
    }

    /// A written file that is gone: a scratch file beside one whose directory is known.
    fn in_place_of(&self, index: usize) -> Option<PlanFile> {
        let written = |index: usize| self.is_written(Some(index as u32));
        let file = &self.files[index];
        let nameless = file.kind == "unknown" || file.path.ends_with(" (deleted)");
        if !nameless || !written(index) {
            return None;
        }
        // What the caller passed on says nothing about where the program makes its files.
        let used = |path: &str| self.facts.profile.files.iter().find(|file| file.path == path);
        let own = |f: &PlanFile| f.role == Role::User && used(&f.path).is_none_or(|file| !file.inherited);
        let known = |at: usize| {
            let file = &self.files[at];
            self.planned(file).filter(own).or_else(|| self.in_its_directory(at, file))
        };
        let mut known = (0..self.files.len()).filter(|at| written(*at)).filter_map(known);
        let planned = known.next()?;
        // Where the program writes to several file systems, nobody knows on which of them this one was.
        let elsewhere = |other: PlanFile| {
            other.file_system.zip(planned.file_system).is_some_and(|(other, this)| other != this)
        };
        if known.any(elsewhere) {
            return None;
        }
        Some(PlanFile { identity: None, size_bytes: 0, direct: false, durable: false, ..planned })
    }

    /// The file system that a file was on: its own, or that of another file in its directory where it is gone.
    fn file_system(&self, file: &PatternFile) -> Option<u64> {
        let used = &self.facts.profile.files;
        let of = |path: &str| used.iter().find(|used| without_deleted(&used.path) == path)?.device_number;
        let folder = |path: &str| Some(path.rsplit_once('/')?.0.to_owned());
        let run_facts = || {
            let here = folder(&file.path)?;
            let in_it = |path: &str| folder(path).is_some_and(|folder| folder == here);
            let known =
                self.files.iter().filter(|other| in_it(&other.path)).filter_map(|other| other.identity);
            let seen = used.iter().filter(|other| in_it(&other.path)).filter_map(|other| other.device_number);
            known.map(|identity| identity.device).chain(seen).next()
        };
        file.identity
            .map(|identity| identity.device)
            .or_else(|| of(without_deleted(&file.path)))
            .or_else(run_facts)
    }

    fn planned(&self, file: &PatternFile) -> Option<PlanFile> {
        let flags = file.flags.unwrap_or(0);
        let sink = SINKS.contains(&file.path.as_str());
        let on_disk =
            file.path.starts_with('/') && !KERNEL.iter().any(|folder| file.path.starts_with(folder));
        let regular = file.kind == "regular" && on_disk && !file.path.ends_with(" (deleted)");
        (sink || regular).then(|| PlanFile {
            file_system: self.file_system(file),
            identity: file.identity,
            size_bytes: file.identity.map_or(0, |i| i.size_bytes),
            direct: flags & O_DIRECT != 0,
            durable: flags & O_DSYNC != 0,
            ..PlanFile::new(file.path.clone(), if sink { Role::Sink } else { Role::User })
        })
    }

    /// Roles, states, and the program's time.
    fn finish(mut self, source: &Source<'_>, steps: &[Step], whole: bool) -> Result<Baseline, String> {
        if self.plan.calls() == 0 {
            return Err("no recorded call is on a regular file".to_owned());
        }
        let (left_out, in_plan) = (self.left_out_of_files_ns as f64, self.recorded.sum_ns());
        if left_out > in_plan {
            return Err(format!(
                "{} of {} in recorded calls are on files that are gone or have no path, which is most of it",
                time(left_out),
                time(left_out + in_plan)
            ));
        }
        if self.plan.calls() > MAX_CALLS {
            return Err(format!(
                "the record has more than {MAX_CALLS} calls, which is the limit of a replay"
            ));
        }
        self.place_buffers(steps);
        let from_start = source.begins_the_run();
        for at in 0..self.plan.files.len() {
            self.settle(at, from_start)?;
        }
        self.add_ends_of_moments();
        self.advise_mappings();
        let (recorded, calls) = (self.recorded, self.recorded_calls.sum_ns());
        let without = |time_ns: f64, calls: f64| (time_ns - calls * self.in_call_ns).max(0.0);
        let (touches, in_touches_ns) = (self.touches.count, self.touches.recording_ns());
        let parts = Parts {
            reads_ns: without(recorded.reads_ns - in_touches_ns, self.recorded_calls.reads_ns - touches),
            writes_ns: without(recorded.writes_ns, self.recorded_calls.writes_ns),
            syncs_ns: without(recorded.syncs_ns, self.recorded_calls.syncs_ns),
            metadata_ns: without(recorded.metadata_ns, self.recorded_calls.metadata_ns),
        };
        let operations = self.operations();
        let touched_ns = if operations.contains(&Operation::Fault) { 0.0 } else { self.touches_wall_ns() };
        let in_account = wall_ns(self.facts, &operations) + touched_ns;
        let names: Vec<Operation> = ON_NAMES.into_iter().filter(|name| !operations.contains(name)).collect();
        let goes_along_ns = (wall_ns(self.facts, &names) - self.allocated_ns as f64).max(0.0);
        let Some(record) = source.record else {
            let (recorded, notes) = (Some(parts), Vec::new());
            let plan = self.plan;
            return Ok(Baseline {
                plan,
                scale: 1.0,
                program_io_ns: in_account,
                recorded,
                recording: None,
                touching_ns: 0.0,
                goes_along_ns,
                notes,
            });
        };
        let (all_ns, all_calls) = self.whole_run(record);
        // Both are sums over the same kinds of steps, so a whole record has scale 1.
        let scale = (all_calls / calls.max(1.0)).max(1.0);
        let times = (all_ns / recorded.sum_ns().max(1.0)).max(1.0);
        // Of threads that wait at the same time each instant counts once.
        let program_io_ns = if self.has_one_thread() { parts.sum_ns() * times } else { in_account };
        let notes = self.notes(record, parts.sum_ns() * times, steps, whole);
        let (recorded, recording) = (Some(parts), Some(self.recording(in_account, times)));
        Ok(Baseline {
            plan: self.plan,
            scale,
            program_io_ns,
            recorded,
            recording,
            touching_ns: 0.0,
            goes_along_ns,
            notes,
        })
    }

    /// What is known of the run beside its recorded calls; `in_account_ns`: wall time of the plan's kinds of calls by samples;
    /// `times`: how many times the part's time the whole run has.
    fn recording(&self, in_account_ns: f64, times: f64) -> Recording {
        let account = &self.facts.account;
        let observer_ns = account.sum(|e| e.class.layer == Layer::Observer).wall_ns;
        // Of these kinds, too, but not in the plan.
        let each_thread = times / self.plan.threads.len().max(1) as f64;
        let left_out_ns = each_thread * self.left_out_ns as f64;
        // In the plan, but of another kind.
        let allocated_ns = each_thread * self.allocated_ns as f64;
        let beside_ns = (account.wall_ns - observer_ns - in_account_ns + left_out_ns - allocated_ns).max(0.0);
        Recording { share: recording_share(self.facts), beside_ns }
    }

    /// What is replayed, of which record, and what is not.
    fn notes(&self, record: &CompleteRecord, program_ns: f64, steps: &[Step], whole: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let part: u64 = steps.iter().map(|s| u64::from(s.count)).sum();
        let takes_part = |t: &&StepTotal| t.kind != StepKind::Touch || self.is_touched(t.file);
        let all: u64 = record.totals.iter().filter(takes_part).map(|total| total.calls).sum();
        if part < all || !whole {
            notes.push(format!(
                "replayed: {} of {} recorded {}, from {} after the start on, without a gap; the rest of the run, as far as \
                 it has such calls, is taken to gain as much",
                count(part),
                count(all),
                if self.touches.count > 0.0 { "calls on files and touches of mapped pages" } else { "calls on files" },
                time(record.from_ns as f64)
            ));
        }
        if record.missing > 0 {
            notes.push(format!(
                "the record is complete up to {} after the start: then its room was full, and {} system calls are missing",
                time(record.length_ns as f64),
                count(record.missing)
            ));
        }
        if record.excess_ns.is_none() {
            notes.push(
                "what recording adds to each call could not be measured, and is in the recorded times"
                    .to_owned(),
            );
        }
        let left_out = self.left_out_ns as f64;
        if left_out > MUCH * (left_out + self.recorded.sum_ns()) {
            notes.push(format!(
                "not replayed: {} in calls on pipes, sockets, directories and files that are gone or have no path",
                time(left_out)
            ));
        }
        if let Some(calls) = &self.facts.profile.calls {
            let names = calls.calls.iter().filter(|c| NOT_REPLAYED.contains(&c.name.as_str()));
            let time_ns: f64 = names.map(|c| c.time_ns as f64).sum();
            if time_ns > MUCH * (time_ns + program_ns) {
                notes.push(format!(
                    "not replayed: {} in opens, closes, stat and other calls that work on names, or move bytes between files",
                    time(time_ns)
                ));
            }
        }
        notes.extend(self.touches.note());
        if self.plan.files.iter().any(|f| f.shift_bytes > 0) {
            notes.push(
                "each round reads another part of the file, at the same distances: hosts and devices cache"
                    .to_owned(),
            );
        }
        notes
    }

    /// The operations of the account that the plan carries out.
    fn operations(&self) -> Vec<Operation> {
        let mut operations = vec![Operation::Read, Operation::Write];
        if self.plan.any(|a| a.op.is_sync()) {
            operations.push(Operation::Sync);
        }
        if self.plan.any(|a| a.op.makes_file()) {
            operations.extend([Operation::Open, Operation::Close]);
        }
        if self.plan.any(|a| a.op == Op::MakeFile { stays: false }) {
            operations.push(Operation::Names);
        }
        if self.plan.any(|a| matches!(a.op, Op::Seek | Op::FadviseDontNeed)) {
            operations.push(Operation::Descriptor);
        }
        if self.plan.any(|a| a.op == Op::Read { fresh: true }) {
            operations.extend([Operation::Map, Operation::Fault]);
        }
        operations
    }

    /// Puts the memory of each file's calls where the program has it.
    fn place_buffers(&mut self, steps: &[Step]) {
        for at in 0..self.plan.files.len() {
            let of = |s: &Step| self.known(s) == Some(at as u32);
            let moves = |s: &&Step| of(s) && matches!(s.kind, StepKind::Read | StepKind::Write);
            let most = steps.iter().filter(moves).map(|s| s.bytes).max().unwrap_or(0);
            let seen = buffer_offset(steps.iter().filter(moves));
            let file = &mut self.plan.files[at];
            // What is not known of direct requests begins at a page: elsewhere they would be refused.
            let unknown = if file.direct { 0 } else { buffers::usual(most) };
            file.buffer_offset = seen.unwrap_or(unknown);
        }
    }
}

/// The path that a file had while it had a name.
fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod journal_tests;
