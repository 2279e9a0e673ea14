//! Calibrated predictions: a window of the run's own calls, repeated on this machine with and without the change that a finding
//! advises, in turn and for a few seconds. What the changed calls save of the unchanged ones is put into the account of the run.
//!
//! A proof repeats a record of every call and gives a verdict; this repeats a window and gives an interval.

use std::time::{Duration, Instant};

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::{Finding, FindingId, PredictedChoice, Prediction, RepeatedCalls};
use iowhy_core::replay::{Action, Op, Plan};
use iowhy_diagnose::findings::{self, Facts};
use iowhy_diagnose::repair::{Repaired, Sizes};
use iowhy_probe::interrupt;

use super::arms::{self, AllTimes, ArmId, ArmTimes, Arms, Effort, Progress};
use super::baselines::{BaselineArm, Baselines, Plans, no_repair};
use super::first_touches;
use super::judge::{Against, Tried};
use crate::carry_out::{CacheBefore, HelperCommand};
use crate::fidelity;
use crate::plan::source::Source;
use crate::plan::{Bounds, window};
use crate::run_facts;

/// Findings that are calibrated: those that a screen shows.
const MAX_FINDINGS: usize = 2;
/// Counted rounds after which narrow intervals are enough, and at most: repeats of a few milliseconds take as much of the time as they need.
const ROUNDS: usize = 9;
/// See [`ROUNDS`].
const MAX_ROUNDS: usize = 100;
/// Changed plans of a finding.
const MAX_CHANGES: usize = 4;
/// A change in depth or size is shown by this many rounds of requests, or calls, at least.
const MIN_TURNS: u64 = 4;

/// What to predict.
#[derive(Clone, Copy, Debug)]
pub struct Calibration<'a> {
    /// The watched run.
    pub facts: &'a Facts<'a>,
    /// Its findings, most valuable first.
    pub findings: &'a [Finding],
    /// Time for it, with its preparation.
    pub time: Duration,
    /// Whether the program still runs: then nothing is dropped from the page cache, and no file gets a name beside its own.
    pub live: bool,
    /// Seed of the order and of the intervals.
    pub seed: u64,
}

/// A finding with its prediction, or why there is none, as the end of a sentence.
pub type Predicted = (FindingId, Result<Prediction, String>);

/// Repeats calls and predicts. Files are opened and made as the user of this thread.
pub fn predict(
    calibration: &Calibration<'_>,
    helper: HelperCommand<'_>,
    progress: Progress<'_>,
) -> Vec<Predicted> {
    let Calibration { facts, findings, time, live, seed } = *calibration;
    let until = Instant::now() + time;
    let tried = findings.iter().filter(|f| f.id.is_repairable()).take(MAX_FINDINGS);
    // What the account tells need not be tried.
    let tried: Vec<&Finding> = tried.filter(|f| f.prediction.is_none()).collect();
    if tried.is_empty() {
        return Vec::new();
    }
    let bounds = Bounds::CALIBRATION;
    let plans = Plans::new(facts, &tried, Source::window(facts, bounds.max_arm_ns), &bounds, live);
    let changes: Vec<(FindingId, Result<Vec<Change>, String>)> =
        tried.iter().map(|f| (f.id, changes(facts, f.id, &plans))).collect();
    let repairable: Vec<FindingId> = changes.iter().filter(|(_, c)| c.is_ok()).map(|(id, _)| *id).collect();
    if repairable.is_empty() {
        return changes.into_iter().filter_map(|(id, c)| Some((id, Err(c.err()?)))).collect();
    }
    // Held until everything is measured: it puts the page cache back.
    let in_a_second = read_in_a_second(facts);
    let cache = cache_before(&plans, &repairable, if live { 0 } else { in_a_second });
    let again: u64 = cache.iter().flatten().map(CacheBefore::bytes).sum();
    let until = until - Duration::from_secs_f64(again as f64 / in_a_second.max(1) as f64);
    let mut arms = Arms::default();
    let baselines = plans.add_arms(&repairable, &mut arms);
    let mut with_arms = Vec::new();
    for (id, changes) in changes {
        let changes = changes.and_then(|changes| {
            cache.as_ref().map_err(Clone::clone)?;
            let baseline = baselines.for_finding(id).map_err(Clone::clone)?;
            let with_arms = changes.into_iter().map(|change| change.with_arms(facts, baseline, &mut arms));
            Ok(with_arms.collect::<Vec<_>>())
        });
        with_arms.push((id, changes));
    }
    let measurable = with_arms.iter().any(|(_, changes)| changes.is_ok());
    let times = measurable.then(|| {
        let effort = Effort { rounds: MAX_ROUNDS, enough: ROUNDS, until: Some(until), seed };
        arms::measure(arms, helper, None, effort, progress)
    });
    let predicted = |(id, changes): (FindingId, Result<Vec<Measured>, String>)| {
        let prediction = changes.and_then(|changes| {
            let times = times.as_ref().ok_or("nothing was repeated")?;
            prediction(facts, id, &changes, &baselines, times, seed)
        });
        (id, prediction)
    };
    with_arms.into_iter().map(predicted).collect()
}

/// A changed plan; a choice has the name of its size.
struct Change {
    repaired: Repaired,
    size: Option<&'static str>,
    /// Passes of the baseline in one pass of this plan.
    unrolled: u32,
}

impl Change {
    /// Passes of the baseline in one run.
    fn passes(&self) -> f64 {
        f64::from(self.unrolled) * f64::from(self.repaired.plan.passes.max(1))
    }

    fn with_arms(self, facts: &Facts<'_>, baseline: &BaselineArm, arms: &mut Arms) -> Measured {
        let Repaired { how, plan, at_best, .. } = &self.repaired;
        let mut arms_of = |plan: &Plan| {
            let as_it_is = arms.add_change(how, plan.clone(), baseline.arm);
            let apart = first_touches::apart(facts, plan).filter(|_| baseline.baseline.recorded.is_some());
            let touched = apart.map(|(plan, share)| (arms.add_change(how, plan, baseline.arm), share));
            PlanArms { as_it_is, touched }
        };
        let (arms, at_best) = (arms_of(plan), at_best.as_ref().map(&mut arms_of));
        Measured { change: self, arms, at_best }
    }
}

/// A change with the arms of its plan, and of that of [`Repaired::at_best`].
struct Measured {
    change: Change,
    arms: PlanArms,
    at_best: Option<PlanArms>,
}

/// The arms of a changed plan.
struct PlanArms {
    as_it_is: ArmId,
    /// With its pages touched before, and the share of the time that is that of the plan as it is.
    touched: Option<(ArmId, f64)>,
}

impl PlanArms {
    fn times(&self, times: &AllTimes) -> ArmTimes {
        let as_it_is = times[self.as_it_is].clone();
        match self.touched {
            Some((touched, share)) => times[touched].clone().mixed_with(as_it_is, share),
            None => as_it_is,
        }
    }
}

/// The advised change in the sizes that its user may choose, and its alternatives.
fn changes(facts: &Facts<'_>, id: FindingId, plans: &Plans) -> Result<Vec<Change>, String> {
    let plan = &plans.for_repair(id)?.plan;
    let of = |sizes: Sizes, size| {
        let unrolled = turns(id, plan, &sizes);
        let plan = window::unrolled(plan, unrolled).ok_or("the recorded calls are too few to show it")?;
        let repaired = findings::repaired(id, &plan, &run_facts::of_run(facts.profile, &plan, sizes))
            .map_err(|why| no_repair(&why))?;
        if repaired.plan == plan {
            return Err("the recorded calls are too few to show it".to_owned());
        }
        Ok(Change { repaired, size, unrolled })
    };
    let choices = findings::choices(id);
    let mut changes: Vec<Change> = Vec::new();
    for (size, sizes) in choices {
        if let Ok(change) = of(*sizes, Some(*size)) {
            add_choice(&mut changes, change, *sizes == Sizes::USUAL);
        }
    }
    match &mut changes[..] {
        [] => changes.push(of(Sizes::USUAL, None)?),
        [only] => only.size = None,
        _ => {}
    }
    let others = findings::others(id, plan, &run_facts::of_run(facts.profile, plan, Sizes::USUAL));
    changes.extend(others.into_iter().map(|repaired| Change { repaired, size: None, unrolled: 1 }));
    changes.truncate(MAX_CHANGES);
    Ok(changes)
}

/// A size that makes no difference is no choice, but the usual one is always there.
fn add_choice(changes: &mut Vec<Change>, change: Change, usual: bool) {
    match changes.iter_mut().find(|old| old.repaired.plan == change.repaired.plan) {
        Some(old) if usual => *old = change,
        Some(_) => {}
        None => changes.push(change),
    }
}

/// Passes of a plan that a change of these sizes takes to show.
fn turns(id: FindingId, plan: &Plan, sizes: &Sizes) -> u32 {
    let calls = |pick: &dyn Fn(&Action) -> bool| -> u64 {
        plan.actions().filter(|a| pick(a)).map(|a| u64::from(a.count)).sum()
    };
    let durable = |a: &Action| plan.files.get(a.file as usize).is_some_and(|f| f.durable);
    let (wanted, have) = match id {
        FindingId::SyncPerWrite => {
            (sizes.batch, calls(&|a| a.op.is_sync() || (a.op == Op::Write && durable(a))))
        }
        FindingId::QueueDepthOne => {
            (MIN_TURNS * u64::from(sizes.depth.unwrap_or(1)), calls(&|a| matches!(a.op, Op::Read { .. })))
        }
        FindingId::DeviceSaturated => (u64::from(sizes.subsample), plan.moving_calls().unwrap_or(0)),
        FindingId::SmallRequests => {
            (MIN_TURNS * sizes.request_bytes, plan.bytes(|op| matches!(op, Op::Read { .. } | Op::Write)))
        }
        _ => return 1,
    };
    u32::try_from(wanted.div_ceil(have.max(1))).unwrap_or(u32::MAX).max(1)
}

/// Bytes that the devices brought in a second of their work for the run.
fn read_in_a_second(facts: &Facts<'_>) -> u64 {
    let (bytes, busy_ns) =
        facts.profile.devices.iter().fold((0, 0), |(bytes, ns), d| (bytes + d.read_bytes, ns + d.busy_ns));
    (bytes as f64 / (busy_ns as f64 / 1e9).max(1e-3)) as u64
}

/// What the page cache must be like at the end. No more is dropped than `may_drop` bytes.
fn cache_before(plans: &Plans, ids: &[FindingId], may_drop: u64) -> Result<Vec<CacheBefore>, String> {
    let mut used: Vec<&Plan> = Vec::new();
    for id in ids {
        let Ok(baseline) = plans.for_repair(*id) else { continue };
        if !used.iter().any(|plan| std::ptr::eq(*plan, &raw const baseline.plan)) {
            used.push(&baseline.plan);
        }
    }
    used.into_iter().map(|plan| CacheBefore::look(plan, may_drop)).collect()
}

fn prediction(
    facts: &Facts<'_>,
    id: FindingId,
    changes: &[Measured],
    baselines: &Baselines,
    times: &AllTimes,
    seed: u64,
) -> Result<Prediction, String> {
    let baseline = baselines.for_finding(id).map_err(Clone::clone)?;
    if let Some(problem) = &times[baseline.arm].problem {
        return Err(problem.message.clone());
    }
    let fidelity = baseline.fidelity(times, seed).estimate.ok_or_else(|| {
        if interrupt::requested() {
            "interrupted".to_owned()
        } else {
            "the calls take too long to be repeated".to_owned()
        }
    })?;
    if !fidelity::reproduces(&fidelity) {
        return Err(format!(
            "repeated unchanged, its calls take {:.2}x their time in the program",
            fidelity.value
        ));
    }
    let against =
        Against { facts, baseline: &baseline.baseline, times: &times[baseline.arm], reproduces: true, seed };
    // More requests in flight save no call.
    let saves_calls = id != FindingId::QueueDepthOne;
    let wall_ns = facts.program_wall_ns();
    let mut why = "too few rounds were made in the time".to_owned();
    let mut all: Vec<(&Change, Estimate)> = Vec::new();
    for Measured { change, arms, at_best } in changes {
        let of_baseline = |passes: f64| f64::from(baseline.baseline.plan.passes.max(1)) / passes;
        let (passes, calls) = (change.passes(), baseline.baseline.plan.system_calls() as f64);
        let judged = |arms: &PlanArms, plan: &Plan| {
            let left = plan.system_calls() as f64 / (f64::from(change.unrolled) * calls).max(1.0);
            let removed_share = if saves_calls { (1.0 - left).max(0.0) } else { 0.0 };
            let repaired = Repaired { plan: plan.clone(), ..change.repaired.clone() };
            against.judge_times(removed_share, &repaired, &arms.times(times), of_baseline(passes))
        };
        let mut tried = judged(arms, &change.repaired.plan);
        if let Some((best, plan)) = at_best.as_ref().zip(change.repaired.at_best.as_ref()) {
            tried = tried.at_best(&judged(best, plan));
        }
        match remaining(&tried, wall_ns) {
            Some(left) => all.push((change, left)),
            None => why = tried.reason.unwrap_or(why),
        }
    }
    let usual = all.iter().filter(|(change, _)| change.size.is_none() || is_usual(id, change));
    let (best, left) = usual.min_by(|a, b| a.1.value.total_cmp(&b.1.value)).or(all.last()).ok_or(why)?;
    let choices = all.iter().filter_map(|(change, left)| {
        Some(PredictedChoice { size: change.size?.to_owned(), remaining: *left })
    });
    Ok(Prediction {
        how: best.repaired.how.clone(),
        remaining: *left,
        repeated: Some(RepeatedCalls { calls: times[baseline.arm].calls, fidelity }),
        wall_ns,
        choices: choices.collect(),
        notes: baseline.baseline.notes.clone(),
    })
}

/// Whether a choice is the size that is meant where nobody says otherwise, or there is no such choice.
fn is_usual(id: FindingId, change: &Change) -> bool {
    let choices = findings::choices(id);
    let usual = choices.iter().find(|(_, sizes)| *sizes == Sizes::USUAL);
    usual.is_none_or(|(size, _)| change.size == Some(size))
}

/// Wall time that remains: by what is saved in calls, and with the program's own code around them.
fn remaining(tried: &Tried, wall_ns: f64) -> Option<Estimate> {
    let measured = tried.measured.as_ref()?;
    let likely = tried.likely()?;
    Some(Estimate {
        value: wall_ns / likely.value,
        low: wall_ns / likely.high.max(measured.high),
        high: wall_ns / likely.low.min(measured.low),
        unit: Unit::Nanoseconds,
        n: measured.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_choices_that_are_the_same_the_usual_one_stays() {
        let change = |size, passes| {
            let plan = Plan { passes, ..Plan::default() };
            Change { repaired: Repaired::new(plan, ""), size: Some(size), unrolled: 1 }
        };
        let mut changes = Vec::new();
        for (size, passes, usual) in
            [("16 KiB", 1, false), ("64 KiB", 1, true), ("1 MiB", 1, false), ("8 MiB", 2, false)]
        {
            add_choice(&mut changes, change(size, passes), usual);
        }
        let sizes: Vec<_> = changes.iter().map(|change| change.size).collect();
        assert_eq!(sizes, [Some("64 KiB"), Some("8 MiB")]);
    }

    #[test]
    fn what_the_program_does_at_best_is_the_other_end_of_the_modelled_gain() {
        let gain = |low, value, high| Some(Estimate { value, low, high, unit: Unit::Ratio, n: 5 });
        let tried = |measured, modelled| Tried { measured, modelled, ..Tried::without_gain("") };
        let spanned =
            tried(gain(1.5, 2.0, 2.5), None).at_best(&tried(gain(6.0, 8.0, 9.0), gain(7.0, 8.0, 10.0)));
        assert_eq!((spanned.measured, spanned.modelled), (gain(1.5, 2.0, 2.5), gain(1.5, 4.0, 10.0)));
        let alone = tried(gain(1.5, 2.0, 2.5), None).at_best(&tried(None, None));
        assert_eq!(alone.modelled, None, "it was not measured");
    }

    #[test]
    fn what_remains_spans_both_figures() {
        let gain = |low, value, high| Some(Estimate { value, low, high, unit: Unit::Ratio, n: 5 });
        let tried = |measured, modelled| Tried { measured, modelled, ..Tried::without_gain("") };
        let left = remaining(&tried(gain(1.8, 2.0, 2.5), gain(1.9, 4.0, 10.0)), 100.0).unwrap();
        assert_eq!((left.value, left.low, left.n), (25.0, 10.0, 5));
        assert!((left.high - 100.0 / 1.8).abs() < 1e-9);
        let alone = remaining(&tried(gain(1.8, 2.0, 2.5), None), 100.0).unwrap();
        assert_eq!((alone.value, alone.low), (50.0, 40.0));
        assert!(remaining(&tried(None, None), 100.0).is_none());
    }
}
