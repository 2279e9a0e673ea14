//! The recorded calls on other file systems: one arm for the place where the program ran, one for each directory, in interleaved
//! rounds. No finding and no repair takes part.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::Finding;
use iowhy_core::problem::Severity;
use iowhy_core::replay::{PlanFile, Role, Room};
use iowhy_core::stats;
use iowhy_diagnose::findings::Facts;

use super::arms::{self, AllTimes, ArmId, Arms, Effort, Progress};
use crate::carry_out::{self, HelperCommand};
use crate::elsewhere::{Elsewhere, Place};
use crate::fidelity;
use crate::plan::source::Source;
use crate::plan::{Baseline, Bounds, Part, elsewhere, free_space, recorded, same_system, small_files};
use crate::verdict::{self, Measurement};

/// What to replay, and where.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The recorded run.
    pub facts: &'a Facts<'a>,
    /// Its findings, most valuable first: the part of the run that the first is about is replayed.
    pub findings: &'a [Finding],
    /// Directories, each with whether its file system is in memory.
    pub directories: &'a [(String, bool)],
    /// Counted rounds.
    pub rounds: usize,
    /// Seed of the order of the arms and of the intervals.
    pub seed: u64,
}

/// Replays the calls in each place.
///
/// # Errors
/// The run cannot be replayed anywhere, as the end of a sentence.
pub fn replay_on(
    places: &Places<'_>,
    helper: HelperCommand<'_>,
    progress: Progress<'_>,
) -> Result<Elsewhere, String> {
    let Places { facts, directories, rounds, seed, .. } = *places;
    let baseline = baseline(places)?;
    let mut arms = Arms::default();
    // All scratch files are there at the same time: places on one file system share its free space.
    let room = |path: &str| {
        let room = carry_out::room(path)?;
        let beside =
            |path: &str| carry_out::room(path).is_some_and(|there| there.file_system == room.file_system);
        let scratch = |file: &&PlanFile| {
            matches!(file.role, Role::ScratchEmpty | Role::ScratchFull) && beside(&file.path)
        };
        let here = u64::from(baseline.plan.files.iter().any(|file| scratch(&file)));
        let there = directories.iter().filter(|(directory, _)| beside(&format!("{directory}/file"))).count();
        let replays = here + there as u64;
        Some(Room { replays, ..room })
    };
    let here = same_system::checked(baseline.clone(), carry_out::file_system)
        .and_then(|baseline| free_space::within(baseline, room));
    let mut planned = vec![(None, here)];
    for (directory, in_memory) in directories {
        let there = elsewhere::in_directory(&baseline, directory, *in_memory)
            .and_then(|there| free_space::within(there, room));
        planned.push((Some(directory.clone()), there));
    }
    let mut with_arms = Vec::new();
    for (directory, planned) in planned {
        let arm = planned.map(|baseline| {
            // Each is its own baseline: one that fails leaves the others.
            let arm =
                arms.add_baseline(directory.as_deref().unwrap_or("where it ran"), baseline.plan.clone());
            (baseline, arm)
        });
        with_arms.push((directory, arm));
    }
    let times =
        arms::measure(arms, helper, None, Effort { rounds, enough: rounds, until: None, seed }, progress);
    let here = with_arms.first().and_then(|(_, arm)| arm.as_ref().ok()).map(|(_, arm)| *arm);
    let seen = Seen { facts, baseline: &baseline, times: &times, here, seed };
    let all = with_arms.into_iter().map(|(directory, arm)| match arm {
        Ok((there, arm)) => Place { directory, notes: there.notes.clone(), ..seen.place(arm) },
        Err(reason) => {
            Place { failed: directory.is_some(), directory, reason: Some(reason), ..Place::default() }
        }
    });
    let mut places: Vec<Place> = all.collect();
    // What holds everywhere stands once.
    if let Some(first) = places.first_mut() {
        first.notes.clear();
    }
    Ok(Elsewhere {
        seed,
        calls: baseline.plan.calls() * u64::from(baseline.plan.passes.max(1)),
        scale: baseline.scale,
        program_io_s: baseline.program_io_ns / 1e9,
        program_s: baseline.program_wall_ns(facts) / 1e9,
        notes: baseline.notes,
        places,
    })
}

/// The unchanged run: the part that the first finding is about; where it has no plan, small files.
fn baseline(places: &Places<'_>) -> Result<Baseline, String> {
    let facts = places.facts;
    let files = || small_files::baseline(facts, &Bounds::PROOF);
    let costlier = recorded::costlier(facts);
    let part = places.findings.first().map_or(costlier, |f| Part::changed_by(f.id, costlier));
    if part == Part::SmallFiles {
        return files();
    }
    let recorded =
        Source::record(facts).and_then(|source| recorded::baseline(facts, &source, &Bounds::PROOF, part));
    recorded.or_else(|why| files().map_err(|_| why))
}

struct Seen<'a> {
    facts: &'a Facts<'a>,
    baseline: &'a Baseline,
    times: &'a AllTimes,
    /// The arm of the place where the program ran.
    here: Option<ArmId>,
    seed: u64,
}

impl Seen<'_> {
    fn place(&self, arm: ArmId) -> Place {
        let times = &self.times[arm];
        if let Some(problem) = &times.problem {
            let failed = problem.severity == Severity::Failed;
            return Place {
                reason: Some(problem.message.clone()),
                hint: problem.hint.clone(),
                failed,
                ..Place::default()
            };
        }
        let here = self.here.map(|here| &self.times[here]).filter(|here| here.problem.is_none());
        let (wall, reason) = match self.wall(&times.io_ns) {
            Ok(wall) => (Some(wall), None),
            Err(reason) => (None, Some(reason)),
        };
        Place {
            io: stats::bootstrap_median(&times.io_ns, self.seed, Unit::Nanoseconds),
            over_recorded: fidelity::fidelity(self.baseline, &times.rounds(), self.seed),
            over_here: here
                .filter(|_| self.here != Some(arm))
                .and_then(|here| stats::paired_ratio(&times.io_ns, &here.io_ns, self.seed)),
            wall,
            reason,
            parts: fidelity::median(&times.parts),
            io_ns: times.io_ns.clone(),
            ..Place::default()
        }
    }

    /// Wall time of the run with these times in its calls: by the replay where it ran, if that is like the run.
    fn wall(&self, io_ns: &[f64]) -> Result<Estimate, String> {
        let here = self.here.map(|here| &self.times[here]).filter(|here| here.problem.is_none());
        let here =
            here.ok_or("its files cannot be replayed where it ran, so the rest of the run has no measure")?;
        let like =
            fidelity::fidelity(self.baseline, &here.rounds(), self.seed).ok_or("too few rounds were made")?;
        if !fidelity::reproduces(&like) {
            return Err(format!(
                "where it ran the replay takes {:.2}x the recorded time, so it does not reproduce this run",
                like.value
            ));
        }
        let measurement = Measurement {
            baseline: self.baseline,
            unchanged: here.rounds(),
            repaired_ns: io_ns,
            removed_share: 0.0,
            unaffected_share: 0.0,
            staying_faster: 1.0,
            seed: self.seed,
        };
        let gains = verdict::gains(self.facts, &measurement).ok_or("too few rounds were made")?;
        Ok(gains.measured.reciprocal(self.baseline.program_wall_ns(self.facts), Unit::Nanoseconds))
    }
}
