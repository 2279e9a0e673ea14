//! `netbsd-1999`: the published table. The tree, the readers and the stripes are not built here yet, and the screen says so.

use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_explain::classic::published::Experiment;
use iowhy_probe::campaign::Outcome;

use super::lab::Lab;
use crate::record::classic::{ClassicRecord, RowRecord};

/// Runs it: nothing is measured.
///
/// # Errors
/// None at present.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<ClassicRecord, Problem> {
    let nothing = Outcome { cells: Vec::new(), rounds: 0, interrupted: false };
    let mut record = lab.record(experiment, &[], &[], &nothing);
    let Some(table) = experiment.table("interleave") else { return Ok(record) };
    record.section("interleave", table.title.clone(), "interleave");
    for row in 0..table.rows.len() {
        let sectors = table.figure(row, "interleave").map(|bytes| bytes / 512.0);
        let label = sectors.map_or_else(String::new, |s| format!("{s:.0}"));
        record.row(
            RowRecord::new("interleave", label, "time of 30 readers of 1000 files", Unit::Nanoseconds)
                .key("interleave_sectors", sectors)
                .then(table.figure(row, "time"))
                .remark(table.text(row, "notes").unwrap_or_default()),
        );
    }
    record.say("model: not simulated yet.");
    record.say("now: not measured: a stripe set of three disks and the tree of small files are missing here.");
    record.verdicts.push(
        "Then: huge is good, huger is not, and 126 beats 128; the author could not say why. There is no now and no model yet."
            .to_owned(),
    );
    record.not_done.push("the news tree, its 30 readers, and stripes at each interleave; the simulated table".to_owned());
    Ok(record)
}
