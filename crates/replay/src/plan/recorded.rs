//! Chooses the baseline of a profile: the recorded calls, or mappings where those take more time.

use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

use super::baseline::Baseline;
use super::duration::{overhead, wall_ns};
use super::{calls, control_groups, mappings};

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
            "about {:.0} % of the program's time is left out as profiling overhead, by the measured cost of a call",
            100.0 * found.overhead
        ));
    }
    Ok(found)
}

fn from_profile(facts: &Facts<'_>) -> Result<Baseline, String> {
    calls::recorded(facts)?;
    let wall = |operations: &[Operation]| wall_ns(facts, operations);
    let mapped = wall(&[Operation::Fault, Operation::Map]);
    let calls = wall(&[Operation::Read, Operation::Write, Operation::Sync]);
    if wall(&[Operation::Ring, Operation::Aio]) > calls + mapped {
        return Err("requests through io_uring and Linux AIO are in no record of calls".to_owned());
    }
    if mapped > calls { mappings::baseline(facts) } else { calls::baseline(facts) }
}
