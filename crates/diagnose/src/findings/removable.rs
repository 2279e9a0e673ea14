//! What a repair could take away: from entries of the account to wall time and to a bound of the gain.
//!
//! An entry's `wall_ns` is its part of the wall clock, each instant being shared among the threads that were active in
//! it. Taking a cost of `w` away from a run of `W` saves `w` where nothing else goes on meanwhile. With several threads
//! two bounds stand beside it, both from the *critical thread*, the one with most active time:
//! - certain: the run cannot end before the thread that then has most active time left. Let `span` be the wall time in
//!   which anybody was active, `A` a thread's active time and `C` its part of the cost: `span - max(A - C)`, if less
//!   than `w`. A helper thread's cost beside a busy main thread saves nothing for certain.
//! - at most: the critical thread itself becomes shorter by `max A - max(A - C)`, if more than `w`: others that were
//!   active at the same time may have been active only because they had the time.
//!
//! Time on a CPU is split by samples. Its part of the cost carries their error: the 95 % interval of a share of which
//! `k` of `n` samples were seen, by Wilson's formula. It stays wide where a few samples all agree. What may not enter:
//! causes, and how much of a cost a repair leaves.

use iowhy_core::layer::Layer;

use super::facts::sampling_error;
use super::replies::Answering;
use super::{Facts, WORTH_SAVING, queueing};
use crate::account::Entry;

/// A cost of which less than this part of the wall time is certain is not worth naming.
const MIN_CERTAIN: f64 = 0.01;

/// Wall time that would go with entries of the account, in nanoseconds: `certain_ns <= booked_ns <= most_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Removable {
    /// The run is sure to become shorter by this, if all of it goes.
    pub(super) certain_ns: f64,
    /// As the account books it.
    pub(super) booked_ns: f64,
    /// The run becomes shorter by no more.
    pub(super) most_ns: f64,
    /// The same for threads that answer clients; `None`: no thread that uses sockets has any of it.
    pub(super) answering: Option<Answering>,
}

impl Removable {
    /// Whether it is worth anybody's attention.
    pub(super) fn is_worth(self, wall_ns: f64) -> bool {
        wall_ns > 0.0 && self.booked_ns >= WORTH_SAVING * wall_ns && self.certain_ns >= MIN_CERTAIN * wall_ns
    }

    /// The same where the run becomes shorter by no more than this.
    pub(super) fn at_most(self, most_ns: f64) -> Removable {
        let least = |ns: f64| ns.min(most_ns.max(0.0));
        let Removable { certain_ns, booked_ns, most_ns, .. } = self;
        Removable {
            certain_ns: least(certain_ns),
            booked_ns: least(booked_ns),
            most_ns: least(most_ns),
            ..self
        }
    }
}

impl Facts<'_> {
    /// What would go if the weighted part (0 to 1) of every entry took no time, with the queueing for a CPU that
    /// goes with it (see `queueing`). Queueing itself is not weighed.
    pub(super) fn removable(&self, weight: impl Fn(&Entry) -> f64) -> Removable {
        let entries = queueing::shared_out(self.profile, self.account);
        let weight = |e: &Entry| if e.class.layer == Layer::CpuQueue { 0.0 } else { weight(e) };
        let answering = Answering::new(self, &entries, &weight);
        Removable { answering, ..self.going(&entries, weight) }
    }

    /// The same where the cause lies outside the program, so that its queueing stays, or is what is weighed.
    pub(super) fn removable_by_others(&self, weight: impl Fn(&Entry) -> f64) -> Removable {
        self.going(&self.account.entries, weight)
    }

    fn going(&self, entries: &[Entry], weight: impl Fn(&Entry) -> f64) -> Removable {
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
            return Removable::default();
        }
        let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let span = (account.wall_ns - account.idle_wall_ns).max(0.0);
        let certain = wall.min(span - longest(&left)).max(0.0);
        let most = wall.max(longest(&active) - longest(&left));
        let (less, more) = sampling_error(samples, all_samples);
        let sampled = busy_wall / wall;
        Removable {
            certain_ns: certain * (1.0 - sampled * less),
            booked_ns: wall,
            most_ns: most * (1.0 + sampled * more),
            answering: None,
        }
        .at_most(account.wall_ns)
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
    fn a_cost_of_the_only_thread_goes_whole() {
        let run = Run::new(10.0).wait(Operation::Read, Wait::DeviceRead, 0.5).busy(
            Operation::User,
            Layer::Program,
            0.5,
        );
        let going = run.facts(|f| f.removable(reads));
        assert_eq!((going.certain_ns, going.booked_ns, going.most_ns), (5e9, 5e9, 5e9));
    }

    #[test]
    fn a_helper_beside_a_busy_thread_saves_nothing_for_certain() {
        let run = Run::new(10.0)
            .busy(Operation::User, Layer::Program, 1.0)
            .second_thread(|t| t.wait(Operation::Read, Wait::DeviceRead, 1.0));
        let going = run.facts(|f| f.removable(reads));
        assert_eq!((going.certain_ns, going.booked_ns), (0.0, 5e9));
        assert!(going.most_ns >= 5e9 && !going.is_worth(10e9));
    }

    #[test]
    fn equal_threads_with_equal_costs_save_it_whole() {
        let half = |r: Run| {
            r.wait(Operation::Read, Wait::DeviceRead, 0.5).busy(Operation::User, Layer::Program, 0.5)
        };
        let run = half(Run::new(10.0)).second_thread(half);
        let going = run.facts(|f| f.removable(reads));
        assert!((going.certain_ns - 5e9).abs() < 1.0 && (going.most_ns - 5e9).abs() < 1.0, "{going:?}");
    }

    #[test]
    fn few_samples_widen_the_bounds_and_none_leave_nothing_certain() {
        let run = |samples| {
            Run::new(10.0)
                .busy_sampled(Operation::Read, Layer::Call, 0.5, samples)
                .busy(Operation::User, Layer::Program, 0.5)
                .facts(|f| f.removable(reads))
        };
        assert_eq!(run(0).certain_ns, 0.0);
        assert!(run(10).certain_ns < run(1000).certain_ns && run(10).most_ns > run(1000).most_ns);
    }

    #[test]
    fn samples_that_all_agree_are_no_certainty() {
        let certain = |samples| {
            let run = Run::new(1.0).busy_sampled(Operation::Read, Layer::Call, 1.0, samples);
            run.facts(|f| f.removable(reads)).certain_ns / 1e9
        };
        // Wilson: n / (n + 1.96^2).
        assert!((certain(1) - 1.0 / 4.8416).abs() < 1e-6, "{}", certain(1));
        assert!(certain(20) > 0.8 && certain(20) < 0.9 && certain(10_000) > 0.999);
    }

    proptest! {
        #[test]
        fn no_more_goes_than_there_is(
            shares in prop::collection::vec(0.0..1.0f64, 1..6), weight in -1.0..2.0f64, most in -1e9..4e9f64,
        ) {
            let whole: f64 = shares.iter().sum::<f64>().max(1e-6);
            let run = shares.iter().fold(Run::new(3.0), |run, s| {
                run.busy(Operation::Read, Layer::Call, s / whole / 2.0)
                    .second_thread(|t| t.wait(Operation::Write, Wait::InodeLock, s / whole / 3.0))
            });
            let going = run.facts(|f| f.removable(|_| weight));
            for (r, most) in [(going, 3e9), (going.at_most(most), most.max(0.0))] {
                prop_assert!(0.0 <= r.certain_ns && r.certain_ns <= r.booked_ns && r.booked_ns <= r.most_ns);
                prop_assert!(r.most_ns <= most + 1.0, "{r:?}");
            }
        }
    }
}
