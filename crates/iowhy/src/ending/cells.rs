//! How a command that measured cells ends.

use iowhy_core::problem::Problem;
use iowhy_path::reconcile::Verdict as CellVerdict;

use super::{Ending, interrupted};
use crate::record::{CellRecord, Record};

impl Ending {
    /// The ending of a command with this record: a cell that failed, or was not what it claims, is a reason for exit code 1.
    pub(crate) fn for_cells(record: &Record) -> Ending {
        let interrupted = record.interrupted.then(|| interrupted_after(&record.cells));
        let bad = failed_cells(&record.cells).into_iter().chain(mislabelled_cells(&record.cells));
        Ending::from_reasons(interrupted.into_iter().chain(bad))
    }
}

/// The reason of an interrupted run, with the number of cells that it reached.
fn interrupted_after(cells: &[CellRecord]) -> Problem {
    let measured = cells.iter().filter(|cell| !cell.samples.is_empty()).count();
    let mut problem = interrupted();
    problem.message =
        format!("interrupted: {measured} of {} cells were measured, the others were not run", cells.len());
    if measured == cells.len() {
        problem.message =
            format!("interrupted: all {measured} cells were measured, in fewer rounds than planned");
    }
    problem
}

/// The reason where cells failed: how many, which is the first, and why.
pub(crate) fn failed_cells(cells: &[CellRecord]) -> Option<Problem> {
    let failed: Vec<&CellRecord> =
        cells.iter().filter(|cell| cell.verdict == CellVerdict::Failed.id()).collect();
    let first = failed.first()?;
    let why = first.failure.as_deref().unwrap_or("no request was completed");
    let message = format!(
        "{} of {} cells failed: {} on `{}`: {why}{}",
        failed.len(),
        cells.len(),
        first.key,
        first.target,
        others(&failed)
    );
    Some(Problem::failed(message).hint("`iowhy bench` with the options of that cell measures it alone"))
}

/// The keys of the cells after the first.
fn others(cells: &[&CellRecord]) -> String {
    let keys: Vec<&str> = cells.iter().skip(1).take(MAX_KEYS).map(|cell| cell.key.as_str()).collect();
    let more = cells.len().saturating_sub(1 + keys.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if keys.is_empty() { String::new() } else { format!("; also {}{more}", keys.join(", ")) }
}

/// Cells that a reason names beside the first.
const MAX_KEYS: usize = 4;

/// The reason where cells were not what they claim, e.g. read from the cache where it says cold.
fn mislabelled_cells(cells: &[CellRecord]) -> Option<Problem> {
    let mislabelled: Vec<&CellRecord> =
        cells.iter().filter(|cell| cell.verdict == CellVerdict::Mislabelled.id()).collect();
    let first = mislabelled.first()?;
    let message = format!(
        "{} of {} cells {}: {} on `{}`: {}{}",
        mislabelled.len(),
        cells.len(),
        if mislabelled.len() == 1 { "was not what it claims" } else { "were not what they claim" },
        first.key,
        first.target,
        first.why_not_ok(),
        others(&mislabelled)
    );
    Some(Problem::failed(message).hint(
        "the other cells stand; other processes on the device or little free memory can cause it: run it again when \
         they are idle",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::NOT_RUN;

    fn measured() -> Record {
        serde_json::from_str(include_str!("../../tests/command/records/1/measured.json")).unwrap()
    }

    /// The reason as it is printed; `None` for exit code 0.
    fn reason(record: &Record) -> Option<String> {
        let ending = Ending::for_cells(record);
        (ending.code() != 0).then(|| format!("{ending:?}"))
    }

    #[test]
    fn what_makes_the_exit_code_1_is_named() {
        let mut record = measured();
        record.interrupted = false;
        record.cells.iter_mut().for_each(|cell| cell.verdict = "ok".to_owned());
        assert_eq!(reason(&record), None);
        let name = record.cells[0].key.clone();
        record.cells[0].verdict = "mislabelled".to_owned();
        record.cells[0].bytes_verdict = "half of it came from the cache".to_owned();
        let one = reason(&record).unwrap();
        for word in [name.as_str(), "1 of ", "was not what it claims", "half of it came from the cache"] {
            assert!(one.contains(word), "{one}");
        }
        let mut twin = record.clone();
        twin.cells.extend_from_within(..1);
        twin.cells.last_mut().unwrap().key = "second".to_owned();
        assert!(reason(&twin).unwrap().contains("also second"), "{twin:?}");
        record.cells[0].verdict = "failed".to_owned();
        record.cells[0].failure = Some("input/output error".to_owned());
        record.interrupted = true;
        let two = reason(&record).unwrap();
        for word in [name.as_str(), "failed", "input/output error", "interrupted"] {
            assert!(two.contains(word), "{two}");
        }
    }

    #[test]
    fn a_cell_that_an_interrupted_run_did_not_reach_has_not_failed() {
        let mut record = measured();
        record.interrupted = true;
        record.cells.iter_mut().for_each(|cell| cell.verdict = "ok".to_owned());
        let all = record.cells.len();
        let last = record.cells.last_mut().unwrap();
        (last.verdict, last.failure) = (NOT_RUN.to_owned(), None);
        last.samples.clear();
        let interrupted = reason(&record).unwrap();
        assert!(interrupted.contains(&format!("{} of {all} cells were measured", all - 1)), "{interrupted}");
        assert!(!interrupted.contains("failed:") && !interrupted.contains("no reason"), "{interrupted}");
        assert!(
            crate::screen::measured::cell::interrupted(&record)
                .unwrap()
                .contains("first round is incomplete")
        );
    }
}
