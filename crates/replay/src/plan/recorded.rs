//! The baseline of a part of a profile: of the recorded calls, or of the mappings.

use iowhy_core::finding::FindingId;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{self, Changed, Facts};

use super::baseline::Baseline;
use super::duration::wall_ns;
use super::source::Source;
use super::{Bounds, calls, control_groups, mappings, window};

/// Smallest profiling overhead that is noted.
const MIN_NOTED: f64 = 0.02;

/// A part of a run that is replayed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Calls on files.
    Calls,
    /// Mappings, with what was touched in them.
    Mappings,
    /// Many small files, with the calls on their names.
    SmallFiles,
}

impl Part {
    /// The part that the repairs of a finding change, where this one of calls and mappings takes more time.
    pub(crate) fn changed_by(id: FindingId, costlier: Part) -> Part {
        match findings::changed(id) {
            Changed::Calls => Part::Calls,
            Changed::CallsOrMappings => costlier,
            Changed::SmallFiles => Part::SmallFiles,
        }
    }

    /// The name of its arm.
    pub(crate) fn arm(self) -> &'static str {
        match self {
            Part::Calls => "baseline",
            Part::Mappings => "baseline of the mappings",
            Part::SmallFiles => "baseline of the small files",
        }
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Part::Calls => "the recorded calls",
            Part::Mappings => "the mappings",
            Part::SmallFiles => "the small files",
        }
    }
}

/// What takes more of the run's time: calls or mappings.
pub(crate) fn costlier(facts: &Facts<'_>) -> Part {
    let mapped = wall_ns(facts, &[Operation::Fault, Operation::Map]);
    let calls = wall_ns(facts, &[Operation::Read, Operation::Write, Operation::Sync]);
    if mapped > calls { Part::Mappings } else { Part::Calls }
}

/// The unchanged run in its calls, or in its mappings.
///
/// # Errors
/// Why there is no plan, as the end of a sentence.
pub(crate) fn baseline(
    facts: &Facts<'_>,
    source: &Source<'_>,
    bounds: &Bounds,
    part: Part,
) -> Result<Baseline, String> {
    let mut found = from_source(facts, source, bounds, part)?;
    control_groups::place(facts, &mut found);
    if let Some(share) = found.recording.map(|r| r.share).filter(|share| *share >= MIN_NOTED) {
        found.notes.push(format!(
            "about {:.0} % of the program's time is left out as profiling overhead, by the measured cost of a call",
            100.0 * share
        ));
    }
    Ok(found)
}

fn from_source(
    facts: &Facts<'_>,
    source: &Source<'_>,
    bounds: &Bounds,
    part: Part,
) -> Result<Baseline, String> {
    let wall = |operations: &[Operation]| wall_ns(facts, operations);
    let mapped = wall(&[Operation::Fault, Operation::Map]);
    let calls = wall(&[Operation::Read, Operation::Write, Operation::Sync]);
    if wall(&[Operation::Ring, Operation::Aio]) > calls + mapped {
        return Err("requests through io_uring and Linux AIO are in no record of calls".to_owned());
    }
    if part == Part::Mappings {
        return mappings::baseline(facts, source, bounds);
    }
    let found = calls::baseline(facts, source, bounds)?;
    if !source.is_window() {
        return Ok(found);
    }
    let found = match window::part_with_room(&found.plan) {
        part if part < 1.0 => calls::baseline(facts, &source.beginning(part), bounds)?,
        _ => found,
    };
    Ok(window::settled(facts, found, bounds))
}

/// The unchanged run of a proof.
#[cfg(test)]
pub(crate) fn of_record(facts: &Facts<'_>) -> Result<Baseline, String> {
    baseline(facts, &Source::record(facts)?, &Bounds::PROOF, costlier(facts))
}
