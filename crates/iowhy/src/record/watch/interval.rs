//! How sure a share of thread time is.
//!
//! What a thread ran and slept in all is exact; only the split over stacks is sampled, thread by thread. CPU time is
//! split by clock samples, so a part of it is a binomial share (Wilson's interval). Sleeps are recorded one by one,
//! which is exact, unless only some could be: then a part `p` of the time in `n` sleeps, with `m` others, has the
//! standard error `p (1 - p) sqrt(2 / n + 2 / m)`: the delta method for a ratio of two sums whose terms, and how many
//! there are, both vary (a sum of `n` terms of an exponential law, `n` itself of Poisson's: relative variance `2 / n`).
//! Errors of different threads are independent and add by squares.

use std::collections::BTreeMap;

use iowhy_core::profile::{Profile, SampledShare, Tier};
use iowhy_diagnose::account::Entry;

/// A sum of thread time, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// On a CPU.
    pub(super) busy_ns: f64,
    /// Off it.
    pub(super) wait_ns: f64,
    /// Clock samples behind `busy_ns`.
    pub(super) samples: u64,
    /// Sleeps behind the part of `wait_ns` that was asleep (not queued).
    pub(super) sleeps: u64,
    threads: BTreeMap<u32, OfThread>,
}

/// The part of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OfThread {
    busy_ns: f64,
    samples: u64,
    asleep_ns: f64,
    sleeps: u64,
}

impl Measured {
    /// Adds an entry of the account.
    pub(super) fn add(&mut self, entry: &Entry) {
        let own = self.threads.entry(entry.thread).or_default();
        if entry.busy {
            self.busy_ns += entry.time_ns;
            self.samples += entry.events;
            own.busy_ns += entry.time_ns;
            own.samples += entry.events;
        } else {
            self.wait_ns += entry.time_ns;
            if entry.class.wait.is_some() {
                self.sleeps += entry.events;
                own.asleep_ns += entry.time_ns;
                own.sleeps += entry.events;
            }
        }
    }

    /// The sum of entries.
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Measured {
        let mut sum = Measured::default();
        entries.for_each(|entry| sum.add(entry));
        sum
    }

    /// All of it.
    pub(super) fn total_ns(&self) -> f64 {
        self.busy_ns + self.wait_ns
    }
}

/// The whole that is split.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    whole: Measured,
    whole_ns: f64,
    sleeps_sampled: bool,
}

/// Part of the run with full recording above which sleeps count as all seen.
const ALL_SEEN: f64 = 0.999;

impl Basis {
    /// A whole of these entries, `whole_ns` long.
    pub(super) fn new<'a>(
        profile: &Profile,
        entries: impl Iterator<Item = &'a Entry>,
        whole_ns: f64,
    ) -> Basis {
        Basis {
            whole: Measured::of(entries),
            whole_ns,
            sleeps_sampled: profile.sight.tier == Tier::None || profile.observer.switch_duty < ALL_SEEN,
        }
    }

    /// A part as a share of the whole, with the ends of its interval.
    pub(super) fn share(&self, part: &Measured) -> (f64, f64, f64) {
        if self.whole_ns <= 0.0 {
            return (0.0, 0.0, 0.0);
        }
        let (mut down, mut up) = (0.0_f64, 0.0_f64);
        for (thread, own) in &part.threads {
            let all = self.whole.threads.get(thread).copied().unwrap_or_default();
            let looked = SampledShare { hits: own.samples.min(all.samples), n: all.samples };
            if let (true, Some(p), Some((low, high))) = (own.samples > 0, looked.value(), looked.interval()) {
                down = down.hypot((p - low) * all.busy_ns);
                up = up.hypot((high - p) * all.busy_ns);
            }
            let others = all.sleeps.saturating_sub(own.sleeps);
            if self.sleeps_sampled && own.sleeps > 0 && others > 0 && all.asleep_ns > 0.0 {
                let p = (own.asleep_ns / all.asleep_ns).clamp(0.0, 1.0);
                let spread = 2.0 / own.sleeps as f64 + 2.0 / others as f64;
                let arm = 1.96 * p * (1.0 - p) * spread.sqrt() * all.asleep_ns;
                down = down.hypot(arm);
                up = up.hypot(arm);
            }
        }
        let value = part.total_ns() / self.whole_ns;
        let low = value - down / self.whole_ns;
        let high = value + up / self.whole_ns;
        (value, low.clamp(0.0, value.max(0.0)), high.max(value).min(value.max(1.0)))
    }
}
