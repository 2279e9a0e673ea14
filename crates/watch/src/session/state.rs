//! What events change: the time line, who lives, block requests, sums.
//!
//! Readings from `/proc` are taken now, but records of the kernel arrive later. So readings wait here as notes until all
//! older events have been handed on: the time line gets everything in the order of its time.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use super::by_process::ByProcess;
use super::counted::Counted;
use super::files::Files;
use super::groups::GroupsSeen;
use super::hidden::Hidden;
use super::programs::{Owners, Programs};
use super::thread_set::ThreadSet;
use crate::block::BlockTracer;
use crate::event::{Event, Kind};
use crate::in_kernel::Namer;
use crate::symbols::Symbols;
use crate::timeline::{Begin, Existing, Found, Parts, ThreadTotal, Timeline, Totals};
use iowhy_core::profile::OwnIo;
use iowhy_linux::reader::Reader;

/// Notes that may wait. More than this come only when records do not: then they go on at once.
const MAX_NOTES: usize = 8192;

/// Something that was read at a known time.
pub(super) enum What {
    /// A thread that was there before.
    Existing { pid: u32, tid: u32, name: String, found: Found, names: Vec<String> },
    /// What a thread did just then.
    Look { tid: u32, found: Found, names: Vec<String> },
    /// Its exact times since birth.
    Times { tid: u32, running_ns: u64, queued_ns: u64 },
    /// Recording of switches begins or ends.
    Switches(bool),
    /// A thread that was met without an event.
    Met { pid: u32, tid: u32, parent_pid: u32, name: String },
    /// A thread that is gone without an event.
    Gone { tid: u32 },
}

/// How the time line is to begin once its start is known.
struct Opening {
    start_ns: u64,
    switches: bool,
    kernel_stacks: bool,
    /// The command whose exec is the start.
    until_exec_of: Option<u32>,
}

/// CPU time by the kernel's account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTotal {
    /// Of the program, at least.
    pub(super) ns: Option<u64>,
    /// Whether it is also at most so much.
    pub(super) exact: bool,
    /// Of interrupts and the hypervisor, on all CPUs.
    pub(super) taken_ns: u64,
}

/// What events change. Apart from the sources, so that a source can be drained into it.
pub(super) struct State<'a> {
    on_path: &'a dyn Fn(&[&str]) -> bool,
    /// What has a time of its own is kept.
    pub(super) keep_events: bool,
    line: Option<Timeline<'a>>,
    opening: Option<Opening>,
    symbols: Option<Symbols>,
    notes: VecDeque<(u64, What)>,
    /// Only threads of the threads count, although others of the same process may be seen: ourselves are watched.
    pub(super) only_listed: bool,
    /// Whether the time line takes switches just now.
    watching: bool,
    pub(super) threads: ThreadSet,
    pub(super) block: Option<BlockTracer>,
    /// Requests of rings on files are told.
    pub(super) rings_followed: bool,
    pub(super) counted: Counted,
    pub(super) by_process: ByProcess,
    /// What each process did itself, once that is known.
    pub(super) own_io: HashMap<u32, OwnIo>,
    pub(super) files: Files,
    pub(super) groups: GroupsSeen,
    pub(super) reader: Reader,
    pub(super) start_ns: u64,
    /// Switches that were recorded, those of other programs included where all are recorded.
    pub(super) switches: u64,
    /// Switches and clock ticks of the program itself since its start: what recording took out of it.
    pub(super) own_switches: u64,
    pub(super) own_ticks: u64,
    /// New processes since the last round.
    pub(super) born: Vec<u32>,
    /// Exact times of the command's first thread, read after its end: number, running, queued.
    pub(super) last_times: Option<(u32, u64, u64)>,
    /// Threads of the threads that ended.
    pub(super) ended_threads: u64,
    root: Option<u32>,
    /// Programs that may not be watched.
    pub(super) hidden: Hidden,
    /// Threads of the command that live, and when the last one ended that was seen to.
    root_threads: usize,
    root_exit_ns: Option<u64>,
    /// The last thread of the command is its first one and is ending: the time line keeps it until the end.
    root_ending: bool,
    /// Other programs at work.
    pub(super) programs: RefCell<Programs>,
}

impl<'a> State<'a> {
    pub(super) fn new(on_path: &'a dyn Fn(&[&str]) -> bool, keep_events: bool, now: u64) -> State<'a> {
        State {
            on_path,
            keep_events,
            line: None,
            opening: None,
            symbols: Some(Symbols::of_this_machine()),
            notes: VecDeque::new(),
            only_listed: false,
            watching: false,
            threads: ThreadSet::default(),
            block: None,
            rings_followed: false,
            counted: Counted::default(),
            by_process: ByProcess::default(),
            own_io: HashMap::new(),
            files: Files::new(),
            groups: GroupsSeen::default(),
            reader: Reader::new(),
            start_ns: now,
            switches: 0,
            own_switches: 0,
            own_ticks: 0,
            born: Vec::new(),
            last_times: None,
            ended_threads: 0,
            root: None,
            hidden: Hidden::default(),
            root_threads: 1,
            root_exit_ns: None,
            root_ending: false,
            programs: RefCell::default(),
        }
    }

    /// Block requests are seen.
    pub(super) fn trace_blocks(&mut self) {
        let mut block = BlockTracer::new();
        if self.keep_events {
            block.keep();
        }
        self.block = Some(block);
    }

    /// Makes the names of kernel functions known: the kernel is asked for each that is met, where it answers. Else its whole table is read
    /// before watching begins: beside the program it would take a CPU from it, and who waits for it would not empty the rings meanwhile.
    pub(super) fn prepare_names(&mut self) {
        let Some(symbols) = &mut self.symbols else { return };
        match Namer::open() {
            Some(namer) => symbols.ask_kernel(namer),
            None => symbols.prepare_kernel(),
        }
    }

    /// Code of a process that runs already.
    pub(super) fn add_maps(&mut self, pid: u32) {
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let text = String::from_utf8_lossy(&maps);
        match (&mut self.line, &mut self.symbols) {
            (Some(line), _) => line.add_maps(pid, &text),
            (None, Some(symbols)) => symbols.add_maps(pid, &text),
            (None, None) => {}
        }
    }

    /// The time line is to begin: now, or with the exec of a command where that is recorded.
    pub(super) fn open_line(&mut self, now: u64, switches: bool, kernel_stacks: bool, command: Option<u32>) {
        self.start_ns = now;
        self.root = command;
        let opening = Opening { start_ns: now, switches, kernel_stacks, until_exec_of: command };
        if switches && command.is_some() {
            self.opening = Some(opening);
        } else {
            self.begin_line(opening);
        }
    }

    fn begin_line(&mut self, opening: Opening) {
        self.start_ns = opening.start_ns;
        self.watching = opening.switches;
        self.line = Some(Timeline::new(Begin {
            start_ns: opening.start_ns,
            on_path: self.on_path,
            switches: opening.switches,
            kernel_stacks: opening.kernel_stacks,
            symbols: self.symbols.take().unwrap_or_else(Symbols::of_this_machine),
            requests: self.block.is_some(),
            rings: self.rings_followed,
            log: self.keep_events,
        }));
        if opening.until_exec_of.is_some() {
            // The state of the command from while it was held.
            self.settle(opening.start_ns);
        }
    }

    /// Something was read at this time.
    pub(super) fn note(&mut self, time_ns: u64, what: What) {
        if self.notes.len() >= MAX_NOTES && self.line.is_some() {
            self.settle(u64::MAX);
        }
        self.notes.push_back((time_ns, what));
    }

    /// Hands on the notes up to this time.
    pub(super) fn settle(&mut self, until_ns: u64) {
        let Some(line) = &mut self.line else { return };
        while self.notes.front().is_some_and(|(time, _)| *time <= until_ns) {
            let Some((time, what)) = self.notes.pop_front() else { return };
            // The time line did not exist before its start.
            let over = if self.root_threads == 0 { self.root_exit_ns } else { None };
            let time = time.max(self.start_ns).min(over.unwrap_or(u64::MAX));
            match what {
                What::Existing { pid, tid, name, found, names } => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    line.existing(time, Existing { pid, tid, name: &name, found, names: &names });
                }
                What::Look { tid, found, names } => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    line.look(time, tid, found, &names);
                }
                // It would take what the thread still runs for, and what no record shows, for a gap of the records.
                What::Times { tid, .. } if self.root_ending && Some(tid) == self.root => {}
                What::Times { tid, running_ns, queued_ns } => {
                    line.cumulative(tid, time, running_ns, queued_ns)
                }
                What::Switches(on) => {
                    self.watching = on;
                    if on { line.switches_on(time) } else { line.switches_off(time) }
                }
                What::Met { pid, tid, parent_pid, name } => {
                    let kind = Kind::Fork { parent_pid, parent_tid: parent_pid };
                    line.event(&Event { time_ns: time, cpu: 0, pid, tid, kind });
                    let kind = Kind::Name { name: &name, exec: false };
                    line.event(&Event { time_ns: time, cpu: 0, pid, tid, kind });
                }
                What::Gone { tid } => line.gone(time, tid),
            }
        }
    }

    /// Hands an event to all that want it.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if self.only_listed && !self.is_listed(event) {
            return;
        }
        match event.kind {
            Kind::Fork { parent_pid, parent_tid } => {
                let ours = self.threads.contains(parent_tid) || self.threads.contains(parent_pid);
                if ours && self.threads.add(event.pid, event.tid) {
                    self.root_threads += usize::from(Some(event.pid) == self.root);
                    if event.pid == event.tid {
                        self.born.push(event.pid);
                    }
                }
            }
            Kind::Exit if self.hidden.is_no_exit(event.pid, event.tid) => {
                self.settle(event.time_ns);
                if let Some(line) = self.line.as_mut().filter(|_| self.hidden.hides()) {
                    line.hide(event.time_ns, event.tid);
                }
                return;
            }
            Kind::Exit => {
                self.ended(event);
                if self.root_ending && Some(event.tid) == self.root {
                    return self.settle(event.time_ns);
                }
            }
            Kind::Out { .. } => self.switches += 1,
            Kind::Map { length, code, path, .. } => {
                self.hidden.maps(event.pid);
                if self.threads.contains(event.tid) {
                    self.files.map(path, length, code);
                }
            }
            Kind::Request(_) => return self.request(event),
            Kind::RingFiles { busy } => {
                self.settle(event.time_ns);
                if let Some(requests) = self.line.as_mut().and_then(Timeline::requests) {
                    requests.ring_files(event.time_ns, busy);
                }
                return;
            }
            Kind::Name { exec: true, name } => {
                self.programs.get_mut().executes(event.pid);
                if self.root == Some(event.pid) || self.threads.contains(event.tid) {
                    self.hidden.executes(event.pid, name);
                }
                // A thread that is not the first takes the number of the first, which ended just before.
                if Some(event.pid) == self.root && self.threads.add(event.pid, event.tid) {
                    self.root_threads += 1;
                }
                let awaited = self.opening.as_ref().and_then(|o| o.until_exec_of) == Some(event.pid);
                if awaited && let Some(opening) = self.opening.take() {
                    self.begin_line(Opening { start_ns: event.time_ns.max(opening.start_ns), ..opening });
                }
            }
            _ => {}
        }
        self.settle(event.time_ns);
        // Between the moment that recording was switched and the moment it is so on every CPU, some records still
        // come; likewise before the start.
        let switch = matches!(event.kind, Kind::Out { .. } | Kind::In | Kind::LeavingStack(_));
        let tick = matches!(event.kind, Kind::Tick(_));
        let ending = tick && self.root_ending && Some(event.tid) == self.root;
        let outside = event.time_ns < self.start_ns || (self.is_over(event.time_ns) && !ending);
        let dropped = outside && (switch || tick);
        if tick && !outside && !self.threads.contains(event.tid) {
            self.programs.get_mut().meet(event.pid);
        }
        if !outside && (tick || matches!(event.kind, Kind::Out { .. })) && self.threads.contains(event.tid) {
            *if tick { &mut self.own_ticks } else { &mut self.own_switches } += 1;
        }
        if let Some(line) = &mut self.line
            && !dropped
            && (!switch || self.watching)
        {
            line.event(event);
        }
    }

    fn is_listed(&self, event: &Event<'_>) -> bool {
        match event.kind {
            Kind::Fork { parent_tid, .. } => self.threads.contains(parent_tid),
            Kind::Request(_) | Kind::RingFiles { .. } | Kind::Map { .. } | Kind::Lost { .. } => true,
            _ => event.pid != std::process::id() || self.threads.contains(event.tid),
        }
    }

    fn ended(&mut self, event: &Event<'_>) {
        let was_there = self.threads.remove(event.tid);
        self.ended_threads += u64::from(was_there);
        if Some(event.pid) == self.root {
            self.root_threads = self.root_threads.saturating_sub(usize::from(was_there));
            self.root_exit_ns = Some(event.time_ns);
            self.root_ending = self.root_threads == 0 && event.tid == event.pid && self.line.is_some();
        }
    }

    fn request(&mut self, event: &Event<'_>) {
        if event.time_ns < self.start_ns || self.is_over(event.time_ns) {
            return;
        }
        // Readings of earlier moments end sleeps, too.
        self.settle(event.time_ns);
        let in_flight = self.line.as_mut().and_then(Timeline::requests);
        let tasks = Owners { threads: &self.threads, programs: &self.programs };
        if let Some(block) = &mut self.block {
            block.event(event, &tasks, in_flight);
        }
    }

    /// Whether the command had ended by then: what others do until we notice is no part of the watch.
    fn is_over(&self, time_ns: u64) -> bool {
        self.root_threads == 0 && self.root_exit_ns.is_some_and(|end| time_ns > end)
    }

    /// When the program ended: its recorded exit and what it ran for after that record, at most until `now`; else `now`.
    pub(super) fn end_ns(&self, now: u64) -> u64 {
        let Some(exit_ns) = self.root_exit_ns else { return now.max(self.start_ns) };
        let after_ns = match (&self.line, self.last_times) {
            (Some(line), Some((tid, running_ns, _))) if self.root_ending => {
                line.ran_after_exit_ns(tid, exit_ns, running_ns)
            }
            _ => 0,
        };
        exit_ns.saturating_add(after_ns).min(now.max(exit_ns)).max(self.start_ns)
    }

    /// Closes the time line. `cpu`: CPU time of the whole program, without `before_exec_ns`.
    pub(super) fn finish_line(&mut self, end_ns: u64, cpu: CpuTotal, before_exec_ns: u64) -> Parts {
        if let Some(opening) = self.opening.take() {
            // The exec was not seen: it was lost, or the command was killed before.
            self.begin_line(opening);
        }
        self.settle(u64::MAX);
        match self.line.take() {
            Some(line) => {
                let last = |(tid, running_ns, queued_ns)| ThreadTotal { tid, running_ns, queued_ns };
                line.finish(Totals {
                    end_ns,
                    threads: self.last_times.map(last).into_iter().collect(),
                    cpu_ns: cpu.ns,
                    cpu_is_exact: cpu.exact,
                    taken_ns: cpu.taken_ns,
                    own_io: std::mem::take(&mut self.own_io),
                    first_thread_ns: self.last_times.map(|(_, ran, _)| ran.saturating_sub(before_exec_ns)),
                    completions_seen: self.block.as_ref().is_some_and(BlockTracer::completions_seen),
                    rings_followed: self.rings_followed,
                })
            }
            None => Parts::default(),
        }
    }
}
