//! Chooses the baseline of a profile: the recorded calls, or mappings where those take more time.

use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

use super::baseline::Baseline;
use super::duration::wall_ns;
use super::source::Source;
use super::{Bounds, calls, control_groups, mappings, window};

/// Smallest profiling overhead that is noted.
const MIN_NOTED: f64 = 0.02;

/// The unchanged run. `only_calls`: what is to be shown lies in calls, so that mappings are left out, however long they take.
///
/// # Errors
/// Why there is no plan, as the end of a sentence.
pub(crate) fn baseline(
    facts: &Facts<'_>,
    source: &Source<'_>,
    bounds: &Bounds,
    only_calls: bool,
) -> Result<Baseline, String> {
    let mut found = from_source(facts, source, bounds, only_calls)?;
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
    only_calls: bool,
) -> Result<Baseline, String> {
    let wall = |operations: &[Operation]| wall_ns(facts, operations);
    let mapped = wall(&[Operation::Fault, Operation::Map]);
    let calls = wall(&[Operation::Read, Operation::Write, Operation::Sync]);
    if wall(&[Operation::Ring, Operation::Aio]) > calls + mapped {
        return Err("requests through io_uring and Linux AIO are in no record of calls".to_owned());
    }
    if mapped > calls && !only_calls {
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
    baseline(facts, &Source::record(facts)?, &Bounds::PROOF, false)
}
