//! The wall clock of a run, idle time included: what took each part of it.
//!
//! An instant in which threads were active belongs to them ([`Entry::wall_ns`]). An idle instant belongs to sleeps off the
//! path, in proportion to their time: first to sleeps for something outside of the program (a peer, a timer), because sleeps
//! for another thread or a child only wait for those; last to threads that idle throughout. No sleep takes more than its time.

use std::collections::{BTreeMap, HashSet};

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::{Profile, Thread};

use super::peer::{Sleep, sleeps};
use super::{Account, Entry, Sum};
use crate::classify::Wait;

/// A thread that is active for less than this part of its life does not idle throughout. It bounds what a reader misses
/// of a thread that is left out.
const ACTIVE: f64 = 0.01;

/// The sleeps of a thread that idles throughout last for this part of the run on average: at most ten of them fit. A thread
/// that is woken more often serves something, or looks whether there is something to do.
const SLEEP: f64 = 0.1;

/// Who an idle instant is asked of, in this order.
const RANKS: usize = 3;

/// Shares of the wall clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WallClock {
    /// Threads that idle throughout, as indexes of the profile's.
    idle: HashSet<u32>,
    /// Wall time for each nanosecond of a sleep off the path, by rank.
    rates: [f64; RANKS],
    /// Idle time that no sleep stands for.
    nobody_ns: f64,
}

impl WallClock {
    /// The clock of a run.
    pub fn new(profile: &Profile, account: &Account) -> WallClock {
        let mut clock = WallClock { idle: idle_threads(profile, account), ..WallClock::default() };
        if clock.share(account) > ACTIVE * account.wall_ns {
            // The other threads do not stand for the idle time: those that sleep throughout are the run.
            clock.idle.clear();
            clock.share(account);
        }
        clock
    }

    /// Shares the idle time out. Returns how much of it only threads that idle throughout stand for.
    fn share(&mut self, account: &Account) -> f64 {
        let mut asleep = [0.0_f64; RANKS];
        for entry in account.entries.iter().filter(|e| off_path(e)) {
            asleep[self.rank(entry)] += entry.time_ns - entry.wall_ns;
        }
        let (mut left, mut given) = (account.idle_wall_ns.max(0.0), [0.0; RANKS]);
        for rank in 0..RANKS {
            given[rank] = left.min(asleep[rank]);
            self.rates[rank] = if asleep[rank] > 0.0 { given[rank] / asleep[rank] } else { 0.0 };
            left -= given[rank];
        }
        self.nobody_ns = left.max(0.0);
        given[RANKS - 1]
    }

    /// The part of the wall clock that an entry takes. All entries, and idle time that no sleep stands for, sum to
    /// the wall time.
    pub fn wall_ns(&self, entry: &Entry) -> f64 {
        if off_path(entry) {
            entry.wall_ns + self.rates[self.rank(entry)] * (entry.time_ns - entry.wall_ns)
        } else {
            entry.wall_ns
        }
    }

    /// Whether a thread idles throughout.
    pub(super) fn idles(&self, thread: u32) -> bool {
        self.idle.contains(&thread)
    }

    /// How many threads idle throughout, pools unfolded; none if nobody else stands for the idle time: then they are the run.
    pub fn idle_threads(&self, profile: &Profile) -> u64 {
        profile
            .threads
            .iter()
            .enumerate()
            .filter(|(index, _)| self.idle.contains(&(*index as u32)))
            .fold(0_u64, |sum, (_, thread)| sum.saturating_add(thread.count))
    }

    /// Wall time by layer; sums to the wall time.
    pub fn layers(&self, account: &Account) -> Ledger {
        let mut ledger = Ledger::default();
        for entry in &account.entries {
            let wall_ns = self.wall_ns(entry);
            let (busy, wait) = if entry.busy { (wall_ns, 0.0) } else { (0.0, wall_ns) };
            ledger.add(entry.class.layer, busy, wait);
        }
        if self.nobody_ns > 0.0 {
            ledger.add(Layer::Unexplained, 0.0, self.nobody_ns);
        }
        ledger
    }

    /// Sleeps by what they waited for, those that took most of the wall clock first. The wall time of a sum is that of this
    /// clock.
    pub fn waits(
        &self,
        profile: &Profile,
        account: &Account,
        pick: impl Fn(&Entry) -> bool,
    ) -> Vec<(Sleep, Sum)> {
        let kinds = sleeps(profile, account);
        let mut sums: BTreeMap<Sleep, Sum> = BTreeMap::new();
        for entry in account.entries.iter().filter(|e| pick(e)) {
            let Some(wait) = entry.class.wait else { continue };
            let sleep = kinds.of(wait, entry.thread);
            let sum = sums.entry(sleep).or_default();
            sum.add(entry.time_ns, self.wall_ns(entry), entry.events);
            sum.add_delay(entry.delay);
        }
        let mut sums: Vec<(Sleep, Sum)> = sums.into_iter().collect();
        sums.sort_by(|a, b| {
            b.1.wall_ns.total_cmp(&a.1.wall_ns).then_with(|| b.1.time_ns.total_cmp(&a.1.time_ns))
        });
        sums
    }

    fn rank(&self, entry: &Entry) -> usize {
        // A child, and a thread that holds a lock, are part of the program: what they sleep for is the cause. A shell waits
        // for its children by their signal.
        let inside = matches!(entry.class.wait, Some(Wait::Child | Wait::Futex | Wait::Signal));
        if self.idle.contains(&entry.thread) { 2 } else { usize::from(inside) }
    }
}

/// Whether an entry is a sleep off the path.
fn off_path(entry: &Entry) -> bool {
    entry.class.wait.is_some_and(|wait| !wait.on_path())
}

/// The threads that idle throughout.
fn idle_threads(profile: &Profile, account: &Account) -> HashSet<u32> {
    let mut asleep = vec![0.0_f64; profile.threads.len()];
    for entry in account.entries.iter().filter(|e| off_path(e)) {
        if let Some(sum) = asleep.get_mut(entry.thread as usize) {
            *sum += entry.time_ns;
        }
    }
    // Only the windows in which switches were recorded tell of sleeps.
    let recorded = profile.observer.switch_duty;
    let idles = |thread: &Thread, asleep_ns: f64| {
        let life_ns = thread.lifetime_ns as f64;
        let seen = if recorded > 0.0 { thread.sleeps as f64 / recorded } else { 0.0 };
        life_ns > 0.0
            && life_ns - asleep_ns <= ACTIVE * life_ns
            && asleep_ns >= SLEEP * profile.wall_ns as f64 * seen.max(thread.count as f64)
    };
    let threads = profile.threads.iter().zip(&asleep).enumerate();
    threads.filter(|(_, (t, asleep))| idles(t, **asleep)).map(|(i, _)| i as u32).collect()
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Observer;
    use proptest::prelude::*;

    use super::*;
    use crate::account::Delay;
    use crate::classify::{Class, Operation};

    const WAITS: [Option<Wait>; 6] = [
        None,
        Some(Wait::DeviceRead),
        Some(Wait::Timer),
        Some(Wait::Child),
        Some(Wait::Futex),
        Some(Wait::Unknown),
    ];

    fn entry(thread: u32, wait: Option<Wait>, time_ns: f64, wall_ns: f64) -> Entry {
        let layer = wait.map_or(Layer::Program, |wait| wait.layer().unwrap_or(Layer::Unexplained));
        let class = Class { operation: Operation::Unknown, layer, wait };
        Entry { thread, class, busy: wait.is_none(), time_ns, wall_ns, events: 1, delay: Delay::default() }
    }

    /// A run of one second; threads with their sleeps live as long as their entries.
    fn run(entries: Vec<Entry>, sleeps: &[u64]) -> (Profile, Account) {
        let mut profile = Profile {
            wall_ns: 1_000_000_000,
            observer: Observer { switch_duty: 1.0, ..Observer::default() },
            ..Profile::default()
        };
        for (index, sleeps) in sleeps.iter().enumerate() {
            let own = entries.iter().filter(|e| e.thread as usize == index);
            let lifetime_ns = own.map(|e| e.time_ns).sum::<f64>() as u64;
            profile.threads.push(Thread { count: 1, lifetime_ns, sleeps: *sleeps, ..Thread::default() });
        }
        let active: f64 = entries.iter().map(|e| e.wall_ns).sum();
        profile.idle_wall_ns = 1e9 - active;
        let account =
            Account { wall_ns: 1e9, idle_wall_ns: profile.idle_wall_ns, entries, ..Account::default() };
        (profile, account)
    }

    fn shares(entries: Vec<Entry>, sleeps: &[u64]) -> (Vec<f64>, u64) {
        let (profile, account) = run(entries, sleeps);
        let clock = WallClock::new(&profile, &account);
        let shares = account.entries.iter().map(|e| (clock.wall_ns(e) / 1e6).round() / 1e3).collect();
        (shares, clock.idle_threads(&profile))
    }

    #[test]
    fn helpers_that_idle_throughout_take_no_part_of_the_clock() {
        let helper = |thread| entry(thread, Some(Wait::Futex), 1e9, 0.0);
        let main = [entry(0, None, 0.2e9, 0.2e9), entry(0, Some(Wait::Poll), 0.8e9, 0.0)];
        let all = main.into_iter().chain([1, 2, 3, 4].map(helper)).collect();
        assert_eq!(shares(all, &[500, 1, 1, 0, 10]), (vec![0.2, 0.8, 0.0, 0.0, 0.0, 0.0], 4));
        // One that is woken more often looks for something to do; it is not counted, and its lock is not the cause.
        let all = main.into_iter().chain([helper(1)]).collect();
        assert_eq!(shares(all, &[500, 11]), (vec![0.2, 0.8, 0.0], 0));
    }

    #[test]
    fn a_run_whose_threads_all_idle_leaves_none_out() {
        let sleeper = entry(1, Some(Wait::Timer), 0.999e9, 0.0);
        let parent = entry(0, Some(Wait::Child), 1e9, 0.0);
        let (shares, idle) = shares(vec![parent, sleeper], &[1, 1]);
        // The parent waits for what the child sleeps for.
        assert_eq!((shares, idle), (vec![0.001, 0.999], 0));
    }

    #[test]
    fn idle_time_without_a_sleep_is_unexplained() {
        let (profile, account) = run(vec![entry(0, None, 0.4e9, 0.4e9)], &[0]);
        let clock = WallClock::new(&profile, &account);
        assert_eq!(clock.nobody_ns, 0.6e9);
        assert_eq!(clock.layers(&account).get(Layer::Unexplained).wait_ns, 0.6e9);
    }

    proptest! {
        #[test]
        fn layers_sum_to_the_wall_clock(
            parts in prop::collection::vec((0u32..4, 0usize..6, 0.0..1e9f64, 0.0..1.0f64), 0..20),
        ) {
            let whole: f64 = parts.len() as f64;
            let entries: Vec<Entry> = parts.into_iter().map(|(thread, wait, time_ns, on_wall)| {
                let wait = WAITS[wait];
                let off_path = wait.is_some_and(|wait| !wait.on_path());
                entry(thread, wait, time_ns, if off_path { 0.0 } else { time_ns * on_wall / whole })
            }).collect();
            let (profile, account) = run(entries, &[0, 1, 50, 7]);
            let clock = WallClock::new(&profile, &account);
            prop_assert!((clock.layers(&account).total_ns() - 1e9).abs() < 1.0);
            for e in &account.entries {
                let wall_ns = clock.wall_ns(e);
                prop_assert!(wall_ns >= 0.0 && wall_ns <= e.time_ns.max(e.wall_ns) + 1e-3);
            }
        }
    }
}
