//! Records that the user kept by name (`--save-as NAME`), in `$XDG_STATE_HOME/iowhy/records` or `~/.local/state/iowhy/records`.
//! Wherever a record is read, `@NAME` is the one kept under that name.
//!
//! Nothing is kept unasked, and a kept record is never overwritten. Runs of one program are kept beside each other under one
//! name: `NAME.json`, `NAME+2.json`, and so on; `@NAME+2` is the second.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use iowhy_core::problem::Problem;
use iowhy_linux::names::Dir;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::pending::Pending;
use crate::run_as;

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
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(std::env::var_os("XDG_STATE_HOME"))
        .or_else(|| absolute(run_as::home()).map(|home| home.join(".local/state")))
        .map(|state| state.join("iowhy/records"))
        .ok_or_else(|| {
            Problem::refused(
                "there is no place to keep records: neither XDG_STATE_HOME nor a home directory is set",
            )
            .hint("set XDG_STATE_HOME to a directory, or use `--json FILE`")
        })
}

/// The file of a name, or of a run under it (`NAME+2`).
///
/// # Errors
/// A refusal of names that could lead elsewhere, or that are hidden.
fn path_of(name: &str) -> Result<PathBuf, Problem> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let (base, run) = match name.rsplit_once('+') {
        Some((base, digits)) => (base, digits.parse::<u64>().ok().filter(|run| *run > 0)),
        None => (name, Some(1)),
    };
    let plain = !base.starts_with(['.', '-']) && base.chars().all(letter);
    let Some(run) = run.filter(|_| !base.is_empty() && base.len() <= 100 && plain) else {
        return Err(Problem::refused(format!("`{name}` is no name for a record"))
            .hint("use letters, digits, `-`, `_` and `.`, as in `before-upgrade`"));
    };
    // The first run has the plain name, as the only one has.
    let file = if run == 1 { format!("{base}.json") } else { format!("{base}+{run}.json") };
    Ok(folder()?.join(file))
}

/// All records kept under a name, in the order of their numbers; of `NAME+2` that one.
///
/// # Errors
/// A refusal of names that are none.
fn runs(name: &str) -> Result<Vec<(u64, PathBuf)>, Problem> {
    let path = path_of(name)?;
    if name.contains('+') {
        return Ok(path.exists().then_some((1, path)).into_iter().collect());
    }
    let mut runs: Vec<(u64, PathBuf)> = all()?
        .into_iter()
        .filter_map(|kept| {
            let (base, run) = run_of(&kept.name);
            (base == name).then_some((run, kept.path))
        })
        .collect();
    runs.sort();
    Ok(runs)
}

/// A kept record's name and the number of its run.
pub fn run_of(name: &str) -> (&str, u64) {
    match name.rsplit_once('+').map(|(base, run)| (base, run.parse())) {
        Some((base, Ok(run))) => (base, run),
        _ => (name, 1),
    }
}

/// What is read of a kept record before another run joins it.
#[derive(Deserialize)]
struct Head {
    subject: Option<String>,
    profile: Option<IgnoredAny>,
}

/// Opens the file for a run of this program: the first under the name, or one more beside those that are kept.
///
/// # Errors
/// Those of [`keep`]; a refusal where something else is kept under the name.
pub fn keep_run(name: &str, subject: &str) -> Result<Pending, Problem> {
    let _files = run_as::files()?;
    let kept = if name.contains('+') { Vec::new() } else { runs(name)? };
    let Some((last, path)) = kept.last() else { return keep(name) };
    let head: Option<Head> =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Head>(&text).ok());
    match head {
        Some(Head { subject: Some(other), profile: Some(_) }) if other == subject => {
            let path = folder()?.join(format!("{name}+{}.json", last + 1));
            Pending::open_new(format!("--save-as {name}"), &path)
        }
        Some(Head { subject: Some(other), profile: Some(_) }) => Err(Problem::refused(format!(
            "`--save-as {name}`: runs of another program are kept under that name: `{other}`"
        ))
        .hint(taken(name))),
        _ => Err(is_there(name)),
    }
}

fn taken(name: &str) -> String {
    format!("choose another name, or `iowhy history --remove {name}` first")
}

fn is_there(name: &str) -> Problem {
    Problem::refused(format!("`--save-as {name}`: a record of that name is there already")).hint(taken(name))
}

/// Opens a record's file for the end of a run.
///
/// # Errors
/// A refusal where the name is taken, or the place cannot be written.
pub fn keep(name: &str) -> Result<Pending, Problem> {
    let _files = run_as::files()?;
    if name.contains('+') {
        return Err(Problem::refused(format!("`{name}` is no name for a record"))
            .hint("`+` numbers the runs that are kept under one name: leave it out, and runs of one program get theirs"));
    }
    let path = path_of(name)?;
    if !runs(name)?.is_empty() {
        return Err(is_there(name));
    }
    if let Some(folder) = path.parent() {
        Dir::open_or_make(folder).map_err(|error| {
            Problem::refused(format!(
                "`--save-as {name}`: cannot make `{}`{}: {error}",
                folder.display(),
                run_as::suffix()
            ))
            .hint("set XDG_STATE_HOME to a directory that you may write to, or use `--json FILE`")
        })?;
    }
    Pending::open_new(format!("--save-as {name}"), &path)
}

/// The file that is meant: itself, or the record kept under the name behind `@`.
///
/// # Errors
/// A refusal that lists the names there are; one where several runs are kept under the name.
pub fn resolve(path: &Path) -> Result<PathBuf, Problem> {
    let mut all = resolve_all(path)?;
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => {
            let name = path.display();
            let n = all.len() + usize::from(last.is_some());
            Err(Problem::refused(format!("`{name}` stands for {n} runs, and one is wanted"))
                .hint(format!("name one of them: `{name}+1`, `{name}+2`; `iowhy history` lists them")))
        }
    }
}

/// As [`resolve`], but of several runs under a name all.
///
/// # Errors
/// A refusal that lists the names there are.
pub fn resolve_all(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    let name = path.to_str().and_then(|text| text.strip_prefix('@'));
    let Some(name) = name.filter(|_| !path.exists()) else { return Ok(vec![path.to_owned()]) };
    let found: Vec<PathBuf> = runs(name)?.into_iter().map(|(_, path)| path).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let kept = all()?;
    // Runs of several names alternate in time; the latest name is the likeliest to be meant.
    let mut names: Vec<&str> = Vec::new();
    for name in kept.iter().rev().map(|kept| run_of(&kept.name).0) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let hint = if names.is_empty() {
        "none is kept; `--save-as NAME` keeps the record of a run".to_owned()
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

/// Removes what is kept under a name: all runs of it, or the one that is named by its number.
///
/// # Errors
/// A refusal where there is none of that name.
pub fn remove(name: &str) -> Result<(), Problem> {
    let _files = run_as::files()?;
    for path in resolve_all(Path::new(&format!("@{name}")))? {
        Dir::holding(&path)
            .and_then(|(folder, file)| Ok(folder.remove_file(&file)?))
            .map_err(|error| Problem::failed(format!("cannot remove `{}`: {error}", path.display())))?;
    }
    Ok(())
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
    fn runs_are_numbered_from_one() {
        for (name, told) in
            [("a", ("a", 1)), ("a+2", ("a", 2)), ("a.2", ("a.2", 1)), ("a+b", ("a+b", 1)), ("a+", ("a+", 1))]
        {
            assert_eq!(run_of(name), told);
        }
    }

    #[test]
    fn names_cannot_lead_elsewhere() {
        for name in [
            "+2", "a+", "a+x", "a+0", "../a+2", "a+-1", "a+2+3", "", ".", "..", "../x", "a/b", "-rf",
            ".hidden", "a b", "ä", "x\n",
        ] {
            assert!(path_of(name).is_err(), "{name:?}");
        }
    }
}
