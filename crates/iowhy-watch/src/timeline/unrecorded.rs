//! CPU time that the kernel counted and no record showed. Linux 6.16 and later close the events of a thread before they
//! free its memory, so the rest of its exit is not recorded; without events short processes are not seen at all.
//!
//! Non-goal: correcting what was recorded. Invariant: time is only added, its part of the wall clock comes out of the
//! idle time alone, and without a total from the kernel nothing changes.

use iowhy_core::profile::State;

use super::Timeline;
use super::account::Account;
use super::hash::FastMap;
use super::live::Doing;
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

/// Clock samples of threads whose events the kernel had closed, by stack.
#[derive(Default)]
pub(super) struct AfterExit(FastMap<StackId, u64>);

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

    /// Adds what the threads' own figures lack against the kernel's total. Returns the idle time that is left.
    pub(super) fn add_unrecorded(
        &mut self,
        total_ns: Option<u64>,
        accounts: &mut Vec<Account>,
        books: &mut Vec<Book>,
        idle_wall_ns: f64,
    ) -> f64 {
        let known: f64 = accounts.iter().zip(books.iter()).map(|(a, book)| running_ns(a, book)).sum();
        let missing = total_ns.unwrap_or(0) as f64 - known;
        if missing <= 0.0 {
            return idle_wall_ns;
        }
        let stacks = self.stacks_after_exit(accounts);
        let exits: u64 = accounts.iter().map(|a| a.exits).sum();
        if exits == 0 {
            if missing < MIN_UNSEEN_NS {
                return idle_wall_ns;
            }
            let Some(first) = accounts.first() else { return idle_wall_ns };
            let unseen =
                Account { count: 0, exits: 1, ..Account::new(first.pid, first.tid, UNSEEN.to_owned()) };
            accounts.push(unseen);
            books.push(Book::default());
        }
        let wall = (missing * wall_per_running(accounts)).min(idle_wall_ns);
        let exits = exits.max(1) as f64;
        for (a, book) in accounts.iter_mut().zip(books).filter(|(a, _)| a.exits > 0) {
            let part = a.exits as f64 / exits;
            // Rounded up, so that the sum of whole nanoseconds is not below the kernel's.
            a.lifetime_ns += (missing * part).ceil() as u64;
            let time = (missing * part).ceil();
            for (stack, weight) in &stacks {
                let row: &mut Row = book.entry((State::Running, *stack)).or_default();
                row.measured_ns += time * weight;
                row.wall_ns += wall * part * weight;
            }
        }
        (idle_wall_ns - wall).max(0.0)
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
