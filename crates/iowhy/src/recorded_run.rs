//! The record of a watched program, and whether it is one that can be replayed here.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;

use crate::machine;
use crate::record::Kind;
use crate::record::compare::Difference;
use crate::record::watch::WatchRecord;
use crate::record_file;

const HINT: &str = "make a record with `sudo iowhy --record-calls --json RECORD -- CMD`";

/// Reads a record and holds its machine against this one. `hint`: what to do with the record of another machine.
///
/// # Errors
/// The file cannot be read, is cut off, is no record or one of another command, of a later format, or of another machine
/// (unless forced).
pub(crate) fn record(path: &Path, force: bool, hint: &str) -> Result<(WatchRecord, Vec<Warning>), Problem> {
    let name = path.display();
    let record = record_file::any(path, HINT)?;
    if record.kind() != Kind::WatchedProgram {
        return Err(Problem::refused(format!(
            "`{name}` is a record of another command: it holds no watched program"
        ))
        .hint(HINT));
    }
    let record: WatchRecord = record.read()?;
    let here = machine::here();
    let mut warnings = Vec::new();
    if let Some(Difference { fact, before, after, .. }) =
        machine::differences(&record.environment, &here).into_iter().next()
    {
        let message = format!("`{name}` is of another machine: {fact} {before}, here {after}");
        if !force {
            return Err(Problem::refused(message).hint(hint));
        }
        warnings.push(Warning::new("other-machine", message));
    }
    if record.environment.kernel != here.kernel {
        let message =
            format!("`{name}` was made with Linux {}; this is {}", record.environment.kernel, here.kernel);
        warnings.push(Warning::new("other-kernel", message));
    }
    Ok((record, warnings))
}
