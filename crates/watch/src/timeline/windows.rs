//! Duty cycle and exact readings: what is known while switches are not recorded.

use super::Timeline;
use super::live::{Doing, Reading};
use super::stacks::UNKNOWN;

impl Timeline<'_> {
    /// Switch records and sleeping stacks stop at this time (CLOCK_MONOTONIC, ns). Clock samples may go on.
    pub fn switches_off(&mut self, time_ns: u64) {
        if !self.clock.is_watching() {
            return;
        }
        self.clock.advance(time_ns);
        let mut slots: Vec<u32> = self.by_tid.values().copied().collect();
        slots.sort_unstable();
        for slot in &slots {
            let l = &self.live[*slot as usize];
            let (doing, stack) = (l.doing, l.stack);
            let was = if doing == Doing::Running && l.doubtful { Doing::Unseen } else { doing };
            self.close(*slot, was, stack);
            let (index, hidden) = (self.live[*slot as usize].account, self.live[*slot as usize].hidden);
            // What a hidden thread did only readings tell, which come later.
            if !hidden {
                self.accounts.get(index).settle(self.window);
            }
        }
        for slot in slots {
            let l = &mut self.live[slot as usize];
            l.before = (l.doing, l.stack);
            l.leaving = UNKNOWN;
            let (account, before) = (l.account, l.before);
            let books = self.accounts.get(account);
            books.gap.asleep_in = (before.0 == Doing::Blocked && books.individual).then_some(before.1);
            self.enter(slot, Doing::Unseen, UNKNOWN);
        }
        self.clock.set_watching(false);
    }

    /// Switch records and sleeping stacks come again from this time on (CLOCK_MONOTONIC, ns).
    pub fn switches_on(&mut self, time_ns: u64) {
        if self.clock.is_watching() {
            return;
        }
        self.clock.advance(time_ns);
        self.close_round();
        self.window += 1;
        self.clock.set_watching(true);
        let mut slots: Vec<u32> = self.by_tid.values().copied().collect();
        slots.sort_unstable();
        for slot in slots {
            self.close(slot, Doing::Unseen, UNKNOWN);
            let l = &self.live[slot as usize];
            if l.hidden {
                self.enter_hidden(slot);
                continue;
            }
            let (doing, stack) = match (l.look, l.before.0) {
                (Some(look), _) if look.running => (Doing::Running, UNKNOWN),
                (Some(look), _) => (Doing::Blocked, look.stack),
                (None, Doing::Unseen) => (Doing::Running, UNKNOWN),
                (None, before) => (before, UNKNOWN),
            };
            self.enter(slot, doing, stack);
            self.live[slot as usize].presumed = true;
            self.live[slot as usize].counted = true;
            if stack == UNKNOWN {
                self.still_asleep(slot);
            }
            if self.live[slot as usize].look.take().is_some_and(|l| l.active) {
                self.looks.active = self.looks.active.saturating_sub(1);
            }
        }
    }

    /// A thread that slept when recording stopped, and has not run since, is in the same sleep.
    fn still_asleep(&mut self, slot: u32) {
        let l = &self.live[slot as usize];
        let (doing, stack) = l.before;
        if doing != Doing::Blocked || stack == UNKNOWN || !l.presumed || l.doing != Doing::Blocked {
            return;
        }
        let gap = self.accounts.get(l.account).gap;
        if gap.asleep_in == Some(stack) && gap.read_ns > 0 && gap.running_ns == 0 {
            self.live[slot as usize].stack = stack;
            let active = self.stacks.on_path(stack);
            self.set_active(slot, active);
        }
    }

    /// The kernel's own counters of a thread, since its birth, in ns (`/proc/PID/task/TID/schedstat`), read at this
    /// time. Wanted for each thread when recording stops and when it begins again, and at the end.
    pub fn cumulative(&mut self, tid: u32, time_ns: u64, running_ns: u64, queued_ns: u64) {
        self.clock.advance(time_ns);
        let Some(slot) = self.by_tid.get(&tid).copied() else { return };
        let l = &self.live[slot as usize];
        // What a presumed state hides is not measured yet.
        if !l.presumed {
            let was = if l.doing == Doing::Running && l.doubtful { Doing::Unseen } else { l.doing };
            let stack = l.stack;
            self.close(slot, was, stack);
        }
        let l = &mut self.live[slot as usize];
        let now = l.measured;
        let last = l.reading.replace(Reading { running_ns, queued_ns, measured: now });
        let Some(last) = last else { return };
        let ran = running_ns.saturating_sub(last.running_ns);
        let queued = queued_ns.saturating_sub(last.queued_ns);
        let gap = now.gap_ns - last.measured.gap_ns;
        let blocked = now.blocked_ns - last.measured.blocked_ns;
        let queued_more = queued.saturating_sub(now.queued_ns - last.measured.queued_ns);
        let books = self.accounts.get(l.account);
        let mut queued_in_gap = 0;
        if gap > 0 {
            let in_gap = ran.saturating_sub(now.running_ns - last.measured.running_ns).min(gap);
            // Waits for a CPU after wake-ups are in the measured sleeps and in the gap, by their lengths.
            let part = gap as f64 / (gap + blocked) as f64;
            queued_in_gap = ((queued_more as f64 * part) as u64).min(gap - in_gap);
            books.gap.read_ns += gap;
            books.gap.running_ns += in_gap;
            books.gap.queued_ns += queued_in_gap;
        }
        books.wake_ns += (queued_more - queued_in_gap).min(blocked);
        if self.clock.is_watching() {
            self.still_asleep(slot);
        }
    }
}
