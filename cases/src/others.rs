//! Programs by authors who have not read the rules: `case.toml` in a folder for each, beside its sources. Those in `cases/fresh` are
//! evidence, and no rule may be tuned on them; after their one run they go to `cases/seen`, where people look at what went wrong. Those in
//! `cases/packaged` are programs of Debian's packages with one of their own options as the repair.
//! Deliberately absent: the catalogue's own programs, which were at hand when rules were made.

use std::fs;
use std::path::{Path, PathBuf};

use iowhy_core::finding::FindingId;
use iowhy_core::problem::Problem;
use serde::Deserialize;

use crate::case::{Before, Case, Need, Setup};
use crate::files;

/// Name of the description.
const DESCRIPTION: &str = "case.toml";

/// What the author of a program wrote, and the name of the cause that a maintainer gave to these words before any run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    what: String,
    /// The cause in the author's words.
    why_slow: String,
    /// The repair in the author's words.
    repair: String,
    #[serde(default)]
    innocent: bool,
    state: State,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    outputs: Vec<String>,
    #[serde(default)]
    prepare: Vec<String>,
    #[serde(default)]
    compile: Vec<String>,
    slow: Vec<String>,
    #[serde(default)]
    repaired: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    /// The finding that says what `why_slow` says.
    cause: Option<String>,
    /// Further ones that it says.
    #[serde(default)]
    also: Vec<String>,
    /// Other names that are as true.
    #[serde(default)]
    accept: Vec<String>,
    /// Options of `iowhy prove` that make its repair as large as the author's.
    #[serde(default)]
    prove: Vec<String>,
}

/// Pages of the inputs before each run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Cold,
    Warm,
    None,
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody here has looked at one, and none has run.
    Fresh,
    /// Rules may have changed because of one.
    Seen,
    /// Of Debian's packages.
    Packaged,
}

impl Others {
    /// Name of their folder.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Others::Fresh => "fresh",
            Others::Seen => "seen",
            Others::Packaged => "packaged",
        }
    }
}

/// Every case of these, by name. A case lives as long as the process.
///
/// # Errors
/// A description cannot be read, or names what does not exist.
pub fn all(others: Others) -> Result<Vec<&'static Case>, Problem> {
    let root = files::sources().join(others.folder());
    let entries = match fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Problem::failed(format!("cannot list `{}`: {e}", root.display()))),
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.join(DESCRIPTION).exists());
    folders.sort();
    folders.iter().map(|folder| case(folder)).collect()
}

fn case(folder: &Path) -> Result<&'static Case, Problem> {
    let file = folder.join(DESCRIPTION);
    let failed = |why: String| Problem::failed(format!("`{}`: {why}", file.display()));
    let text = fs::read_to_string(&file).map_err(|e| failed(e.to_string()))?;
    let told: Description = toml::from_str(&text).map_err(|e| failed(e.to_string()))?;
    let here = folder.display().to_string();
    // The interpreter itself: `python3` may be a script that looks for it.
    let word = |word: &String| match word.as_str() {
        "python3" => "{python}",
        word => kept_text(&word.replace("{here}", &here)),
    };
    let words = |words: &[String]| kept(words.iter().map(word).collect());
    let ids = |names: &[String]| -> Result<&'static [FindingId], Problem> {
        let ids = names.iter().map(|name| id(name).ok_or_else(|| failed(format!("no finding `{name}`"))));
        Ok(kept(ids.collect::<Result<Vec<_>, _>>()?))
    };
    if told.innocent == told.cause.is_some() || told.innocent != told.repaired.is_empty() {
        return Err(failed(
            "an innocent program has neither `cause` nor `repaired`; others have both".to_owned(),
        ));
    }
    let cause = ids(told.cause.as_slice())?.first().copied();
    let accept = if told.innocent { Case::INNOCENT } else { ids(&told.accept)? };
    let setup = [&told.compile, &told.prepare].into_iter().filter(|words| !words.is_empty());
    let inputs = told.inputs.iter().filter_map(|name| match told.state {
        State::Cold => Some(Before::Cold(below(name))),
        State::Warm => Some(Before::Warm(below(name))),
        State::None => None,
    });
    let outputs = told.outputs.iter().map(|name| Before::Remove(below(name)));
    let case = Case {
        name: kept_text(&folder.file_name().unwrap_or_default().to_string_lossy()),
        what: kept_text(&format!("{} Slow: {} Repaired: {}", told.what, told.why_slow, told.repair)),
        cause,
        also: ids(&told.also)?,
        accept,
        slow: words(&told.slow),
        repaired: words(&told.repaired),
        setup: kept(setup.map(|one| Setup::Run(words(one))).collect()),
        before: kept(outputs.chain(inputs).collect()),
        needs: kept(told.needs.iter().map(|name| Need::Command(kept_text(name))).collect()),
        prove: words(&told.prove),
        ..Case::EMPTY
    };
    Ok(Box::leak(Box::new(case)))
}

fn id(name: &str) -> Option<FindingId> {
    FindingId::ALL.iter().copied().find(|id| id.id() == name)
}

fn kept<T>(items: Vec<T>) -> &'static [T] {
    items.leak()
}

/// A name below the folder where everything is made, which authors write with or without that folder.
fn below(name: &str) -> &'static str {
    kept_text(name.strip_prefix("{dir}/").unwrap_or(name))
}

fn kept_text(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn descriptions_are_read_and_names_are_their_own() {
        let mut names = std::collections::HashSet::new();
        let folders = [Others::Fresh, Others::Seen, Others::Packaged];
        for case in folders.into_iter().flat_map(|others| all(others).unwrap()) {
            assert!(catalogue::find(case.name).is_none(), "{} is in the catalogue", case.name);
            assert!(names.insert(case.name), "{} is in two folders", case.name);
            assert!(!case.slow.is_empty(), "{}", case.name);
        }
        assert!(!names.is_empty());
    }

    #[test]
    fn a_description_becomes_a_case_and_a_wrong_one_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"
            what = "w"
            why_slow = "s"
            repair = "r"
            state = "cold"
            inputs = ["in"]
            outputs = ["{dir}/out"]
            prepare = ["python3", "{here}/prepare.py", "{dir}"]
            compile = []
            slow = ["{dir}/x", "slow"]
            repaired = ["{dir}/x", "repaired"]
            needs = ["python3"]
            cause = "sync-per-write"
        "#;
        let read = |text: &str| {
            fs::write(dir.path().join(DESCRIPTION), text).unwrap();
            case(dir.path())
        };
        let good = read(text).unwrap();
        assert_eq!((good.cause, good.slow.len(), good.setup.len()), (Some(FindingId::SyncPerWrite), 2, 1));
        let Setup::Run(words) = good.setup[0] else { panic!("{:?}", good.setup) };
        assert_eq!(words[1], format!("{}/prepare.py", dir.path().display()));
        assert!(matches!(good.before, [Before::Remove("out"), Before::Cold("in")]), "{:?}", good.before);
        for (wrong, why) in [
            (text.replace("sync-per-write", "no-such"), "no finding `no-such`"),
            (text.replace("state = \"cold\"", "innocent = true\nstate = \"cold\""), "neither"),
            (text.replace("what = \"w\"", ""), "what"),
        ] {
            let problem = read(&wrong).unwrap_err().to_string();
            assert!(problem.contains(why), "{problem}");
        }
    }
}
