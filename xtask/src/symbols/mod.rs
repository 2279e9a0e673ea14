//! Kernel functions by source file: reads the debug information of Debian's kernels, and generates the classifier's table and
//! the page that compares it with the names written by hand.
//!
//! Reading needs packages of 1 GB and is for maintainers. What was read is committed (`functions.gz`), so that rules can
//! change, and be checked, without a download. The same facts and rules give the same bytes.

mod compress;
mod dwarf;
mod evidence;
mod matrix;
mod package;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use iowhy_diagnose::classify::{Classifier, PathRule};

use self::compress::Label;
use self::evidence::Evidence;
use crate::steps::Ending;

const EVIDENCE: &str = "xtask/src/symbols/functions.gz";
const TABLE: &str = "crates/diagnose/src/classify/functions.txt";
const PAGE: &str = "docs/kernel-functions.md";
/// The group of files without a meaning.
const NONE: &str = "none";
/// Width of a line of the table.
const WIDTH: usize = 160;

/// Reads packages of debug information, oldest kernel first, and writes everything anew. A name without `.deb` is downloaded.
pub(crate) fn read(root: &Path, packages: &[&str]) -> Ending {
    match evidence_of(root, packages).and_then(|bytes| written(root, EVIDENCE, &bytes)) {
        Ok(()) => generate(root),
        Err(why) => Ending::Failed(why),
    }
}

/// Writes table and page from the committed facts.
pub(crate) fn generate(root: &Path) -> Ending {
    let made = generated(root).and_then(|made| {
        written(root, TABLE, made.table.as_bytes())?;
        written(root, PAGE, made.page.as_bytes())
    });
    match made {
        Ok(()) => Ending::Passed,
        Err(why) => Ending::Failed(why),
    }
}

/// Whether table and page are those of the facts and rules, and every contradiction has a reason.
pub(crate) fn check(root: &Path) -> Ending {
    match generated(root).and_then(|made| complaints(root, made)) {
        Ok(complaints) if complaints.is_empty() => Ending::Passed,
        Ok(complaints) => Ending::Failed(complaints.join("\n")),
        Err(why) => Ending::Failed(why),
    }
}

/// What the facts and rules give.
struct Generated {
    table: String,
    page: String,
    complaints: Vec<String>,
}

fn generated(root: &Path) -> Result<Generated, String> {
    let bytes = std::fs::read(root.join(EVIDENCE)).map_err(|e| format!("{EVIDENCE}: {e}"))?;
    let evidence = Evidence::from_bytes(&bytes)?;
    let classifier = Classifier::new();
    let rules = Rules::new(classifier.path_rules());
    let comparison = matrix::compare(&classifier, &evidence, |path| rules.group(path).map(str::to_owned));
    Ok(Generated {
        table: rules.table(&evidence),
        page: page::page(&classifier, &evidence, &comparison),
        complaints: matrix::complaints(&classifier, &comparison),
    })
}

fn complaints(root: &Path, made: Generated) -> Result<Vec<String>, String> {
    let mut complaints = made.complaints;
    for (file, text) in [(TABLE, made.table), (PAGE, made.page)] {
        let committed = std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        if committed != text {
            complaints.push(format!("{file} is not what the rules give: run `cargo xtask symbols`"));
        }
    }
    Ok(complaints)
}

fn evidence_of(root: &Path, packages: &[&str]) -> Result<Vec<u8>, String> {
    let classifier = Classifier::new();
    let rules = Rules::new(classifier.path_rules());
    let folder = crate::target(root).join("symbols");
    let mut kernels = Vec::new();
    for name in packages {
        println!("-- {name}");
        kernels.push(package::read(&package::find(name, &folder)?)?);
    }
    let inside = |path: &str| match rules.group(path) {
        Some(NONE) => None,
        group => Some(group.is_some()),
    };
    Evidence::new(&kernels, inside)?.to_bytes()
}

fn written(root: &Path, file: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(root.join(file), bytes).map_err(|e| format!("{file}: {e}"))
}

/// Source files and their groups.
struct Rules<'a> {
    /// The longest path first.
    rules: Vec<&'a PathRule>,
    /// In the order of `paths.toml`, without the one that has no meaning.
    groups: Vec<&'a str>,
}

impl<'a> Rules<'a> {
    fn new(all: &'a [PathRule]) -> Rules<'a> {
        let mut groups: Vec<&str> = Vec::new();
        for rule in all {
            if rule.group != NONE && !groups.contains(&rule.group.as_str()) {
                groups.push(&rule.group);
            }
        }
        let mut rules: Vec<&PathRule> = all.iter().collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.path.len()));
        Rules { rules, groups }
    }

    /// The group of a source file.
    fn group(&self, path: &str) -> Option<&'a str> {
        let fits = |rule: &&&PathRule| match rule.path.ends_with('/') {
            true => path.starts_with(&rule.path),
            false => path == rule.path,
        };
        self.rules.iter().find(fits).map(|rule| rule.group.as_str())
    }

    /// The table of functions.
    fn table(&self, evidence: &Evidence) -> String {
        let labels = self.labels(evidence);
        let patterns = compress::patterns(&labels, self.groups.len());
        let mut text = format!(
            "# Generated by `cargo xtask symbols` from `paths.toml` and the debug information of\n# {}.\n",
            evidence.kernels.join(", ")
        );
        for (group, names) in self.groups.iter().chain([&NONE]).zip(&patterns) {
            text += &format!("[{group}]\n");
            let mut line = String::new();
            for name in names {
                if !line.is_empty() && line.len() + 1 + name.len() > WIDTH {
                    text += &format!("{line}\n");
                    line.clear();
                }
                line += if line.is_empty() { "" } else { " " };
                line += name;
            }
            if !line.is_empty() {
                text += &format!("{line}\n");
            }
        }
        text
    }

    /// The group of each function; where kernels have it in files of other groups, the newest one decides.
    fn labels<'e>(&self, evidence: &'e Evidence) -> BTreeMap<&'e str, Label> {
        let mut newest: BTreeMap<&str, (u32, BTreeSet<Option<&str>>)> = BTreeMap::new();
        for ((path, name), kernels) in &evidence.functions {
            let last = u8::BITS - kernels.leading_zeros();
            let group = self.group(path).filter(|group| *group != NONE);
            let (of, groups) = newest.entry(name).or_default();
            if last > *of {
                groups.clear();
                *of = last;
            }
            if last == *of {
                groups.insert(group);
            }
        }
        let mut labels: BTreeMap<&str, Label> = newest
            .into_iter()
            .map(|(name, (_, groups))| {
                let only = if groups.len() == 1 { groups.into_iter().next().flatten() } else { None };
                let index = only.and_then(|group| self.groups.iter().position(|g| *g == group));
                (name, index.map_or(Label::None, Label::Group))
            })
            .collect();
        for name in &evidence.outside {
            labels.entry(name).and_modify(|label| *label = Label::None).or_insert(Label::Outside);
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_is_that_of_the_rules() {
        let made = generated(&crate::root()).unwrap();
        assert_eq!(complaints(&crate::root(), made).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_function_has_the_group_of_its_file() {
        let bytes = std::fs::read(crate::root().join(EVIDENCE)).unwrap();
        let evidence = Evidence::from_bytes(&bytes).unwrap();
        let classifier = Classifier::new();
        let rules = Rules::new(classifier.path_rules());
        for (name, label) in rules.labels(&evidence) {
            let wanted = match label {
                Label::Group(group) => Some(rules.groups[group]),
                Label::None | Label::Outside => None,
            };
            assert_eq!(classifier.group_by_path(name), wanted, "{name}");
        }
    }

    #[test]
    fn the_longest_path_decides() {
        let rule = |path: &str, group: &str| PathRule { path: path.to_owned(), group: group.to_owned() };
        let all = [rule("mm/", "memory"), rule("mm/filemap.c", "cache"), rule("mm/x/", NONE)];
        let rules = Rules::new(&all);
        let got = ["mm/mmap.c", "mm/filemap.c", "mm/x/y.c", "fs/x.c", "mm/filemap.cc"]
            .map(|path| rules.group(path));
        assert_eq!(got, [Some("memory"), Some("cache"), Some(NONE), None, Some("memory")]);
        assert_eq!(rules.groups, ["memory", "cache"]);
    }
}
