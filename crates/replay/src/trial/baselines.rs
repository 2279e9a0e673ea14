//! Baselines of a proof: the recorded calls, and apart from them many small files. Each has an arm and a fidelity.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_diagnose::findings::Facts;

use super::arms::{AllTimes, ArmId, Arms};
use crate::carry_out as carried;
use crate::proof::Replayed;
use crate::{AsWas, room, same_system, small_files, verdict};

/// Plans of the unchanged run, or why there is none.
pub(super) struct Plans {
    pub(super) calls: Result<AsWas, String>,
    /// Only with a finding of many small files.
    pub(super) files: Option<Result<AsWas, String>>,
    /// Whether only free space is missing for the calls.
    pub(super) without_room: bool,
}

impl Plans {
    /// Makes the plans that these findings need.
    pub(super) fn new(facts: &Facts<'_>, findings: &[&Finding]) -> Plans {
        let many = findings.iter().any(|f| f.id == FindingId::ManySmallFiles);
        let checked = |as_was| same_system::checked(as_was, carried::file_system);
        let calls = crate::as_was(facts).and_then(checked).map(|as_was| room::within(as_was, carried::room));
        let without_room = matches!(calls, Ok(Err(_)));
        Plans {
            calls: calls.and_then(|within| within),
            files: many.then(|| small_files::as_was(facts).and_then(checked)),
            without_room,
        }
    }

    /// The unchanged run for a finding.
    pub(super) fn for_finding(&self, id: FindingId) -> Result<&AsWas, &String> {
        match &self.files {
            Some(files) if id == FindingId::ManySmallFiles => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }

    /// Adds an arm for each plan that a repair needs; without any repair, one for the run.
    pub(super) fn add_arms(self, repairable: &[FindingId], arms: &mut Arms) -> Baselines {
        let of_files = |id: &FindingId| self.files.is_some() && *id == FindingId::ManySmallFiles;
        let (files, calls) = (repairable.iter().any(of_files), repairable.iter().any(|id| !of_files(id)));
        let needs_calls = calls || !files;
        let needs_files = files || self.calls.is_err();
        let mut baseline = |name: &str, as_was: AsWas| {
            let arm = arms.add_baseline(name, as_was.plan.clone(), as_was.scale);
            Baseline { as_was, arm }
        };
        let calls = match self.calls {
            Ok(_) if !needs_calls => Err("no finding needs the recorded calls".to_owned()),
            calls => calls.map(|as_was| baseline("baseline", as_was)),
        };
        let files = self.files.filter(|_| needs_files);
        let files = files.map(|files| files.map(|as_was| baseline("baseline of the small files", as_was)));
        Baselines { calls, files }
    }
}

/// An unchanged run with its arm.
pub(super) struct Baseline {
    pub(super) as_was: AsWas,
    pub(super) arm: ArmId,
}

/// The baselines that are measured.
pub(super) struct Baselines {
    calls: Result<Baseline, String>,
    files: Option<Result<Baseline, String>>,
}

impl Baselines {
    /// The baseline of a finding, or why there is none.
    pub(super) fn for_finding(&self, id: FindingId) -> Result<&Baseline, &String> {
        match &self.files {
            Some(files) if id == FindingId::ManySmallFiles => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }

    /// The baseline of the run: the calls, or where they cannot be replayed the small files.
    pub(super) fn main(&self) -> Result<&Baseline, &String> {
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
    pub(super) faithful: bool,
}

impl Baseline {
    pub(super) fn fidelity(&self, times: &AllTimes, seed: u64) -> Fidelity {
        let estimate = verdict::fidelity(&self.as_was, &times[self.arm].io_ns, seed);
        Fidelity { estimate, faithful: estimate.as_ref().is_some_and(verdict::is_faithful) }
    }

    /// For the record.
    pub(super) fn recorded(&self, times: &AllTimes, fidelity: Fidelity) -> Replayed {
        let times = &times[self.arm];
        Replayed {
            fidelity: fidelity.estimate,
            faithful: fidelity.faithful,
            program_io_s: self.as_was.unwatched_io_ns() / 1e9,
            scale: self.as_was.scale,
            calls: times.calls,
            io_ns: times.io_ns.clone(),
            notes: self.as_was.notes.clone(),
            plan: self.as_was.plan.clone(),
        }
    }
}
