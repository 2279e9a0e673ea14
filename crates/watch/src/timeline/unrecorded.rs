//! CPU time that the kernel counted and no record showed. Linux 6.16 and later close the events of a thread before they
//! free its memory, so the rest of its exit is not recorded; without events short processes are not seen at all.
//!
//! Non-goal: guessing where it went. Invariant: no thread gets more than the time of the run, and without a total from the
//! kernel nothing changes. What no known thread can have used stands in an entry that is no thread.

use iowhy_core::profile::State;

use super::Timeline;
use super::account::Account;
use super::live::Doing;
use super::pending::CpuTime;
use super::rows::{Book, Row};
use super::stacks::{StackId, UNKNOWN};
use crate::event::Chain;

/// The kernel function that ends a thread. Its callers are the system call and the delivery of signals.
const EXIT: &str = "do_exit";

/// Below this share of thread time without records, missing CPU time is the exits'.
const MAX_UNMEASURED_SHARE: f64 = 0.05;

/// Less than a tick of the kernel's accounting tells of no process.
const MIN_UNSEEN_NS: f64 = 10e6;

/// Name of the entry for processes of which no record was seen.
const UNSEEN: &str = "(not seen)";

impl Timeline<'_> {
    /// Takes a sample of a thread that is ending and has no events any more. False: it is another task.
    pub(super) fn ticked_after_exit(&mut self, pid: u32, tid: u32, chain: Chain<'_>) -> bool {
        if !self.ended.0.contains_key(&tid) && !self.ended.1.contains_key(&tid) {
            return false;
        }
        let stack = self.stacks.intern(&mut self.symbols, pid, chain, true);
        let (kernel, ..) = self.stacks.frames(stack);
        // Its number may belong to another program by now.
        let exits = kernel.iter().any(|id| self.symbols.name(*id) == EXIT);
        if exits {
            self.ticks.own();
            *self.after_exit.0.entry(stack).or_default() += 1;
        }
        exits
    }

    /// How long a thread ran after its exit was recorded at `exit_ns`, by the kernel's last counter of it.
    pub fn ran_after_exit_ns(&self, tid: u32, exit_ns: u64, running_ns: u64) -> u64 {
        let Some(l) = self.by_tid.get(&tid).map(|slot| &self.live[*slot as usize]) else { return 0 };
        let Some(last) = l.reading else { return 0 };
        let present = if l.doing == Doing::Running { exit_ns.saturating_sub(l.since_ns) } else { 0 };
        let recorded = (l.measured.running_ns + present).saturating_sub(last.measured.running_ns);
        let gap = l.measured.gap_ns - last.measured.gap_ns;
        running_ns.saturating_sub(last.running_ns).saturating_sub(recorded + gap)
    }

    /// Adds what the threads' own figures miss of the kernel's total. Returns the idle time that is left.
    pub(super) fn add_unrecorded(
        &mut self,
        cpu: CpuTime,
        accounts: &mut Vec<Account>,
        books: &mut Vec<Book>,
        idle_wall_ns: f64,
    ) -> f64 {
        let known: Vec<f64> =
            accounts.iter().zip(books.iter()).map(|(a, book)| running_ns(a, book)).collect();
        let missing = cpu.total_ns.unwrap_or(0) as f64 - known.iter().sum::<f64>();
        let Some(first) = accounts.first().filter(|_| missing > 0.0) else { return idle_wall_ns };
        let (pid, exits) = (first.pid, accounts.iter().map(|a| a.exits).sum::<u64>());
        let weights = self.stacks_after_exit(accounts);
        let mut share = Share {
            wall_ns: self.clock.wall_ns(),
            wall_per_running: wall_per_running(accounts),
            idle_wall_ns,
            weights: &weights,
        };
        if exits > 0 {
            let each = missing / exits as f64;
            let rest: f64 = accounts
                .iter_mut()
                .zip(books.iter_mut())
                .filter(|(a, _)| a.exits > 0)
                .map(|(a, book)| a.exits as f64 * each - share.give(a, book, a.exits as f64 * each))
                .sum();
            share.give_in_order(accounts, books, rest);
        } else {
            // The first thread's own counter tells how much of it is that thread's; the others are held to be exact.
            let of_nobody = cpu
                .first_thread_ns
                .map_or(missing, |own| (missing + known[0] - own as f64).clamp(0.0, missing));
            share.give_in_order(accounts, books, missing - of_nobody);
            if of_nobody >= MIN_UNSEEN_NS {
                // It stands for no thread and has no number of one.
                let mut entry = Account { count: 0, ..Account::new(pid, 0, UNSEEN.to_owned()) };
                let mut book = Book::default();
                entry.lifetime_ns = of_nobody.ceil() as u64;
                share.run(&mut book, of_nobody.ceil(), 0.0);
                accounts.push(entry);
                books.push(book);
            }
        }
        share.idle_wall_ns
    }

    /// Where the missing time went, as weights: by samples, else in the exits where all else was recorded.
    fn stacks_after_exit(&mut self, accounts: &[Account]) -> Vec<(StackId, f64)> {
        let mut seen: Vec<(StackId, u64)> = self.after_exit.0.iter().map(|(s, n)| (*s, *n)).collect();
        // A map has no order; sums of floats have.
        seen.sort_unstable();
        let whole: u64 = seen.iter().map(|(_, n)| n).sum();
        if whole > 0 {
            return seen.into_iter().map(|(s, n)| (s, n as f64 / whole as f64)).collect();
        }
        let life: f64 = accounts.iter().map(|a| a.lifetime_ns as f64).sum();
        let unmeasured: f64 = accounts.iter().map(Account::gap_total_ns).sum();
        let recorded = unmeasured <= MAX_UNMEASURED_SHARE * life && accounts.iter().any(|a| a.exits > 0);
        let stack = if recorded { self.stacks.named(&mut self.symbols, &[EXIT]) } else { UNKNOWN };
        vec![(stack, 1.0)]
    }
}

/// How CPU time that was not recorded enters the books.
struct Share<'a> {
    wall_ns: u64,
    wall_per_running: f64,
    idle_wall_ns: f64,
    weights: &'a [(StackId, f64)],
}

impl Share<'_> {
    /// Gives CPU time to the accounts in their order, as far as they have room.
    fn give_in_order(&mut self, accounts: &mut [Account], books: &mut [Book], time_ns: f64) {
        let mut left = time_ns;
        for (a, book) in accounts.iter_mut().zip(books) {
            if left < 1.0 {
                return;
            }
            left -= self.give(a, book, left);
        }
    }

    /// Gives CPU time to threads. One that ended lived on for it, up to the end of the run; else, and beyond, it was held
    /// to be queued or asleep meanwhile. No thread lives longer than the run. Returns how much they could take.
    fn give(&mut self, a: &mut Account, book: &mut Book, time_ns: f64) -> f64 {
        let room = (a.lifetime_ns as f64 - running_ns(a, book)).max(0.0);
        let beyond = a.count.saturating_mul(self.wall_ns).saturating_sub(a.lifetime_ns) as f64;
        let wanted = if a.exits > 0 { time_ns } else { (time_ns - room).max(0.0) };
        // Rounded up, so that the sum of whole nanoseconds is not below the kernel's.
        let longer = wanted.min(beyond).ceil();
        let taken = (time_ns - longer).clamp(0.0, room);
        a.lifetime_ns += longer as u64;
        let mut wall_ns = 0.0;
        for (_, row) in book.iter_mut().filter(|((state, _), _)| *state != State::Running) {
            wall_ns += row.take(if room > 0.0 { taken / room } else { 0.0 });
        }
        self.run(book, longer + taken, wall_ns);
        longer + taken
    }

    /// Adds running time, with what it takes over of the wall clock from other states; the rest comes from the idle time.
    fn run(&mut self, book: &mut Book, time_ns: f64, taken_wall_ns: f64) {
        let more = time_ns * self.wall_per_running - taken_wall_ns;
        let more = more.clamp(0.0, self.idle_wall_ns.max(0.0));
        self.idle_wall_ns = (self.idle_wall_ns - more).max(0.0);
        for (stack, weight) in self.weights {
            let row: &mut Row = book.entry((State::Running, *stack)).or_default();
            row.measured_ns += time_ns * weight;
            row.wall_ns += (taken_wall_ns + more) * weight;
        }
    }
}

impl Row {
    /// Takes a part of the time away. Returns its part of the wall clock.
    fn take(&mut self, part: f64) -> f64 {
        let before = self.wall_ns + self.gap_wall_ns + self.moved_wall_ns;
        for field in [
            &mut self.measured_ns,
            &mut self.gap_ns,
            &mut self.moved_ns,
            &mut self.wall_ns,
            &mut self.gap_wall_ns,
            &mut self.moved_wall_ns,
        ] {
            *field *= 1.0 - part;
        }
        self.forget(part);
        before * part
    }
}

/// Running time of an account as it is published.
fn running_ns(a: &Account, book: &Book) -> f64 {
    let rows = book.iter().filter(|((state, _), _)| *state == State::Running);
    let sum: f64 = rows.map(|(_, r)| r.measured_ns + r.gap_ns + r.moved_ns).sum();
    sum.round().min(a.lifetime_ns as f64)
}

/// Part of the wall clock per running time of the threads that ended: below 1 where they ran beside each other.
fn wall_per_running(accounts: &[Account]) -> f64 {
    let ratio = |of: &mut dyn Iterator<Item = &Account>| {
        let (wall, time) = of
            .fold((0.0, 0.0), |(wall, time), a| (wall + a.running.wall_ns, time + a.running.time_ns as f64));
        (time > 0.0).then(|| (wall / time).clamp(0.0, 1.0))
    };
    ratio(&mut accounts.iter().filter(|a| a.exits > 0)).or_else(|| ratio(&mut accounts.iter())).unwrap_or(1.0)
}
