//! The two records of a comparison: they must hold what was measured in rounds.

use std::path::Path;

use iowhy_core::problem::Problem;
use serde_json::Value;

use crate::command::load;
use crate::record::Record;

/// Reads the record of a measuring command.
///
/// # Errors
/// Those of [`load::any`]; a record that holds nothing that was measured in rounds.
pub(super) fn record(path: &Path) -> Result<Record, Problem> {
    let value = load::any(path, "make a record with `iowhy --json FILE` or `iowhy bench --json FILE`")?;
    if value.get("cells").is_none() {
        return Err(other_record(path, &value));
    }
    serde_json::from_value(value).map_err(|error| load::damaged(path, &error))
}

/// A record of another command.
fn other_record(path: &Path, value: &Value) -> Problem {
    let problem = |what: &str, hint: &str| {
        Problem::refused(format!("`{}` {what}", path.display())).hint(hint.to_owned())
    };
    if value.get("profile").is_some() {
        problem(
            "is one run of a watched program: one run has no interval, so that no difference could be told from chance",
            "run the program several times before and after (hyperfine does that), and read the two reports for the cause",
        )
    } else {
        problem(
            "holds nothing that was measured in rounds",
            "compare records of `iowhy --json FILE` or `iowhy bench --json FILE`",
        )
    }
}
