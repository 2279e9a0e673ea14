//! What became of a repair: its arms held against that of the run as it was.

use std::ops::Range;

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::problem::{Problem, Severity};
use iowhy_diagnose::findings::{self, Facts};
use iowhy_diagnose::repair::Repaired;
use iowhy_replay::verdict::Word;
use iowhy_replay::{AsWas, verdict};

use super::arms::{Arm, Times};
use super::bases::Base;
use super::{unproved, with_hint};
use crate::record::prove::{Other, Proved};

/// Repairs of one finding, with their arms and what they are held against.
pub(super) struct Held<'a> {
    pub(super) base: &'a Base,
    repaired: Vec<Repaired>,
    /// Indices of their arms.
    arms: Range<usize>,
    /// That of what comes for the first time in the first of them, where it is measured apart, and how often one run goes
    /// around its files.
    first_time: Option<(usize, f64)>,
}

impl<'a> Held<'a> {
    /// Adds the arms that are needed.
    pub(super) fn new(id: FindingId, repaired: Vec<Repaired>, base: &'a Base, arms: &mut Vec<Arm>) -> Self {
        let from = arms.len();
        arms.extend(repaired.iter().map(|r| base.arm_of(id.id(), r.plan.clone())));
        let to = arms.len();
        let first_time = findings::first_time(id, &base.as_was.plan).map(|first| {
            arms.push(base.arm_of("first time", first.plan));
            (to, first.times_around)
        });
        Held { base, repaired, arms: from..to, first_time }
    }

    /// Of several repairs of one cause, that which did best; the others stand beside it.
    pub(super) fn proved(
        &self,
        facts: &Facts<'_>,
        finding: &Finding,
        times: &[Times],
        faithful: bool,
        seed: u64,
    ) -> Proved {
        let was = &times[self.base.arm];
        if let Some(problem) = &was.problem {
            return without(finding, problem);
        }
        let against = Against { facts, as_was: &self.base.as_was, was_ns: &was.io_ns, faithful, seed };
        // More in flight spares no call.
        let spares = finding.id != FindingId::QueueDepthOne;
        let mut repaired = self.repaired.clone();
        let mut mine = times[self.arms.clone()].to_vec();
        if let (Some((first, around)), Some(mine), Some(repaired)) =
            (self.first_time, mine.first_mut(), repaired.first_mut())
        {
            let kept = (std::mem::take(&mut repaired.kept) * around).min(1.0);
            *mine = mine.clone().with_first_time(times[first].clone(), kept);
        }
        let mut all: Vec<(&Repaired, Tried)> =
            repaired.iter().zip(&mine).map(|(r, t)| (r, against.tried(spares, r, t))).collect();
        let gain = |t: &Tried| t.measured.as_ref().map_or(0.0, |m| m.value);
        all.sort_by(|a, b| gain(&b.1).total_cmp(&gain(&a.1)));
        let mut all = all.into_iter();
        let Some((repaired, first)) = all.next() else { return unproved(finding, "it was not tried") };
        let other = |(repaired, t): (&Repaired, Tried)| Other {
            how: repaired.how.clone(),
            measured: t.measured,
            verdict: t.verdict,
            reason: t.reason,
        };
        Proved {
            id: finding.id,
            predicted: finding.gain,
            measured: first.measured,
            verdict: first.verdict,
            how: Some(repaired.how.clone()),
            reason: first.reason,
            failed: first.failed,
            io_ns: first.io_ns,
            others: all.map(other).collect(),
            replay: None,
        }
    }
}

/// A finding of which the run as it was could not be replayed.
pub(super) fn without(finding: &Finding, problem: &Problem) -> Proved {
    Proved { failed: problem.severity == Severity::Failed, ..unproved(finding, &with_hint(problem)) }
}

/// What a repair is held against.
pub(super) struct Against<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) as_was: &'a AsWas,
    /// Times of the run as it was.
    pub(super) was_ns: &'a [f64],
    pub(super) faithful: bool,
    pub(super) seed: u64,
}

/// What became of one repair.
pub(super) struct Tried {
    pub(super) measured: Option<Estimate>,
    pub(super) verdict: Word,
    pub(super) reason: Option<String>,
    pub(super) failed: bool,
    pub(super) io_ns: Vec<f64>,
}

impl Against<'_> {
    /// `spares`: whether calls that are not made spare the program's own time around them.
    pub(super) fn tried(&self, spares: bool, repaired: &Repaired, times: &Times) -> Tried {
        let none = |reason: &str, failed| Tried {
            measured: None,
            verdict: Word::CannotTell,
            reason: Some(reason.to_owned()),
            failed,
            io_ns: Vec::new(),
        };
        if let Some(problem) = &times.problem {
            return none(&with_hint(problem), problem.severity == Severity::Failed);
        }
        let Against { facts, as_was, was_ns, faithful, seed } = *self;
        let left = repaired.plan.calls() as f64 / (as_was.plan.calls() as f64).max(1.0);
        let spared = if spares { (1.0 - left).max(0.0) } else { 0.0 };
        let io_ns = (was_ns, times.io_ns.as_slice());
        let Some(measured) = verdict::measured(facts, as_was, io_ns, spared, repaired.kept, seed) else {
            return none("too few rounds were made", false);
        };
        Tried {
            measured: Some(measured.gain),
            verdict: if faithful { measured.word } else { Word::CannotTell },
            reason: (!faithful).then(|| "the replay of the run as it was is not like the program".to_owned()),
            failed: false,
            io_ns: times.io_ns.clone(),
        }
    }
}
