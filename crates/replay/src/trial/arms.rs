//! Arms in interleaved rounds: each round runs every arm once, in a seeded order. An arm that fails drops out.

use std::ops::Index;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::replay::Plan;
use iowhy_core::rng::Rng;
use iowhy_linux::block::counters::DeviceCounters;
use iowhy_probe::interrupt;

use super::device_pace::DevicePace;
use crate::carry_out::{HelperCommand, Replay, room};
use crate::plan::length;

/// Golden ratio: arms start at offsets of the user's files that are far from each other.
const GOLDEN: f64 = 0.618_034;

/// Called before each run: share done, estimated time left, name of the arm.
pub type Progress<'a> = &'a mut dyn FnMut(f64, Duration, &str);

/// Key of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArmId(usize);

/// One plan to be measured.
#[derive(Clone, Debug)]
struct Arm {
    name: String,
    plan: Plan,
    /// Its baseline; a baseline is its own.
    baseline: ArmId,
    /// Calls of the program over calls of one run.
    scale: f64,
}

/// The arms of a proof.
#[derive(Clone, Debug, Default)]
pub(super) struct Arms(Vec<Arm>);

impl Arms {
    pub(super) fn add_baseline(&mut self, name: &str, plan: Plan, scale: f64) -> ArmId {
        self.add(name, plan, ArmId(self.0.len()), scale)
    }

    pub(super) fn add_change(&mut self, name: &str, plan: Plan, baseline: ArmId) -> ArmId {
        self.add(name, plan, baseline, self.0[baseline.0].scale)
    }

    fn add(&mut self, name: &str, plan: Plan, baseline: ArmId, scale: f64) -> ArmId {
        self.0.push(Arm { name: name.to_owned(), plan, baseline, scale });
        ArmId(self.0.len() - 1)
    }
}

/// Measured times of one arm.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmTimes {
    /// I/O time of each counted round.
    pub(super) io_ns: Vec<f64>,
    /// Calls of one run.
    pub(super) calls: u64,
    /// Requests of the device during the counted rounds.
    pub(super) device: DeviceCounters,
    /// Why it dropped out.
    pub(super) problem: Option<Problem>,
}

impl ArmTimes {
    /// Times of a run in which `share` of the time is that of `first`.
    pub(super) fn mixed_with(self, first: ArmTimes, share: f64) -> ArmTimes {
        let both = self.io_ns.iter().zip(&first.io_ns);
        let io_ns = both.map(|(rest, first)| share * first + (1.0 - share) * rest).collect();
        ArmTimes { io_ns, problem: self.problem.or(first.problem), ..self }
    }
}

/// Times by arm.
#[derive(Clone, Debug, Default)]
pub(super) struct AllTimes(Vec<ArmTimes>);

impl Index<ArmId> for AllTimes {
    type Output = ArmTimes;

    fn index(&self, arm: ArmId) -> &ArmTimes {
        &self.0[arm.0]
    }
}

/// What an arm needs while it is measured.
struct Running {
    arm: Arm,
    /// `None` after it dropped out.
    replay: Option<Replay>,
    times: ArmTimes,
    /// Duration of the warm-up run.
    first_ns: f64,
    /// How often a run repeats the passes of its plan.
    repeats: f64,
}

/// Measures all arms; an interrupt ends it early.
pub(super) fn measure(
    arms: Arms,
    helper: HelperCommand<'_>,
    pace: Option<&DevicePace>,
    rounds: usize,
    seed: u64,
    progress: Progress<'_>,
) -> AllTimes {
    let mut all: Vec<Running> =
        arms.0.into_iter().enumerate().map(|(at, arm)| prepare(at, arm, helper)).collect();
    let begun = Instant::now();
    let mut rng = Rng::new(seed);
    let mut order: Vec<usize> = (0..all.len()).collect();
    // Round 0 is not counted: it fills caches, finds failures, and shows how long a run takes.
    'rounds: for round in 0..=rounds {
        if round == 1 {
            lengthen(&mut all);
        }
        rng.shuffle(&mut order);
        for (done, &at) in order.iter().enumerate() {
            interrupt::check_terminal();
            let without_baseline = |at: usize| all[all[at].arm.baseline.0].replay.is_none();
            if interrupt::requested() || (0..all.len()).all(without_baseline) {
                break 'rounds;
            }
            if without_baseline(at) {
                continue;
            }
            let share = (round * order.len() + done) as f64 / ((rounds + 1) * order.len()).max(1) as f64;
            let left =
                if share > 0.0 { begun.elapsed().mul_f64((1.0 - share) / share) } else { Duration::ZERO };
            progress(share, left, &all[at].arm.name);
            run(&mut all[at], pace, round > 0);
        }
    }
    AllTimes(all.into_iter().map(|arm| arm.times).collect())
}

fn prepare(at: usize, arm: Arm, helper: HelperCommand<'_>) -> Running {
    let mut times = ArmTimes::default();
    let replay =
        Replay::prepare(arm.plan.clone(), helper).map_err(|problem| times.problem = Some(problem)).ok();
    if let Some(replay) = &replay {
        replay.start_behind((at as f64 * GOLDEN).fract());
    }
    Running { arm, replay, times, first_ns: 0.0, repeats: 1.0 }
}

/// Makes runs of changed plans about as long as their baseline's.
fn lengthen(all: &mut [Running]) {
    for at in 0..all.len() {
        let baseline = all[at].arm.baseline.0;
        let baseline_ns = all[baseline].first_ns;
        let Running { arm, replay, first_ns, repeats, .. } = &mut all[at];
        if baseline == at {
            continue;
        }
        let times = length::times(&arm.plan, arm.scale, baseline_ns, *first_ns, room);
        if times > 1 && replay.as_mut().is_some_and(|replay| replay.lengthen(times)) {
            *repeats = f64::from(times);
        }
    }
}

fn run(arm: &mut Running, pace: Option<&DevicePace>, counted: bool) {
    let Running { replay, times, first_ns, repeats, .. } = arm;
    let Some(running) = replay else { return };
    let counters = || pace.and_then(DevicePace::counters);
    let before = counters();
    match running.run() {
        Ok(run) if counted => {
            times.io_ns.push(run.io_ns() / *repeats);
            if let (Some(before), Some(after)) = (before, counters()) {
                times.device = times.device + after.since(&before);
            }
        }
        Ok(run) => (times.calls, *first_ns) = (run.calls, run.elapsed_ns),
        Err(_) if interrupt::requested() => {}
        Err(problem) => {
            times.problem = Some(problem);
            *replay = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_takes_its_share_of_the_run() {
        let times = |io_ns: &[f64]| ArmTimes { io_ns: io_ns.to_vec(), calls: 3, ..ArmTimes::default() };
        let both = times(&[10.0, 20.0]).mixed_with(times(&[110.0, 120.0]), 0.25);
        assert_eq!((both.io_ns, both.calls), (vec![35.0, 45.0], 3));
        let failed = ArmTimes { problem: Some(Problem::failed("it broke")), ..ArmTimes::default() };
        assert!(times(&[1.0]).mixed_with(failed, 0.5).problem.is_some());
    }
}
