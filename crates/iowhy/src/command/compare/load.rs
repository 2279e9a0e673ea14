//! Reading a record from a file, with an error that says what the file is instead.

use std::io::Read;
use std::path::Path;

use iowhy_core::problem::Problem;
use serde_json::Value;

use crate::record::{Record, SCHEMA};

/// A record of a whole sweep with its histograms has some tens of MiB.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the record of a measuring command.
///
/// # Errors
/// The file cannot be read, is cut off, is no record, is one of a later format, or holds nothing that was measured in
/// rounds.
pub(super) fn record(path: &Path) -> Result<Record, Problem> {
    let name = path.display();
    let text = text(path)?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Eof => "ends in the middle: it was cut off".to_owned(),
            _ => format!("is no JSON: {error}"),
        };
        Problem::refused(format!("`{name}` {what}"))
            .hint("make a record with `iowhy --json FILE` or `iowhy bench --json FILE`")
    })?;
    let schema = value.get("schema").and_then(Value::as_u64);
    match schema {
        Some(schema) if schema > u64::from(SCHEMA) => {
            return Err(Problem::refused(format!(
                "`{name}` has format {schema}; this iowhy ({}) reads up to {SCHEMA}",
                env!("CARGO_PKG_VERSION")
            ))
            .hint("compare it with the version that made it, or a later one"));
        }
        Some(_) if value.get("cells").is_some() => {}
        Some(_) => return Err(other_record(path, &value)),
        None => {
            return Err(Problem::refused(format!("`{name}` is JSON, but no record of iowhy"))
                .hint("make a record with `iowhy --json FILE` or `iowhy bench --json FILE`"));
        }
    }
    serde_json::from_value(value).map_err(|error| {
        Problem::refused(format!("`{name}` is a damaged record: {error}")).hint("make it again")
    })
}

fn text(path: &Path) -> Result<Vec<u8>, Problem> {
    let failed = |error: std::io::Error| {
        Problem::refused(format!("cannot read `{}`: {error}", path.display()))
            .hint("name two records that were made with `--json FILE`")
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Problem::refused(format!("`{}` is larger than any record", path.display()))
            .hint("name two records that were made with `--json FILE`"));
    }
    Ok(text)
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
