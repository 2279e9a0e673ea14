//! Pairs entries with returns and hands each call to what adds it up.
//!
//! Law: every entry is paired, or counted as open when its thread ended, entered anew, or the burst ended.

use std::collections::{BTreeMap, HashMap};

use iowhy_core::profile::{CallCount, CallPattern, CallSample, FileUse, StepKind};

use super::descriptors::{DescriptionId, Last, OpenFile, Tables};
use super::errno::errno_name;
use super::log::{Seen, StepLog};
use super::shape::{Direction, End, ForkFlags, Place, Shape};
use super::uses::{Extent, Files, Sink, Transfer, Uses};
use crate::event::{Event, Kind, Trace};

/// Entries of `CallCount::per_burst`. With more bursts, each entry stands for 2, 4, 8, ... bursts.
const PER_BURST: usize = 256;
/// Paths that are asked for at a time: each costs a few system calls.
const ASKED: usize = 256;
/// Greatest error number of the kernel.
const GREATEST_ERROR: i64 = 4095;
/// Offsets are aligned if they are multiples of this.
const PAGE: u64 = 4096;

/// Records seen, so that losses can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries into system calls.
    pub entries: u64,
    /// Returns from system calls.
    pub returns: u64,
    /// Returns whose entry was seen.
    pub paired: u64,
    /// Entries whose return was not seen.
    pub open: u64,
    /// Bursts that were cut, because records were lost or too many.
    pub cut: u64,
}

#[derive(Debug, Default)]
struct Count {
    calls: u64,
    failed: u64,
    errors: BTreeMap<i64, u64>,
    time_ns: u64,
    bytes: u64,
    per_burst: Vec<u32>,
    in_burst: u32,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: i64,
    shape: Shape,
    arguments: [u64; 6],
    pid: u32,
    tid: u32,
    entered_ns: u64,
    /// Descriptions it works on, as they were at its entry.
    descriptions: [Option<DescriptionId>; 2],
}

#[derive(Debug, Default)]
struct Burst {
    start_ns: u64,
    last_ns: u64,
    /// Time of the last record of each CPU.
    cpus: HashMap<u32, u64>,
    records: u64,
    /// When it was cut.
    cut_ns: Option<u64>,
    tables: Tables,
    calls: HashMap<u32, Call>,
}

/// Adds up bursts of system-call tracing.
pub struct CallTracer {
    name: fn(i64) -> Option<&'static str>,
    most_records: u64,
    counts: HashMap<i64, Count>,
    files: Files,
    log: StepLog,
    bursts: u32,
    /// How many bursts one entry of `per_burst` stands for.
    group: u32,
    /// Lengths of the bursts, one for each entry of `per_burst`.
    lengths_ns: Vec<u64>,
    observed_ns: u64,
    tally: Tally,
    burst: Option<Burst>,
}

/// The descriptor in an argument: the kernel looks at the lower 32 bits only.
fn descriptor(argument: u64) -> i32 {
    argument as u32 as i32
}

impl CallTracer {
    /// A tracer that has seen nothing. `name` gives the name of a system call number. A burst is cut after
    /// `most_records` records.
    pub fn new(name: fn(i64) -> Option<&'static str>, most_records: u64) -> Self {
        CallTracer {
            name,
            most_records,
            counts: HashMap::new(),
            files: Files::default(),
            log: StepLog::default(),
            bursts: 0,
            group: 1,
            lengths_ns: Vec::new(),
            observed_ns: 0,
            tally: Tally::default(),
            burst: None,
        }
    }

    /// A burst begins: records from `time_ns` (CLOCK_MONOTONIC) on belong to it, older ones are ignored. `open` holds
    /// the open descriptors of each process, read as shortly before as possible. Positions are right only if all
    /// threads of these processes are traced. A burst that was not ended is ended at its last record.
    pub fn begin(&mut self, time_ns: u64, open: &[(u32, Vec<OpenFile>)]) {
        if let Some(burst) = &self.burst {
            self.end(burst.last_ns);
        }
        self.log.begin(time_ns);
        self.burst = Some(Burst {
            start_ns: time_ns,
            last_ns: time_ns,
            tables: Tables::from_snapshot(open, &mut self.files),
            ..Burst::default()
        });
    }

    /// Takes an event of the burst. False: no more are wanted, because there is no burst or it was cut: end it.
    /// Records that the kernel lost cut a burst at the last record of the same CPU.
    pub fn event(&mut self, event: &Event<'_>) -> bool {
        let Some(mut burst) = self.burst.take() else { return false };
        if burst.cut_ns.is_none() && event.time_ns >= burst.start_ns {
            self.take(&mut burst, event);
        }
        let more = burst.cut_ns.is_none();
        self.burst = Some(burst);
        more
    }

    /// Asks for the paths of descriptors that were made during the burst. `resolve(pid, descriptor)` reads `/proc`
    /// now, at `now_ns` (CLOCK_MONOTONIC, taken before the first reading). Call it while records still come: a record
    /// of a close that is older than the answer makes the answer void, as it may be about another file.
    pub fn settle(&mut self, now_ns: u64, resolve: &mut dyn FnMut(u32, i32) -> Option<OpenFile>) {
        if let Some(burst) = &mut self.burst {
            burst.tables.resolve(now_ns, ASKED, resolve);
        }
    }

    /// The burst ended at `time_ns`, or where it was cut. Calls still under way are counted as open; the part of
    /// their time that lies in the burst counts. Returns the length of the burst and the calls it saw return, as
    /// [`super::Planner::saw`] wants them.
    pub fn end(&mut self, time_ns: u64) -> (u64, u64) {
        let Some(mut burst) = self.burst.take() else { return (0, 0) };
        let end_ns = burst.cut_ns.unwrap_or(time_ns).max(burst.start_ns);
        self.tally.cut += u64::from(burst.cut_ns.is_some());
        for (_, call) in std::mem::take(&mut burst.calls) {
            self.abandon(&mut burst.tables, &call, end_ns);
        }
        let ended = burst.tables.finish(&mut self.files);
        self.log.end(ended);
        self.files.end_burst();
        let length_ns = end_ns - burst.start_ns;
        self.observed_ns = self.observed_ns.saturating_add(length_ns);
        (length_ns, self.end_counts(length_ns))
    }

    /// Puts the counts of this burst into the entries by burst.
    fn end_counts(&mut self, length_ns: u64) -> u64 {
        let entry = (self.bursts / self.group) as usize;
        if entry >= PER_BURST {
            for count in self.counts.values_mut() {
                count.per_burst = count
                    .per_burst
                    .chunks(2)
                    .map(|p| p.iter().fold(0_u32, |s, c| s.saturating_add(*c)))
                    .collect();
            }
            self.lengths_ns = self
                .lengths_ns
                .chunks(2)
                .map(|p| p.iter().fold(0_u64, |s, l| s.saturating_add(*l)))
                .collect();
            self.group = self.group.saturating_mul(2);
        }
        let entry = (self.bursts / self.group) as usize;
        self.bursts = self.bursts.saturating_add(1);
        self.lengths_ns.resize(entry + 1, 0);
        self.lengths_ns[entry] = self.lengths_ns[entry].saturating_add(length_ns);
        let mut calls = 0;
        for count in self.counts.values_mut() {
            let in_burst = std::mem::take(&mut count.in_burst);
            calls += u64::from(in_burst);
            count.per_burst.resize(entry + 1, 0);
            count.per_burst[entry] = count.per_burst[entry].saturating_add(in_burst);
        }
        calls
    }

    /// What was seen of records so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The calls in their order, of all bursts that have ended; they are told once.
    pub fn take_pattern(&mut self) -> CallPattern {
        self.log.take()
    }

    /// All that was seen. `complete`: the caller knows that bursts covered the whole run without loss.
    pub fn finish(mut self, complete: bool) -> (CallSample, Vec<FileUse>) {
        if let Some(burst) = &self.burst {
            self.end(burst.last_ns);
        }
        let named = |(number, count): (i64, Count)| CallCount {
            name: (self.name)(number).map_or_else(|| format!("syscall_{number}"), str::to_owned),
            calls: count.calls,
            failed: count.failed,
            errors: count.errors.into_iter().map(|(errno, calls)| (errno_name(errno), calls)).collect(),
            time_ns: count.time_ns,
            bytes: count.bytes,
            per_burst: count.per_burst,
        };
        let mut calls: Vec<CallCount> = self.counts.into_iter().map(named).collect();
        calls.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
        let complete = complete && self.tally.cut == 0;
        let sample = CallSample {
            bursts: self.bursts,
            observed_ns: self.observed_ns,
            complete,
            calls,
            burst_lengths_ns: self.lengths_ns,
        };
        (sample, self.files.finish())
    }

    fn take(&mut self, burst: &mut Burst, event: &Event<'_>) {
        match event.kind {
            Kind::Lost { .. } => {
                burst.cut_ns = Some(burst.cpus.get(&event.cpu).copied().unwrap_or(burst.start_ns));
                return;
            }
            Kind::Fork { parent_pid, .. } => burst.tables.fork(parent_pid, event.pid, false, false),
            Kind::Exit => {
                if let Some(call) = burst.calls.remove(&event.tid) {
                    self.abandon(&mut burst.tables, &call, event.time_ns);
                }
            }
            Kind::Trace(Trace::Enter { number, arguments }) => self.enter(burst, event, number, arguments),
            Kind::Trace(Trace::Return { number, value }) => self.leave(burst, event, number, value),
            _ => return,
        }
        burst.last_ns = burst.last_ns.max(event.time_ns);
        burst.cpus.insert(event.cpu, event.time_ns);
        burst.records += 1;
        if burst.records >= self.most_records {
            burst.cut_ns = Some(burst.last_ns);
        }
    }

    fn enter(&mut self, burst: &mut Burst, event: &Event<'_>, number: i64, arguments: [u64; 6]) {
        self.tally.entries += 1;
        self.meet(burst, event);
        if let Some(call) = burst.calls.remove(&event.tid) {
            self.abandon(&mut burst.tables, &call, event.time_ns);
        }
        let (pid, now) = (event.pid, event.time_ns);
        let shape = Shape::from_number(number);
        let (tables, files) = (&mut burst.tables, &mut self.files);
        let used = |index: usize| Some(descriptor(arguments[index])).filter(|fd| *fd >= 0);
        let mut descriptors = [None; 2];
        match shape {
            Shape::Move { .. } | Shape::Seek | Shape::Sync | Shape::Advise => descriptors[0] = used(0),
            Shape::Relay { source, target, .. } => {
                descriptors = [used(source.descriptor), used(target.descriptor)];
            }
            Shape::Map if arguments[3] & libc::MAP_ANONYMOUS as u64 == 0 => descriptors[0] = used(4),
            Shape::Duplicate | Shape::DuplicateTo { .. } | Shape::Control => descriptors[0] = used(0),
            // A closed number may be given to another thread's open before this call returns.
            Shape::Close => tables.close(pid, descriptor(arguments[0]), now, files),
            Shape::CloseRange => {
                // CLOSE_RANGE_CLOEXEC closes at exec only.
                let at_exec = arguments[2] & 4 != 0;
                let (first, last) = (arguments[0] as u32, arguments[1] as u32);
                if !at_exec {
                    tables.close_where(pid, now, files, |fd, _| (first..=last).contains(&(fd as u32)));
                }
            }
            Shape::Exit => tables.end(pid, now, files),
            _ => {}
        }
        let descriptions = descriptors.map(|fd| {
            let id = tables.find(pid, fd?, files);
            tables.hold(id);
            Some(id)
        });
        burst.calls.insert(
            event.tid,
            Call { number, shape, arguments, pid, tid: event.tid, entered_ns: now, descriptions },
        );
    }

    /// The process of an event gets a table if it has none: a copy of its parent's, if just one is forking.
    fn meet(&mut self, burst: &mut Burst, event: &Event<'_>) {
        burst.tables.thread(event.pid, event.tid, &mut self.files);
        if burst.tables.knows(event.pid) {
            return;
        }
        let mut forking = burst
            .calls
            .values()
            .filter(|call| matches!(call.shape, Shape::Fork { .. }) && call.pid != event.pid)
            .map(|call| (call.pid, shares_table(call)));
        if let (Some((parent, share)), None) = (forking.next(), forking.next()) {
            burst.tables.fork(parent, event.pid, share, false);
        }
    }

    fn leave(&mut self, burst: &mut Burst, event: &Event<'_>, number: i64, value: i64) {
        self.tally.returns += 1;
        self.meet(burst, event);
        let call = burst.calls.remove(&event.tid);
        let paired = call.filter(|call| call.number == number);
        if let (Some(call), None) = (&call, &paired) {
            self.abandon(&mut burst.tables, call, event.time_ns);
        }
        let shape = paired.map_or_else(|| Shape::from_number(number), |call| call.shape);
        if paired.is_none() && matches!(shape, Shape::Fork { .. }) && value == 0 {
            // The first thing a child does is to return from a call that its parent made.
            return;
        }
        let failed = (-GREATEST_ERROR..0).contains(&value);
        // Of a call that began before the burst, the part in the burst counts: so time scales as counts do.
        let entered_ns = paired.map_or(burst.start_ns, |call| call.entered_ns);
        let time_ns =
            if paired.is_some() || call.is_none() { event.time_ns.saturating_sub(entered_ns) } else { 0 };
        let moved = if shape.returns_bytes() && !failed { u64::try_from(value).unwrap_or(0) } else { 0 };
        let count = self.counts.entry(number).or_default();
        count.calls += 1;
        count.in_burst = count.in_burst.saturating_add(1);
        if failed {
            count.failed += 1;
            *count.errors.entry(-value).or_default() += 1;
        }
        count.time_ns = count.time_ns.saturating_add(time_ns);
        count.bytes = count.bytes.saturating_add(moved);
        match paired {
            Some(call) => {
                self.tally.paired += 1;
                if !failed {
                    self.succeeded(&mut burst.tables, &call, value, event.time_ns);
                }
                self.drop_call(&mut burst.tables, &call);
            }
            // A thread that executes takes the number of the first thread, so its entry may be under another number.
            None if shape == Shape::Execute && value == 0 => {
                burst.tables.execute(event.pid, 0, &mut self.files)
            }
            None => self.unplaced(shape, moved, failed, time_ns),
        }
    }

    /// Bytes of a call whose arguments were not seen go to the unknown file, so that bytes of files and of calls
    /// agree.
    fn unplaced(&mut self, shape: Shape, bytes: u64, failed: bool, time_ns: u64) {
        let directions: &[Direction] = match shape {
            Shape::Move { direction: Direction::Read, .. } => &[Direction::Read],
            Shape::Move { direction: Direction::Write, .. } => &[Direction::Write],
            Shape::Relay { .. } => &[Direction::Read, Direction::Write],
            _ => return,
        };
        if failed {
            return;
        }
        let mut sink = Sink::File(self.files.find(super::UNKNOWN, "unknown"));
        for direction in directions {
            let transfer = Transfer { asked: bytes, bytes, time_ns, ..Transfer::default() };
            self.files.transfer(&mut sink, *direction, &transfer);
        }
    }

    /// A call whose return will not be seen.
    fn abandon(&mut self, tables: &mut Tables, call: &Call, time_ns: u64) {
        self.tally.open += 1;
        let count = self.counts.entry(call.number).or_default();
        count.time_ns = count.time_ns.saturating_add(time_ns.saturating_sub(call.entered_ns));
        self.drop_call(tables, call);
    }

    fn drop_call(&mut self, tables: &mut Tables, call: &Call) {
        for id in call.descriptions.into_iter().flatten() {
            tables.release(id, &mut self.files);
        }
    }

    fn succeeded(&mut self, tables: &mut Tables, call: &Call, value: i64, now: u64) {
        let (pid, arguments) = (call.pid, &call.arguments);
        let time_ns = now.saturating_sub(call.entered_ns);
        let bytes = u64::try_from(value).unwrap_or(0);
        let result = i32::try_from(value).ok().filter(|fd| *fd >= 0);
        let first = call.descriptions[0];
        let files = &mut self.files;
        match call.shape {
            Shape::Move { direction, place, asked } => {
                let asked = asked.map_or(bytes, |index| arguments[index]);
                let (file, offset) =
                    self.moved(tables, first, direction, place, (arguments, asked, bytes, time_ns));
                let kind = if direction == Direction::Read { StepKind::Read } else { StepKind::Write };
                let memory = (call.shape.has_buffer()).then_some(arguments[1]);
                self.log.note(Seen { kind, file, place: offset, bytes: asked, memory, ..seen(call, now) });
            }
            Shape::Relay { source, target, asked } => {
                let [from, to] = call.descriptions;
                let amount = (arguments, arguments[asked], bytes, time_ns);
                let End { place, .. } = source;
                self.moved(tables, from, Direction::Read, place, amount);
                self.moved(tables, to, Direction::Write, target.place, amount);
            }
            Shape::Seek => {
                if let Some(description) = first.and_then(|id| tables.get(id)) {
                    description.position = Some(bytes);
                    description.last = Last::Seek;
                }
            }
            Shape::Sync => edit(tables, files, first, |uses| uses.syncs += 1),
            Shape::Map => {
                let code = arguments[2] & libc::PROT_EXEC as u64 != 0;
                edit(tables, files, first, |uses| {
                    uses.mapped = true;
                    uses.code |= code;
                });
            }
            Shape::Open { .. } | Shape::Create | Shape::Make { .. } => {
                let Some(fd) = result else { return };
                let (kind, flags) = match call.shape {
                    Shape::Open { flags } => ("unknown", flags.map(|index| arguments[index] as u32)),
                    Shape::Make { kind } => (kind, None),
                    _ => ("unknown", Some((libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as u32)),
                };
                let id = tables.open(pid, fd, kind, flags, Some(call.entered_ns), files);
                if !matches!(call.shape, Shape::Make { .. }) {
                    edit(tables, files, Some(id), |uses| uses.opens += 1);
                }
            }
            Shape::Duplicate => {
                if let (Some(fd), Some(id)) = (result, first) {
                    tables.set(pid, fd, id, false, call.entered_ns, files);
                }
            }
            Shape::DuplicateTo { flags } => {
                let same = descriptor(arguments[0]) == descriptor(arguments[1]);
                let close_on_exec = flags.is_some_and(|i| arguments[i] & libc::O_CLOEXEC as u64 != 0);
                if let (Some(fd), Some(id), false) = (result, first, same) {
                    tables.set(pid, fd, id, close_on_exec, call.entered_ns, files);
                }
            }
            Shape::Control => control(tables, files, call, value),
            Shape::CloseRange if arguments[2] & 4 != 0 => {
                let (low, high) = (arguments[0] as u32, (arguments[1] as u32).min(65_536));
                (low..=high).for_each(|fd| tables.set_close_on_exec(pid, fd as i32, true));
            }
            Shape::Fork { flags } => {
                let thread = flags == ForkFlags::Argument && arguments[0] & libc::CLONE_THREAD as u64 != 0;
                if let (Ok(child), false) = (u32::try_from(value), thread || value == 0) {
                    tables.fork(pid, child, shares_table(call), flags == ForkFlags::Unseen);
                }
            }
            Shape::Execute => tables.execute(pid, call.entered_ns, files),
            Shape::Close | Shape::CloseRange | Shape::Exit | Shape::Other => {}
            Shape::Unmap | Shape::Advise | Shape::AdviseMap => {}
        }
        self.log_step(tables, call, value, now);
    }

    /// Puts a call into the log, if it is of a kind that is logged. Transfers come from [`CallTracer::moved`], which
    /// knows their place.
    fn log_step(&mut self, tables: &mut Tables, call: &Call, value: i64, now: u64) {
        let arguments = &call.arguments;
        let anonymous = arguments[3] & libc::MAP_ANONYMOUS as u64 != 0;
        let (kind, place, bytes, argument, memory) = match call.shape {
            Shape::Seek => (StepKind::Seek, u64::try_from(value).ok(), 0, 0, None),
            Shape::Sync => (StepKind::Sync, None, 0, u32::from(call.number == libc::SYS_fsync), None),
            Shape::Map if anonymous => {
                (StepKind::MmapAnon, None, arguments[1], arguments[3] as u32, Some(value as u64))
            }
            Shape::Map => {
                (StepKind::Map, Some(arguments[5]), arguments[1], arguments[3] as u32, Some(value as u64))
            }
            Shape::Unmap => (StepKind::Munmap, None, arguments[1], 0, Some(arguments[0])),
            Shape::Advise => (StepKind::Advise, Some(arguments[1]), arguments[2], arguments[3] as u32, None),
            Shape::AdviseMap => {
                (StepKind::AdviseMap, None, arguments[1], arguments[2] as u32, Some(arguments[0]))
            }
            Shape::Open { .. } | Shape::Create => (StepKind::Open, None, 0, 0, None),
            Shape::Close => (StepKind::Close, None, 0, 0, None),
            _ => return,
        };
        let opened = || tables.opened(call.pid, i32::try_from(value).ok()?);
        let id = if kind == StepKind::Open { opened() } else { call.descriptions[0] };
        let file = id.and_then(|id| tables.get(id)).map(|d| d.serial);
        let seen = Seen { kind, file, place, bytes, argument, memory, ..seen(call, now) };
        self.log.note(seen);
    }

    /// Bytes went through a description. `amount`: the arguments of the call, bytes asked for, bytes moved, duration.
    /// Returns the description's serial number and the offset, where known.
    fn moved(
        &mut self,
        tables: &mut Tables,
        id: Option<DescriptionId>,
        direction: Direction,
        place: Place,
        amount: (&[u64; 6], u64, u64, u64),
    ) -> (Option<u32>, Option<u64>) {
        let (arguments, asked, bytes, time_ns) = amount;
        let Some(description) = id.and_then(|id| tables.get(id)) else {
            // A negative descriptor cannot succeed; a record that says so was damaged. Bytes are kept together.
            self.unplaced(Shape::Move { direction, place, asked: None }, bytes, false, time_ns);
            return (None, None);
        };
        let side = direction as usize;
        let places = description.has_offsets();
        let append = places && direction == Direction::Write && description.has(libc::O_APPEND) == Some(true);
        let by_position = match place {
            Place::Position => true,
            Place::Argument(_) => false,
            Place::ArgumentOrPosition(index) => arguments[index] == u64::MAX,
            Place::Pointer(index) => arguments[index] == 0,
        };
        let offset = match place {
            _ if append || !places => None,
            _ if by_position => description.position,
            Place::Argument(index) | Place::ArgumentOrPosition(index) => Some(arguments[index]),
            Place::Position | Place::Pointer(_) => None,
        };
        let in_step = by_position && description.last == Last::Moved(Some(side));
        // A transfer of nothing (end of file) says nothing about where the program reads.
        let looked_at = places && bytes > 0;
        let sequential = match (offset, description.ends[side]) {
            _ if append => Some(true),
            (Some(offset), Some(end)) => Some(offset == end),
            (None, _) if in_step => Some(true),
            _ => None,
        };
        let transfer = Transfer {
            asked,
            bytes,
            time_ns,
            sequential: sequential.filter(|_| looked_at),
            unaligned: offset.filter(|_| looked_at).map(|at| at % PAGE != 0 || asked % PAGE != 0),
            after_seek: Some(description.last == Last::Seek)
                .filter(|_| looked_at && description.last != Last::Unknown),
            direct: description.has(libc::O_DIRECT).filter(|_| places),
            // O_SYNC contains the bit of O_DSYNC.
            synchronous: description.has(libc::O_DSYNC).filter(|_| places),
            extent: match offset {
                _ if append => Extent::Appended,
                Some(offset) => Extent::From(offset),
                None => Extent::Unknown,
            },
        };
        self.files.transfer(&mut description.sink, direction, &transfer);
        if bytes > 0 {
            description.ends[side] = offset.map(|offset| offset.saturating_add(bytes));
        }
        if by_position {
            description.position = offset.map(|offset| offset.saturating_add(bytes));
        }
        description.last = Last::Moved(by_position.then_some(side));
        (Some(description.serial), offset)
    }
}

/// Who called and when; the rest is to be filled in.
fn seen(call: &Call, now: u64) -> Seen {
    Seen {
        pid: call.pid,
        tid: call.tid,
        entered_ns: call.entered_ns,
        returned_ns: now,
        kind: StepKind::Read,
        file: None,
        place: None,
        bytes: 0,
        argument: 0,
        memory: None,
    }
}

/// Whether the child that this call makes uses the parent's descriptor table.
fn shares_table(call: &Call) -> bool {
    call.shape == Shape::Fork { flags: ForkFlags::Argument }
        && call.arguments[0] & libc::CLONE_FILES as u64 != 0
}

/// Changes what was done through a description.
fn edit(tables: &mut Tables, files: &mut Files, id: Option<DescriptionId>, change: impl FnOnce(&mut Uses)) {
    match id.and_then(|id| tables.get(id)).map(|description| &mut description.sink) {
        Some(Sink::Local(local)) => change(local.uses()),
        Some(Sink::File(file)) => {
            if let Some(uses) = files.uses(*file) {
                change(uses);
            }
        }
        None => {}
    }
}

/// fcntl: duplicates, descriptor flags, status flags.
fn control(tables: &mut Tables, files: &mut Files, call: &Call, value: i64) {
    let [fd, command, argument, ..] = call.arguments;
    let Some(id) = call.descriptions[0] else { return };
    match command as i32 {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            if let Ok(new) = i32::try_from(value) {
                let close_on_exec = command as i32 == libc::F_DUPFD_CLOEXEC;
                tables.set(call.pid, new, id, close_on_exec, call.entered_ns, files);
            }
        }
        libc::F_SETFD => {
            let close_on_exec = argument & libc::FD_CLOEXEC as u64 != 0;
            tables.set_close_on_exec(call.pid, descriptor(fd), close_on_exec);
        }
        libc::F_SETFL => {
            // These alone can be changed (fcntl(2)); O_SYNC does not change.
            let mutable = (libc::O_APPEND | libc::O_DIRECT | libc::O_NOATIME | libc::O_NONBLOCK) as u32;
            if let Some(description) = tables.get(id) {
                description.flags =
                    description.flags.map(|flags| flags & !mutable | argument as u32 & mutable);
            }
        }
        _ => {}
    }
}
