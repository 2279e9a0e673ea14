//! The records of one side: measured cells, or runs of a watched program.

use std::path::Path;

use iowhy_core::problem::Problem;

use super::programs::Watched;
use super::sides::Side;
use crate::analyzer::Analyzer;
use crate::record::{Kind, Record};
use crate::record_file;

/// What a side holds.
#[derive(Debug)]
pub(super) enum Loaded {
    /// One record of measured cells.
    Cells(Box<Record>),
    /// Runs of a watched program.
    Runs(Vec<Watched>),
}

/// Reads the records of a side.
///
/// # Errors
/// Those of [`record_file::shown`]; a record that holds nothing that was measured in rounds or watched; records of two kinds; several
/// of measured cells.
pub(super) fn side(side: &Side) -> Result<Loaded, Problem> {
    let meaning = Analyzer::new();
    let (mut cells, mut runs) = (Vec::new(), Vec::new());
    for path in &side.files {
        let record = record_file::shown(
            path,
            "make a record with `iowhy --json FILE`, `iowhy bench --json FILE` or `iowhy --json FILE -- CMD`",
        )?;
        match record.kind() {
            Kind::WatchedProgram => runs.push(Watched::new(path, record.read()?, &meaning)),
            Kind::Measurement => cells.push(record.read::<Record>()?),
            kind => return Err(other_record(path, kind)),
        }
    }
    match (cells.pop(), cells.is_empty(), runs.is_empty()) {
        (Some(only), true, true) => Ok(Loaded::Cells(Box::new(only))),
        (None, _, false) => Ok(Loaded::Runs(runs)),
        (Some(_), _, false) => Err(Problem::refused(format!(
            "`{}` holds measured cells and watched programs",
            side.named
        ))
        .hint("name records of one kind")),
        _ => Err(Problem::refused(format!(
            "`{}` names {} records of measured cells",
            side.named,
            side.files.len()
        ))
        .hint(
            "one holds its rounds: compare two of them at a time; several are for watched programs, of which each is one run",
        )),
    }
}

/// A record of another command.
fn other_record(path: &Path, kind: Kind) -> Problem {
    let name = path.display();
    let what = if matches!(kind, Kind::Comparison | Kind::ComparisonOfPrograms) {
        "is a comparison itself"
    } else {
        "holds nothing that was measured in rounds"
    };
    Problem::refused(format!("`{name}` {what}")).hint(
        "compare records of `iowhy --json FILE` or `iowhy bench --json FILE`, or runs of `iowhy --json FILE -- CMD`",
    )
}
