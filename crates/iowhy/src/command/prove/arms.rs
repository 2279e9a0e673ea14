//! Arms of a proof in interleaved rounds: in each round every arm runs once, in a seeded order. An arm that fails takes no
//! further part, and the others go on.

use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::replay::Plan;
use iowhy_core::rng::Rng;
use iowhy_probe::interrupt;
use iowhy_probe::replay::{Carrier, Ground};

use crate::progress::Progress;

/// One plan with its name.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    name: String,
    plan: Plan,
    /// Index of the arm that it is held against; of that arm itself, its own.
    base: usize,
}

impl Arm {
    pub(super) fn new(name: &str, plan: Plan, base: usize) -> Arm {
        Arm { name: name.to_owned(), plan, base }
    }
}

/// What an arm took.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Time in the calls, one for each round that all arms took part in.
    pub(super) io_ns: Vec<f64>,
    /// Calls of one run.
    pub(super) calls: u64,
    /// Why it takes no further part.
    pub(super) problem: Option<Problem>,
}

impl Times {
    /// The times of a run of which the part `kept` takes what `first` took.
    pub(super) fn with_first_time(self, first: Times, kept: f64) -> Times {
        let both = self.io_ns.iter().zip(&first.io_ns);
        let io_ns = both.map(|(rest, first)| kept * first + (1.0 - kept) * rest).collect();
        Times { io_ns, calls: self.calls, problem: self.problem.or(first.problem) }
    }
}

/// Runs all arms.
pub(super) fn measure(
    arms: Vec<Arm>,
    carrier: Carrier<'_>,
    rounds: usize,
    seed: u64,
    quiet: bool,
) -> Vec<Times> {
    let mut times = vec![Times::default(); arms.len()];
    let mut stages: Vec<Option<Ground>> = Vec::new();
    let (mut names, mut bases) = (Vec::new(), Vec::new());
    for (arm, times) in arms.into_iter().zip(&mut times) {
        names.push(arm.name);
        bases.push(arm.base);
        stages.push(Ground::set(arm.plan, carrier).map_err(|problem| times.problem = Some(problem)).ok());
    }
    let progress = Progress::new(quiet);
    let begun = Instant::now();
    let mut rng = Rng::new(seed);
    let mut order: Vec<usize> = (0..stages.len()).collect();
    // The first round does not count: it fills caches, finds what fails, and tells how long the others will take.
    for round in 0..=rounds {
        rng.shuffle(&mut order);
        for (done, &at) in order.iter().enumerate() {
            // Without the run as it was there is nothing to hold the others against.
            let without_base = |at: usize| stages.get(bases[at]).is_none_or(Option::is_none);
            if interrupt::requested() || (0..stages.len()).all(without_base) {
                return times;
            }
            if without_base(at) {
                continue;
            }
            let share = (round * order.len() + done) as f64 / ((rounds + 1) * order.len()).max(1) as f64;
            let left =
                if share > 0.0 { begun.elapsed().mul_f64((1.0 - share) / share) } else { Duration::ZERO };
            progress.at(share, left, &names[at]);
            let Some(stage) = &mut stages[at] else { continue };
            match stage.run() {
                Ok(run) if round > 0 => times[at].io_ns.push(run.io_ns()),
                Ok(run) => times[at].calls = run.calls,
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
        let times = |io_ns: &[f64]| Times { io_ns: io_ns.to_vec(), calls: 3, problem: None };
        let both = times(&[10.0, 20.0]).with_first_time(times(&[110.0, 120.0]), 0.25);
        assert_eq!((both.io_ns, both.calls), (vec![35.0, 45.0], 3));
        let failed = Times { problem: Some(Problem::failed("it broke")), ..Times::default() };
        assert!(times(&[1.0]).with_first_time(failed, 0.5).problem.is_some());
    }
}
