//! Reading a record from a file, with an error that says what the file is instead.

use std::io::Read;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::text::{acts, visible};
use serde_json::Value;

use crate::record::{Kind, SCHEMA};
use crate::store;

/// A record of a whole sweep with its histograms has some tens of MiB.
const MAX_BYTES: u64 = 1 << 30;

/// Reads a record of any command, also one kept under a name (`@NAME`). `hint` says how to make one that would do.
///
/// # Errors
/// The file cannot be read, is cut off, is no record, or is one of a later format.
pub(crate) fn any(path: &Path, hint: &str) -> Result<(Kind, Value), Problem> {
    let path = &store::resolve(path)?;
    let name = path.display();
    let text = text(path, hint)?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Eof => "ends in the middle: it was cut off".to_owned(),
            _ => format!("is no JSON: {error}"),
        };
        Problem::refused(format!("`{name}` {what}")).hint(hint.to_owned())
    })?;
    let kind = Kind::from_record(&value);
    match value.get("schema").and_then(Value::as_u64).zip(kind) {
        Some((schema, _)) if schema > u64::from(SCHEMA) => Err(Problem::refused(format!(
            "`{name}` has format {schema}; this iowhy ({}) reads up to {SCHEMA}",
            env!("CARGO_PKG_VERSION")
        ))
        .hint("read it with the version that made it, or a later one")),
        Some((_, Kind::RunTime)) => Err(Problem::refused(format!(
            "`{name}` holds only the run time of a program that may not be profiled"
        ))
        .hint("profile it with the rights for it: `sudo iowhy --as-root --json FILE -- CMD`")),
        Some((_, kind)) => match beyond_sense(&value) {
            Some(place) => Err(Problem::refused(format!(
                "`{name}` is a damaged record: {}",
                place.trim_start_matches('.')
            ))
            .hint("make it again")),
            None => Ok((kind, value)),
        },
        None => {
            Err(Problem::refused(format!("`{name}` is JSON, but no record of iowhy")).hint(hint.to_owned()))
        }
    }
}

/// The figures of a record (nanoseconds, bytes, shares) are smaller by far; sums and products of two below it are finite.
const MAX_FIGURE: f64 = 1e30;

/// Where a record holds a number that is no figure of anything, and which.
fn beyond_sense(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|figure| figure.abs() > MAX_FIGURE) => {
            Some(format!(" is {number}, and no figure is above {MAX_FIGURE:e}"))
        }
        Value::Array(all) => all
            .iter()
            .enumerate()
            .find_map(|(i, entry)| beyond_sense(entry).map(|place| format!("[{i}]{place}"))),
        Value::Object(map) => map
            .iter()
            .find_map(|(key, entry)| beyond_sense(entry).map(|place| format!(".{}{place}", visible(key)))),
        _ => None,
    }
}

/// [`any`] for a command that only shows the record: what acts on a screen is escaped in every text of it.
///
/// # Errors
/// Those of [`any`].
pub(crate) fn shown(path: &Path, hint: &str) -> Result<(Kind, Value), Problem> {
    let (kind, mut value) = any(path, hint)?;
    make_visible(&mut value);
    Ok((kind, value))
}

/// serde_json nests at most 128 deep, so the recursion is bounded.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(acts) => *text = visible(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(make_visible),
        Value::Object(map) => {
            map.values_mut().for_each(make_visible);
            let evil: Vec<String> = map.keys().filter(|key| key.contains(acts)).cloned().collect();
            for key in evil {
                if let Some(value) = map.remove(&key) {
                    map.insert(visible(&key).into_owned(), value);
                }
            }
        }
        _ => {}
    }
}

/// The error for a record that lacks keys of its kind, or has them with other types.
pub(crate) fn damaged(path: &Path, error: &serde_json::Error) -> Problem {
    Problem::refused(format!("`{}` is a damaged record: {error}", path.display())).hint("make it again")
}

fn text(path: &Path, hint: &str) -> Result<Vec<u8>, Problem> {
    let failed = |error: std::io::Error| {
        Problem::refused(format!("cannot read `{}`: {error}", path.display())).hint(hint.to_owned())
    };
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(
            Problem::refused(format!("`{}` is larger than any record", path.display())).hint(hint.to_owned())
        );
    }
    Ok(text)
}
