//! Arms of a proof in interleaved rounds: in each round every arm runs once, in a seeded order. An arm that fails takes no
//! further part, and the others go on.

use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::replay::Plan;
use iowhy_core::rng::Rng;
use iowhy_explain::replay::length;
use iowhy_linux::block::counters::DeviceCounters;
use iowhy_probe::interrupt;
use iowhy_probe::replay::{Carrier, Ground, room};

use super::pace::Pace;
use crate::progress::Progress;

/// Arms begin at places of the user's files that are far from those of all others.
const GOLDEN: f64 = 0.618_034;

/// One plan with its name.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    name: String,
    plan: Plan,
    /// Index of the arm that it is held against; of that arm itself, its own.
    base: usize,
    /// The program did so many times what one run of it does.
    scale: f64,
}

impl Arm {
    pub(super) fn new(name: &str, plan: Plan, base: usize, scale: f64) -> Arm {
        Arm { name: name.to_owned(), plan, base, scale }
    }
}

/// What an arm took.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Time in the calls, one for each round that all arms took part in.
    pub(super) io_ns: Vec<f64>,
    /// Calls of one run.
    pub(super) calls: u64,
    /// What the device did meanwhile, in all of these rounds.
    pub(super) device: DeviceCounters,
    /// Why it takes no further part.
    pub(super) problem: Option<Problem>,
}

impl Times {
    /// The times of a run of which the part `kept` takes what `first` took.
    pub(super) fn with_first_time(self, first: Times, kept: f64) -> Times {
        let both = self.io_ns.iter().zip(&first.io_ns);
        let io_ns = both.map(|(rest, first)| kept * first + (1.0 - kept) * rest).collect();
        Times { io_ns, problem: self.problem.or(first.problem), ..self }
    }
}

/// Runs all arms.
pub(super) fn measure(
    arms: Vec<Arm>,
    carrier: Carrier<'_>,
    pace: Option<&Pace>,
    rounds: usize,
    seed: u64,
    quiet: bool,
) -> Vec<Times> {
    let mut times = vec![Times::default(); arms.len()];
    let mut stages: Vec<Option<Ground>> = Vec::new();
    let bases: Vec<usize> = arms.iter().map(|arm| arm.base).collect();
    for (at, (arm, times)) in arms.iter().zip(&mut times).enumerate() {
        let ground = Ground::set(arm.plan.clone(), carrier);
        if let Ok(ground) = &ground {
            ground.go_ahead((at as f64 * GOLDEN).fract());
        }
        stages.push(ground.map_err(|problem| times.problem = Some(problem)).ok());
    }
    // What the first run of each took, and how many times as long the others are.
    let mut first_ns = vec![0.0; stages.len()];
    let mut lengths = vec![1.0; stages.len()];
    let progress = Progress::new(quiet);
    let begun = Instant::now();
    let mut rng = Rng::new(seed);
    let mut order: Vec<usize> = (0..stages.len()).collect();
    // The first round does not count: it fills caches, finds what fails, and tells how long the others will take.
    for round in 0..=rounds {
        if round == 1 {
            for (at, arm) in arms.iter().enumerate() {
                let (was_ns, now_ns) = (first_ns[arm.base], first_ns[at]);
                let times = match arm.base == at {
                    true => 1,
                    false => length::times(&arm.plan, arm.scale, was_ns, now_ns, room),
                };
                if times > 1 && stages[at].as_mut().is_some_and(|stage| stage.lengthen(times)) {
                    lengths[at] = f64::from(times);
                }
            }
        }
        rng.shuffle(&mut order);
        for (done, &at) in order.iter().enumerate() {
            // Without the run as it was there is nothing to hold the others against.
            let without_base = |at: usize| stages.get(bases[at]).is_none_or(Option::is_none);
            interrupt::look_at_terminal();
            if interrupt::requested() || (0..stages.len()).all(without_base) {
                return times;
            }
            if without_base(at) {
                continue;
            }
            let share = (round * order.len() + done) as f64 / ((rounds + 1) * order.len()).max(1) as f64;
            let left =
                if share > 0.0 { begun.elapsed().mul_f64((1.0 - share) / share) } else { Duration::ZERO };
            progress.at(share, left, &arms[at].name);
            let Some(stage) = &mut stages[at] else { continue };
            let counters = || pace.and_then(Pace::counters);
            let before = counters();
            match stage.run() {
                Ok(run) if round > 0 => {
                    times[at].io_ns.push(run.io_ns() / lengths[at]);
                    if let (Some(before), Some(after)) = (before, counters()) {
                        times[at].device = times[at].device + after.since(&before);
                    }
                }
                Ok(run) => {
                    times[at].calls = run.calls;
                    first_ns[at] = run.elapsed_ns;
                }
                Err(_) if interrupt::requested() => {}
                Err(problem) => {
                    times[at].problem = Some(problem);
                    stages[at] = None;
                }
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_takes_its_part_of_the_run() {
        let times = |io_ns: &[f64]| Times { io_ns: io_ns.to_vec(), calls: 3, ..Times::default() };
        let both = times(&[10.0, 20.0]).with_first_time(times(&[110.0, 120.0]), 0.25);
        assert_eq!((both.io_ns, both.calls), (vec![35.0, 45.0], 3));
        let failed = Times { problem: Some(Problem::failed("it broke")), ..Times::default() };
        assert!(times(&[1.0]).with_first_time(failed, 0.5).problem.is_some());
    }
}
