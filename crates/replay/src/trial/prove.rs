//! A proof from findings to verdicts: plan, measure, judge.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_diagnose::findings::{self, Facts};
use iowhy_diagnose::repair::{Repaired, Sizes};
use iowhy_probe::interrupt;

use super::arms::{self, AllTimes, ArmId, Arms, Effort, Progress};
use super::baselines::{BaselineArm, Baselines, Fidelity, Plans, no_repair};
use super::combined;
use super::device_pace::DevicePace;
use super::judge::{Against, Repairs, Tried, without_baseline};
use crate::carry_out::{CacheBefore, HelperCommand};
use crate::fidelity;
use crate::plan::source::Source;
use crate::plan::what_if::{self, Change};
use crate::plan::{Baseline, Bounds};
use crate::proof::{FindingProof, Proof, Together, WhatIf};
use crate::run_facts;
use crate::verdict::Verdict;

/// Only the most valuable findings are tried.
const MAX_FINDINGS: usize = 4;

/// What to prove.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The recorded run.
    pub facts: &'a Facts<'a>,
    /// The findings that were printed, most valuable first.
    pub findings: &'a [Finding],
    /// How large the repairs are.
    pub sizes: Sizes,
    /// Further changes to try.
    pub changes: &'a [Change],
    /// Whether the program still runs: then nothing is dropped from the page cache, and no file gets a name beside its own.
    pub live: bool,
    /// Counted rounds.
    pub rounds: usize,
    /// Seed of the order of the arms and of the intervals.
    pub seed: u64,
}

/// Proves findings by replays. Files are opened and made as the user of this thread.
pub fn prove(request: &Request<'_>, helper: HelperCommand<'_>, progress: Progress<'_>) -> Proof {
    let (trial, arms) = match Trial::plan(request) {
        Ok(planned) => planned,
        Err(proof) => return *proof,
    };
    let pace = trial.pace.as_ref();
    let effort = Effort { rounds: request.rounds, enough: request.rounds, until: None, seed: request.seed };
    let times = arms::measure(arms, helper, pace, effort, progress);
    trial.judge(&times)
}

/// A changed plan with its arm, or why it cannot be made.
type Changed = Result<(Repaired, ArmId), String>;

/// All that is tried.
struct Trial<'a> {
    request: &'a Request<'a>,
    baselines: Baselines,
    tried: Vec<(&'a Finding, Result<Repairs, String>)>,
    not_tried: Vec<&'a Finding>,
    combined: Option<(Vec<FindingId>, Repaired, ArmId)>,
    changes: Vec<(Change, Changed)>,
    pace: Option<DevicePace>,
}

impl<'a> Trial<'a> {
    /// # Errors
    /// There is no baseline: a proof that says why.
    fn plan(request: &'a Request<'a>) -> Result<(Trial<'a>, Arms), Box<Proof>> {
        let Request { facts, sizes, live, .. } = *request;
        let findings: Vec<&Finding> = request.findings.iter().filter(|f| f.id.is_repairable()).collect();
        let (tried, not_tried) = findings.split_at(findings.len().min(MAX_FINDINGS));
        let mut plans = Plans::new(facts, tried, Source::record(facts), &Bounds::PROOF, live);
        if live {
            plans = plans.if_recorded(with_cache_as_it_is);
        }
        let repairs: Vec<(&Finding, Result<Vec<Repaired>, String>)> =
            tried.iter().map(|f| (*f, repairs(facts, f.id, &plans, sizes))).collect();
        let repairable: Vec<FindingId> =
            repairs.iter().filter(|(_, r)| r.is_ok()).map(|(f, _)| f.id).collect();
        let mut arms = Arms::default();
        let without_room = plans.without_room;
        let baselines = plans.add_arms(&repairable, &mut arms);
        let main = match baselines.main() {
            Ok(main) => main,
            Err(reason) => {
                let proved = |f: &&Finding| {
                    let why = findings::never_repaired(f.id).map(no_repair);
                    let why = why.as_ref().or(baselines.for_finding(f.id).err()).unwrap_or(reason);
                    FindingProof { failed: without_room, ..FindingProof::not_measured(f, why) }
                };
                return Err(Box::new(Proof {
                    seed: request.seed,
                    findings: findings.iter().map(proved).collect(),
                    reason: Some(reason.clone()),
                    ..Proof::default()
                }));
            }
        };
        let mut with_arms = Vec::new();
        for (finding, repaired) in repairs {
            let baseline = baselines.for_finding(finding.id).map_err(Clone::clone);
            let repairs = repaired.and_then(|r| Ok(Repairs::new(finding.id, r, baseline?, &mut arms)));
            with_arms.push((finding, repairs));
        }
        let plan = &main.baseline.plan;
        let combined = findings::together(&repairable, plan, &run_facts::of_run(facts.profile, plan, sizes));
        let combined = combined.map(|(ids, repaired)| {
            let arm = arms.add_change("all repairs", repaired.plan.clone(), main.arm);
            (ids, repaired, arm)
        });
        let mut with_arm = |change: Change| {
            let changed = what_if::changed(change, plan, &sizes)?;
            let arm = arms.add_change(change.id(), changed.plan.clone(), main.arm);
            Ok((changed, arm))
        };
        let changes = request.changes.iter().map(|change| (*change, with_arm(*change))).collect();
        let pace = DevicePace::new(facts.profile);
        let (tried, not_tried) = (with_arms, not_tried.to_vec());
        Ok((Trial { request, baselines, tried, not_tried, combined, changes, pace }, arms))
    }

    fn judge(self, times: &AllTimes) -> Proof {
        let Request { rounds, seed, .. } = *self.request;
        let mut proof = Proof { seed, ..Proof::default() };
        let Ok(main) = self.baselines.main() else { return proof };
        let fidelity = main.fidelity(times, seed);
        let problem = times[main.arm].problem.as_ref();
        match problem {
            Some(problem) => {
                proof.reason = Some(problem.message.clone());
                proof.hint.clone_from(&problem.hint);
            }
            None if interrupt::requested() => {
                let made = times[main.arm].io_ns.len();
                proof.reason = Some(format!("interrupted after {made} of {rounds} rounds"));
            }
            None if !fidelity.reproduces => proof.reason = Some(self.unfaithful(main, &fidelity, times)),
            None => {}
        }
        proof.findings = self.tried.iter().map(|(finding, r)| self.proved(finding, r, main, times)).collect();
        if problem.is_none() {
            let against = self.against(main, fidelity, times);
            let combined = self.combined.as_ref().map(|combined| judge_combined(&against, combined, times));
            proof.together = combined::with_files(combined, &proof.findings, &main.baseline.plan);
            proof.what_if = self.changes.iter().map(|change| judge_change(&against, change, times)).collect();
        }
        const NOT_TRIED: &str = "only the most valuable findings are tried";
        proof.findings.extend(self.not_tried.iter().map(|f| FindingProof::not_measured(f, NOT_TRIED)));
        // Stable: findings keep their order but for contradicted ones.
        proof.findings.sort_by_key(|f| f.verdict == Verdict::Contradicted);
        if problem.is_none() {
            proof.baseline = Some(main.recorded(times, fidelity));
        }
        proof
    }

    fn proved(
        &self,
        finding: &Finding,
        repairs: &Result<Repairs, String>,
        main: &BaselineArm,
        times: &AllTimes,
    ) -> FindingProof {
        let baseline = self.baselines.for_finding(finding.id);
        let (repairs, baseline) = match (repairs, baseline, &times[main.arm].problem) {
            (Ok(repairs), Ok(baseline), _) => (repairs, baseline),
            (_, _, Some(problem)) => return without_baseline(finding, problem),
            (Err(why), ..) | (_, Err(why), _) => return FindingProof::not_measured(finding, why),
        };
        let fidelity = baseline.fidelity(times, self.request.seed);
        let mut proved = repairs.judge(&self.against(baseline, fidelity, times), finding, times);
        if baseline.arm != main.arm && times[baseline.arm].problem.is_none() {
            proved.baseline = Some(baseline.recorded(times, fidelity));
            if !fidelity.reproduces && proved.measured.is_some() {
                proved.reason = Some(self.unfaithful(baseline, &fidelity, times));
            }
        }
        proved
    }

    fn against<'b>(
        &'b self,
        baseline: &'b BaselineArm,
        fidelity: Fidelity,
        times: &'b AllTimes,
    ) -> Against<'b> {
        Against {
            facts: self.request.facts,
            baseline: &baseline.baseline,
            times: &times[baseline.arm],
            reproduces: fidelity.reproduces,
            seed: self.request.seed,
        }
    }

    /// Why the verdicts on this baseline are inconclusive, with what is known of the machine.
    fn unfaithful(&self, baseline: &BaselineArm, fidelity: &Fidelity, times: &AllTimes) -> String {
        let Some(estimate) = &fidelity.estimate else {
            return "the program's I/O time is not known, or too few rounds were made".to_owned();
        };
        let mut reason = format!(
            "the baseline replay takes {:.2}x the original I/O time, so it does not reproduce this run",
            estimate.value
        );
        if let Some(part) = fidelity::difference(&baseline.baseline, &times[baseline.arm].rounds(), estimate)
        {
            reason.push_str("; ");
            reason.push_str(&part);
        }
        if self.request.findings.iter().any(|f| f.id == FindingId::NoisyNeighbour) {
            reason.push_str("; other processes used the machine while the program ran");
        }
        let device = &times[baseline.arm].device;
        if let Some(changed) = self.pace.as_ref().and_then(|pace| pace.changed(device)) {
            reason.push_str("; ");
            reason.push_str(&changed);
        }
        reason
    }
}

/// The plan, if it drops nothing from the page cache that a running program uses.
fn with_cache_as_it_is(baseline: Baseline) -> Result<Baseline, String> {
    CacheBefore::look(&baseline.plan, 0)?;
    Ok(baseline)
}

/// The repairs of a finding, the advised one first.
fn repairs(facts: &Facts<'_>, id: FindingId, plans: &Plans, sizes: Sizes) -> Result<Vec<Repaired>, String> {
    let plan = &plans.for_repair(id)?.plan;
    let run_facts = run_facts::of_run(facts.profile, plan, sizes);
    let first = findings::repaired(id, plan, &run_facts).map_err(|why| no_repair(&why))?;
    Ok(std::iter::once(first).chain(findings::others(id, plan, &run_facts)).collect())
}

fn judge_combined(
    against: &Against<'_>,
    (ids, repaired, arm): &(Vec<FindingId>, Repaired, ArmId),
    times: &AllTimes,
) -> Together {
    let saves_calls = !ids.iter().all(|id| *id == FindingId::QueueDepthOne);
    let tried = against.judge(saves_calls, repaired, &times[*arm]);
    Together {
        ids: ids.clone(),
        how: repaired.how.clone(),
        measured: tried.measured,
        modelled: tried.modelled,
        verdict: tried.verdict,
        reason: tried.reason,
        io_ns: tried.io_ns,
    }
}

fn judge_change(against: &Against<'_>, (change, changed): &(Change, Changed), times: &AllTimes) -> WhatIf {
    let tried = match changed {
        Ok((changed, arm)) => {
            against.judge(change.removes_calls(), changed, &times[*arm]).into_other(&changed.how)
        }
        Err(why) => Tried::without_gain(&format!("it cannot be made: {why}")).into_other(""),
    };
    WhatIf { id: change.id().to_owned(), tried }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;

    #[test]
    fn the_printed_findings_are_proven_and_no_others() {
        let printed = |id| Finding {
            id,
            share: 0.5,
            sentence: String::new(),
            evidence: Vec::new(),
            advice: String::new(),
            gain: None,
            gain_rest_unchanged: None,
            in_program: None,
            prediction: None,
            not_calibrated: None,
            replies: None,
            undecided: false,
        };
        // The rules find neither of them in this run.
        let findings = [FindingId::SyncPerWrite, FindingId::CpuBound, FindingId::QueueDepthOne].map(printed);
        let request = |facts: &Facts<'_>| {
            let (sizes, changes) = (Sizes::default(), [].as_slice());
            let request =
                Request { facts, findings: &findings, sizes, changes, live: true, rounds: 5, seed: 7 };
            prove(&request, &|| Command::new("false"), &mut |_, _, _| {})
        };
        let proof = Run::new(1.0).facts(request);
        let ids: Vec<FindingId> = proof.findings.iter().map(|f| f.id).collect();
        assert_eq!(ids, [FindingId::SyncPerWrite, FindingId::QueueDepthOne]);
        assert!(
            proof.baseline.is_none()
                && proof.reason.is_some_and(|why| why.contains("no record of every call"))
        );
    }
}
