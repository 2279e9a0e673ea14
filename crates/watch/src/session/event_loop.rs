//! The event loop: waits for the sources, passes their events on, and does what is due by the clock. One thread, no locks.

use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;

use iowhy_core::profile::{IoCounters, Limitation, Tier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::before::Before;
use super::counted::reap;
use super::counting::{CallsWanted, Counting};
use super::duty::Duty;
use super::options::Options;
use super::state::{State, What};
use super::thread_set::LookBudget;
use crate::child::Adoption;
use crate::course::{self, CourseReader};
use crate::in_kernel::InKernel;
use crate::perf::{Recorder, Rights, SelfTest};
use crate::timeline::Found;
use iowhy_linux::clock::monotonic_ns;
use iowhy_linux::process::counters::{HeldIo, of_thread};
use iowhy_linux::process::kernel_stack::StackReader;
use iowhy_linux::process::{task, tree};
use iowhy_linux::signals::{Arrival, Signals};

/// Work is due at least so often at the beginning, when much may happen in little time, and later. A ring that is half
/// full asks for it earlier.
const EARLY_NS: u64 = 10_000_000;
const LATE_NS: u64 = 50_000_000;
/// How long the beginning lasts.
const BEGINNING_NS: u64 = 300_000_000;

/// Things that cost more are done this often: reaping, reading the tree, remembering counters.
const ROUND_NS: u64 = 100_000_000;

/// Threads whose exact times are read in each round. Beyond this, records alone tell.
const MAX_THREADS_READ: usize = 64;

/// Who is watched at first.
pub(super) enum Roots<'a> {
    /// A child that is held before exec.
    Command(u32),
    /// A running process and all below it.
    Process(u32),
    /// Threads of our own process.
    Own(&'a [u32]),
}

/// What can end a wait from outside.
pub(super) struct Target<'a> {
    pub(super) pidfd: Option<BorrowedFd<'a>>,
    pub(super) signals: Option<&'a Signals>,
    /// Readable when the watch is to end.
    pub(super) stop: Option<BorrowedFd<'a>>,
}

/// What a turn of the loop brought.
pub(super) enum Turn {
    /// A signal to us.
    Signal(Arrival),
    /// Nothing that the caller must answer.
    Quiet,
}

/// All sources and sums of one watch.
pub(super) struct EventLoop<'a> {
    pub(super) rights: Rights,
    pub(super) recorder: Option<Recorder>,
    pub(super) self_test: SelfTest,
    pub(super) duty: Option<Duty>,
    /// The observer in the kernel, where it is allowed.
    pub(super) observer: Option<InKernel>,
    /// The observer tells of switches, not the recorder.
    pub(super) observed_switches: bool,
    /// The observer follows births and deaths: without, nothing can be counted.
    pub(super) follows: bool,
    /// Counts every call.
    pub(super) counting: Option<Counting>,
    pub(super) wants_counts: bool,
    /// Records every call.
    pub(super) wants_record: bool,
    pub(super) state: State<'a>,
    pub(super) before: Option<Before>,
    /// What changes over time; not of our own threads.
    pub(super) course: Option<CourseReader>,
    pub(super) limitations: Vec<Limitation>,
    pub(super) own_cpu_before_ns: u64,
    /// Our CPU time from the beginning to the end of the program.
    pub(super) watched_cpu_ns: u64,
    /// Threads of our own process are watched.
    pub(super) own: bool,
    /// I/O counters of those threads at the start.
    pub(super) threads_before: HashMap<u32, IoCounters>,
    /// The counters of a command: they can be read when it has ended, but not be opened any more.
    pub(super) held_io: Option<HeldIo>,
    pub(super) command: bool,
    /// CPU time of the command before it executed its program.
    pub(super) before_exec_ns: u64,
    stopped: bool,
    budget: LookBudget,
    stacks: StackReader,
    dead_rings: Vec<bool>,
    round_ns: u64,
    drained_ns: u64,
    deadline_ns: Option<u64>,
    pub(super) root: u32,
    /// The directory that the first process began in.
    pub(super) directory: Option<String>,
}

impl<'a> EventLoop<'a> {
    /// Opens nothing yet.
    pub(super) fn new(options: &Options<'a>, rights: Rights) -> EventLoop<'a> {
        let now = monotonic_ns();
        EventLoop {
            limitations: rights.limitations.clone(),
            recorder: None,
            duty: None,
            observer: None,
            observed_switches: false,
            follows: false,
            counting: None,
            wants_counts: options.count_calls,
            wants_record: options.count_calls && options.record_calls,
            state: State::new(options.on_path, options.keep_events, now),
            before: None,
            course: None,
            self_test: SelfTest::default(),
            rights,
            own_cpu_before_ns: 0,
            watched_cpu_ns: 0,
            own: false,
            threads_before: HashMap::new(),
            held_io: None,
            command: false,
            before_exec_ns: 0,
            stopped: false,
            budget: LookBudget::new(now),
            stacks: StackReader::new(),
            dead_rings: Vec::new(),
            round_ns: 0,
            drained_ns: 0,
            deadline_ns: None,
            root: 0,
            directory: None,
        }
    }

    /// The last moment before the program runs (or before watching counts): everything is read that is to be compared
    /// with the end.
    pub(super) fn begin(&mut self) {
        let running = (!self.own && !self.command).then_some(self.root);
        if self.rights.kernel_stacks {
            self.state.prepare_names();
        }
        self.directory = task::directory(self.root).filter(|_| !self.own);
        // What comes before the program runs takes nothing from it.
        self.own_cpu_before_ns = self.own_cpu_now_ns();
        self.before = Some(Before::read(&mut self.state.reader, running));
        let mut existing: Vec<(u32, u32)> = self.state.threads.iter().collect();
        // The process that was named comes first: numbers wrap around, and a child may have a smaller one.
        existing.sort_unstable_by_key(|(pid, tid)| (*pid != self.root, *pid, *pid != *tid));
        if self.own {
            for (pid, tid) in &existing {
                if let Some(now) = of_thread(&mut self.state.reader, *pid, *tid) {
                    self.threads_before.insert(*tid, now);
                }
            }
        } else if self.command {
            self.held_io = HeldIo::open(&mut self.state.reader, self.root);
        } else {
            for pid in self.state.threads.processes() {
                self.state.counted.existing(&mut self.state.reader, pid);
            }
            for (pid, tid) in &existing {
                self.state.by_process.existing(&mut self.state.reader, *pid, *tid);
            }
        }
        self.count();
        if let Some(recorder) = &self.recorder {
            recorder.clocks(true);
        }
        let now = monotonic_ns();
        let recording = self.recorder.is_some();
        self.state.open_line(now, recording, self.rights.kernel_stacks, self.command.then_some(self.root));
        for (pid, tid) in existing {
            self.introduce(pid, tid);
        }
        let seed = now ^ u64::from(self.root);
        self.duty = recording.then(|| Duty::new(now, self.self_test.switch_cost_ns, seed));
        if let Some((counting, observer)) = self.counting.as_mut().zip(self.observer.as_mut()) {
            let calls = CallsWanted { all: self.wants_record, slowest: self.state.keep_events };
            counting.record(observer, now, self.command, calls, seed);
        }
        self.round_ns = now;
        self.course = (!self.own).then(|| CourseReader::of_program(now, self.root, &mut self.state.reader));
    }

    /// The command executes its program since a moment ago: what it ran for until now is not the program's.
    pub(super) fn released(&mut self) {
        let now = monotonic_ns();
        if let Some(t) = task::schedstat(&mut self.state.reader, self.root, self.root) {
            self.before_exec_ns = t.running_ns;
            let (tid, running_ns, queued_ns) = (self.root, t.running_ns, t.queued_ns);
            self.state.note(now, What::Times { tid, running_ns, queued_ns });
        }
    }

    /// The watch is to end at this time at the latest: waits end in time.
    pub(super) fn until(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    /// Tells the time line of a thread that was there before.
    fn introduce(&mut self, pid: u32, tid: u32) {
        let now = monotonic_ns();
        if pid == tid && !self.command {
            self.state.add_maps(pid);
        }
        let reader = &mut self.state.reader;
        let name = task::name(reader, pid, tid).unwrap_or_default();
        let times = task::schedstat(reader, pid, tid);
        let look = self.stacks.look(pid, tid).unwrap_or_default();
        // A command waits at a pipe; what counts begins with exec, when it runs.
        let (found, names) =
            if self.command { (Found::Running, Vec::new()) } else { (found(look.state), look.frames) };
        self.state.note(now, What::Existing { pid, tid, name, found, names });
        if let Some(t) = times {
            self.state.note(now, What::Times { tid, running_ns: t.running_ns, queued_ns: t.queued_ns });
        }
    }

    /// Waits until something happens or something is due, and does it.
    pub(super) fn turn(&mut self, target: &Target<'_>, adoption: &mut Adoption) -> Turn {
        if let Some(arrival) = target.signals.and_then(Signals::next) {
            return Turn::Signal(arrival);
        }
        // The end of the program comes before all else: its last counters are read while records are still there.
        if !self.wait(target) {
            self.work(adoption);
        }
        Turn::Quiet
    }

    /// Whether [`Target::stop`] said so.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Waits. True: the program has ended.
    fn wait(&mut self, target: &Target<'_>) -> bool {
        let now = monotonic_ns();
        let pace = if now.saturating_sub(self.state.start_ns) < BEGINNING_NS { EARLY_NS } else { LATE_NS };
        let mut until = now + pace;
        if let Some(duty) = &self.duty {
            until = until.min(duty.deadline_ns());
        }
        if let Some(counting) = &self.counting {
            until = until.min(counting.deadline_ns());
        }
        if let Some(course) = &self.course {
            until = until.min(course.deadline_ns());
        }
        until = until.min(self.state.files.deadline_ns().max(now + 1));
        if let Some(deadline) = self.deadline_ns {
            until = until.min(deadline);
        }
        // Never less than half a millisecond: a deadline that is missed again and again must not become a busy loop.
        let wait_ns = until.saturating_sub(now).max(500_000);
        let timeout =
            Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ };
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let outside = [target.pidfd, target.signals.map(Signals::fd), target.stop];
        fds.extend(outside.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let first_ring = fds.len();
        if let Some(recorder) = &self.recorder {
            for (index, fd) in recorder.fds().enumerate() {
                // A ring whose first thread has ended says so at every poll; it is drained by the clock from then on.
                let dead = self.dead_rings.get(index).copied().unwrap_or(false);
                let flags = if dead { PollFlags::empty() } else { PollFlags::IN };
                if !dead {
                    fds.push(PollFd::from_borrowed_fd(fd, flags));
                }
            }
        }
        // Errors (EINTR, ENOMEM) only mean that we look earlier.
        let _ = poll(&mut fds, Some(&timeout));
        if target.stop.is_some() {
            // It comes last among those from outside, and is readable (end of file) when the other end is closed.
            self.stopped = fds[first_ring - 1].revents().intersects(PollFlags::IN | PollFlags::HUP);
        }
        let ended = target.pidfd.is_some() && !fds[0].revents().is_empty();
        let hung_up: Vec<bool> = fds[first_ring..]
            .iter()
            .map(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
            .collect();
        if hung_up.iter().any(|dead| *dead) {
            let rings = self.recorder.as_ref().map_or(0, |r| r.fds().count());
            self.dead_rings.resize(rings, false);
            let mut polled = hung_up.into_iter();
            for dead in &mut self.dead_rings {
                if !*dead {
                    *dead = polled.next().unwrap_or(false);
                }
            }
        }
        ended
    }

    fn work(&mut self, adoption: &mut Adoption) {
        self.drain(false);
        for pid in self.state.born.drain(..) {
            adoption.descendant(pid);
        }
        let now = monotonic_ns();
        self.keep_duty(now);
        if now.saturating_sub(self.round_ns) >= ROUND_NS {
            self.round_ns = now;
            self.round(now, adoption);
        }
        self.look_around(now);
        self.file_round(now);
        self.course_step();
        if let Some((counting, observer)) = self.counting.as_mut().zip(self.observer.as_mut()) {
            counting.step(observer, monotonic_ns());
        }
    }

    /// Ends a step of time when it is due.
    fn course_step(&mut self) {
        let now = monotonic_ns();
        if self.course.as_ref().is_some_and(|course| now >= course.deadline_ns()) {
            let own = self.moved();
            if let Some(course) = &mut self.course {
                course.step(now, own, &mut self.state.reader);
            }
        }
    }

    /// What the program's calls moved so far, where every call is counted.
    pub(super) fn moved(&mut self) -> Option<course::Own> {
        self.observer.as_mut().filter(|_| self.counting.is_some()).and_then(InKernel::moved)
    }

    /// Hands on what is in the rings; with `all`, everything.
    pub(super) fn drain(&mut self, all: bool) {
        let started = monotonic_ns();
        let state = &mut self.state;
        match &mut self.recorder {
            Some(recorder) => {
                recorder.drain(all, &mut |event| state.event(event));
                // What is older than the drain before has all been handed on.
                state.settle(if all { u64::MAX } else { self.drained_ns });
                self.drained_ns = started;
            }
            None => state.settle(u64::MAX),
        }
    }

    /// Switches recording on or off when it is time.
    fn keep_duty(&mut self, now: u64) {
        let (Some(duty), Some(recorder)) = (&mut self.duty, &mut self.recorder) else { return };
        let mut observer = self.observer.as_mut().filter(|_| self.observed_switches);
        if let Some(cost_ns) = observer.as_mut().and_then(|observer| observer.switch_cost_ns()) {
            duty.set_cost_ns(cost_ns);
        }
        let Some(on) = duty.turn(now, self.state.switches) else { return };
        let at = match observer {
            Some(observer) => switch(observer, on),
            None => recorder.switches(on),
        };
        duty.turned(at, on, self.state.switches);
        self.state.note(at, What::Switches(on));
        self.read_times();
        if on {
            // Threads asleep at this moment left before the window: only a look tells where.
            self.look_at_all(self.state.threads.len());
        }
    }

    /// Exact times of the threads, as far as that costs little.
    pub(super) fn read_times(&mut self) {
        let threads: Vec<(u32, u32)> = self.state.threads.iter().take(MAX_THREADS_READ).collect();
        for (pid, tid) in threads {
            let now = monotonic_ns();
            if let Some(t) = task::schedstat(&mut self.state.reader, pid, tid) {
                self.state.note(now, What::Times { tid, running_ns: t.running_ns, queued_ns: t.queued_ns });
            }
        }
    }

    fn round(&mut self, now: u64, adoption: &mut Adoption) {
        if self.recorder.is_none() {
            self.scan_tree(now, adoption);
        }
        if self.recorder.is_none() || self.rights.tier == Tier::None {
            self.read_times();
        }
        self.look_at_hidden(now);
        let State { counted, reader, .. } = &mut self.state;
        if !self.command && !self.own {
            counted.remember(reader, self.root);
        }
        if adoption.active() {
            let ours = tree::children(reader, std::process::id());
            reap(adoption, &ours, counted, reader);
        }
    }

    /// Of processes that may not be watched the kernel still tells how long they ran, and that they ended.
    fn look_at_hidden(&mut self, now: u64) {
        for pid in self.state.hidden.living() {
            let reader = &mut self.state.reader;
            let times = task::schedstat(reader, pid, pid);
            let lives = task::process_stat(reader, pid).is_some_and(|s| !matches!(s.state, 'Z' | 'X'));
            if let Some(t) = times {
                self.state
                    .note(now, What::Times { tid: pid, running_ns: t.running_ns, queued_ns: t.queued_ns });
            }
            if !lives {
                self.state.hidden.ended(pid);
                self.state.threads.remove(pid);
                self.state.note(now, What::Gone { tid: pid });
            }
        }
    }

    /// Without events the tree of processes is read: births and deaths are those between two readings.
    fn scan_tree(&mut self, now: u64, adoption: &mut Adoption) {
        if self.own {
            return;
        }
        let mut alive = HashSet::new();
        for pid in tree::family(&mut self.state.reader, self.root) {
            for tid in tree::threads(pid) {
                alive.insert(tid);
                if !self.state.threads.add(pid, tid) {
                    continue;
                }
                let reader = &mut self.state.reader;
                let parent = task::process_stat(reader, pid).map_or(self.root, |s| s.parent);
                let name = task::name(reader, pid, tid).unwrap_or_default();
                let parent_pid = if tid == pid { parent } else { pid };
                self.state.note(now, What::Met { pid, tid, parent_pid, name });
                if tid == pid {
                    adoption.descendant(pid);
                }
            }
        }
        let gone: Vec<u32> =
            self.state.threads.iter().map(|(_, t)| t).filter(|t| !alive.contains(t)).collect();
        for tid in gone {
            self.state.threads.remove(tid);
            self.state.note(now, What::Gone { tid });
        }
    }

    /// Looks at all threads at once, where no stacks come with the switches: as often as the budget allows.
    fn look_around(&mut self, now: u64) {
        if self.recorder.is_some() && self.rights.kernel_stacks {
            return;
        }
        let threads = self.state.threads.len().min(LookBudget::DEPTH as usize);
        if threads > 0 && self.budget.holds(now, threads) {
            self.look_at_all(threads);
        }
    }

    /// One round of looks at the next threads in turn.
    fn look_at_all(&mut self, threads: usize) {
        let now = monotonic_ns();
        for _ in 0..threads {
            if !self.budget.take(now) {
                return;
            }
            let Some((pid, tid)) = self.state.threads.next() else { return };
            if let Some(look) = self.stacks.look(pid, tid) {
                let names = if found(look.state) == Found::Running { Vec::new() } else { look.frames };
                self.state.note(now, What::Look { tid, found: found(look.state), names });
            }
        }
    }

    pub(super) fn file_round(&mut self, now: u64) {
        let State { threads, files, groups, reader, .. } = &mut self.state;
        if now >= files.deadline_ns() {
            let processes = threads.processes();
            files.round(now, &processes, reader);
            groups.round(now, &processes, reader);
        }
    }
}

/// Lets the observer tell of switches or not. Returns the time from which they are all there, or up to which they were. That it cannot be
/// attached once more (no memory) shows as a gap of records.
fn switch(observer: &mut InKernel, on: bool) -> u64 {
    let before = monotonic_ns();
    let _ = observer.switches(on);
    if on { monotonic_ns() } else { before }
}

/// The state letter of a thread, for the time line.
fn found(state: char) -> Found {
    if state == 'R' { Found::Running } else { Found::Asleep }
}
