//! Judges the times of a repair against those of its baseline.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::problem::{Problem, Severity};
use iowhy_diagnose::findings::{self, Facts};
use iowhy_diagnose::repair::Repaired;

use super::arms::{AllTimes, ArmId, ArmTimes, Arms};
use super::baselines::BaselineArm;
use crate::plan::Baseline;
use crate::proof::{FindingProof, Other};
use crate::staying::{self, Runs};
use crate::verdict::{self, Gains, Measurement, Verdict};

/// Repairs of one finding with their arms, the advised one first.
pub(super) struct Repairs {
    repairs: Vec<(Repaired, ArmId)>,
    /// The advised one at its best, see [`Repaired::at_best`].
    at_best: Option<(Repaired, ArmId)>,
    /// Where the first pass over the files is measured apart: its arm, and how often one run goes around them.
    first_time: Option<(ArmId, f64)>,
}

impl Repairs {
    /// Adds the arms that are needed.
    pub(super) fn new(
        id: FindingId,
        repaired: Vec<Repaired>,
        baseline: &BaselineArm,
        arms: &mut Arms,
    ) -> Repairs {
        let mut add = |name: &str, plan| arms.add_change(name, plan, baseline.arm);
        let at_best = repaired.first().and_then(|advised| {
            let plan = advised.at_best.clone()?;
            let arm = add("at best", plan.clone());
            Some((Repaired { plan, ..advised.clone() }, arm))
        });
        let repairs = repaired.into_iter().map(|r| (r.clone(), add(id.id(), r.plan))).collect();
        let first_time = findings::first_time(id, &baseline.baseline.plan);
        let first_time = first_time.map(|first| (add("first time", first.plan), first.times_around));
        Repairs { repairs, at_best, first_time }
    }

    /// The repair that gained most; the others are its alternatives.
    pub(super) fn judge(&self, against: &Against<'_>, finding: &Finding, times: &AllTimes) -> FindingProof {
        if let Some(problem) = &against.times.problem {
            return without_baseline(finding, problem);
        }
        // More requests in flight save no call.
        let saves_calls = finding.id != FindingId::QueueDepthOne;
        let mut all: Vec<(&str, Tried)> = Vec::new();
        for (at, (repaired, arm)) in self.repairs.iter().enumerate() {
            let (mut plan, mut measured) = (repaired.clone(), times[*arm].clone());
            if let (0, Some((first, around))) = (at, self.first_time) {
                let share = (std::mem::take(&mut plan.unaffected_share) * around).min(1.0);
                measured = measured.mixed_with(times[first].clone(), share);
            }
            let mut tried = against.judge(saves_calls, &plan, &measured);
            if let (0, Some((best, arm))) = (at, &self.at_best) {
                tried = tried.at_best(&against.judge(saves_calls, best, &times[*arm]));
            }
            all.push((&repaired.how, tried));
        }
        let gain = |t: &Tried| t.measured.as_ref().map_or(0.0, |m| m.value);
        all.sort_by(|a, b| gain(&b.1).total_cmp(&gain(&a.1)));
        let mut all = all.into_iter();
        let Some((how, best)) = all.next() else {
            return FindingProof::not_measured(finding, "it was not tried");
        };
        FindingProof {
            id: finding.id,
            predicted: finding.gain,
            measured: best.measured,
            modelled: best.modelled,
            verdict: best.verdict,
            how: Some(how.to_owned()),
            reason: best.reason,
            failed: best.failed,
            io_ns: best.io_ns,
            others: all.map(|(how, tried)| tried.into_other(how)).collect(),
            baseline: None,
        }
    }
}

/// A finding whose baseline could not be replayed.
pub(super) fn without_baseline(finding: &Finding, problem: &Problem) -> FindingProof {
    let failed = problem.severity == Severity::Failed;
    FindingProof { failed, ..FindingProof::not_measured(finding, &with_hint(problem)) }
}

fn with_hint(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}

/// A measured baseline.
pub(super) struct Against<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) baseline: &'a Baseline,
    pub(super) times: &'a ArmTimes,
    pub(super) reproduces: bool,
    pub(super) seed: u64,
}

/// The verdict on one changed plan.
pub(super) struct Tried {
    pub(super) measured: Option<Estimate>,
    pub(super) modelled: Option<Estimate>,
    pub(super) verdict: Verdict,
    pub(super) reason: Option<String>,
    pub(super) failed: bool,
    pub(super) io_ns: Vec<f64>,
}

impl Tried {
    pub(super) fn without_gain(reason: &str) -> Tried {
        Tried {
            measured: None,
            modelled: None,
            verdict: Verdict::Inconclusive,
            reason: Some(reason.to_owned()),
            failed: false,
            io_ns: Vec::new(),
        }
    }

    /// The same where the program's own code may do as little as in `best`: what it does is not recorded, so the modelled gain spans both.
    /// Between them nothing is known: their geometric mean has the least largest factor of error.
    pub(super) fn at_best(self, best: &Tried) -> Tried {
        let (Some(least), Some(best)) = (self.likely(), best.likely()) else { return self };
        let modelled = Estimate {
            value: (least.value * best.value).sqrt(),
            low: least.low.min(best.low),
            high: least.high.max(best.high),
            ..least
        };
        Tried { modelled: Some(modelled), ..self }
    }

    /// The modelled gain, or where nothing is modelled the measured one.
    pub(super) fn likely(&self) -> Option<Estimate> {
        self.modelled.or(self.measured)
    }

    pub(super) fn into_other(self, how: &str) -> Other {
        Other { how: how.to_owned(), measured: self.measured, verdict: self.verdict, reason: self.reason }
    }
}

impl Against<'_> {
    /// `saves_calls`: whether the program also saves its own time around calls that are removed.
    pub(super) fn judge(&self, saves_calls: bool, repaired: &Repaired, times: &ArmTimes) -> Tried {
        let (before, left) = (self.baseline.plan.system_calls(), repaired.plan.system_calls());
        // Who only touches pages makes none.
        let removed = if before == 0 { 0.0 } else { (1.0 - left as f64 / before as f64).max(0.0) };
        let removed_share = if saves_calls { removed } else { 0.0 };
        self.judge_times(removed_share, repaired, times, 1.0)
    }

    /// The same where what one run of the repair does, times `work`, is what one of the baseline does.
    pub(super) fn judge_times(
        &self,
        removed_share: f64,
        repaired: &Repaired,
        times: &ArmTimes,
        work: f64,
    ) -> Tried {
        if let Some(problem) = &times.problem {
            let failed = problem.severity == Severity::Failed;
            return Tried { failed, ..Tried::without_gain(&with_hint(problem)) };
        }
        let Against { facts, baseline, times: unchanged, reproduces, seed } = *self;
        let before = Runs { plan: &baseline.plan, parts: &unchanged.parts, work: 1.0 };
        let after = Runs { plan: &repaired.plan, parts: &times.parts, work };
        let io_ns: Vec<f64> = times.io_ns.iter().map(|ns| ns * work).collect();
        let measurement = Measurement {
            baseline,
            unchanged: unchanged.rounds(),
            repaired_ns: &io_ns,
            removed_share,
            unaffected_share: repaired.unaffected_share,
            staying_faster: staying::faster(before, after),
            seed,
        };
        let Some(Gains { measured: gain, modelled }) = verdict::gains(facts, &measurement) else {
            return Tried::without_gain("too few rounds were made");
        };
        Tried {
            measured: Some(gain),
            modelled,
            verdict: if reproduces { Verdict::of_gain(&gain) } else { Verdict::Inconclusive },
            reason: (!reproduces).then(|| "the baseline replay does not reproduce the run".to_owned()),
            failed: false,
            io_ns,
        }
    }
}
