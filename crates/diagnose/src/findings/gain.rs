//! What a repair saves: from costs in the account to wall time and to a gain.
//!
//! An entry's `wall_ns` is its part of the wall clock, each instant being shared among the threads that were active in
//! it. Taking a cost of `w` away from a run of `W` saves `w` where nothing else goes on meanwhile. With several threads
//! two bounds stand beside it, both from the *critical thread*, the one with most active time:
//! - low: the run cannot end before the thread that then has most active time left. Let `span` be the wall time in
//!   which anybody was active, `A` a thread's active time and `C` its part of the cost: `span - max(A - C)`, if less
//!   than `w`. A helper thread's cost beside a busy main thread saves nothing for certain.
//! - high: the critical thread itself becomes shorter by `max A - max(A - C)`, if more than `w`: others that were
//!   active at the same time may have been active only because they had the time.
//!
//! Time on a CPU is split by samples. Its part of the cost carries their error: the 95 % interval of a share of which
//! `k` of `n` samples were seen, by Wilson's formula. It stays wide where a few samples all agree. What may not enter:
//! causes.

use iowhy_core::finding::Gain;

use iowhy_core::layer::Layer;
use iowhy_core::profile::SampledShare;

use super::range::Range;
use super::{Facts, WORTH_SAVING, queueing};
use crate::account::Entry;

/// A repair that may gain less than this at the low end is not worth naming.
const LOWEST_GAIN: f64 = 1.01;

/// Wall time that a repair saves, in nanoseconds: what even a poor repair saves, the likely value, and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SavedTime(pub Range);

impl SavedTime {
    /// The part of it that a repair reaches. Scaling the lower bound is safe: the bound is concave in the part that is
    /// taken away, and not negative where nothing is.
    pub fn part(self, fraction: Range) -> SavedTime {
        SavedTime(self.0.times(fraction))
    }

    /// Two repairs of different costs.
    pub fn and(self, other: SavedTime) -> SavedTime {
        let (a, b) = (self.0, other.0);
        SavedTime(Range::new(a.low + b.low, a.likely + b.likely, a.high + b.high))
    }

    /// Old wall time over new wall time. At least 1, finite, and monotone in what is saved.
    pub fn gain(self, wall_ns: f64) -> Gain {
        if wall_ns > 0.0 {
            Gain::from_saved_time(wall_ns, self.0.low, self.0.likely, self.0.high)
        } else {
            Gain { predicted: 1.0, low: 1.0, high: 1.0, open_above: false }
        }
    }

    /// Whether it is worth anybody's attention: the likely saving is [`WORTH_SAVING`] of the wall time or more, and
    /// even a poor repair is sure to gain something.
    pub fn is_worth(self, wall_ns: f64) -> bool {
        wall_ns > 0.0 && self.0.likely >= WORTH_SAVING * wall_ns && self.gain(wall_ns).low >= LOWEST_GAIN
    }
}

impl Facts<'_> {
    /// What would be saved if the weighted part (0 to 1) of every entry took no time, with the queueing for a CPU that
    /// goes with it (see `queueing`). Queueing itself is not weighed. The bounds are those in the module's
    /// header.
    pub fn saved_without(&self, weight: impl Fn(&Entry) -> f64) -> SavedTime {
        let entries = queueing::shared_out(self.profile, self.account);
        self.saved(&entries, |e| if e.class.layer == Layer::CpuQueue { 0.0 } else { weight(e) })
    }

    /// The same where the cause lies outside the program, so that its queueing stays, or is what is weighed.
    pub(super) fn saved_without_others(&self, weight: impl Fn(&Entry) -> f64) -> SavedTime {
        self.saved(&self.account.entries, weight)
    }

    fn saved(&self, entries: &[Entry], weight: impl Fn(&Entry) -> f64) -> SavedTime {
        let account = self.account;
        let threads = entries.iter().map(|e| e.thread as usize + 1).max().unwrap_or(0);
        let mut active = vec![0.0_f64; threads];
        let mut left = vec![0.0_f64; threads];
        let (mut wall, mut busy_wall) = (0.0, 0.0);
        let (mut samples, mut all_samples) = (0_u64, 0_u64);
        for e in entries {
            if e.busy {
                all_samples = all_samples.saturating_add(e.events);
            }
            if e.wall_ns <= 0.0 {
                continue;
            }
            let w = weight(e);
            let w = if w.is_finite() { w.clamp(0.0, 1.0) } else { 0.0 };
            // A pool stands for several threads: each has the mean.
            let of = self.profile.threads.get(e.thread as usize).map_or(1, |t| t.count.max(1)) as f64;
            active[e.thread as usize] += e.time_ns / of;
            left[e.thread as usize] += (1.0 - w) * e.time_ns / of;
            wall += w * e.wall_ns;
            if e.busy && w > 0.0 {
                busy_wall += w * e.wall_ns;
                samples = samples.saturating_add(e.events);
            }
        }
        if wall <= 0.0 {
            return SavedTime::default();
        }
        let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let span = (account.wall_ns - account.idle_wall_ns).max(0.0);
        let low = wall.min(span - longest(&left));
        let high = wall.max(longest(&active) - longest(&left)).min(account.wall_ns);
        let (less, more) = sampling_error(samples, all_samples);
        let sampled = busy_wall / wall;
        SavedTime(
            Range::new(low * (1.0 - sampled * less), wall, high * (1.0 + sampled * more))
                .at_most(account.wall_ns),
        )
    }
}

/// How far a share that `k` of `n` samples show may lie below and above what it seems, relative to it; 1 and 1 when no
/// sample shows it.
fn sampling_error(k: u64, n: u64) -> (f64, f64) {
    let share = SampledShare { hits: k.min(n), n };
    match share.value().zip(share.interval()).filter(|(p, _)| *p > 0.0) {
        Some((p, (low, high))) => ((1.0 - low / p).clamp(0.0, 1.0), (high / p - 1.0).clamp(0.0, 1.0)),
        None => (1.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use proptest::prelude::*;

    use super::*;
    use crate::classify::{Operation, Wait};
    use crate::findings::synthetic::Run;

    fn reads(e: &Entry) -> f64 {
        f64::from(e.class.operation == Operation::Read)
    }

    #[test]
    fn a_cost_of_the_only_thread_is_saved_whole() {
        let run = Run::new(10.0).wait(Operation::Read, Wait::DeviceRead, 0.5).busy(
            Operation::User,
            Layer::Program,
            0.5,
        );
        let saved = run.facts(|f| f.saved_without(reads)).0;
        assert_eq!((saved.low, saved.likely, saved.high), (5e9, 5e9, 5e9));
        assert_eq!(SavedTime(saved).gain(10e9).predicted, 2.0);
    }

    #[test]
    fn a_helper_beside_a_busy_thread_saves_nothing_for_certain() {
        let run = Run::new(10.0)
            .busy(Operation::User, Layer::Program, 1.0)
            .second_thread(|t| t.wait(Operation::Read, Wait::DeviceRead, 1.0));
        let saved = run.facts(|f| f.saved_without(reads)).0;
        assert_eq!((saved.low, saved.likely), (0.0, 5e9));
        assert!(saved.high >= 5e9 && !SavedTime(saved).is_worth(10e9));
    }

    #[test]
    fn equal_threads_with_equal_costs_save_it_whole() {
        let half = |r: Run| {
            r.wait(Operation::Read, Wait::DeviceRead, 0.5).busy(Operation::User, Layer::Program, 0.5)
        };
        let run = half(Run::new(10.0)).second_thread(half);
        let saved = run.facts(|f| f.saved_without(reads)).0;
        assert!((saved.low - 5e9).abs() < 1.0 && (saved.high - 5e9).abs() < 1.0, "{saved:?}");
    }

    #[test]
    fn few_samples_widen_the_interval_and_none_leave_no_certain_saving() {
        let run = |samples| {
            Run::new(10.0)
                .busy_sampled(Operation::Read, Layer::Call, 0.5, samples)
                .busy(Operation::User, Layer::Program, 0.5)
                .facts(|f| f.saved_without(reads))
                .0
        };
        assert_eq!(run(0).low, 0.0);
        assert!(run(10).low < run(1000).low && run(10).high > run(1000).high);
    }

    #[test]
    fn samples_that_all_agree_are_no_certainty() {
        let low = |samples| {
            let run = Run::new(1.0).busy_sampled(Operation::Read, Layer::Call, 1.0, samples);
            run.facts(|f| f.saved_without(reads)).0.low / 1e9
        };
        // Wilson: n / (n + 1.96^2).
        assert!((low(1) - 1.0 / 4.8416).abs() < 1e-6, "{}", low(1));
        assert!(low(20) > 0.8 && low(20) < 0.9 && low(10_000) > 0.999);
    }

    proptest! {
        #[test]
        fn gains_are_bounded_ordered_and_monotone(
            a in 0.0..2.0f64, b in 0.0..2.0f64, c in 0.0..2.0f64, more in 0.0..1.0f64, wall in 0.0..1e12f64,
        ) {
            let saved = |x: f64| SavedTime(Range::new(a * wall, b * wall, c * wall)).and(SavedTime(Range::exact(x * wall)));
            let (gain, greater) = (saved(0.0).gain(wall), saved(more).gain(wall));
            prop_assert!(1.0 <= gain.low && gain.low <= gain.predicted && gain.predicted <= gain.high);
            prop_assert!(gain.high.is_finite() && gain.high <= 1001.0);
            prop_assert!(greater.low >= gain.low && greater.predicted >= gain.predicted && greater.high >= gain.high);
            let part = saved(0.0).part(Range::new(0.0, more, 1.0));
            prop_assert!(part.gain(wall).predicted <= gain.predicted);
        }

        #[test]
        fn no_more_is_saved_than_there_is(shares in prop::collection::vec(0.0..1.0f64, 1..6), weight in -1.0..2.0f64) {
            let whole: f64 = shares.iter().sum::<f64>().max(1e-6);
            let run = shares.iter().fold(Run::new(3.0), |run, s| {
                run.busy(Operation::Read, Layer::Call, s / whole / 2.0)
                    .second_thread(|t| t.wait(Operation::Write, Wait::InodeLock, s / whole / 3.0))
            });
            let saved = run.facts(|f| f.saved_without(|_| weight)).0;
            prop_assert!(saved.low <= saved.likely && saved.likely <= saved.high && saved.high <= 3e9 + 1.0);
        }
    }
}
