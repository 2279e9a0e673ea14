//! The books of one thread, or of a pool of threads: measured time by state and stack, samples, looks, and gaps.
//!
//! A gap is time of which it is known that the thread lived, but not what it did: switches were not recorded, or a
//! record was lost. Gaps are closed with exact readings where there are any, else in the proportions of the time next
//! to them.

use super::hash::FastMap;
use super::stacks::StackId;
use crate::block::Split;

/// What a tally is about. Sleeps are kept by class of length: short ones and long ones have different stacks.
pub(super) type Kind = u8;
/// Samples while running.
pub(super) const RUNNING: Kind = 0;
/// Intervals without a CPU.
pub(super) const QUEUED: Kind = 1;
/// Looks that found the thread running or queued.
pub(super) const LOOK_RUNNING: Kind = 2;
/// Looks that found the thread asleep.
pub(super) const LOOK_BLOCKED: Kind = 3;
/// Sleeps of a length below 2^0 ns; the class is added.
pub(super) const BLOCKED: Kind = 64;

/// The kind of a sleep of this length.
#[inline]
pub(super) fn blocked(length_ns: u64) -> Kind {
    BLOCKED + (64 - length_ns.leading_zeros()).min(63) as Kind
}

/// A sum over intervals, samples or looks of one kind with one stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) time_ns: u64,
    /// Part of the wall clock; of looks, the sum of one over the number of active threads.
    pub(super) wall_ns: f64,
    pub(super) events: u64,
    /// Gap time that was given to it.
    pub(super) gap_ns: f64,
    /// What requests did in its sleeps, where those are followed.
    pub(super) split: Split,
    window: u32,
    in_window_ns: u64,
    before_ns: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, window: u32, time_ns: u64, wall_ns: f64, events: u64) {
        if self.window != window {
            self.before_ns = if self.window.wrapping_add(1) == window { self.in_window_ns } else { 0 };
            self.in_window_ns = 0;
            self.window = window;
        }
        self.time_ns += time_ns;
        self.in_window_ns += time_ns;
        self.wall_ns += wall_ns;
        self.events += events;
    }

    /// Time in this window of recording and in the one before it.
    fn near_ns(&self, window: u32) -> u64 {
        match window.wrapping_sub(self.window) {
            0 => self.in_window_ns + self.before_ns,
            1 => self.in_window_ns,
            _ => 0,
        }
    }
}

/// A gap that is not closed yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    pub(super) ns: u64,
    /// Part of it that exact readings cover, and what they said.
    pub(super) read_ns: u64,
    pub(super) running_ns: u64,
    pub(super) queued_ns: u64,
    /// The thread may not be watched: neither the time beside the gap nor related threads say what it did.
    pub(super) hidden: bool,
    /// The sleep that the thread was in when the gap began.
    pub(super) asleep_in: Option<StackId>,
}

/// The books.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) lifetime_ns: u64,
    pub(super) sleeps: u64,
    pub(super) preemptions: u64,
    pub(super) samples: u64,
    /// Ends of threads that were recorded.
    pub(super) exits: u64,
    /// Measured running time.
    pub(super) running: Tally,
    pub(super) tallies: FastMap<(StackId, Kind), Tally>,
    /// Time in the run queue after wake-ups, which the sleeps hold too much.
    pub(super) wake_ns: u64,
    pub(super) gap: Gap,
    /// Running time in gaps that readings covered.
    pub(super) read_running_ns: f64,
    /// Closed gap time by state, so far as it is known; sleeps and queues that no tally could take.
    pub(super) gap_running_ns: f64,
    pub(super) gap_queued_ns: f64,
    pub(super) gap_blocked_ns: f64,
    /// Part of the wall clock of threads that may not be watched: nobody knows whether they were active in it.
    pub(super) hidden_wall_ns: f64,
    /// Their time by the kernel's counters: on a CPU, and else.
    pub(super) hidden_running_ns: f64,
    pub(super) hidden_blocked_ns: f64,
    /// Gap time of which not even the state is known.
    pub(super) gap_left_ns: f64,
    /// It is one thread's, not a pool's.
    pub(super) individual: bool,
}

/// How many tallies all accounts may hold together.
pub(super) const MAX_TALLIES: usize = 250_000;

impl Account {
    pub(super) fn new(pid: u32, tid: u32, name: String) -> Account {
        Account { pid, tid, name, count: 1, individual: true, ..Account::default() }
    }

    #[inline]
    pub(super) fn add_running(&mut self, window: u32, time_ns: u64, wall_ns: f64) {
        self.running.add(window, time_ns, wall_ns, 0);
    }

    /// Adds to a tally. `tallies` counts those of all accounts; when there are too many, the stack is forgotten.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: (StackId, Kind),
        what: (u64, f64, u64),
        window: u32,
        tallies: &mut usize,
    ) {
        let (time_ns, wall_ns, events) = what;
        if let Some(t) = self.tallies.get_mut(&key) {
            t.add(window, time_ns, wall_ns, events);
            return;
        }
        let key = if *tallies < MAX_TALLIES { key } else { (super::stacks::UNKNOWN, key.1) };
        let before = self.tallies.len();
        self.tallies.entry(key).or_default().add(window, time_ns, wall_ns, events);
        *tallies += self.tallies.len() - before;
    }

    /// Adds what requests did in a sleep that was booked under this stack.
    #[inline]
    pub(super) fn add_split(&mut self, key: (StackId, Kind), split: Split) {
        // Where there are too many tallies, its stack was forgotten, and what requests did is forgotten with it.
        if let Some(t) = self.tallies.get_mut(&key) {
            t.split.add(split);
        }
    }

    /// All gap time, settled.
    pub(super) fn gap_total_ns(&self) -> f64 {
        let given: f64 = self.tallies.values().map(|t| t.gap_ns).sum();
        let hidden = self.hidden_running_ns + self.hidden_blocked_ns;
        given + hidden + self.gap_running_ns + self.gap_queued_ns + self.gap_blocked_ns + self.gap_left_ns
    }

    /// Closes the gap with readings, or with the windows next to it; what neither can say is left for the end.
    pub(super) fn settle(&mut self, window: u32) {
        let gap = std::mem::take(&mut self.gap);
        if gap.ns == 0 {
            return;
        }
        let whole = gap.ns as f64;
        let read = (gap.read_ns.min(gap.ns)) as f64;
        let mut running = (gap.running_ns as f64).min(read);
        let mut queued = (gap.queued_ns as f64).min(read - running);
        let mut asleep = read - running - queued;
        if gap.hidden {
            self.hidden_running_ns += running;
            self.gap_queued_ns += queued;
            self.hidden_blocked_ns += whole - running - queued;
            return;
        }
        self.read_running_ns += running;
        let near = |of: &dyn Fn(Kind) -> bool| -> f64 {
            self.tallies.iter().filter(|(k, _)| of(k.1)).map(|(_, t)| t.near_ns(window) as f64).sum()
        };
        let near_queued = near(&|k| k == QUEUED);
        let near_blocked = near(&|k| k >= BLOCKED);
        let near_running = self.running.near_ns(window) as f64;
        let near_all = near_running + near_queued + near_blocked;
        let unread = whole - read;
        if unread > 0.0 {
            // By all that is known near it, each by its time: a reading right after the window covers next to nothing, and what the
            // kernel's counters have more than the records would be all of it.
            let r = running + near_running;
            let q = queued + near_queued;
            let b = asleep + near_blocked;
            let all = read + near_all;
            if all > 0.0 {
                running += unread * r / all;
                queued += unread * q / all;
                asleep += unread * b / all;
            } else {
                self.gap_left_ns += unread;
            }
        }
        self.gap_running_ns += running;
        // It never ran, so it is still the same sleep.
        if let Some(stack) = gap.asleep_in.filter(|_| gap.running_ns == 0 && read >= 0.9 * whole) {
            self.tallies.entry((stack, blocked(gap.ns))).or_default().gap_ns += asleep;
            asleep = 0.0;
        }
        for ((_, kind), t) in &mut self.tallies {
            let near = t.near_ns(window) as f64;
            if *kind == QUEUED && near > 0.0 {
                t.gap_ns += queued * near / near_queued;
            } else if *kind >= BLOCKED && near > 0.0 {
                t.gap_ns += asleep * near / near_blocked;
            }
        }
        self.gap_queued_ns += if near_queued > 0.0 { 0.0 } else { queued };
        self.gap_blocked_ns += if near_blocked > 0.0 { 0.0 } else { asleep };
    }

    /// Takes over all that another account holds, settled. Returns how many tallies both held.
    pub(super) fn merge(&mut self, other: Account) -> usize {
        self.count += other.count;
        self.lifetime_ns += other.lifetime_ns;
        self.sleeps += other.sleeps;
        self.preemptions += other.preemptions;
        self.samples += other.samples;
        self.exits += other.exits;
        self.running.time_ns += other.running.time_ns;
        self.running.wall_ns += other.running.wall_ns;
        self.wake_ns += other.wake_ns;
        self.read_running_ns += other.read_running_ns;
        self.gap_running_ns += other.gap_running_ns;
        self.gap_queued_ns += other.gap_queued_ns;
        self.gap_blocked_ns += other.gap_blocked_ns;
        self.gap_left_ns += other.gap_left_ns;
        self.hidden_wall_ns += other.hidden_wall_ns;
        self.hidden_running_ns += other.hidden_running_ns;
        self.hidden_blocked_ns += other.hidden_blocked_ns;
        let before = self.tallies.len() + other.tallies.len();
        for (key, t) in other.tallies {
            let mine = self.tallies.entry(key).or_default();
            mine.time_ns += t.time_ns;
            mine.wall_ns += t.wall_ns;
            mine.events += t.events;
            mine.gap_ns += t.gap_ns;
            mine.split.add(t.split);
        }
        before - self.tallies.len()
    }
}
