//! Retired words: one thing has one word, in code, help, messages and pages.
//!
//! The list holds words that this code base used for something that has a term of its own. A word that also has an
//! ordinary meaning is on it only in the form in which it was used.

use std::path::{Path, PathBuf};

/// A retired word, what to write instead, and how it is looked for.
struct Retired {
    word: &'static str,
    write: &'static str,
    form: Form,
}

/// How a word is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Words of prose, upper or lower case; also as parts of names: `present_directory`.
    Prose,
    /// A name of its own: `Roster`, not `Rosters`.
    Name,
    /// How a name begins: `MOST_LINES`.
    Prefix,
}

const fn prose(word: &'static str, write: &'static str) -> Retired {
    Retired { word, write, form: Form::Prose }
}

const fn name(word: &'static str, write: &'static str) -> Retired {
    Retired { word, write, form: Form::Name }
}

const fn prefix(word: &'static str, write: &'static str) -> Retired {
    Retired { word, write, form: Form::Prefix }
}

const RETIRED: &[Retired] = &[
    prose("of ours", "made by iowhy, or scratch"),
    prose("held against", "compared with"),
    prose("hold against", "compare with"),
    prose("holds against", "compares with"),
    prose("so many in flight", "queue depth"),
    prose("mind would change", "Revisit if"),
    prose("by chance", "random"),
    prose("present directory", "current directory"),
    prose("main job", "path report"),
    prose("ways of reading", "methods"),
    prose("cannot tell", "inconclusive, or what is unknown"),
    prose("second witness", "stack-sampling cross-check"),
    prose("witness", "cross-check"),
    prose("witnesses", "cross-check"),
    prose("likeness", "fidelity"),
    prose("unlikeness", "replay error"),
    prose("patient", "case"),
    prose("patients", "cases"),
    prose("rung", "calibration cell"),
    prose("rungs", "calibration cells"),
    prose("storey", "layer"),
    prose("storeys", "layers"),
    prose("strangers", "other processes"),
    prose("cannot-tell", "inconclusive"),
    name("CannotTell", "Inconclusive"),
    name("Savings", "Removable"),
    name("Told", "a noun for what it is"),
    name("one_in", "subsample"),
    name("AsWas", "Baseline"),
    name("Sighting", "a word of the cross-check"),
    name("Appointment", "CrossCheck"),
    name("Scene", "Case"),
    name("Roster", "ThreadSet"),
    name("Census", "ThreadSet"),
    name("Kin", "ThreadSet"),
    name("Pump", "EventLoop"),
    name("Tap", "SyscallTracer"),
    name("Meaning", "Analyzer"),
    name("Carrier", "CgroupHelper"),
    prefix("MOST_", "MAX_"),
    prefix("LEAST_", "MIN_"),
];

/// Files that speak of retired words.
const EXEMPT: [&str; 2] = ["xtask/src/tidy/words.rs", "CHANGELOG.md"];

/// Complaints about all sources and pages.
pub(super) fn complaints(root: &Path, sources: &[PathBuf]) -> Vec<String> {
    let mut pages = pages(&root.join("docs"));
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root.join(page)),
    );
    pages.extend(super::files(&root.join("crates"), "md"));
    let mut complaints = Vec::new();
    for path in sources.iter().chain(&pages) {
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        if EXEMPT.contains(&shown.as_str()) {
            continue;
        }
        // What cannot be read is the compiler's matter, or is no text.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let page = shown.ends_with(".md");
        let mut captured = false;
        for (number, line) in text.lines().enumerate() {
            // Captured output says what that version said.
            captured ^= page && line.trim_start().starts_with("```");
            if captured {
                continue;
            }
            let line = if page { without_quotes(line) } else { line.to_owned() };
            complaints.extend(retired(&line).map(|found| {
                format!("{shown}:{}: `{}` is retired: write {}", number + 1, found.word, found.write)
            }));
        }
    }
    complaints
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    super::files(folder, "md")
}

/// A line of a page without what stands between backticks: quoted output and names.
fn without_quotes(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn retired(line: &str) -> impl Iterator<Item = &'static Retired> {
    let lower = line.to_lowercase();
    RETIRED.iter().filter(move |retired| match retired.form {
        Form::Prose => {
            holds(&lower, retired.word, |c| c.is_alphanumeric())
                || (retired.word.contains(' ')
                    && holds(&lower, &retired.word.replace(' ', "_"), |c| c.is_alphanumeric()))
        }
        Form::Name => holds(line, retired.word, |c| c.is_alphanumeric() || c == '_'),
        Form::Prefix => line
            .match_indices(retired.word)
            .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')),
    })
}

/// Whether the word stands there with no such character before or behind it.
fn holds(line: &str, word: &str, joins: fn(char) -> bool) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(joins) && !line[at + word.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_as_they_were_used() {
        let count = |line: &str| retired(line).count();
        for bad in [
            "A file of ours.",
            "const MOST_LINES: u8",
            "fn present_directory()",
            "struct Roster;",
            "Cannot tell why",
        ] {
            assert_eq!(count(bad), 1, "{bad}");
        }
        for good in ["ALMOST_ALL", "Rosters", "wrung", "impatient", "a file of course", "was assigned"] {
            assert_eq!(count(good), 0, "{good}");
        }
    }
}
