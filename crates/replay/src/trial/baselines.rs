//! Baselines of a proof: the recorded calls, and apart from them many small files. Each has an arm and a fidelity.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_diagnose::findings::{self, Facts};

use super::arms::{AllTimes, ArmId, Arms};
use crate::carry_out as carried;
use crate::fidelity;
use crate::plan::source::Source;
use crate::plan::{Baseline, Bounds, free_space, recorded, same_system, small_files};
use crate::proof::BaselineReplay;

/// Causes that lie in calls, whatever else takes time in page faults: of files that are mapped, or of memory that is new.
const IN_CALLS: [FindingId; 6] = [
    FindingId::SyncPerWrite,
    FindingId::SmallRequests,
    FindingId::StdioSeek,
    FindingId::UnalignedWrite,
    FindingId::DirtyThrottle,
    FindingId::InodeLock,
];

/// Plans of the unchanged run, or why there is none.
pub(super) struct Plans {
    pub(super) calls: Result<Baseline, String>,
    /// Only with a finding of many small files.
    pub(super) files: Option<Result<Baseline, String>>,
    /// Whether only free space is missing for the calls.
    pub(super) without_room: bool,
}

impl Plans {
    /// Makes the plans that these findings need. `live`: the program still runs.
    pub(super) fn new(
        facts: &Facts<'_>,
        tried: &[&Finding],
        source: Result<Source<'_>, String>,
        bounds: &Bounds,
        live: bool,
    ) -> Plans {
        let many = tried.iter().any(|f| f.id == FindingId::ManySmallFiles);
        let in_calls = |f: &&Finding| IN_CALLS.contains(&f.id);
        let mut of_plans = tried.iter().filter(|f| findings::never_repaired(f.id).is_none()).peekable();
        let only_calls = of_plans.peek().is_some() && of_plans.all(in_calls);
        let checked = |baseline| {
            let baseline = same_system::checked(baseline, carried::file_system)?;
            if live { beside_a_running_program(baseline) } else { Ok(baseline) }
        };
        let calls = source
            .and_then(|source| recorded::baseline(facts, &source, bounds, only_calls))
            .and_then(checked)
            .map(|baseline| free_space::within(baseline, carried::room));
        let without_room = matches!(calls, Ok(Err(_)));
        Plans {
            calls: calls.and_then(|within| within),
            files: many.then(|| small_files::baseline(facts, bounds).and_then(checked)),
            without_room,
        }
    }

    /// The unchanged run for a finding.
    pub(super) fn for_finding(&self, id: FindingId) -> Result<&Baseline, &String> {
        match &self.files {
            Some(files) if id == FindingId::ManySmallFiles => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }

    /// The unchanged run that a repair of this finding changes.
    ///
    /// # Errors
    /// Why there is none, as the end of a sentence: first of all that no plan can show the repair.
    pub(super) fn for_repair(&self, id: FindingId) -> Result<&Baseline, String> {
        match findings::never_repaired(id) {
            Some(why) => Err(no_repair(why)),
            None => self.for_finding(id).map_err(Clone::clone),
        }
    }

    /// Adds an arm for each plan that a repair needs; without any repair, one for the run.
    pub(super) fn add_arms(self, repairable: &[FindingId], arms: &mut Arms) -> Baselines {
        let of_files = |id: &FindingId| self.files.is_some() && *id == FindingId::ManySmallFiles;
        let (files, calls) = (repairable.iter().any(of_files), repairable.iter().any(|id| !of_files(id)));
        let needs_calls = calls || !files;
        let needs_files = files || self.calls.is_err();
        let mut add = |name: &str, baseline: Baseline| {
            let arm = arms.add_baseline(name, baseline.plan.clone());
            BaselineArm { baseline, arm }
        };
        let calls = match self.calls {
            Ok(_) if !needs_calls => Err("no finding needs the recorded calls".to_owned()),
            calls => calls.map(|baseline| add("baseline", baseline)),
        };
        let files = self.files.filter(|_| needs_files);
        let files = files.map(|files| files.map(|baseline| add("baseline of the small files", baseline)));
        Baselines { calls, files }
    }
}

/// In words that end a sentence.
pub(super) fn no_repair(why: &str) -> String {
    format!("no mechanical repair: {why}")
}

/// The plan, if it makes no names: those would be beside the names of the running program.
fn beside_a_running_program(baseline: Baseline) -> Result<Baseline, String> {
    if baseline.plan.tree.is_some() || baseline.plan.any(|a| a.op.makes_file()) {
        return Err("it would make files with names beside those of the running program".to_owned());
    }
    Ok(baseline)
}

/// An unchanged run with its arm.
pub(super) struct BaselineArm {
    pub(super) baseline: Baseline,
    pub(super) arm: ArmId,
}

/// The baselines that are measured.
pub(super) struct Baselines {
    calls: Result<BaselineArm, String>,
    files: Option<Result<BaselineArm, String>>,
}

impl Baselines {
    /// The baseline of a finding, or why there is none.
    pub(super) fn for_finding(&self, id: FindingId) -> Result<&BaselineArm, &String> {
        match &self.files {
            Some(files) if id == FindingId::ManySmallFiles => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }

    /// The baseline of the run: the calls, or where they cannot be replayed the small files.
    pub(super) fn main(&self) -> Result<&BaselineArm, &String> {
        match (&self.calls, &self.files) {
            (Err(_), Some(files)) => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }
}

/// Fidelity of a baseline, and whether it is near enough to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fidelity {
    pub(super) estimate: Option<Estimate>,
    pub(super) reproduces: bool,
}

impl BaselineArm {
    pub(super) fn fidelity(&self, times: &AllTimes, seed: u64) -> Fidelity {
        let estimate = fidelity::fidelity(&self.baseline, &times[self.arm].rounds(), seed);
        Fidelity { estimate, reproduces: estimate.as_ref().is_some_and(fidelity::reproduces) }
    }

    /// For the record.
    pub(super) fn recorded(&self, times: &AllTimes, fidelity: Fidelity) -> BaselineReplay {
        let times = &times[self.arm];
        let difference =
            fidelity.estimate.and_then(|f| fidelity::difference(&self.baseline, &times.rounds(), &f));
        BaselineReplay {
            fidelity: fidelity.estimate,
            reproduces: fidelity.reproduces,
            program_io_s: self.baseline.program_io_ns / 1e9,
            scale: self.baseline.scale,
            calls: times.calls,
            io_ns: times.io_ns.clone(),
            notes: self.baseline.notes.iter().cloned().chain(difference).collect(),
            recorded: self.baseline.recorded,
            replayed: times.parts.clone(),
            plan: self.baseline.plan.clone(),
        }
    }
}
