//! `netbsd-1999`: the published table beside simulated ones, and what of it can be measured in one directory here. What may
//! not enter: the simulated runs (`model`), the tree and the files that are read and written (`here`).

mod here;
mod model;

use iowhy_core::problem::Problem;
use iowhy_explain::classic::published::{Experiment, Table};
use iowhy_probe::campaign::Outcome;
use iowhy_probe::interrupt;

use super::lab::Lab;
use crate::record::classic::ClassicRecord;

/// Runs it.
///
/// # Errors
/// What the simulator says of its own machine; what making and reading the tree says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<ClassicRecord, Problem> {
    let nothing = Outcome { cells: Vec::new(), rounds: 0, interrupted: false };
    let Some(table) = experiment.table("interleave") else {
        return Ok(lab.record(experiment, &[], &[], &nothing));
    };
    let mut record = here::measure(lab, experiment)?;
    // The model stands first on the screen: it is what the post's table can be held against.
    let measured = std::mem::take(&mut record.sections);
    model::fill(lab, table, &mut record)?;
    model::block_sizes(lab, experiment.fact("block-size-gain"), &mut record)?;
    model::large(lab, &mut record)?;
    record.sections.extend(measured);
    record.interrupted = interrupt::requested();
    record.not_done.push(
        "real stripes at each interleave: the tree and the files lie in one directory; file systems with blocks of 4k and 8k \
         made anew for the test"
            .to_owned(),
    );
    Ok(record)
}

/// Interleave of a row in sectors.
fn sectors(table: &Table, row: usize) -> Option<u64> {
    table.figure(row, "interleave").map(|bytes| (bytes / 512.0) as u64)
}
