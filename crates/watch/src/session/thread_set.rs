//! Who belongs to the program at present: threads by number, with their processes; and the rate at which they may be
//! looked at one by one.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Threads that are remembered. Events of others are still seen by the time line; they are only not looked at.
const MAX: usize = 65_536;

/// Threads that live.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadSet {
    threads: BTreeMap<u32, u32>,
    last: u32,
}

impl ThreadSet {
    /// A thread of the program. False: it was there already, or there is no room.
    pub(super) fn add(&mut self, pid: u32, tid: u32) -> bool {
        if self.threads.len() >= MAX && !self.threads.contains_key(&tid) {
            return false;
        }
        self.threads.insert(tid, pid) != Some(pid)
    }

    /// A thread that ended. False: it was not there.
    pub(super) fn remove(&mut self, tid: u32) -> bool {
        self.threads.remove(&tid).is_some()
    }

    /// All threads of a process.
    pub(super) fn remove_process(&mut self, pid: u32) {
        self.threads.retain(|_, p| *p != pid);
    }

    pub(super) fn contains(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }

    /// All, as (pid, tid).
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.threads.iter().map(|(tid, pid)| (*pid, *tid))
    }

    /// The processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.threads.values().copied().collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// The next in turn, as (pid, tid): each comes up equally often.
    pub(super) fn next(&mut self) -> Option<(u32, u32)> {
        let after = self.threads.range((Bound::Excluded(self.last), Bound::Unbounded)).next();
        let (tid, pid) = after.or_else(|| self.threads.iter().next()).map(|(t, p)| (*t, *p))?;
        self.last = tid;
        Some((pid, tid))
    }
}

/// How many looks are allowed: a bucket that fills at a steady rate.
#[derive(Clone, Debug)]
pub(super) struct LookBudget {
    level: f64,
    at_ns: u64,
}

impl LookBudget {
    /// Looks per second, over any longer time.
    const RATE: f64 = 200.0;
    /// Looks at once.
    pub(super) const DEPTH: f64 = 50.0;

    pub(super) fn new(now_ns: u64) -> LookBudget {
        LookBudget { level: Self::DEPTH, at_ns: now_ns }
    }

    /// Whether this number of looks may be taken now.
    pub(super) fn holds(&mut self, now_ns: u64, looks: usize) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns) as f64 / 1e9 * Self::RATE;
        self.level = (self.level + gained).min(Self::DEPTH);
        self.at_ns = now_ns.max(self.at_ns);
        self.level >= looks as f64
    }

    /// Takes one more look, if that is allowed now.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        if !self.holds(now_ns, 1) {
            return false;
        }
        self.level -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_comes_up_in_turn() {
        let mut threads = ThreadSet::default();
        assert_eq!(threads.next(), None);
        for tid in [5, 3, 9] {
            assert!(threads.add(1, tid));
        }
        assert!(!threads.add(1, 9));
        let turns: Vec<u32> = (0..6).filter_map(|_| threads.next()).map(|(_, tid)| tid).collect();
        assert_eq!(turns, [3, 5, 9, 3, 5, 9]);
        threads.remove(3);
        assert_eq!(threads.next(), Some((1, 5)));
        assert_eq!(threads.processes(), [1]);
    }

    #[test]
    fn looks_are_bounded_over_time() {
        let mut budget = LookBudget::new(0);
        let taken = (0..10_000u64).filter(|i| budget.take(i * 1_000_000)).count();
        // Ten seconds: 200 a second and what the bucket held.
        assert!((1990..=2060).contains(&taken), "{taken}");
    }
}
