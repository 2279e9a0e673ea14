//! Chooses the baseline of a profile: recorded calls, faults on mapped files, or reads on a ring.

use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

use super::baseline::{Baseline, MAX_OVERHEAD};
use super::duration::{overhead, wall_ns};
use super::{calls, control_groups, faults, ring_reads};

/// Smallest profiling overhead that is noted.
const MIN_NOTED: f64 = 0.02;

/// The unchanged run.
///
/// # Errors
/// Why there is no plan, as the end of a sentence.
pub(crate) fn baseline(facts: &Facts<'_>) -> Result<Baseline, String> {
    let mut found = from_profile(facts)?;
    control_groups::place(facts, &mut found);
    found.overhead = overhead(facts);
    if found.overhead >= MIN_NOTED {
        found.notes.push(format!(
            "about {:.0} % of the program's time is left out as profiling overhead (an estimate)",
            100.0 * found.overhead.min(MAX_OVERHEAD)
        ));
    }
    Ok(found)
}

fn from_profile(facts: &Facts<'_>) -> Result<Baseline, String> {
    let wall = |operations: &[Operation]| wall_ns(facts, operations);
    let mapped = wall(&[Operation::Fault, Operation::Map]);
    let calls = wall(&[Operation::Read, Operation::Write, Operation::Sync]);
    if wall(&[Operation::Ring, Operation::Aio]) > calls + mapped {
        return ring_reads::baseline(facts);
    }
    if mapped > calls
        && let Some(found) = faults::baseline(facts)?
    {
        return Ok(found);
    }
    calls::baseline(facts)
}
