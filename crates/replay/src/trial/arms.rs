//! Arms in interleaved rounds: each round runs every arm once, in a seeded order. An arm that fails drops out.

use std::ops::Index;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::replay::Plan;
use iowhy_core::rng::Rng;
use iowhy_core::stats::{self, MIN_SAMPLES};
use iowhy_linux::block::counters::DeviceCounters;
use iowhy_probe::interrupt;

use super::device_pace::DevicePace;
use crate::carry_out::{HelperCommand, Replay};
use crate::parts::{Parts, Rounds};

/// Upper over lower end of a ratio's interval that is narrow enough: the replay's own error adds no less.
const NARROW: f64 = 1.1;

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
}

/// The arms of a proof.
#[derive(Clone, Debug, Default)]
pub(super) struct Arms(Vec<Arm>);

impl Arms {
    pub(super) fn add_baseline(&mut self, name: &str, plan: Plan) -> ArmId {
        self.add(name, plan, ArmId(self.0.len()))
    }

    pub(super) fn add_change(&mut self, name: &str, plan: Plan, baseline: ArmId) -> ArmId {
        self.add(name, plan, baseline)
    }

    fn add(&mut self, name: &str, plan: Plan, baseline: ArmId) -> ArmId {
        self.0.push(Arm { name: name.to_owned(), plan, baseline });
        ArmId(self.0.len() - 1)
    }
}

/// Measured times of one arm.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmTimes {
    /// I/O time of each counted round.
    pub(super) io_ns: Vec<f64>,
    /// The same by kind of call, all threads together.
    pub(super) parts: Vec<Parts>,
    /// Calls of one run.
    pub(super) calls: u64,
    /// Requests of the device during the counted rounds.
    pub(super) device: DeviceCounters,
    /// Why it dropped out.
    pub(super) problem: Option<Problem>,
}

impl ArmTimes {
    pub(super) fn rounds(&self) -> Rounds<'_> {
        Rounds { io_ns: &self.io_ns, parts: &self.parts }
    }

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
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Counted rounds, at most.
    pub(super) rounds: usize,
    /// After so many it ends when the ratio of every arm to its baseline is known well enough.
    pub(super) enough: usize,
    /// When it ends: no round begins that would end later. Without enough rounds, which a slow device may need, nothing begins after
    /// as much time again.
    pub(super) until: Option<Instant>,
    /// Of the order of the arms.
    pub(super) seed: u64,
}

impl Effort {
    /// Whether what takes this long would end too late.
    fn is_over(&self, now: Instant, takes: Duration) -> bool {
        self.until.is_some_and(|until| now + takes > until)
    }
}

/// Measures all arms; an interrupt ends it early.
pub(super) fn measure(
    arms: Arms,
    helper: HelperCommand<'_>,
    pace: Option<&DevicePace>,
    effort: Effort,
    progress: Progress<'_>,
) -> AllTimes {
    let Effort { rounds, seed, until, .. } = effort;
    let mut all: Vec<Running> = Vec::new();
    for (at, arm) in arms.0.into_iter().enumerate() {
        all.push(if effort.is_over(Instant::now(), Duration::ZERO) {
            let problem = Some(Problem::failed("preparing its calls took all the time there was"));
            Running { arm, replay: None, times: ArmTimes { problem, ..ArmTimes::default() } }
        } else {
            prepare(at, arm, helper)
        });
    }
    let begun = Instant::now();
    let mut rng = Rng::new(seed);
    let mut order: Vec<usize> = (0..all.len()).collect();
    let grace = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(begun));
    // Round 0 is not counted: it fills caches, and finds failures.
    'rounds: for round in 0..=rounds {
        let enough = round > MIN_SAMPLES;
        let (takes, grace) = match enough {
            true => (begun.elapsed() / round.max(1) as u32, Duration::ZERO),
            false => (Duration::ZERO, grace),
        };
        let effort = Effort { until: until.map(|until| until + grace), ..effort };
        if effort.is_over(Instant::now(), takes) || (round > effort.enough && are_narrow(&all, seed)) {
            break;
        }
        rng.shuffle(&mut order);
        for (done, &at) in order.iter().enumerate() {
            interrupt::check_terminal();
            let without_baseline = |at: usize| all[all[at].arm.baseline.0].replay.is_none();
            let over = interrupt::requested() || effort.is_over(Instant::now(), Duration::ZERO);
            if over || (0..all.len()).all(without_baseline) {
                break 'rounds;
            }
            if without_baseline(at) {
                continue;
            }
            let of_rounds = (round * order.len() + done) as f64 / ((rounds + 1) * order.len()).max(1) as f64;
            let time = until.map(|until| until.saturating_duration_since(begun).as_secs_f64());
            let of_time = time.map_or(0.0, |time| begun.elapsed().as_secs_f64() / time.max(1e-3));
            let share = of_rounds.max(of_time).min(1.0);
            let left =
                if share > 0.0 { begun.elapsed().mul_f64((1.0 - share) / share) } else { Duration::ZERO };
            progress(share, left, &all[at].arm.name);
            run(&mut all[at], pace, round > 0);
        }
    }
    AllTimes(all.into_iter().map(|arm| arm.times).collect())
}

/// Whether more rounds would tell little more of any arm.
fn are_narrow(all: &[Running], seed: u64) -> bool {
    all.iter().filter(|arm| arm.replay.is_some()).all(|arm| {
        let baseline = &all[arm.arm.baseline.0].times.io_ns;
        stats::paired_ratio(&arm.times.io_ns, baseline, seed).is_some_and(|r| r.high <= NARROW * r.low)
    })
}

fn prepare(at: usize, arm: Arm, helper: HelperCommand<'_>) -> Running {
    let mut times = ArmTimes::default();
    let replay =
        Replay::prepare(arm.plan.clone(), helper).map_err(|problem| times.problem = Some(problem)).ok();
    if let Some(replay) = &replay {
        replay.start_behind((at as f64 * GOLDEN).fract());
    }
    Running { arm, replay, times }
}

fn run(arm: &mut Running, pace: Option<&DevicePace>, counted: bool) {
    let Running { replay, times, .. } = arm;
    let Some(running) = replay else { return };
    let counters = || pace.and_then(DevicePace::counters);
    let before = counters();
    match running.run() {
        Ok(run) if counted => {
            times.io_ns.push(run.io_ns());
            times.parts.push(run.parts);
            if let (Some(before), Some(after)) = (before, counters()) {
                times.device = times.device + after.since(&before);
            }
        }
        Ok(run) => times.calls = run.calls,
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
    fn a_measurement_ends_in_time() {
        let (begun, seconds) = (Instant::now(), Duration::from_secs);
        let effort = |until| Effort { rounds: 9, enough: 9, until, seed: 1 };
        assert!(!effort(None).is_over(begun + seconds(1000), seconds(1)));
        let four = effort(Some(begun + seconds(4)));
        // Rounds of a second.
        let begins: Vec<bool> = (1..6).map(|at| !four.is_over(begun + seconds(at), seconds(1))).collect();
        assert_eq!(begins, [true, true, true, false, false]);
    }

    #[test]
    fn the_first_time_takes_its_share_of_the_run() {
        let times = |io_ns: &[f64]| ArmTimes { io_ns: io_ns.to_vec(), calls: 3, ..ArmTimes::default() };
        let both = times(&[10.0, 20.0]).mixed_with(times(&[110.0, 120.0]), 0.25);
        assert_eq!((both.io_ns, both.calls), (vec![35.0, 45.0], 3));
        let failed = ArmTimes { problem: Some(Problem::failed("it broke")), ..ArmTimes::default() };
        assert!(times(&[1.0]).mixed_with(failed, 0.5).problem.is_some());
    }
}
