//! `netbsd-1999`: the published table beside simulated ones, the same requests for real on stripes, and what of the test can be
//! measured in one directory. What may not enter: the simulated runs (`model`, `untar`), the stripes (`members`, `stripes`, `long`), file
//! systems made for it (`blocks`), the tree and the files that are read and written (`here`).

mod blocks;
mod here;
mod long;
mod members;
mod model;
pub mod splits;
mod stripes;
mod untar;

use crate::published::{Experiment, Table};
use iowhy_core::problem::Problem;
use iowhy_probe::campaign::Outcome;
use iowhy_probe::interrupt;
use iowhy_probe::target::Target;

use self::members::Members;
use self::model::{LongRate, Point, Share};
use crate::lab::Lab;
use crate::report::Report;

/// Runs it.
///
/// # Errors
/// What the simulator says of its own machine; what making and reading the tree says.
pub(super) fn run(lab: &Lab<'_>, experiment: &Experiment) -> Result<Report, Problem> {
    let nothing = Outcome { cells: Vec::new(), rounds: 0, interrupted: false };
    let Some(table) = experiment.table("interleave") else {
        return Ok(lab.report(&[], &[], &nothing));
    };
    // Names that cannot be members are refused before anything is measured.
    let members = Members::find(lab)?;
    let mut record = here::measure(lab, experiment)?;
    // The model is first on the screen, beside the post's table.
    let measured = std::mem::take(&mut record.sections);
    let shares = model::fill(lab, table, &mut record)?;
    model::block_sizes(lab, experiment.fact("block-size-gain"), &mut record)?;
    let rates = model::large(lab, &mut record)?;
    untar::fill(lab, experiment, &mut record)?;
    match members {
        Ok(members) => stripes(lab, experiment, table, &members, (&shares, &rates), &mut record)?,
        Err(why) => record.not_done.push(format!("real stripes at each interleave: {why}")),
    }
    if lab.block_size_test {
        blocks::measure(lab, experiment, &mut record);
    } else {
        record.not_done.push(
            "blocks of 4k and 8k for real (`--block-size-test`): it makes and mounts file systems of its own, as root, so only \
             when asked for"
                .to_owned(),
        );
    }
    record.sections.extend(measured);
    record.interrupted = interrupt::requested();
    Ok(record)
}

/// The table and the large file for real, on stripes of every interleave that the members have room for.
fn stripes(
    lab: &Lab<'_>,
    experiment: &Experiment,
    table: &Table,
    members: &Members,
    (shares, rates): (&[Share], &[LongRate]),
    record: &mut Report,
) -> Result<(), Problem> {
    if interrupt::requested() {
        return Ok(());
    }
    let (mut stripes, mut refused): (Vec<(Point, Target)>, Vec<String>) = (Vec::new(), Vec::new());
    for point in model::points(table) {
        match members.stripe(point.0) {
            Ok(target) => stripes.push((point, target)),
            Err(problem) => refused.push(format!("a real stripe with interleave {}: {problem}", point.0)),
        }
    }
    stripes::measure(lab, experiment, table, members, &stripes, shares, record)?;
    if !interrupt::requested() {
        long::measure(lab, members, &stripes, rates, record);
    }
    record.not_done.extend(refused);
    Ok(())
}
