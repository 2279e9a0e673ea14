//! The time line: from events in the order of their times to threads, stacks and processes with their times. Pure.
//! Invariant, for any input: the states of a thread sum to its life, the stacks of a state sum to the state, and the wall
//! shares with the idle time sum to the wall time. Each interval is closed exactly once, and unknown time is a gap until
//! readings or proportions close it. Memory is bounded in each part: stacks, tallies, accounts, processes, rows.

mod account;
mod accounts;
mod clock;
mod conserve;
mod hash;
mod live;
mod log;
mod looks;
mod pending;
mod processes;
mod rows;
mod shares;
mod stacks;
mod switches;
#[cfg(test)]
mod tests;
mod ticks;
mod unrecorded;
mod windows;

pub use ticks::{TaskTicks, Ticks};

use std::collections::HashMap;

use iowhy_core::profile::{OwnIo, Process, StackTime, Symbol, Thread};

use crate::block::{Charge, InFlight};
use crate::event::{Event, Kind, RELEASED};
use crate::event_log::EventLog;
use crate::symbols::Symbols;
use accounts::Accounts;
use clock::Clock;
use hash::FastMap;
use live::{Doing, Live};
use log::Log;
use pending::{AfterExit, CpuTime, Looks};
use processes::Processes;
use stacks::{Stacks, UNKNOWN};

/// How a time line begins.
pub struct Begin<'a> {
    /// Start of the wall time (CLOCK_MONOTONIC).
    pub start_ns: u64,
    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path. Asked once for each
    /// stack; with no functions for sleeps of which no stack was seen.
    pub on_path: &'a dyn Fn(&[&str]) -> bool,
    /// Whether switches are recorded from the start. If not, [`Timeline::switches_on`] may follow.
    pub switches: bool,
    /// Whether kernel stacks may be seen. If not, a sample without kernel frames need not be user mode.
    pub kernel_stacks: bool,
    /// Names of functions.
    pub symbols: Symbols,
    /// Whether block requests are seen: [`Timeline::requests`] gets them.
    pub requests: bool,
    /// Whether requests of rings are followed: [`Timeline::requests`] is told of them.
    pub rings: bool,
    /// Whether intervals and samples are kept with their times: [`Parts::log`].
    pub log: bool,
}

/// What a look at a thread found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// On a CPU or waiting for one: state `R`.
    Running,
    /// Asleep, in any way.
    Asleep,
}

/// A thread that is there already.
#[derive(Clone, Copy, Debug)]
pub struct Existing<'a> {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub found: Found,
    /// Kernel functions it sleeps in, innermost first, as far as they can be seen.
    pub names: &'a [&'a str],
}

/// How a time line ends.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// End of the wall time (CLOCK_MONOTONIC). Earlier than the last event: the last event is the end.
    pub end_ns: u64,
    /// Last readings of the threads that live.
    pub threads: Vec<ThreadTotal>,
    /// CPU time of the whole program by the kernel's own account (rusage of the group), if that is known: at least so much.
    pub cpu_ns: Option<u64>,
    /// Whether it is also at most so much, but for processes that nobody waited for.
    pub cpu_is_exact: bool,
    /// What interrupts and the hypervisor took of all CPUs meanwhile, by the kernel's counters.
    pub taken_ns: u64,
    /// CPU time of the first thread alone, by its own counter, over the same time.
    pub first_thread_ns: Option<u64>,
    /// Whether hardly any completion of a block request was missed.
    pub completions_seen: bool,
    /// Whether requests of rings were followed.
    pub rings_followed: bool,
    /// What each process did itself, as far as that was counted.
    pub own_io: HashMap<u32, OwnIo>,
}

/// The kernel's own counters of a thread, since its birth (`schedstat`).
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTotal {
    /// The thread.
    pub tid: u32,
    /// Time on a CPU.
    pub running_ns: u64,
    /// Time runnable without a CPU.
    pub queued_ns: u64,
}

/// The parts of a profile that the time line makes.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// From start to end.
    pub wall_ns: u64,
    /// Part of it in which no thread was active.
    pub idle_wall_ns: f64,
    /// Threads, and pools of threads.
    pub threads: Vec<Thread>,
    /// Where their time went, most first.
    pub stacks: Vec<StackTime>,
    /// Names for `stacks`.
    pub symbols: Vec<Symbol>,
    /// Processes, the first one first.
    pub processes: Vec<Process>,
    /// Whom the clock hit.
    pub ticks: Ticks,
    /// Records that the kernel said it lost.
    pub lost: u64,
    /// Intervals that were given up because a record must have been lost in them.
    pub gaps: u64,
    /// Thread time of which the state was not measured: closed by readings, or in the proportions beside it.
    pub unmeasured_ns: f64,
    /// CPU time that was recorded and that the kernel's total does not hold.
    pub beyond_total_ns: f64,
    /// Delay by other programs, by the number of the program; `None`: requests were not seen, or not reliably.
    pub charges: Option<HashMap<Option<u32>, Charge>>,
    /// Intervals and samples with their times, where they were kept.
    pub log: Option<EventLog>,
}

/// The time line.
pub struct Timeline<'a> {
    clock: Clock,
    stacks: Stacks<'a>,
    symbols: Symbols,
    accounts: Accounts,
    processes: Processes,
    live: Vec<Live>,
    free: Vec<u32>,
    by_tid: FastMap<u32, u32>,
    /// Threads that ended lately, in two generations: their last switch comes after their end.
    ended: (FastMap<u32, ()>, FastMap<u32, ()>),
    /// Number of the present window of recording, or of the last one.
    window: u32,
    looks: Looks,
    ticks: ticks::Counter,
    after_exit: AfterExit,
    requests: Option<InFlight>,
    rings: bool,
    kernel_stacks: bool,
    lost: u64,
    gaps: u64,
    log: Option<Log>,
}

impl<'a> Timeline<'a> {
    /// A time line without threads.
    pub fn new(begin: Begin<'a>) -> Timeline<'a> {
        Timeline {
            clock: Clock::new(begin.start_ns, begin.switches),
            stacks: Stacks::new(begin.on_path),
            symbols: begin.symbols,
            accounts: Accounts::default(),
            processes: Processes::default(),
            live: Vec::new(),
            free: Vec::new(),
            by_tid: FastMap::default(),
            ended: Default::default(),
            // Windows begin at 2, so that nothing is beside a window that never was.
            window: 2,
            looks: Looks::default(),
            ticks: ticks::Counter::default(),
            after_exit: AfterExit::default(),
            requests: begin.requests.then(InFlight::default),
            rings: begin.rings,
            kernel_stacks: begin.kernel_stacks,
            lost: 0,
            gaps: 0,
            log: begin.log.then(Log::default),
        }
    }

    /// A thread of the program that is there at this time: the first one of a command, those of a process that is
    /// attached to, those that a look at `/proc` finds. Its children are followed.
    pub fn existing(&mut self, time_ns: u64, thread: Existing<'_>) {
        self.clock.advance(time_ns);
        if self.by_tid.contains_key(&thread.tid) || thread.tid == RELEASED {
            return;
        }
        let slot = self.begin(thread.pid, thread.tid, None, thread.name);
        if self.clock.is_watching() {
            let stack = self.named(thread.names);
            match thread.found {
                Found::Running => self.enter(slot, Doing::Running, UNKNOWN),
                Found::Asleep => self.enter(slot, Doing::Blocked, stack),
            }
            self.live[slot as usize].presumed = true;
        }
    }

    /// Mappings of a process that is attached to: the text of `/proc/PID/maps`.
    pub fn add_maps(&mut self, pid: u32, text: &str) {
        self.symbols.add_maps(pid, text);
    }

    /// A thread was found to be gone, without an event that said so.
    pub fn gone(&mut self, time_ns: u64, tid: u32) {
        self.clock.advance(time_ns);
        if let Some(slot) = self.by_tid.get(&tid).copied() {
            self.end(slot, true);
        }
    }

    /// The block requests in flight, which sleeps are divided by.
    pub fn requests(&mut self) -> Option<&mut InFlight> {
        self.requests.as_mut()
    }

    /// Whether this thread is followed and lives.
    pub fn follows(&self, tid: u32) -> bool {
        self.by_tid.contains_key(&tid)
    }

    /// The threads that live: process and thread number, in no order.
    pub fn living(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.by_tid.values().map(|slot| &self.live[*slot as usize]).map(|l| (l.pid, l.tid))
    }

    /// Takes the next event. Events are in the order of their times.
    pub fn event(&mut self, event: &Event<'_>) {
        self.clock.advance(event.time_ns);
        let (pid, tid) = (event.pid, event.tid);
        match &event.kind {
            Kind::Tick(chain) => match self.find(pid, tid) {
                Some(slot) => self.tick(slot, event.cpu, *chain),
                None if tid == 0 => self.ticks.idle(),
                None if self.ticked_after_exit(pid, tid, *chain) => {}
                None if tid == RELEASED => {}
                None => {
                    let outermost = chain.kernel.last().filter(|_| chain.user.is_empty()).copied();
                    let name = outermost.map(|a| self.symbols.kernel(a)).map(|id| self.symbols.name(id));
                    let kernel = name.is_some_and(|n| n == "kthread" || n.starts_with("ret_from_fork"));
                    self.ticks.other(pid, tid, kernel);
                }
            },
            Kind::LeavingStack(chain) => {
                if let Some(slot) = self.find(pid, tid) {
                    self.leaving(slot, *chain);
                }
            }
            Kind::Out { preempted } => {
                if let Some(slot) = self.find(pid, tid) {
                    self.out(slot, *preempted);
                }
            }
            Kind::In => {
                if let Some(slot) = self.find(pid, tid) {
                    self.got_cpu(slot, event.cpu);
                }
            }
            Kind::Fork { parent_pid, parent_tid } => self.fork(pid, tid, *parent_pid, *parent_tid),
            Kind::Exit => {
                if let Some(slot) = self.by_tid.get(&tid).copied() {
                    self.end(slot, false);
                }
            }
            Kind::Name { name, exec } => self.name(pid, tid, name, *exec),
            Kind::Map { start, length, offset, code, path } => {
                if *code && self.processes.lives(pid) {
                    self.symbols.map(pid, *start, *length, *offset, path);
                    self.processes.mapped(pid, path);
                }
            }
            Kind::Lost { records } => {
                self.lost = self.lost.saturating_add(*records);
                self.lost(event.cpu);
                if let Some(requests) = &mut self.requests {
                    requests.records_lost(event.time_ns);
                }
            }
            Kind::Request(_) => {}
            Kind::RingFiles { .. } => {}
        }
    }

    /// The thread of an event. A thread of a followed process whose birth was lost is followed from now on.
    #[inline]
    fn find(&mut self, pid: u32, tid: u32) -> Option<u32> {
        if let Some(slot) = self.by_tid.get(&tid) {
            return Some(*slot);
        }
        let ended = self.ended.0.contains_key(&tid) || self.ended.1.contains_key(&tid);
        if tid == 0 || tid == RELEASED || ended || !self.processes.lives(pid) {
            return None;
        }
        self.gaps += 1;
        Some(self.adopt(pid, tid, "", Doing::Running))
    }

    fn adopt(&mut self, pid: u32, tid: u32, name: &str, doing: Doing) -> u32 {
        let slot = self.begin(pid, tid, None, name);
        if self.clock.is_watching() {
            self.enter(slot, doing, UNKNOWN);
            self.live[slot as usize].presumed = true;
        }
        slot
    }

    fn fork(&mut self, pid: u32, tid: u32, parent_pid: u32, parent_tid: u32) {
        let parent = self.by_tid.get(&parent_tid).copied();
        if tid == 0 || tid == RELEASED || (parent.is_none() && !self.processes.lives(parent_pid)) {
            return;
        }
        // The first threads of an old and a new process have one number: the old one ended unseen.
        if pid != parent_pid && self.processes.lives(pid) {
            self.end_others(pid, None);
        }
        self.ended.0.remove(&tid);
        self.ended.1.remove(&tid);
        let name = match parent {
            Some(slot) => self.accounts.get(self.live[slot as usize].account).name.clone(),
            None => String::new(),
        };
        let slot = self.begin(pid, tid, Some(parent_pid), &name);
        self.live[slot as usize].reading = Some(live::Reading::default());
        if self.clock.is_watching() {
            self.enter(slot, Doing::Queued, UNKNOWN);
        }
    }

    /// Ends all threads of a process but one.
    fn end_others(&mut self, pid: u32, but: Option<u32>) {
        let mut others: Vec<u32> = self
            .by_tid
            .values()
            .copied()
            .filter(|s| self.live[*s as usize].pid == pid && Some(self.live[*s as usize].tid) != but)
            .collect();
        others.sort_unstable();
        for slot in others {
            self.end(slot, true);
        }
    }

    fn name(&mut self, pid: u32, tid: u32, name: &str, exec: bool) {
        if exec && tid != RELEASED && self.processes.lives(pid) {
            // A thread that executes takes the number of the process; all others are gone. It lives on without a break,
            // so it is there before the others end.
            if !self.by_tid.contains_key(&tid) {
                self.ended.0.remove(&tid);
                self.ended.1.remove(&tid);
                self.adopt(pid, tid, name, Doing::Running);
            }
            if self.processes.threads(pid) > 1 {
                self.end_others(pid, Some(tid));
            }
            self.symbols.clear(pid);
        }
        let Some(slot) = self.by_tid.get(&tid).copied() else {
            self.ticks.name(tid, name);
            return;
        };
        if exec && self.live[slot as usize].doing == Doing::Running {
            // Only a thread that runs executes a program.
            self.live[slot as usize].presumed = false;
        }
        if let Some(log) = &mut self.log {
            log.rename(self.live[slot as usize].logged, name);
        }
        let books = self.accounts.get(self.live[slot as usize].account);
        if books.individual {
            name.clone_into(&mut books.name);
        }
        if exec || tid == pid {
            self.processes.rename(pid, name, exec);
        }
    }

    /// Closes the time line.
    pub fn finish(mut self, end: Totals) -> Parts {
        self.clock.advance(end.end_ns);
        self.close_round();
        for t in &end.threads {
            self.cumulative(t.tid, end.end_ns, t.running_ns, t.queued_ns);
        }
        let processes = std::mem::take(&mut self.processes).into_list(&end.own_io);
        let mut slots: Vec<u32> = self.by_tid.values().copied().collect();
        slots.sort_unstable();
        for slot in slots {
            let l = &self.live[slot as usize];
            let lost = !(l.doing == Doing::Running && l.doubtful);
            self.end(slot, lost);
        }
        let window = self.window;
        let mut accounts = std::mem::take(&mut self.accounts).into_list();
        accounts.iter_mut().for_each(|a| a.settle(window));
        let unmeasured_ns = accounts.iter().map(account::Account::gap_total_ns).sum();
        let mut books = rows::rows(&accounts, &self.stacks);
        let cpu = CpuTime {
            total_ns: end.cpu_ns,
            first_thread_ns: end.first_thread_ns,
            exact: end.cpu_is_exact,
            taken_ns: end.taken_ns,
        };
        let beyond_total_ns = conserve::conserve(cpu, &accounts, &mut books);
        let idle_wall_ns = shares::share(&mut books, &accounts, &self.stacks, &self.clock);
        let idle_wall_ns = self.add_unrecorded(cpu, &mut accounts, &mut books, idle_wall_ns);
        let (accounts, books) = rows::pool(accounts, books);
        let requests = self.requests.filter(|requests| end.completions_seen && requests.is_reliable());
        let start_ns = self.clock.start_ns();
        let log = self.log.take().map(|log| log.finish(start_ns, &self.stacks, requests.is_some()));
        let (threads, stacks) = {
            let followed = rows::Followed { devices: requests.is_some(), rings: end.rings_followed };
            rows::publish(books, &accounts, &self.stacks, followed)
        };
        Parts {
            wall_ns: self.clock.wall_ns(),
            idle_wall_ns,
            threads,
            stacks,
            symbols: self.symbols.into_table(),
            processes,
            ticks: self.ticks.finish(),
            lost: self.lost,
            gaps: self.gaps,
            unmeasured_ns,
            beyond_total_ns,
            charges: requests.map(InFlight::charges),
            log,
        }
    }
}
