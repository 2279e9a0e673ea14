//! Reading a record from a file, with an error that says what the file is instead.

use std::io::Read;
use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::text::{acts, visible};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Value, json};

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
    let value: Value = parsed(path, &text(path, hint)?, hint)?;
    let kind = kind_of(path, &value, hint)?;
    if kind == Kind::RunTime {
        return Err(only_run_time(path));
    }
    match beyond_sense(&value) {
        Some(place) => Err(Problem::refused(format!(
            "`{}` is a damaged record: {}",
            path.display(),
            place.trim_start_matches('.')
        ))
        .hint("make it again")),
        None => Ok((kind, value)),
    }
}

/// Reads some keys of a record of one of these kinds; the others are passed over, and take no memory.
///
/// # Errors
/// Those of [`any`], a record of another kind, and keys of other types.
pub(crate) fn part<T: DeserializeOwned>(
    path: &Path,
    hint: &str,
    kinds: &[Kind],
) -> Result<(Kind, T), Problem> {
    #[derive(Deserialize)]
    struct Head {
        kind: Option<Value>,
        schema: Option<Value>,
    }
    let text = text(path, hint)?;
    let head: Head = parsed(path, &text, hint)?;
    let kind = kind_of(path, &json!({"kind": head.kind, "schema": head.schema}), hint)?;
    if !kinds.contains(&kind) {
        return Err(Problem::refused(format!(
            "`{}` is a record of another kind: {}",
            path.display(),
            kind.words()
        ))
        .hint(hint.to_owned()));
    }
    let record = serde_json::from_slice(&text).map_err(|error| damaged(path, &error))?;
    Ok((kind, record))
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8], hint: &str) -> Result<T, Problem> {
    serde_json::from_slice(text).map_err(|error| {
        let what = match error.classify() {
            Category::Eof if text.is_empty() => "is empty".to_owned(),
            Category::Eof => "ends in the middle: it was cut off".to_owned(),
            Category::Data => "is JSON, but no record of iowhy".to_owned(),
            _ => format!("is no JSON: {error}"),
        };
        Problem::refused(format!("`{}` {what}", path.display())).hint(hint.to_owned())
    })
}

/// The kind of a record of a format that is known.
fn kind_of(path: &Path, record: &Value, hint: &str) -> Result<Kind, Problem> {
    let name = path.display();
    match record.get("schema").and_then(Value::as_u64).zip(Kind::from_record(record)) {
        Some((schema, _)) if schema > u64::from(SCHEMA) => Err(Problem::refused(format!(
            "`{name}` has format {schema}; this iowhy ({}) reads up to {SCHEMA}",
            env!("CARGO_PKG_VERSION")
        ))
        .hint("read it with the version that made it, or a later one")),
        Some((_, kind)) => Ok(kind),
        None => {
            Err(Problem::refused(format!("`{name}` is JSON, but no record of iowhy")).hint(hint.to_owned()))
        }
    }
}

/// The refusal of a record without a profile.
pub(crate) fn only_run_time(path: &Path) -> Problem {
    let name = path.display();
    Problem::refused(format!("`{name}` holds only the run time of a program that may not be profiled"))
        .hint("profile it with the rights for it: `sudo iowhy --as-root --json FILE -- CMD`")
}

/// The refusal of a number that is no figure of anything.
pub(crate) fn no_figure(path: &Path, figure: f64) -> Problem {
    Problem::refused(format!("`{}` is a damaged record: {figure} is no time and no share", path.display()))
        .hint("make it again")
}

/// The figures of a record (nanoseconds, bytes, shares) are smaller by far; sums and products of two below it are finite.
pub(crate) const MAX_FIGURE: f64 = 1e30;

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
