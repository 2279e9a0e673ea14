//! Finds records among files. Only files whose first bytes may be those of a record are read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use iowhy_core::problem::Problem;
use serde::Deserialize;

/// A file that looks like a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is.
    pub(super) path: PathBuf,
    /// When it was written, seconds since 1970.
    pub(super) unix_s: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// Enough of a file to see what it is: a record names its format and its maker first.
const HEAD_BYTES: u64 = 4096;

/// An object whose keys stand in another order is read whole to know, unless it is larger than records are.
const MAX_BYTES: u64 = 64 << 20;

/// The records at a path: the file itself, or the files in a folder, not those below it. What is no record is passed over.
///
/// # Errors
/// A path that cannot be read.
pub(super) fn records(path: &Path) -> Result<Vec<Found>, Problem> {
    let refused = |error: std::io::Error| {
        Problem::refused(format!("cannot read `{}`: {error}", path.display()))
            .hint("name files or folders that hold records made with `--json FILE`")
    };
    let facts = std::fs::metadata(path).map_err(refused)?;
    if !facts.is_dir() {
        return Ok(look(path).into_iter().collect());
    }
    let entries = std::fs::read_dir(path).map_err(refused)?;
    Ok(entries.filter_map(Result::ok).filter_map(|entry| look(&entry.path())).collect())
}

/// A regular file that is a record, or begins as one does.
fn look(path: &Path) -> Option<Found> {
    let facts = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut head = Vec::new();
    let mut file = File::open(path).ok()?;
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let is = begins_as_a_record(&head)
        || is_object(&head) && facts.len() <= MAX_BYTES && {
            file.read_to_end(&mut head).ok()?;
            is_a_record(&head)
        };
    is.then(|| Found {
        path: path.to_owned(),
        unix_s: modified.map_or(0, |since| since.as_secs()),
        bytes: facts.len(),
    })
}

fn is_object(head: &[u8]) -> bool {
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Whether bytes begin as a record does: one object whose first keys name format and maker, however it is spaced. Then it
/// is one even where it is cut off.
fn begins_as_a_record(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    is_object(head) && text.contains("\"schema\"") && text.contains("\"iowhy\"")
}

/// The keys that every record has.
#[derive(Deserialize)]
struct Keys {
    #[serde(rename = "schema")]
    _schema: u64,
    #[serde(rename = "iowhy")]
    _iowhy: String,
}

/// Whether the whole is a record, in whatever order another program has left its keys.
fn is_a_record(text: &[u8]) -> bool {
    serde_json::from_slice::<Keys>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_from_other_files() {
        for (text, is) in [
            ("{\"schema\":1,\"iowhy\":\"0.1.0\",\"comm", true),
            ("\n{\n  \"schema\": 1,\n  \"iowhy\": \"0.1.0\"\n}", true),
            ("{\"schema\":1,\"name\":\"of another program\"}", false),
            ("[{\"schema\":1,\"iowhy\":\"0.1.0\"}]", false),
            ("", false),
            ("{", false),
        ] {
            assert_eq!(begins_as_a_record(text.as_bytes()), is, "{text:?}");
        }
        assert!(is_a_record(b"{\"cells\": [], \"iowhy\": \"0.1.0\", \"schema\": 1}"));
        assert!(!is_a_record(b"{\"inner\": {\"iowhy\": \"0.1.0\", \"schema\": 1}}"));
    }
}
