//! Records among files: what lies in a folder is looked at by its first bytes, and only what looks like a record is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use iowhy_core::problem::Problem;

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

/// A regular file that begins as a record does.
fn look(path: &Path) -> Option<Found> {
    let facts = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    looks_like_a_record(&head).then(|| Found {
        path: path.to_owned(),
        unix_s: modified.map_or(0, |since| since.as_secs()),
        bytes: facts.len(),
    })
}

/// Whether bytes begin as a record does: one object whose first keys name format and maker, however it is spaced.
fn looks_like_a_record(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.trim_start().starts_with('{') && text.contains("\"schema\"") && text.contains("\"iowhy\"")
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
            assert_eq!(looks_like_a_record(text.as_bytes()), is, "{text:?}");
        }
    }
}
