//! Records that the user kept by name (`--keep-as NAME`), in `$XDG_STATE_HOME/iowhy/records` or `~/.local/state/iowhy/records`.
//! Wherever a record is read, `@NAME` is the one kept under that name.
//!
//! Nothing is kept unasked, and a kept record is never overwritten.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use iowhy_core::problem::Problem;

use crate::output::Pending;

/// One kept record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// When it was kept, seconds since 1970.
    pub unix_s: u64,
    /// Its size.
    pub bytes: u64,
}

/// Where records are kept.
///
/// # Errors
/// A refusal where the environment names no place.
pub fn folder() -> Result<PathBuf, Problem> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("iowhy/records"))
        .ok_or_else(|| {
            Problem::refused("there is no place to keep records: neither XDG_STATE_HOME nor HOME is set")
                .hint("set XDG_STATE_HOME to a directory, or use `--json FILE`")
        })
}

/// The file of a name.
///
/// # Errors
/// A refusal of names that could lead elsewhere, or that are hidden.
fn path_of(name: &str) -> Result<PathBuf, Problem> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 100 || name.starts_with(['.', '-']) || !name.chars().all(letter) {
        return Err(Problem::refused(format!("`{name}` is no name for a record"))
            .hint("use letters, digits, `-`, `_` and `.`, as in `before-upgrade`"));
    }
    Ok(folder()?.join(format!("{name}.json")))
}

/// Opens a record's file for the end of a run.
///
/// # Errors
/// A refusal where the name is taken, or the place cannot be written.
pub fn keep(name: &str) -> Result<Pending, Problem> {
    let path = path_of(name)?;
    if path.exists() {
        return Err(Problem::refused(format!("`--keep-as {name}`: a record of that name is there already"))
            .hint(format!("choose another name, or `iowhy history --remove {name}` first")));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            Problem::refused(format!("`--keep-as {name}`: cannot make `{}`: {error}", folder.display()))
                .hint("set XDG_STATE_HOME to a directory that you may write to, or use `--json FILE`")
        })?;
    }
    Pending::open("--keep-as", &path)
}

/// The file that is meant: itself, or the record kept under the name behind `@`.
///
/// # Errors
/// A refusal that lists the names there are.
pub fn resolve(path: &Path) -> Result<PathBuf, Problem> {
    let name = path.to_str().and_then(|text| text.strip_prefix('@'));
    let Some(name) = name.filter(|_| !path.exists()) else { return Ok(path.to_owned()) };
    let kept = path_of(name)?;
    if kept.exists() {
        return Ok(kept);
    }
    let names: Vec<String> = all()?.into_iter().map(|kept| kept.name).collect();
    let hint = if names.is_empty() {
        "none is kept; `--keep-as NAME` keeps the record of a run".to_owned()
    } else {
        format!("kept are {}", names.join(", "))
    };
    Err(Problem::refused(format!("no record is kept under the name `{name}`")).hint(hint))
}

/// All kept records, the oldest first.
///
/// # Errors
/// A failure to read the place; that it is not there is none.
pub fn all() -> Result<Vec<Kept>, Problem> {
    let folder = folder()?;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Problem::failed(format!("cannot read `{}`: {error}", folder.display())));
        }
    };
    let mut kept: Vec<Kept> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path();
            let facts = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
            let age = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            Some(Kept { name, unix_s: facts.modified().map_or(0, age), bytes: facts.len(), path })
        })
        .collect();
    kept.sort_by(|a, b| (a.unix_s, &a.name).cmp(&(b.unix_s, &b.name)));
    Ok(kept)
}

/// Removes a kept record.
///
/// # Errors
/// A refusal where there is none of that name.
pub fn remove(name: &str) -> Result<(), Problem> {
    let path = resolve(Path::new(&format!("@{name}")))?;
    std::fs::remove_file(&path)
        .map_err(|error| Problem::failed(format!("cannot remove `{}`: {error}", path.display())))
}

/// An instant as people write it, in UTC: `2026-01-31 08:15`. The calendar is Howard Hinnant's `civil_from_days`.
pub fn instant(unix_s: u64) -> String {
    let days = (unix_s / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (unix_s % 86_400 / 3600, unix_s % 3600 / 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_as_the_calendar_has_them() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (1_798_761_599, "2026-12-31 23:59"),
            (4_107_542_400, "2100-03-01 00:00"),
        ] {
            assert_eq!(instant(seconds), text);
        }
    }

    #[test]
    fn names_cannot_lead_elsewhere() {
        for name in ["", ".", "..", "../x", "a/b", "-rf", ".hidden", "a b", "ä", "x\n"] {
            assert!(path_of(name).is_err(), "{name:?}");
        }
    }
}
