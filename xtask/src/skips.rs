//! The tests that a machine may leave out: `skips.toml` lists the reasons, and a reason that is not in it is a failure.
//! It does not know which test printed a reason. A pattern that matches no words of the sources fails a unit test.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What stands before the reason in the output of a test.
const MARK: &str = "skipped:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    skip: Vec<Allowed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    /// `*` stands for any text.
    reasons: Vec<String>,
    /// Allowed only where the tests run as this user.
    user: Option<User>,
    /// Why it may be missing on a machine.
    why: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum User {
    Root,
    Ordinary,
}

impl Allowed {
    fn allows(&self, reason: &str, user: User) -> bool {
        self.user.is_none_or(|only| only == user)
            && self.reasons.iter().any(|pattern| matches(pattern, reason))
    }
}

fn list() -> Vec<Allowed> {
    toml::from_str::<List>(include_str!("../skips.toml")).map(|list| list.skip).unwrap_or_default()
}

/// Whether a text is a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// The skips of a run.
#[derive(Default)]
pub(crate) struct Skips {
    /// How often a reason was printed as root, and otherwise.
    seen: BTreeMap<(String, bool), usize>,
}

impl Skips {
    pub(crate) fn add(&mut self, reason: &str, as_root: bool) {
        *self.seen.entry((reason.trim().to_owned(), as_root)).or_default() += 1;
    }

    /// Takes the reason from a line of a test's output, if it is a skip.
    pub(crate) fn hear(&mut self, line: &str, as_root: bool) {
        if let Some(reason) = line.trim_start().strip_prefix(MARK) {
            self.add(reason, as_root);
        }
    }

    /// The skips as lines, and how many are not on the list.
    pub(crate) fn summary(&self) -> (String, usize) {
        let list = list();
        let mut unlisted = 0;
        let mut text = String::new();
        for ((reason, as_root), count) in &self.seen {
            let user = if *as_root { User::Root } else { User::Ordinary };
            let name = if *as_root { "root" } else { "ordinary user" };
            let entry = list.iter().find(|entry| entry.allows(reason, user));
            unlisted += usize::from(entry.is_none());
            let verdict = entry.map_or("NOT ALLOWED (xtask/skips.toml)", |entry| entry.why.as_str());
            text.push_str(&format!("skipped {count}x as {name}: {reason}\n    {verdict}\n"));
        }
        if unlisted > 0 {
            text.push_str(&format!("{unlisted} reasons of skips are not on the list\n"));
        }
        (text, unlisted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_whole_reason() {
        assert!(matches("no fio", "no fio") && !matches("no fio", "no fio here"));
        assert!(matches("no *: *", "no setpriv: it is missing") && !matches("no *: *", "setpriv: missing"));
        assert!(matches("*root*", "only root can") && matches("*", "") && !matches("a*a", "a"));
    }

    #[test]
    fn a_reason_that_is_not_listed_or_is_one_of_the_other_user_fails() {
        let mut skips = Skips::default();
        skips.hear("skipped: fio is not installed", true);
        skips.hear("test a ... ok", true);
        assert_eq!(skips.summary().1, 0, "{}", skips.summary().0);
        skips.hear("  skipped: only root can act as another user", false);
        assert_eq!(skips.summary().1, 0, "{}", skips.summary().0);
        skips.hear("skipped: only root can act as another user", true);
        skips.hear("skipped: the author was tired", true);
        let (text, unlisted) = skips.summary();
        assert_eq!((unlisted, text.matches("NOT ALLOWED").count()), (2, 2), "{text}");
    }

    /// All Rust sources but this file, and the tests of the Python package.
    fn sources() -> Vec<String> {
        let root = crate::root();
        let python = crate::tidy::files(&root.join("python/tests"), "py");
        crate::tidy::rust_files(&root)
            .iter()
            .chain(&python)
            .filter(|path| !path.ends_with("xtask/src/skips.rs"))
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .collect()
    }

    /// The literal parts of a pattern or of a reason, without what joins them.
    fn words(pattern: &str, hole: char) -> Vec<&str> {
        pattern
            .split(hole)
            .map(|word| word.trim_matches([' ', ':']))
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// An entry that no test can print any more hides nothing now, and may hide another test's skip later.
    #[test]
    fn every_pattern_has_its_words_in_the_sources() {
        let sources = sources().concat();
        let list = list();
        assert!(!list.is_empty(), "skips.toml cannot be read");
        let mut stale = Vec::new();
        for entry in &list {
            assert!(!entry.why.is_empty() && !entry.reasons.is_empty(), "{:?} has no reason", entry.reasons);
            for pattern in &entry.reasons {
                if words(pattern, '*').iter().any(|word| !sources.contains(word)) {
                    stale.push(pattern);
                }
            }
        }
        assert!(stale.is_empty(), "no source has the words of {stale:#?}");
    }

    /// `*` stands for what the machine puts into a message, not for the message: a wide pattern allows skips nobody looked at.
    #[test]
    fn every_pattern_is_narrow() {
        let wide = |pattern: &&String| {
            let literal = |word: &&str| word.chars().count();
            let words = words(pattern, '*');
            let begins = words.first().filter(|_| !pattern.starts_with('*')).map_or(0, literal);
            pattern.contains('*') && begins < 7 && words.iter().map(literal).max().unwrap_or(0) < 12
        };
        let list = list();
        let found: Vec<&String> = list.iter().flat_map(|entry| &entry.reasons).filter(wide).collect();
        assert!(found.is_empty(), "too wide: {found:#?}");
    }

    /// The reasons that a source spells out, each `{...}` of a format as `?`.
    fn spelled(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        for call in ["\"skipped: ", "skipped(\"", "skipped(&format!(\""] {
            for (at, _) in source.match_indices(call) {
                let Some(literal) = source[at + call.len()..].split('"').next() else { continue };
                let mut reason = String::new();
                for (number, part) in literal.split('{').enumerate() {
                    match part.split_once('}').filter(|_| number > 0) {
                        Some((_, rest)) => reason.extend(["?", rest]),
                        None => reason.push_str(part),
                    }
                }
                found.push(reason);
            }
        }
        found
    }

    /// A reason that the list lacks fails only on the machine that lacks the thing.
    #[test]
    fn every_reason_in_the_sources_is_on_the_list() {
        let reasons: Vec<String> = sources().iter().flat_map(|source| spelled(source)).collect();
        assert!(reasons.len() > 100, "{}", reasons.len());
        let list = list();
        let listed = |reason: &str| {
            list.iter()
                .any(|entry| [User::Root, User::Ordinary].iter().any(|user| entry.allows(reason, *user)))
        };
        // Of a reason that is made elsewhere nothing is spelled but the name before it.
        let made = |reason: &str| words(reason, '?').iter().all(|word| *word == "repaired");
        let unlisted: Vec<&String> =
            reasons.iter().filter(|reason| !made(reason) && !listed(reason)).collect();
        assert!(unlisted.is_empty(), "not in skips.toml: {unlisted:#?}");
    }
}
