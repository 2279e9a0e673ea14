//! The two sides of a comparison: which files each word of the command line stands for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;

use crate::cli::CompareArgs;
use crate::store;

/// One side.
#[derive(Clone, Debug)]
pub(in crate::command) struct Side {
    /// As it was named.
    pub(super) named: String,
    /// Its records, at least one.
    pub(super) files: Vec<PathBuf>,
}

impl Side {
    /// The first record; of measured cells it is the only one.
    pub(super) fn first(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Both sides: as named, or kept under a name.
///
/// # Errors
/// One side too few or too many; a name that nothing is kept under; a record that stands twice on a side.
pub(in crate::command) fn sides(args: &CompareArgs) -> Result<(Side, Side), Problem> {
    let (before, after) = match (&args.baseline, &args.after) {
        (Some(name), None) => (PathBuf::from(format!("@{name}")), args.before.clone()),
        (None, Some(after)) => (args.before.clone(), after.clone()),
        (Some(name), Some(_)) => {
            return Err(Problem::refused(format!(
                "`--baseline {name}` is the record before; two others are one too many"
            ))
            .hint(format!("write `iowhy compare --baseline {name} AFTER`")));
        }
        (None, None) => {
            return Err(Problem::refused("one record has nothing to be compared with")
                .hint("name two records, or the one before with `--baseline NAME`"));
        }
    };
    Ok((side(&before)?, side(&after)?))
}

fn side(word: &Path) -> Result<Side, Problem> {
    let named = word.display().to_string();
    let mut files = Vec::new();
    for word in words(word) {
        files.extend(store::resolve_all(&word)?);
    }
    let mut seen = BTreeSet::new();
    for file in &files {
        if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            return Err(Problem::refused(format!("`{}` stands twice in `{named}`", file.display()))
                .hint("one run counts once: name each record once"));
        }
    }
    Ok(Side { named, files })
}

/// A list of records, unless there is a file of just this name.
fn words(word: &Path) -> Vec<PathBuf> {
    match word.to_str() {
        Some(text) if text.contains(',') && !word.exists() => {
            text.split(',').filter(|part| !part.is_empty()).map(PathBuf::from).collect()
        }
        _ => vec![word.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_parts_records_unless_it_belongs_to_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a,b.json");
        assert_eq!(words(&odd).len(), 2);
        std::fs::write(&odd, "").unwrap();
        assert_eq!(words(&odd), vec![odd]);
        assert_eq!(words(Path::new("a,,b,")), [Path::new("a"), Path::new("b")]);
    }
}
