//! The baseline from recorded system calls.

use std::collections::{HashMap, HashSet};

use iowhy_core::profile::{FileUse, PatternFile, Step, StepKind, Stretch, buffer_offset};
use iowhy_core::replay::{Action, Advice, Op, Plan, PlanFile, Role, State};

use super::baseline::Baseline;
use super::duration::{ARM_NS, MAX_ARM_NS, MAX_WRITTEN_BYTES, passes_of, wall_ns};
use super::joined::{self, Way};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::findings::own_ns;
use iowhy_diagnose::repair::buffers;
use iowhy_diagnose::repair::order::{self, Order};

const PAGE: u64 = 4096;
/// Flags of open(2) on every architecture that Linux runs on today but MIPS, SPARC, Alpha and PA-RISC; O_DIRECT differs.
const O_DSYNC: u32 = 0o10000;
const O_CREAT: u32 = 0o100;
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
const O_DIRECT: u32 = 0o200000;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
const O_DIRECT: u32 = 0o40000;
/// MAP_POPULATE.
pub(super) const POPULATE: u32 = 0x8000;
/// POSIX_FADV_RANDOM, _SEQUENTIAL, _DONTNEED.
const FADV: [u32; 3] = [1, 2, 4];

/// A file of which more was in the cache when it was first seen was warm.
const WARM: f64 = 0.9;
/// The device must have read so much of what was read or written, else nothing was cold.
const LITTLE: f64 = 0.05;
/// Length of a pass where passes continue each other,
const LONG_PASS_BYTES: u64 = 8 << 20;
/// and no more actions than this.
const MAX_JOINED: usize = 32_768;
/// A buffered call costs about as much as copying this.
const CALL_BYTES: f64 = 4096.0;
/// From this part of the files on, what was fetched is found again.
const FILLED: f64 = 0.25;
/// A share that counts as most.
const MOSTLY: f64 = 0.5;
/// Largest share of the time in calls on unknown files; the rest is compared with its own part of the program's time.
const MAX_UNKNOWN: f64 = 0.6;

/// The plan.
pub(super) fn baseline(facts: &Facts<'_>) -> Result<Baseline, String> {
    let pattern = &facts.profile.pattern;
    if pattern.stretches.is_empty() {
        return Err("the record has no recorded calls (they need root, and a run of more than about 20 ms)"
            .to_owned());
    }
    let stretches = chosen(&pattern.stretches);
    let steps: Vec<&Step> = stretches.iter().flat_map(|s| &s.steps).collect();
    let mut builder = Builder::new(facts, &pattern.files, joined::ways(&stretches, &pattern.files));
    for step in &steps {
        builder.step(step);
    }
    let unknown = builder.unknown_ns as f64 / (builder.unknown_ns + builder.known_ns).max(1) as f64;
    if unknown > MAX_UNKNOWN {
        return Err(format!(
            "the files of {:.0} % of the time in calls are not known, or are no regular files",
            100.0 * unknown
        ));
    }
    builder.finish(&steps, unknown)
}

/// Stretches that are replayed, in order of time: all, as far as an arm may be long.
fn chosen(all: &[Stretch]) -> Vec<&Stretch> {
    let mut left = MAX_ARM_NS;
    let mut chosen: Vec<usize> = Vec::new();
    // The longest first: those at the start of a run are short and see the program load.
    let mut by_calls: Vec<usize> = (0..all.len()).collect();
    by_calls.sort_by_key(|at| std::cmp::Reverse(all[*at].calls()));
    for at in by_calls {
        let length_ns = all[at].length_ns as f64;
        if chosen.is_empty() || length_ns <= left {
            left -= length_ns;
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|at| &all[at]).collect()
}

/// Whether the second goes on where the first ends, in every respect.
fn continued(first: &Action, second: &Action) -> bool {
    let even = first.count == 1 || second.count == 1 || first.stride == second.stride;
    let stride = if first.count > 1 { first.stride } else { second.stride };
    even && (first.op, first.file, first.bytes) == (second.op, second.file, second.bytes)
        && first.stride == stride
        && first.at(first.count) == second.offset
        && (first.think_ns - second.think_ns).abs() < 1.0
        && first.count.checked_add(second.count).is_some()
}

/// So many calls are more than the start of a program.
const MANY_CALLS: f64 = 1000.0;
/// From this ratio of recorded shares of reads and writes on, the smaller one is made longer.
const UNEVEN: f64 = 2.0;

/// Requests that are no larger are left as they are, however small their file.
const LARGE_BYTES: u64 = 16 << 20;
/// No call moves more (MAX_RW_COUNT of Linux, with pages of 4 KiB).
const MAX_OF_A_CALL: u64 = 0x7fff_f000;

/// Repairs look at each call of a pass; a record that was changed may hold any number of them. No pass of a second or two
/// has as many.
const MAX_CALLS: u64 = 1 << 24;

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
    /// Files of the pattern that are written, or made durable.
    written: HashSet<u32>,
    /// Where the last transfer on each file of the plan ended.
    ends: Vec<u64>,
    /// Where it began, of files that had one.
    begins: Vec<Option<u64>>,
    /// Files, by their paths, of which pieces were seen that follow each other.
    ways: HashMap<&'a str, Way>,
    threads: Vec<u32>,
    known_ns: u64,
    unknown_ns: u64,
}

impl<'a> Builder<'a> {
    fn new(facts: &'a Facts<'a>, files: &'a [PatternFile], ways: HashMap<&'a str, Way>) -> Builder<'a> {
        let steps = facts.profile.pattern.stretches.iter().flat_map(|s| &s.steps);
        let mut openers: HashMap<u32, Vec<u32>> = HashMap::new();
        for step in steps.clone().filter(|s| s.kind == StepKind::Open) {
            let threads = step.file.map(|file| openers.entry(file).or_default());
            if let Some(threads) = threads.filter(|threads| !threads.contains(&step.thread)) {
                threads.push(step.thread);
            }
        }
        let writes = |s: &&Step| matches!(s.kind, StepKind::Write | StepKind::Sync);
        Builder {
            facts,
            files,
            plan: Plan { passes: 1, depth: 1, ..Plan::default() },
            taken: vec![None; files.len()],
            moments: HashMap::new(),
            openers,
            written: steps.filter(writes).filter_map(|s| s.file).collect(),
            ends: Vec::new(),
            begins: Vec::new(),
            ways,
            threads: Vec::new(),
            known_ns: 0,
            unknown_ns: 0,
        }
    }

    /// One step of the pattern; what steers nothing is left out.
    fn step(&mut self, step: &Step) {
        let what = match step.kind {
            StepKind::Read => Op::Read { fresh: step.fresh },
            StepKind::Write => Op::Write,
            StepKind::Seek => Op::Seek,
            StepKind::Sync => Op::Fsync { metadata: step.argument == 1 },
            StepKind::Open => {
                if self.is_made_for_a_moment(step.file)
                    && let Some(file) = self.file_of(step)
                {
                    self.push(step.thread, Action::one(Op::RecreateFile, file, 0, 0, step.gap_ns as f64));
                    self.ends[file as usize] = 0;
                    self.known_ns += step.time_ns;
                }
                return;
            }
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
        let Some(file) = self.file_of(step) else {
            self.unknown_ns += step.time_ns;
            return;
        };
        self.known_ns += step.time_ns;
        let transfer = order::has_place(what);
        let end = self.ends[file as usize];
        let count = step.count.max(1);
        let place = match step.place {
            Some(place) => place,
            None if transfer => end,
            None => 0,
        };
        let stride = match step.place {
            None if transfer => i64::try_from(step.bytes).unwrap_or(0),
            _ => step.stride,
        };
        let think_ns = step.gap_ns as f64 / f64::from(count);
        let place = if transfer { self.joined(step, file).unwrap_or(place) } else { place };
        let action =
            Action { op: what, file, offset: place, bytes: self.bytes(step, file), count, stride, think_ns };
        if transfer {
            let last = action.at(count - 1);
            self.begins[file as usize] = Some(last);
            self.ends[file as usize] = last.saturating_add(step.bytes);
        }
        self.push(step.thread, action);
    }

    /// What a call moves: who asks for far more than a file has does not get it, and needs no memory for it here.
    fn bytes(&self, step: &Step, file: u32) -> u64 {
        let file = &self.plan.files[file as usize];
        let most = file.size_bytes.clamp(LARGE_BYTES, MAX_OF_A_CALL);
        if step.kind == StepKind::Read && file.identity.is_some() { step.bytes.min(most) } else { step.bytes }
    }

    /// Where the next piece of a file begins that is gone through in one way; `None` of others, and of the first piece.
    fn joined(&self, step: &Step, file: u32) -> Option<u64> {
        let path = self.files.get(step.file? as usize)?.path.as_str();
        let begin = self.begins[file as usize]?;
        match self.ways.get(path)? {
            Way::On => Some(self.ends[file as usize]),
            // Not beyond the front.
            Way::Back => {
                let whole = step.bytes.saturating_mul(u64::from(step.count.max(1)));
                begin.checked_sub(whole).map(|front| front + whole - step.bytes)
            }
        }
    }

    fn push(&mut self, thread: u32, action: Action) {
        let at = match self.threads.iter().position(|t| *t == thread) {
            Some(at) => at,
            None => {
                self.threads.push(thread);
                self.plan.threads.push(Vec::new());
                self.threads.len() - 1
            }
        };
        self.plan.threads[at].push(action);
    }

    /// Whether a file was made when it was opened, written, and is there no more under its name: a journal, most often.
    fn is_made_for_a_moment(&self, index: Option<u32>) -> bool {
        let Some(file) = index.and_then(|index| self.files.get(index as usize)) else { return false };
        let made = file.flags.is_some_and(|flags| flags & O_CREAT != 0);
        let storage = matches!(file.kind.as_str(), "unknown" | "regular");
        made && storage && file.identity.is_none() && self.is_written(index)
    }

    fn is_written(&self, index: Option<u32>) -> bool {
        index.is_some_and(|index| self.written.contains(&index))
    }

    /// Whose file of a moment a step works on: the thread's own, if it makes any, else that of the first that does.
    fn moment(&self, file: u32, thread: u32) -> (u32, Option<u32>) {
        let openers = self.openers.get(&file);
        let own = openers.is_some_and(|threads| threads.contains(&thread)).then_some(thread);
        (file, own.or_else(|| openers.and_then(|threads| threads.first().copied())))
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
        self.planned(self.files.get(index)?).or_else(|| self.in_place_of(index))
    }

    fn add(&mut self, file: PlanFile) -> u32 {
        self.plan.files.push(file);
        self.ends.push(0);
        self.begins.push(None);
        self.plan.files.len() as u32 - 1
    }

    /// The file of the plan; `None` where it cannot take part.
    fn file(&mut self, index: Option<u32>) -> Option<u32> {
        let index = index? as usize;
        if let Some(known) = *self.taken.get(index)? {
            return known;
        }
        let planned = self.planned_at(index);
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

    /// A written file that is gone: a scratch file beside a known one.
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
        let known = |at: usize| self.planned(&self.files[at]).filter(own);
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
        let of = |path: &str| used.iter().find(|used| used.path == path)?.device_number;
        let folder = |path: &str| Some(path.rsplit_once('/')?.0.to_owned());
        let run_facts = || {
            let here = folder(&file.path)?;
            let in_it = |path: &str| folder(path).is_some_and(|folder| folder == here);
            let known =
                self.files.iter().filter(|other| in_it(&other.path)).filter_map(|other| other.identity);
            let seen = used.iter().filter(|other| in_it(&other.path)).filter_map(|other| other.device_number);
            known.map(|identity| identity.device).chain(seen).next()
        };
        file.identity.map(|identity| identity.device).or_else(|| of(&file.path)).or_else(run_facts)
    }

    fn planned(&self, file: &PatternFile) -> Option<PlanFile> {
        let flags = file.flags.unwrap_or(0);
        let sink = matches!(file.path.as_str(), "/dev/null" | "/dev/zero");
        let regular =
            file.kind == "regular" && file.path.starts_with('/') && !file.path.ends_with(" (deleted)");
        (sink || regular).then(|| PlanFile {
            file_system: self.file_system(file),
            identity: file.identity,
            size_bytes: file.identity.map_or(0, |i| i.size_bytes),
            direct: flags & O_DIRECT != 0,
            durable: flags & O_DSYNC != 0,
            ..PlanFile::new(file.path.clone(), if sink { Role::Sink } else { Role::User })
        })
    }

    /// Roles, states, passes, and the program's own time.
    fn finish(mut self, steps: &[&Step], unknown: f64) -> Result<Baseline, String> {
        if self.plan.calls() == 0 {
            return Err("no recorded call is on a regular file".to_owned());
        }
        let stretched = self.balance(steps);
        self.place_buffers(steps);
        let mut most_passes = f64::INFINITY;
        for at in 0..self.plan.files.len() {
            most_passes = most_passes.min(self.settle(at)?);
        }
        let transfers = |steps: &[&Step], of: fn(&Step) -> f64| -> f64 {
            let times = |s: &&Step| match s.kind {
                StepKind::Read => stretched.0,
                StepKind::Write => stretched.1,
                _ => 0.0,
            };
            steps.iter().map(|s| times(s) * f64::from(s.count.max(1)) * of(s)).sum()
        };
        let io = &self.facts.profile.io;
        let all = io.read_calls.zip(io.write_calls).map_or(0.0, |(r, w)| (r + w) as f64);
        let all_bytes = io.read_bytes.zip(io.written_bytes).map_or(0.0, |(r, w)| (r + w) as f64);
        let (seen, seen_bytes) = (transfers(steps, |_| 1.0), transfers(steps, |s| s.bytes as f64));
        if seen < 1.0 || all < 1.0 {
            return Err("the number of the program's calls is not known".to_owned());
        }
        // Calls weigh by what they cost: a program that reads by the megabyte made more calls while it was started.
        let weight = |calls: f64, bytes: f64| calls * CALL_BYTES + bytes;
        let scale = (weight(all, all_bytes) / weight(seen, seen_bytes)).max(1.0);
        let mut operations = vec![Operation::Read, Operation::Write];
        if self.plan.any(|a| matches!(a.op, Op::Fsync { .. })) {
            operations.push(Operation::Sync);
        }
        if self.plan.any(|a| a.op == Op::RecreateFile) {
            operations.extend([Operation::Open, Operation::Close, Operation::Names]);
        }
        if self.plan.any(|a| matches!(a.op, Op::Seek | Op::FadviseDontNeed)) {
            operations.push(Operation::Descriptor);
        }
        if self.plan.any(|a| a.op == Op::Read { fresh: true }) {
            operations.extend([Operation::Map, Operation::Fault]);
        }
        let entering = self.facts.entering_wall_ns();
        let program_io_ns = (wall_ns(self.facts, &operations) + entering) * (1.0 - unknown);
        if self.plan.calls() > MAX_CALLS {
            return Err(format!(
                "the record has more than {MAX_CALLS} calls, which is the limit of a replay"
            ));
        }
        // Tracing is in the gaps, and so are calls that are not replayed: the account knows the own time.
        let own = own_ns(self.facts) / scale;
        let gaps = self.plan.think_ns();
        let part = if gaps > 0.0 { (own / gaps).min(1.0) } else { 0.0 };
        self.plan.threads.iter_mut().flatten().for_each(|a| a.think_ns *= part);
        let threads = self.plan.threads.len().max(1) as f64;
        let pass_ns = program_io_ns / scale + own / threads;
        let written = self.plan.bytes(|d| d == Op::Write).max(1);
        let most = most_passes.min(scale).min((MAX_WRITTEN_BYTES / written) as f64);
        self.plan.passes = passes_of(if self.fills_the_cache() { MAX_ARM_NS } else { ARM_NS }, pass_ns, most);
        let times = self.lengthen();
        let scale = scale / (times * f64::from(self.plan.passes));
        let mut notes = Vec::new();
        if unknown > 0.01 {
            notes.push(format!(
                "{:.0} % of the time in calls is on files that are not replayed",
                100.0 * unknown
            ));
        }
        Ok(Baseline { plan: self.plan, scale, program_io_ns, overhead: 0.0, notes })
    }

    /// Puts the memory of each file's calls where the program has it.
    fn place_buffers(&mut self, steps: &[&Step]) {
        for at in 0..self.plan.files.len() {
            let of = |s: &Step| self.known(s) == Some(at as u32);
            let moves = |s: &&&Step| of(s) && matches!(s.kind, StepKind::Read | StepKind::Write);
            let most = steps.iter().filter(moves).map(|s| s.bytes).max().unwrap_or(0);
            let seen = buffer_offset(steps.iter().filter(moves).copied());
            let file = &mut self.plan.files[at];
            // What is not known of direct requests begins at a page: elsewhere they would be refused.
            let unknown = if file.direct { 0 } else { buffers::usual(most) };
            file.buffer_offset = seen.unwrap_or(unknown);
        }
    }

    /// A program that reads in one part of its run and writes in another is not seen equally long in both: runs of calls
    /// in order are made longer in that direction of which less was seen. Returns how many times, of reads and of writes.
    fn balance(&mut self, steps: &[&Step]) -> (f64, f64) {
        let io = &self.facts.profile.io;
        let seen = |kind: StepKind| -> f64 {
            steps.iter().filter(|s| s.kind == kind).map(|s| f64::from(s.count.max(1))).sum()
        };
        let part = |all: Option<u64>, kind: StepKind| {
            let (all, seen) = (all.unwrap_or(0) as f64, seen(kind));
            (all >= MANY_CALLS && seen >= 1.0).then_some(all / seen)
        };
        let (Some(reads), Some(writes)) =
            (part(io.read_calls, StepKind::Read), part(io.write_calls, StepKind::Write))
        else {
            return (1.0, 1.0);
        };
        let ratio = (reads / writes).max(writes / reads);
        if ratio < UNEVEN {
            return (1.0, 1.0);
        }
        let short = |what: Op| match what {
            Op::Read { .. } => reads > writes,
            Op::Write => writes > reads,
            _ => false,
        };
        let in_order = |a: &Action| a.count > 1 && u64::try_from(a.stride) == Ok(a.bytes);
        let calls = |picked: &dyn Fn(&Action) -> bool| -> f64 {
            self.plan.actions().filter(|a| picked(a)).map(|a| f64::from(a.count)).sum()
        };
        let all = calls(&|a| short(a.op));
        let runs = calls(&|a| short(a.op) && in_order(a));
        // What is no run in order is made no longer, and then nothing is.
        if runs < MOSTLY * all {
            return (1.0, 1.0);
        }
        let longer = |a: &Action| (f64::from(a.count) * ratio).min(f64::from(u32::MAX / 2)) as u32;
        for action in self.plan.threads.iter_mut().flatten().filter(|a| short(a.op) && in_order(a)) {
            action.count = longer(action);
        }
        if reads > writes { (ratio, 1.0) } else { (1.0, ratio) }
    }

    /// Whether so much was fetched of files that were not cached that the program's later calls find what came with earlier
    /// ones: the beginning of a run is then no picture of all of it.
    fn fills_the_cache(&self) -> bool {
        let fetched = self.facts.profile.io.device_read_bytes.unwrap_or(0) as f64;
        let cold = |f: &&PlanFile| f.role == Role::User && f.state == State::Cold && !f.direct;
        let hold: u64 = self.plan.files.iter().filter(cold).map(|f| f.size_bytes).sum();
        hold > 0 && fetched > FILLED * hold as f64
    }

    /// Makes one long pass of several that continue each other, so that a repair finds enough to merge. Returns how many.
    fn lengthen(&mut self) -> f64 {
        let [actions] = self.plan.threads.as_slice() else { return 1.0 };
        let continues = (0..).zip(&self.plan.files).all(|(index, file)| {
            let of: Vec<&Action> =
                actions.iter().filter(|a| a.file == index && order::has_place(a.op)).collect();
            file.role == Role::Sink || of.is_empty() || order::order(&of) == Order::Sequential
        });
        let bytes = self.plan.bytes(|d| matches!(d, Op::Read { .. } | Op::Write)).max(1);
        let room = (MAX_JOINED / actions.len().max(1)) as u64;
        let times = LONG_PASS_BYTES.div_ceil(bytes).min(room).min(u64::from(self.plan.passes));
        let Ok(times) = u32::try_from(times) else { return 1.0 };
        if !continues || times < 2 || self.plan.any(|a| matches!(a.op, Op::Fsync { .. })) {
            return 1.0;
        }
        let mut joined: Vec<Action> = Vec::new();
        for pass in 0..u64::from(times) {
            for action in actions {
                let shift = self.plan.files.get(action.file as usize).map_or(0, |f| f.shift_bytes);
                let action = Action { offset: action.offset.saturating_add(pass * shift), ..*action };
                match joined.last_mut() {
                    Some(last) if continued(last, &action) => last.count += action.count,
                    _ => joined.push(action),
                }
            }
        }
        self.plan.threads = vec![joined];
        let files = self.plan.files.iter_mut();
        files.for_each(|f| f.shift_bytes = f.shift_bytes.saturating_mul(u64::from(times)));
        self.plan.passes = (f64::from(self.plan.passes) / f64::from(times)).round().max(1.0) as u32;
        f64::from(times)
    }

    /// Decides how a file takes part. Returns how many passes over it see new places.
    fn settle(&mut self, at: usize) -> Result<f64, String> {
        let index = at as u32;
        let actions: Vec<&Action> =
            self.plan.actions().filter(|a| a.file == index && order::has_place(a.op)).collect();
        if self.plan.files[at].role == Role::Sink {
            return Ok(f64::INFINITY);
        }
        if self.plan.any(|a| a.file == index && a.op == Op::RecreateFile) {
            // Each of them begins empty, and goes with the next.
            let file = &mut self.plan.files[at];
            (file.role, file.state, file.size_bytes, file.shift_bytes) =
                (Role::ScratchEmpty, State::Warm, 0, 0);
            return Ok(f64::INFINITY);
        }
        let written = self.plan.any(|a| a.file == index && matches!(a.op, Op::Write | Op::Fsync { .. }));
        let order = order::order(&actions);
        let (low, high) = order::extent(&actions).unwrap_or((0, 0));
        let requests: u64 = actions.iter().map(|a| u64::from(a.count)).sum();
        let mean = actions.iter().map(|a| a.bytes * u64::from(a.count)).sum::<u64>() / requests.max(1);
        let file = &self.plan.files[at];
        let facts = self.facts;
        let io = &facts.profile.io;
        let fetched = io.device_read_bytes.unwrap_or(0) as f64;
        let moved = io.read_bytes.unwrap_or(0) as f64;
        let used: Option<&FileUse> = facts.profile.files.iter().find(|f| f.path == file.path);
        let cached = used.and_then(|u| u.cached_before).unwrap_or(0.0);
        let reads = actions.iter().any(|a| matches!(a.op, Op::Read { .. }));
        // Parts of blocks that were there before are read before they are written.
        let fetched_alone =
            !reads && cached < WARM && fetched > MOSTLY * io.written_bytes.unwrap_or(0) as f64;
        // Stretches show a part of what was written: whether it was all of the file, the sums tell.
        let all_of_it = io.written_bytes.unwrap_or(0) as f64 >= MOSTLY * file.size_bytes as f64;
        let appended = match order {
            Order::Sequential => !reads,
            Order::Forward => !reads && all_of_it && !fetched_alone,
            _ => false,
        };
        let role = match written {
            false => Role::User,
            true if appended => Role::ScratchEmpty,
            true => Role::ScratchFull,
        };
        let cold = match role {
            Role::User => fetched > LITTLE * moved && cached < WARM,
            _ => fetched > LITTLE * io.written_bytes.unwrap_or(0) as f64 && cached < WARM,
        };
        let mut size = file.size_bytes;
        if role == Role::User && size == 0 {
            return Err(format!("`{}` is gone or empty and cannot be read again", file.path));
        }
        if role == Role::ScratchFull {
            size = size.max(high).next_multiple_of(PAGE).min(MAX_WRITTEN_BYTES);
        }
        let (shift, mut fit) = order::shift(&actions, size);
        if role == Role::ScratchEmpty || !cold {
            fit = f64::INFINITY;
        }
        // A hint is in no record where it was given before the recording began: what reached the device shows it.
        let unasked = file.advice == Advice::Normal && cold && !file.direct;
        let asked = (mean.next_multiple_of(PAGE) + PAGE) as f64;
        let alone = facts.device_read_bytes_mean().is_some_and(|device| device <= 1.25 * asked);
        let file = &mut self.plan.files[at];
        if unasked && alone && mean < 32 * PAGE && order != Order::Backward && role == Role::User {
            file.advice = Advice::Random;
        }
        file.role = role;
        file.state = if cold { State::Cold } else { State::Warm };
        file.size_bytes = size;
        // Direct requests stay at whole blocks.
        file.shift_bytes = if file.direct { shift.next_multiple_of(PAGE) } else { shift };
        if role == Role::ScratchEmpty {
            let base = low / PAGE * PAGE;
            let actions = self.plan.threads.iter_mut().flatten();
            actions.filter(|a| a.file == index).for_each(|a| a.offset = a.offset.saturating_sub(base));
        }
        Ok(fit)
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod journal_tests;
