//! What a watch takes of the machine, while it watches: CPU time of iowhy itself, counted, and of its programs in the kernel, sampled. The
//! kernel times programs on request; for a whole watch that would cost each run of each of them two readings of a clock, so that it does it for a
//! moment of each second, at a random time.

use std::collections::VecDeque;

use iowhy_core::estimate::Unit;
use iowhy_core::machine::{OverheadExceeded, TimedShare};
use iowhy_core::rng::Rng;
use iowhy_core::stats::{MIN_SAMPLES, interval, resample};
use iowhy_linux::clock::{monotonic_ns, process_cpu_ns};

use super::turn::PERIOD_NS;
use crate::in_kernel::{MachineObserver, Statistics};

/// How long a sample is (chosen): some 500 of the switches of a machine that makes 25,000 a second, and 2 % of the time, so that the two
/// readings of a clock hardly count.
const SAMPLE_NS: u64 = 20_000_000;
/// A watch ends itself by what it took in so many seconds (chosen): one busy moment is no reason.
const SECONDS: usize = 3;

/// What a watch takes.
pub(super) struct Overhead {
    /// CPUs that share the work.
    cpus: f64,
    rng: Rng,
    next_ns: u64,
    sampling: Option<Sampling>,
    /// Shares of the interval so far.
    samples: Vec<f64>,
    /// Those that belong to seconds under way: one sample a second.
    last: Option<f64>,
    /// Why the kernel does not tell.
    unknown: Option<String>,
    recent: Recent,
    own_cpu_ns: u64,
    second_ns: u64,
}

struct Sampling {
    _statistics: Statistics,
    since_ns: u64,
    run_ns: u64,
}

impl Overhead {
    /// From now on. `limit`: the share of all CPU time that the watch may take.
    pub(super) fn begin(limit: f64) -> Overhead {
        let now_ns = monotonic_ns();
        let mut overhead = Overhead {
            cpus: iowhy_linux::cpus::online().len().max(1) as f64,
            rng: Rng::new(now_ns ^ u64::from(std::process::id()) << 32),
            next_ns: 0,
            sampling: None,
            samples: Vec::new(),
            last: None,
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

    /// Does what is due. Gives what was exceeded, at the end of a second.
    pub(super) fn step(&mut self, now_ns: u64, observer: &MachineObserver) -> Option<OverheadExceeded> {
        if now_ns < self.next_ns {
            return None;
        }
        if self.sampling.is_some() {
            self.end_sample(observer);
            self.next_ns = self.second_ns + PERIOD_NS;
            return None;
        }
        if now_ns < self.second_ns + PERIOD_NS {
            self.begin_sample(observer);
            return None;
        }
        let wall_ns = (now_ns - self.second_ns) as f64 * self.cpus;
        let own = process_cpu_ns().saturating_sub(self.own_cpu_ns) as f64 / wall_ns;
        let over = self.recent.second(own, self.last.take());
        self.begin_second(now_ns);
        over
    }

    /// Nobody will take what is told for a while: the kernel is not asked to time programs meanwhile.
    pub(super) fn pause(&mut self) {
        self.sampling = None;
        self.last = None;
        self.begin_second(monotonic_ns());
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
        self.next_ns = match &self.unknown {
            Some(_) => now_ns + PERIOD_NS,
            None => now_ns + self.rng.below(PERIOD_NS - SAMPLE_NS),
        };
    }

    fn begin_sample(&mut self, observer: &MachineObserver) {
        let begun = Statistics::keep().and_then(|statistics| {
            let run_ns = observer.run_ns()?;
            Ok(Sampling { _statistics: statistics, since_ns: monotonic_ns(), run_ns })
        });
        match begun {
            Ok(sampling) => {
                self.next_ns = sampling.since_ns + SAMPLE_NS;
                self.sampling = Some(sampling);
            }
            Err(why) => {
                self.unknown = Some(why);
                self.next_ns = self.second_ns + PERIOD_NS;
            }
        }
    }

    fn end_sample(&mut self, observer: &MachineObserver) {
        let Some(sampling) = self.sampling.take() else { return };
        let Ok(run_ns) = observer.run_ns() else { return };
        let wall_ns = monotonic_ns().saturating_sub(sampling.since_ns).max(1) as f64;
        let share = run_ns.saturating_sub(sampling.run_ns) as f64 / (wall_ns * self.cpus);
        self.samples.push(share);
        self.last = Some(share);
    }
}

fn of_samples(samples: &[f64]) -> Option<TimedShare> {
    let n = samples.len();
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / n as f64;
    let share = (n > 0).then(|| mean(&mut samples.iter().copied()))?;
    let estimate = (n >= MIN_SAMPLES).then(|| {
        let means = resample(n, 1, |drawn| mean(&mut drawn.iter().map(|at| samples[*at])));
        interval(share, means, n, Unit::Ratio)
    });
    let interval = estimate.flatten().map(|of| [of.low, of.high]);
    Some(TimedShare { share, interval, samples: n as u64, sample_ns: SAMPLE_NS })
}

/// The last seconds, against what is allowed.
struct Recent {
    limit: f64,
    /// Shares of all CPU time.
    seconds: VecDeque<f64>,
}

impl Recent {
    /// A second is over. `own` was counted, `observer` sampled in it (`None`: not known, and not in the sum).
    fn second(&mut self, own: f64, observer: Option<f64>) -> Option<OverheadExceeded> {
        self.seconds.push_back(own + observer.unwrap_or(0.0));
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
        let share = self.seconds.iter().sum::<f64>() / SECONDS as f64;
        let over = self.seconds.len() == SECONDS && share > self.limit;
        over.then_some(OverheadExceeded { share, limit: self.limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_by_the_mean_of_its_last_seconds_and_not_by_one_of_them() {
        let mut recent = Recent { limit: 0.05, seconds: VecDeque::new() };
        assert_eq!(recent.second(0.10, Some(0.03)), None, "the first second alone");
        assert_eq!(recent.second(0.0, Some(0.01)), None);
        assert_eq!(recent.second(0.005, None), None, "0.145 in three seconds are less than 0.05 a second");
        assert_eq!(recent.second(0.01, Some(0.01)), None, "the busy one is forgotten");
        assert_eq!(recent.second(0.02, Some(0.04)), None);
        let over = recent.second(0.05, Some(0.03)).expect("0.16 in three seconds");
        assert!((over.share - 0.16 / 3.0).abs() < 1e-12, "{over:?}");
    }

    #[test]
    fn a_share_is_the_mean_of_its_samples_and_few_have_no_interval() {
        assert_eq!(of_samples(&[]), None);
        let two = of_samples(&[0.01, 0.03]).expect("two samples");
        assert_eq!((two.share, two.interval, two.samples), (0.02, None, 2));
        let many = of_samples(&[0.01, 0.03, 0.02, 0.01, 0.03, 0.02]).expect("six samples");
        let [low, high] = many.interval.expect("enough for an interval");
        assert!(0.01 <= low && low < many.share && many.share < high && high <= 0.03, "{many:?}");
    }

    /// Needs the rights of the observer; without them there is none to be measured.
    #[test]
    fn programs_that_run_in_a_sample_are_timed() {
        let observer = match MachineObserver::open() {
            Ok(observer) => observer,
            Err(why) => return println!("skipped: the whole machine cannot be observed here: {why}"),
        };
        let mut overhead = Overhead::begin(1.0);
        let switch = || std::thread::sleep(std::time::Duration::from_micros(50));
        overhead.begin_sample(&observer);
        assert_eq!(overhead.unknown, None);
        (0..100).for_each(|_| switch());
        overhead.end_sample(&observer);
        let (share, unknown) = overhead.take_interval();
        let share = share.expect("a sample");
        assert!(0.0 < share.share && share.share < 1.0 && unknown.is_none(), "{share:?}");
    }
}
