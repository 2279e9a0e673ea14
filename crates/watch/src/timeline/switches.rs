//! The state machine of the threads: switches, samples, births and deaths.
//!
//! An event that contradicts what went before it tells of a lost record. The interval up to it is then a gap: time that
//! existed, of which nothing is claimed. So no sequence of events, however broken, makes time negative or counts it twice.

use super::Timeline;
use super::account;
use super::live::{Doing, Live};
use super::stacks::{StackId, UNKNOWN};
use crate::block::Split;
use crate::event::Chain;

/// A sample so soon after a switch may have been stamped on the other side of it; it is no contradiction.
const SKEW_NS: u64 = 50_000;

impl Timeline<'_> {
    /// Ends the present interval as what it was, and begins the next one.
    #[inline]
    pub(super) fn close(&mut self, slot: u32, was: Doing, stack: StackId) {
        let (now, v) = (self.clock.now_ns(), self.clock.virtual_ns());
        let l = &mut self.live[slot as usize];
        let since_ns = l.since_ns;
        let length = now - since_ns;
        let wall = l.wall_ns + if l.active { v - l.virtual_ns } else { 0.0 };
        (l.since_ns, l.wall_ns, l.virtual_ns) = (now, 0.0, v);
        let (books, tallies) = self.accounts.book(l.account);
        books.lifetime_ns += length;
        let begins = !std::mem::replace(&mut l.counted, true);
        let first = u64::from(begins);
        if let Some(log) = &mut self.log {
            log.interval(l.logged, was, stack, (since_ns, now), begins);
        }
        match was {
            Doing::Running => {
                books.add_running(self.window, length, wall);
                l.measured.running_ns += length;
            }
            Doing::Queued => {
                books.add((stack, account::QUEUED), (length, wall, first), self.window, tallies);
                l.measured.queued_ns += length;
            }
            Doing::Blocked => {
                let wall = if stack == UNKNOWN || self.stacks.on_path(stack) { wall } else { 0.0 };
                let kind = account::blocked(length);
                books.add((stack, kind), (length, wall, first), self.window, tallies);
                l.measured.blocked_ns += length;
                // Readings cut a sleep into pieces, but what it waited for is known when it ends.
                l.asleep_ns += length;
                l.asleep_kind = kind;
            }
            Doing::Unseen => {
                books.gap.ns += length;
                books.gap.hidden |= l.hidden;
                books.hidden_wall_ns += wall;
                l.measured.gap_ns += length;
            }
        }
    }

    /// Divides a sleep that has ended, by its requests. Its time is booked.
    #[inline]
    fn split_sleep(&mut self, slot: u32) {
        let now = self.clock.now_ns();
        let l = &mut self.live[slot as usize];
        let asleep_ns = std::mem::take(&mut l.asleep_ns);
        let Some(requests) = &mut self.requests else { return };
        if l.doing == Doing::Blocked && asleep_ns > 0 {
            let charged = self.stacks.on_path(l.stack);
            let split = requests.end(now, l.tid, &l.marks, charged).at_most(asleep_ns);
            if split != Split::default() {
                if let Some(log) = &mut self.log {
                    log.split(l.logged, now, split);
                }
                self.accounts.get(l.account).add_split((l.stack, l.asleep_kind), split);
            }
        }
    }

    /// Sets what a thread does from now on. The interval before must be closed.
    #[inline]
    pub(super) fn enter(&mut self, slot: u32, doing: Doing, stack: StackId) {
        self.split_sleep(slot);
        let now = self.clock.now_ns();
        let l = &mut self.live[slot as usize];
        if doing == Doing::Blocked
            && let Some(requests) = &mut self.requests
        {
            requests.begin(now, &mut l.marks);
        }
        let active = match doing {
            Doing::Running | Doing::Queued => true,
            Doing::Unseen => false,
            Doing::Blocked if stack == UNKNOWN => l.guess,
            Doing::Blocked => {
                l.guess = self.stacks.on_path(stack);
                l.guess
            }
        };
        (l.doing, l.stack, l.presumed, l.doubtful) = (doing, stack, false, false);
        self.set_active(slot, active);
    }

    /// Lets a thread take part in the wall clock, or not, from now on.
    #[inline]
    pub(super) fn set_active(&mut self, slot: u32, active: bool) {
        let v = self.clock.virtual_ns();
        let l = &mut self.live[slot as usize];
        if l.active {
            l.wall_ns += v - l.virtual_ns;
        }
        l.virtual_ns = v;
        if l.active != active {
            l.active = active;
            self.clock.count(active);
        }
    }

    /// Ends the interval up to an event that shows that the thread ran until now.
    fn ran(&mut self, slot: u32) {
        let l = &self.live[slot as usize];
        let was = match l.doing {
            Doing::Running if l.doubtful => Doing::Unseen,
            Doing::Running => Doing::Running,
            _ if l.presumed => Doing::Running,
            _ => Doing::Unseen,
        };
        self.gaps += u64::from(was == Doing::Unseen);
        self.close(slot, was, UNKNOWN);
    }

    pub(super) fn leaving(&mut self, slot: u32, chain: Chain<'_>) {
        let pid = self.live[slot as usize].pid;
        let known = !chain.kernel.is_empty();
        let stack = self.stacks.intern(&mut self.symbols, pid, chain, known);
        self.live[slot as usize].leaving = self.asleep(stack);
    }

    /// The stack of a thread that is asleep, by its kernel functions.
    pub(super) fn named(&mut self, names: &[&str]) -> StackId {
        let stack = self.stacks.named(&mut self.symbols, names);
        self.asleep(stack)
    }

    /// What it means to fall asleep with this stack now.
    fn asleep(&mut self, stack: StackId) -> StackId {
        let idle = self.rings && self.requests.as_ref().is_some_and(|requests| !requests.ring_is_busy());
        if idle { self.stacks.without_requests(stack) } else { stack }
    }

    pub(super) fn out(&mut self, slot: u32, preempted: bool) {
        if !self.clock.is_watching() {
            return;
        }
        self.live[slot as usize].hidden = false;
        self.ran(slot);
        let l = &mut self.live[slot as usize];
        let stack = std::mem::replace(&mut l.leaving, UNKNOWN);
        l.counted = false;
        let books = self.accounts.get(l.account);
        if preempted {
            books.preemptions += 1;
            self.enter(slot, Doing::Queued, stack);
        } else {
            books.sleeps += 1;
            self.enter(slot, Doing::Blocked, stack);
        }
    }

    pub(super) fn got_cpu(&mut self, slot: u32, cpu: u32) {
        if !self.clock.is_watching() {
            return;
        }
        let l = &mut self.live[slot as usize];
        l.cpu = cpu;
        l.hidden = false;
        l.leaving = UNKNOWN;
        let (was, stack) = match l.doing {
            // It was taken to be running since the window began, but it was not.
            Doing::Running if l.presumed => (Doing::Blocked, UNKNOWN),
            Doing::Running | Doing::Unseen => (Doing::Unseen, UNKNOWN),
            other => (other, l.stack),
        };
        self.gaps += u64::from(was == Doing::Unseen);
        self.close(slot, was, stack);
        self.enter(slot, Doing::Running, UNKNOWN);
    }

    pub(super) fn tick(&mut self, slot: u32, cpu: u32, chain: Chain<'_>) {
        self.ticks.own();
        let l = &mut self.live[slot as usize];
        let (pid, index) = (l.pid, l.account);
        // A clock of the CPU goes on where the thread's own events are closed.
        let contradicts = l.doing != Doing::Running
            && !l.hidden
            && self.clock.is_watching()
            && (l.presumed || self.clock.now_ns() - l.since_ns > SKEW_NS);
        l.presumed &= l.doing != Doing::Running;
        if contradicts {
            self.ran(slot);
            self.live[slot as usize].cpu = cpu;
            self.enter(slot, Doing::Running, UNKNOWN);
        }
        if self.live[slot as usize].hidden {
            return;
        }
        // Without a kernel part it is user mode, if the kernel may be looked at.
        let known = self.kernel_stacks || !chain.kernel.is_empty();
        let stack = self.stacks.intern(&mut self.symbols, pid, chain, known);
        let (books, tallies) = self.accounts.book(index);
        books.samples += 1;
        if let Some(log) = &mut self.log {
            log.sample(self.live[slot as usize].logged, self.clock.now_ns(), stack);
        }
        books.add((stack, account::RUNNING), (0, 0.0, 1), self.window, tallies);
    }

    /// The kernel has closed the events of a thread that lives on, because it raised its rights or may not be read. What it
    /// does from now on is a gap. Its part of the wall clock is neither idle nor active.
    pub fn hide(&mut self, time_ns: u64, tid: u32) {
        self.clock.advance(time_ns);
        if let Some(slot) = self.by_tid.get(&tid).copied() {
            self.ran(slot);
            let (window, account) = (self.window, self.live[slot as usize].account);
            self.accounts.get(account).settle(window);
            self.enter_hidden(slot);
        }
    }

    pub(super) fn enter_hidden(&mut self, slot: u32) {
        self.enter(slot, Doing::Unseen, UNKNOWN);
        self.set_active(slot, true);
        self.live[slot as usize].hidden = true;
    }

    /// Records of a CPU were lost: what runs there now may have slept meanwhile.
    pub(super) fn lost(&mut self, cpu: u32) {
        for slot in self.by_tid.values() {
            let l = &mut self.live[*slot as usize];
            l.doubtful |= l.doing == Doing::Running && l.cpu == cpu;
        }
    }

    /// A thread appears. Its first interval begins now.
    pub(super) fn begin(&mut self, pid: u32, tid: u32, parent: Option<u32>, name: &str) -> u32 {
        if let Some(old) = self.by_tid.get(&tid).copied() {
            // Its number was given to a new thread, so its end was lost.
            self.end(old, true);
        }
        if self.processes.thread_begins(pid, parent, name) {
            match parent {
                Some(parent) if parent != pid => self.symbols.fork(parent, pid),
                _ => {}
            }
        }
        let account = self.accounts.open(pid, tid, name);
        let mut live = Live::new(pid, tid, account, self.clock.now_ns(), self.stacks.on_path(UNKNOWN));
        live.virtual_ns = self.clock.virtual_ns();
        if let Some(log) = &mut self.log {
            live.logged = log.begin(pid, tid, name, self.clock.now_ns());
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.live[slot as usize] = live;
                slot
            }
            None => {
                self.live.push(live);
                (self.live.len() - 1) as u32
            }
        };
        self.by_tid.insert(tid, slot);
        slot
    }

    /// A thread is gone. `lost`: nothing said so when it happened.
    pub(super) fn end(&mut self, slot: u32, lost: bool) {
        let l = &self.live[slot as usize];
        let (tid, pid, index, stack, doing) = (l.tid, l.pid, l.account, l.stack, l.doing);
        if doing == Doing::Unseen {
            self.close(slot, Doing::Unseen, UNKNOWN);
        } else if lost {
            self.close(slot, doing, stack);
        } else {
            self.ran(slot);
        }
        self.enter(slot, Doing::Unseen, UNKNOWN);
        if self.live[slot as usize].look.take().is_some_and(|l| l.active) {
            self.looks.active = self.looks.active.saturating_sub(1);
        }
        self.by_tid.remove(&tid);
        if let Some(requests) = &mut self.requests {
            requests.thread_gone(tid);
        }
        self.free.push(slot);
        let window = self.window;
        let books = self.accounts.get(index);
        books.exits += u64::from(!lost);
        if books.individual {
            books.settle(window);
        }
        if self.accounts.close(index) {
            self.close_round();
            self.accounts.prune();
        }
        if self.processes.thread_ends(pid) {
            self.symbols.clear(pid);
        }
        self.remember_ended(tid);
    }

    fn remember_ended(&mut self, tid: u32) {
        const MAX: usize = 32_768;
        if self.ended.0.len() >= MAX {
            self.ended.1 = std::mem::take(&mut self.ended.0);
        }
        self.ended.0.insert(tid, ());
    }
}
