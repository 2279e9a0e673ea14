//! Looks at threads from outside (`/proc`): their state, and the functions they sleep in.
//!
//! While switches are recorded, a look gives a sleep its stack. While they are not, looks are the only source: how
//! often a stack was found is its part of the sleeping time, and how many threads were found active at one time is
//! how the wall clock is shared.

use super::account::{LOOK_BLOCKED, LOOK_RUNNING};
use super::live::{Doing, Looked};
use super::stacks::{StackId, UNKNOWN};
use super::{Found, Timeline};

impl Timeline<'_> {
    /// A look at a thread at this time (CLOCK_MONOTONIC, ns). Looks with the same time are one round, which should hold
    /// every thread. `names`: the kernel functions it sleeps in, innermost first; empty where they cannot be seen.
    pub fn look(&mut self, time_ns: u64, tid: u32, found: Found, names: &[&str]) {
        if time_ns != self.looks.time_ns {
            self.close_round();
            self.looks.time_ns = time_ns;
        }
        self.clock.advance(time_ns);
        let Some(slot) = self.by_tid.get(&tid).copied() else { return };
        let running = found == Found::Running;
        let stack = if running { UNKNOWN } else { self.named(names) };
        if self.clock.is_watching() {
            self.look_at_watched(slot, running, stack);
            return;
        }
        let active = running || self.stacks.on_path(stack);
        let l = &mut self.live[slot as usize];
        let before = l.look.replace(Looked { running, stack, active }).is_some_and(|l| l.active);
        let account = l.account;
        self.looks.active = (self.looks.active + u64::from(active)).saturating_sub(u64::from(before));
        self.looks.round.push((account, stack, running, active));
    }

    fn look_at_watched(&mut self, slot: u32, running: bool, stack: StackId) {
        let l = &mut self.live[slot as usize];
        if l.presumed {
            // Only what the window began with is in doubt; the time since then is too short to be split.
            let doing = if running { Doing::Running } else { Doing::Blocked };
            if l.doing != doing || (l.stack == UNKNOWN && stack != UNKNOWN) {
                self.enter(slot, doing, stack);
                self.live[slot as usize].presumed = true;
            }
        } else if l.doing == Doing::Blocked && !running && l.stack == UNKNOWN && stack != UNKNOWN {
            l.stack = stack;
            l.guess = self.stacks.on_path(stack);
            let active = l.guess;
            self.set_active(slot, active);
        }
    }

    /// Books the looks of one time: each active thread had its part of that instant.
    pub(super) fn close_round(&mut self) {
        let share = 1.0 / self.looks.active.max(1) as f64;
        for (account, stack, running, active) in std::mem::take(&mut self.looks.round) {
            let (books, tallies) = self.accounts.book(account);
            let kind = if running { LOOK_RUNNING } else { LOOK_BLOCKED };
            books.add((stack, kind), (0, if active { share } else { 0.0 }, 1), self.window, tallies);
        }
    }
}
