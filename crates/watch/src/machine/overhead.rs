//! What a watch takes of the machine, while it watches: CPU time of iowhy itself, counted, and of its programs in the kernel, sampled. The
//! kernel times programs on request; for a whole watch that would cost each run of each of them two readings of a clock, so that it does it for a
//! moment of each second, at a random time.

use std::collections::VecDeque;

use iowhy_core::estimate::Unit;
use iowhy_core::machine::{OverheadExceeded, TimedShare};
use iowhy_core::rng::Rng;
use iowhy_core::stats::{interval, resample};
use iowhy_linux::clock::{monotonic_ns, process_cpu_ns};

use super::turn::PERIOD_NS;
use crate::in_kernel::{MachineObserver, Statistics};

/// How long a sample is (chosen): some 500 of the switches of a machine that makes 25,000 a second, and 2 % of the time, so that the two
/// readings of a clock hardly count.
const SAMPLE_NS: u64 = 20_000_000;
/// A watch ends itself by what it took in so many seconds (chosen): one busy moment is no reason.
const SECONDS: usize = 3;
/// Fewer samples have no interval: of so few the bootstrap gives their range.
const ENOUGH: usize = 5;

/// Who times the programs.
pub(super) trait Timer {
    /// Held while they are timed.
    type Held;
    fn hold(&self) -> Result<Self::Held, String>;
    /// How long they have run so far while that was held, on all CPUs, and now.
    fn run_ns(&self) -> Result<(u64, u64), String>;
}

impl Timer for MachineObserver {
    type Held = Statistics;

    fn hold(&self) -> Result<Statistics, String> {
        Statistics::keep()
    }

    fn run_ns(&self) -> Result<(u64, u64), String> {
        MachineObserver::run_ns(self).map(|run_ns| (run_ns, monotonic_ns()))
    }
}

/// What a watch takes.
pub(super) struct Overhead<T: Timer = MachineObserver> {
    /// CPUs that share the work.
    cpus: f64,
    rng: Rng,
    next_ns: u64,
    sampling: Option<Sampling<T::Held>>,
    /// Samples of the interval so far.
    samples: Vec<Sample>,
    /// That of the second under way.
    sample: Option<Sample>,
    /// Why the kernel does not tell.
    unknown: Option<String>,
    recent: Recent,
    own_cpu_ns: u64,
    second_ns: u64,
}

struct Sampling<H> {
    _held: H,
    since_ns: u64,
    run_ns: u64,
}

#[derive(Clone, Copy)]
struct Sample {
    share: f64,
    length_ns: u64,
}

impl<T: Timer> Overhead<T> {
    /// From now on (CLOCK_MONOTONIC). `limit`: the share of all CPU time that the watch may take.
    pub(super) fn begin(limit: f64, now_ns: u64) -> Overhead<T> {
        let mut overhead = Overhead {
            cpus: iowhy_linux::cpus::online().len().max(1) as f64,
            rng: Rng::new(now_ns ^ u64::from(std::process::id()) << 32),
            next_ns: 0,
            sampling: None,
            samples: Vec::new(),
            sample: None,
            unknown: None,
            recent: Recent { limit, seconds: VecDeque::new() },
            own_cpu_ns: 0,
            second_ns: 0,
        };
        overhead.begin_second(now_ns);
        overhead
    }

    /// When [`Overhead::step`] has something to do.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.next_ns
    }

    /// Does what is due. Gives what was exceeded, at the end of a second. A second ends with its sample: where the machine is too busy for it, it
    /// is taken late.
    pub(super) fn step(&mut self, now_ns: u64, timer: &T) -> Option<OverheadExceeded> {
        if now_ns < self.next_ns {
            return None;
        }
        let second_ends_ns = self.second_ns + PERIOD_NS;
        if self.sampling.is_some() {
            self.end_sample(timer);
            self.next_ns = second_ends_ns;
            return None;
        }
        if self.sample.is_none() && self.unknown.is_none() {
            self.begin_sample(timer);
            return None;
        }
        if now_ns < second_ends_ns {
            self.next_ns = second_ends_ns;
            return None;
        }
        let wall_ns = (now_ns - self.second_ns) as f64 * self.cpus;
        let own = process_cpu_ns().saturating_sub(self.own_cpu_ns) as f64 / wall_ns;
        let exceeded = self.recent.second(own, self.sample.map(|sample| sample.share));
        self.begin_second(now_ns);
        exceeded
    }

    /// Nobody takes what is told for a while, or did until now: the kernel is not asked to time programs meanwhile, and no second goes on.
    pub(super) fn pause(&mut self, now_ns: u64) {
        self.sampling = None;
        self.recent.seconds.clear();
        self.begin_second(now_ns);
    }

    /// What the samples of the interval say, and why there is none. The next interval begins.
    pub(super) fn take_interval(&mut self) -> (Option<TimedShare>, Option<String>) {
        let samples = std::mem::take(&mut self.samples);
        (of_samples(&samples), self.unknown.clone())
    }

    /// The sample lies anywhere in the second.
    fn begin_second(&mut self, now_ns: u64) {
        self.own_cpu_ns = process_cpu_ns();
        self.second_ns = now_ns;
        self.sample = None;
        self.next_ns = match &self.unknown {
            Some(_) => now_ns + PERIOD_NS,
            None => now_ns + self.rng.below(PERIOD_NS - SAMPLE_NS),
        };
    }

    fn begin_sample(&mut self, timer: &T) {
        let begun = timer.hold().and_then(|held| {
            let (run_ns, since_ns) = timer.run_ns()?;
            Ok(Sampling { _held: held, since_ns, run_ns })
        });
        match begun {
            Ok(sampling) => {
                self.next_ns = sampling.since_ns + SAMPLE_NS;
                self.sampling = Some(sampling);
            }
            Err(why) => self.unknown = Some(why),
        }
    }

    fn end_sample(&mut self, timer: &T) {
        let Some(sampling) = self.sampling.take() else { return };
        match timer.run_ns() {
            Ok((run_ns, now_ns)) => {
                let length_ns = now_ns.saturating_sub(sampling.since_ns).max(1);
                let ran_ns = run_ns.saturating_sub(sampling.run_ns) as f64;
                let sample = Sample { share: ran_ns / (length_ns as f64 * self.cpus), length_ns };
                self.samples.push(sample);
                self.sample = Some(sample);
            }
            Err(why) => self.unknown = Some(why),
        }
    }
}

fn of_samples(samples: &[Sample]) -> Option<TimedShare> {
    let n = samples.len();
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / n as f64;
    let share = (n > 0).then(|| mean(&mut samples.iter().map(|sample| sample.share)))?;
    let estimate = (n >= ENOUGH).then(|| {
        let means = resample(n, 1, |drawn| mean(&mut drawn.iter().map(|at| samples[*at].share)));
        interval(share, means, n, Unit::Ratio)
    });
    let interval = estimate.flatten().map(|of| [of.low, of.high]);
    let sample_ns = mean(&mut samples.iter().map(|sample| sample.length_ns as f64)) as u64;
    Some(TimedShare { share, interval, samples: n as u64, sample_ns })
}

/// The last seconds, against what is allowed.
struct Recent {
    limit: f64,
    /// Shares of all CPU time, of iowhy and of its programs (`None`: not known).
    seconds: VecDeque<(f64, Option<f64>)>,
}

impl Recent {
    /// A second is over. `own` was counted, `observer` sampled in it.
    fn second(&mut self, own: f64, observer: Option<f64>) -> Option<OverheadExceeded> {
        self.seconds.push_back((own, observer));
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
        let own_share = self.seconds.iter().map(|second| second.0).sum::<f64>() / SECONDS as f64;
        let sampled: Vec<f64> = self.seconds.iter().filter_map(|second| second.1).collect();
        let observer_share =
            (!sampled.is_empty()).then(|| sampled.iter().sum::<f64>() / sampled.len() as f64);
        let exceeded =
            OverheadExceeded { own_share, observer_share, samples: sampled.len() as u64, limit: self.limit };
        (self.seconds.len() == SECONDS && exceeded.share() > self.limit).then_some(exceeded)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Programs that run for a fixed part of the time, on a clock of its own.
    struct Scripted {
        now_ns: Cell<u64>,
        share_of_a_cpu: f64,
        /// From when to when they were timed.
        held: RefCell<Vec<u64>>,
        refused: bool,
    }

    impl Scripted {
        fn new(share_of_a_cpu: f64) -> Scripted {
            Scripted { now_ns: Cell::new(0), share_of_a_cpu, held: RefCell::default(), refused: false }
        }

        /// Steps at each deadline, each time so much late, up to a time. Gives the first that was exceeded.
        fn run(
            &self,
            overhead: &mut Overhead<Scripted>,
            late_ns: u64,
            until_ns: u64,
        ) -> Option<OverheadExceeded> {
            while self.now_ns.get() < until_ns {
                self.now_ns.set(overhead.deadline_ns().max(self.now_ns.get()) + late_ns + 1);
                let exceeded = overhead.step(self.now_ns.get(), self);
                if exceeded.is_some() {
                    return exceeded;
                }
            }
            None
        }
    }

    impl Timer for Scripted {
        type Held = ();

        fn hold(&self) -> Result<(), String> {
            self.held.borrow_mut().push(self.now_ns.get());
            if self.refused { Err("Operation not permitted".to_owned()) } else { Ok(()) }
        }

        fn run_ns(&self) -> Result<(u64, u64), String> {
            let now_ns = self.now_ns.get();
            Ok(((now_ns as f64 * self.share_of_a_cpu) as u64, now_ns))
        }
    }

    #[test]
    fn each_second_has_one_sample_at_another_time_of_it() {
        let timer = Scripted::new(0.5);
        let mut overhead = Overhead::begin(1.0, 0);
        assert_eq!(timer.run(&mut overhead, 0, 20 * PERIOD_NS + PERIOD_NS / 2), None);
        let held = timer.held.borrow();
        assert!((20..=21).contains(&held.len()), "{held:?}");
        let mut places: Vec<u64> = held.iter().map(|at| at % PERIOD_NS / (PERIOD_NS / 4)).collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 1, "always in the same quarter of the second: {held:?}");
        let (share, unknown) = overhead.take_interval();
        let share = share.expect("samples");
        assert!((share.share * overhead.cpus - 0.5).abs() < 1e-3 && unknown.is_none(), "{share:?}");
        assert!(share.sample_ns.abs_diff(SAMPLE_NS) < 100 && share.interval.is_some(), "{share:?}");
        assert_eq!(overhead.take_interval().0, None, "they belong to one interval");
    }

    #[test]
    fn a_busy_machine_has_its_samples_late_and_longer_but_has_them() {
        let timer = Scripted::new(0.5);
        let mut overhead = Overhead::begin(0.2 / iowhy_linux::cpus::online().len().max(1) as f64, 0);
        let exceeded = timer.run(&mut overhead, 3 * PERIOD_NS, 60 * PERIOD_NS).expect("half a CPU is more");
        assert_eq!((exceeded.samples, timer.held.borrow().len()), (3, 3));
        let share = overhead.take_interval().0.expect("samples");
        assert!(share.sample_ns > 3 * PERIOD_NS, "the length that they had: {share:?}");
    }

    #[test]
    fn a_pause_is_in_no_sample_and_in_no_second() {
        let timer = Scripted::new(0.5);
        let mut overhead = Overhead::begin(1.0, 0);
        while overhead.sampling.is_none() {
            timer.now_ns.set(overhead.deadline_ns());
            overhead.step(timer.now_ns.get(), &timer);
        }
        overhead.pause(timer.now_ns.get());
        assert!(overhead.sampling.is_none(), "the kernel times programs while nobody looks");
        overhead.pause(100 * PERIOD_NS);
        assert!(overhead.deadline_ns() >= 100 * PERIOD_NS && overhead.take_interval().0.is_none());
    }

    #[test]
    fn what_the_kernel_refuses_to_time_is_not_known_and_asked_once() {
        let timer = Scripted { refused: true, ..Scripted::new(0.5) };
        let mut overhead = Overhead::begin(1e-12, 0);
        let exceeded = timer.run(&mut overhead, 0, 60 * PERIOD_NS).expect("its own time is more than that");
        assert_eq!((exceeded.observer_share, exceeded.samples), (None, 0));
        assert_eq!(overhead.take_interval(), (None, Some("Operation not permitted".to_owned())));
        assert_eq!(timer.held.borrow().len(), 1);
    }

    #[test]
    fn a_watch_ends_by_the_mean_of_its_last_seconds_and_not_by_one_of_them() {
        let mut recent = Recent { limit: 0.05, seconds: VecDeque::new() };
        assert_eq!(recent.second(0.10, Some(0.03)), None, "the first second alone");
        assert_eq!(recent.second(0.0, Some(0.01)), None);
        assert_eq!(
            recent.second(0.005, Some(0.0)),
            None,
            "0.145 in three seconds are less than 0.05 a second"
        );
        assert_eq!(recent.second(0.01, Some(0.01)), None, "the busy one is forgotten");
        assert_eq!(recent.second(0.02, Some(0.04)), None);
        let exceeded = recent.second(0.05, Some(0.03)).expect("0.16 in three seconds");
        assert!((exceeded.share() - 0.16 / 3.0).abs() < 1e-12, "{exceeded:?}");
    }

    #[test]
    fn a_share_is_the_mean_of_its_samples_and_few_have_no_interval() {
        let samples = |shares: &[f64]| {
            let samples = shares.iter().map(|share| Sample { share: *share, length_ns: SAMPLE_NS });
            of_samples(&samples.collect::<Vec<_>>())
        };
        assert_eq!(samples(&[]), None);
        let four = samples(&[0.01, 0.03, 0.01, 0.03]).expect("samples");
        assert_eq!((four.share, four.interval, four.samples), (0.02, None, 4));
        let many = samples(&[0.01, 0.03, 0.02, 0.01, 0.03, 0.02]).expect("six samples");
        let [low, high] = many.interval.expect("enough for an interval");
        assert!(0.01 <= low && low < many.share && many.share < high && high <= 0.03, "{many:?}");
    }

    #[test]
    fn programs_that_run_in_a_sample_are_timed_by_the_kernel() {
        let observer = match MachineObserver::open() {
            Ok(observer) => observer,
            Err(why) => return println!("skipped: the whole machine cannot be observed here: {why}"),
        };
        let mut overhead = Overhead::begin(1.0, monotonic_ns());
        overhead.begin_sample(&observer);
        assert_eq!(overhead.unknown, None);
        (0..100).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(50)));
        overhead.end_sample(&observer);
        let (share, unknown) = overhead.take_interval();
        let share = share.expect("a sample");
        assert!(0.0 < share.share && share.share < 1.0 && unknown.is_none(), "{share:?}");
    }
}
