//! Baselines of a proof: recorded calls, touched mappings, many small files. Each has an arm and a fidelity.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_diagnose::findings::{self, Facts};

use super::arms::{AllTimes, ArmId, Arms};
use crate::carry_out as carried;
use crate::fidelity;
use crate::plan::source::Source;
use crate::plan::{Baseline, Bounds, Part, free_space, recorded, same_system, small_files};
use crate::proof::BaselineReplay;

/// The plans, or their arms, of the parts of a run that the repairs of its findings change.
pub(super) struct ByPart<T> {
    /// Not empty; in the order of the findings, small files last.
    parts: Vec<(Part, Result<T, String>)>,
    /// The part of the most valuable finding that a plan can show.
    first: Part,
    /// What takes more time: calls or mappings.
    costlier: Part,
}

impl<T> ByPart<T> {
    /// The unchanged run for a finding, or why there is none.
    pub(super) fn for_finding(&self, id: FindingId) -> Result<&T, &String> {
        let part = Part::changed_by(id, self.costlier);
        let own = self.parts.iter().find(|(of, _)| *of == part);
        own.map_or_else(|| self.main(), |(_, of)| of.as_ref())
    }

    /// The run itself: of the first part that has a plan; else why the most valuable finding has none.
    pub(super) fn main(&self) -> Result<&T, &String> {
        let main = self.parts.iter().find(|(_, of)| of.is_ok());
        let first = || self.parts.iter().find(|(part, _)| *part == self.first);
        let (_, found) = main.or_else(first).or(self.parts.first()).expect("there is a part");
        found.as_ref()
    }
}

/// Plans of the unchanged run.
pub(super) struct Plans {
    by_part: ByPart<Baseline>,
    /// Whether free space alone is missing for recorded calls or mappings.
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
        let costlier = recorded::costlier(facts);
        let ids: Vec<FindingId> = tried.iter().map(|f| f.id).collect();
        let (first, parts) = wanted(&ids, costlier);
        let checked = |baseline| {
            let baseline = same_system::checked(baseline, carried::file_system)?;
            if live { beside_a_running_program(baseline) } else { Ok(baseline) }
        };
        let mut without_room = false;
        let mut made = |part: Part| {
            if part == Part::SmallFiles {
                return small_files::baseline(facts, bounds).and_then(checked);
            }
            let source = source.as_ref().map_err(Clone::clone)?;
            let found = recorded::baseline(facts, source, bounds, part).and_then(checked)?;
            let within = free_space::within(found, carried::room);
            without_room |= within.is_err();
            within
        };
        let parts = parts.into_iter().map(|part| (part, made(part))).collect();
        Plans { by_part: ByPart { parts, first, costlier }, without_room }
    }

    /// The same, where recorded calls and touches also meet this condition.
    pub(super) fn if_recorded(mut self, meets: fn(Baseline) -> Result<Baseline, String>) -> Plans {
        let of_part = |(part, found): (Part, Result<Baseline, String>)| match part {
            Part::SmallFiles => (part, found),
            Part::Calls | Part::Mappings => (part, found.and_then(meets)),
        };
        self.by_part.parts = self.by_part.parts.into_iter().map(of_part).collect();
        self
    }

    /// The unchanged run that a repair of this finding changes.
    ///
    /// # Errors
    /// Why there is none, as the end of a sentence: first of all that no plan can show the repair.
    pub(super) fn for_repair(&self, id: FindingId) -> Result<&Baseline, String> {
        match findings::never_repaired(id) {
            Some(why) => Err(no_repair(why)),
            None => self.by_part.for_finding(id).map_err(Clone::clone),
        }
    }

    /// Adds an arm for each plan that a repair needs; without any repair, one for the run.
    pub(super) fn add_arms(self, repairable: &[FindingId], arms: &mut Arms) -> Baselines {
        let ByPart { parts, first, costlier } = self.by_part;
        let has_plan = parts.iter().find(|(_, found)| found.is_ok()).map(|(part, _)| *part);
        let needs = |of: Part| match repairable {
            [] => has_plan == Some(of),
            ids => ids.iter().any(|id| Part::changed_by(*id, costlier) == of),
        };
        let mut with_arm = |(part, found): (Part, Result<Baseline, String>)| {
            let found = found.and_then(|baseline| {
                if !needs(part) {
                    return Err(format!("no finding needs a replay of {}", part.words()));
                }
                let arm = arms.add_baseline(part.arm(), baseline.plan.clone());
                Ok(BaselineArm { baseline, arm })
            });
            (part, found)
        };
        ByPart { parts: parts.into_iter().map(&mut with_arm).collect(), first, costlier }
    }
}

/// The part of the first finding, and the parts that all of them need, in their order. Findings that no plan can show need none, but the run
/// is always replayed.
fn wanted(tried: &[FindingId], costlier: Part) -> (Part, Vec<Part>) {
    let needed = tried.iter().filter(|id| findings::never_repaired(**id).is_none());
    let needed: Vec<Part> = needed.map(|id| Part::changed_by(*id, costlier)).collect();
    let first = needed.first().copied().unwrap_or(costlier);
    let (files, mut parts): (Vec<Part>, Vec<Part>) =
        needed.into_iter().partition(|part| *part == Part::SmallFiles);
    if parts.is_empty() {
        parts.push(costlier);
    }
    parts.extend(files);
    let mut once = Vec::new();
    for part in parts {
        if !once.contains(&part) {
            once.push(part);
        }
    }
    (first, once)
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
pub(super) type Baselines = ByPart<BaselineArm>;

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

#[cfg(test)]
mod tests {
    use iowhy_core::finding::FindingId as F;

    use super::*;

    #[test]
    fn each_finding_has_the_part_that_its_repairs_change() {
        let both = [F::ManySmallFiles, F::SyncPerWrite, F::MmapFaults, F::SmallRequests];
        let all = vec![Part::Calls, Part::Mappings, Part::SmallFiles];
        assert_eq!(wanted(&both, Part::Mappings), (Part::SmallFiles, all));
        let once = vec![Part::Calls, Part::SmallFiles];
        assert_eq!(wanted(&both, Part::Calls).1, once, "one replay of what takes more time");
        assert_eq!(wanted(&[F::SyncPerWrite], Part::Mappings), (Part::Calls, vec![Part::Calls]));
        let files = vec![Part::Mappings, Part::SmallFiles];
        assert_eq!(wanted(&[F::ManySmallFiles], Part::Mappings), (Part::SmallFiles, files));
        let run = vec![Part::Calls];
        assert_eq!(wanted(&[F::FailedLookups], Part::Calls).1, run, "the run is replayed all the same");
    }

    #[test]
    fn a_part_without_a_plan_says_why_and_the_run_is_that_of_the_next() {
        let parts = vec![(Part::Calls, Err("why".to_owned())), (Part::Mappings, Ok(7))];
        let by_part = ByPart { parts, first: Part::Calls, costlier: Part::Mappings };
        assert_eq!(by_part.for_finding(F::SyncPerWrite), Err(&"why".to_owned()));
        assert_eq!((by_part.for_finding(F::MmapFaults), by_part.main()), (Ok(&7), Ok(&7)));
        assert_eq!(by_part.for_finding(F::ManySmallFiles), Ok(&7), "it was not asked for");
        let why = |part, why: &str| (part, Err::<u8, _>(why.to_owned()));
        let parts = vec![why(Part::Calls, "calls"), why(Part::SmallFiles, "files")];
        let none = ByPart { parts, first: Part::SmallFiles, costlier: Part::Calls };
        assert_eq!(none.main(), Err(&"files".to_owned()), "the reason of the most valuable finding");
    }
}
