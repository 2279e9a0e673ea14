//! The clock and the overhead of iowhy itself, measured before anything else.

use iowhy_core::problem::Problem;
use iowhy_probe::ruler;
use iowhy_probe::target::Target;

use crate::record::RulerRecord;

/// Measures the ruler; in virtual time there is nothing to measure.
pub(crate) fn measure(targets: &[&Target], seed: u64) -> Result<RulerRecord, Problem> {
    if targets.iter().any(|t| t.script().is_some()) {
        return Ok(RulerRecord {
            clock_source: "virtual".to_owned(),
            clock_step_ns: 1,
            clock_read: None,
            harness_per_request: None,
            copy_per_byte: None,
            peak_memory_bytes: None,
        });
    }
    let ruler = ruler::measure(seed)?;
    Ok(RulerRecord {
        clock_source: ruler.clock_source.to_owned(),
        clock_step_ns: ruler.clock_step_ns,
        clock_read: Some(ruler.clock_read),
        harness_per_request: None,
        copy_per_byte: ruler.copy,
        peak_memory_bytes: None,
    })
}
