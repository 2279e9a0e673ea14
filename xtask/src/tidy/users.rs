//! Public functions and constants of the library crates have a user outside of their file, in the product or in another crate.
//!
//! Names are compared as text: two items of one name count as one, so an item without a user may pass, but none with a
//! user fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::circles::{code, is_name, tokens, without_tests};

/// Crates whose public items are their own matter: a program has no users of its items.
const PROGRAMS: [&str; 1] = ["iowhy"];

/// One file, as far as users are looked for.
struct File {
    shown: String,
    /// `crates/NAME`, or the first folder.
    home: String,
    /// Code without tests; nothing in a file of tests.
    product: String,
    /// Every name in that, captured arguments of formats included.
    names: BTreeSet<String>,
    /// The same with the tests.
    names_with_tests: BTreeSet<String>,
}

/// Complaints about all sources.
pub(super) fn complaints(root: &Path, sources: &[PathBuf]) -> Vec<String> {
    let files: Vec<File> = sources
        .iter()
        .filter_map(|path| {
            let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
            Some(File::new(shown, &std::fs::read_to_string(path).ok()?))
        })
        .collect();
    without_user(&files)
}

impl File {
    fn new(shown: String, text: &str) -> File {
        let test = shown.ends_with("tests.rs") || shown.contains("/tests/");
        let all = code(text);
        let product = if test { String::new() } else { without_tests(&all) };
        let parts: Vec<&str> = shown.split('/').collect();
        let home = parts[..parts.len().min(if parts[0] == "crates" { 2 } else { 1 })].join("/");
        let names = |code: &str| tokens(code).into_iter().filter(|t| is_name(t)).map(str::to_owned).collect();
        let mut product_names: BTreeSet<String> = names(&product);
        if !test {
            product_names.extend(captured(text));
        }
        File { names: product_names, names_with_tests: names(&all), shown, home, product }
    }

    /// Whether this file uses an item of another one.
    fn uses(&self, name: &str, of: &File) -> bool {
        self.shown != of.shown
            && (self.names.contains(name) || (self.home != of.home && self.names_with_tests.contains(name)))
    }
}

/// Names between braces, as in `"{MAX_FILES} files"`.
fn captured(text: &str) -> impl Iterator<Item = String> {
    text.split('{').skip(1).filter_map(|after| {
        let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0 && after[end..].starts_with(['}', ':'])).then(|| after[..end].to_owned())
    })
}

fn without_user(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let library = file.home.strip_prefix("crates/").is_some_and(|name| !PROGRAMS.contains(&name));
        if !library || !file.shown.contains("/src/") || file.shown.ends_with("synthetic.rs") {
            continue;
        }
        for name in public(&file.product) {
            if !files.iter().any(|user| user.uses(name, file)) {
                complaints.push(format!(
                    "{}: `{name}` is public without a user outside of this file: make it private, or delete it",
                    file.shown
                ));
            }
        }
    }
    complaints
}

/// Names of public functions and constants.
fn public(text: &str) -> Vec<&str> {
    let tokens = tokens(text);
    let mut names = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "pub") {
        let mut item = tokens[at + 1..].iter().take(5);
        let mut kind = "";
        let name = item.find(|token| {
            let qualifies = matches!(**token, "const" | "unsafe" | "async" | "fn" | "static");
            if qualifies {
                kind = token;
            }
            !qualifies
        });
        if let Some(name) = name.filter(|name| is_name(name) && matches!(kind, "fn" | "const" | "static")) {
            names.push(*name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> usize {
        let files: Vec<File> = files.iter().map(|(name, text)| File::new((*name).to_owned(), text)).collect();
        without_user(&files).len()
    }

    #[test]
    fn public_items_without_a_user_are_seen() {
        let item = ("crates/sim/src/a.rs", "pub const fn lonely() { lonely() }\npub(crate) fn inner() {}\n");
        assert_eq!(found(&[item]), 1);
        for not_a_user in [
            ("crates/sim/src/b.rs", "// lonely()\nconst X: &str = \"lonely\";"),
            ("crates/sim/src/b.rs", "#[cfg(test)]\nmod tests { fn f() { lonely() } }"),
            ("crates/sim/src/a_tests.rs", "fn f() { lonely() }"),
        ] {
            assert_eq!(found(&[item, not_a_user]), 1, "{not_a_user:?}");
        }
        for user in [
            ("crates/sim/src/b.rs", "fn f() { lonely() }"),
            ("crates/sim/src/b.rs", "fn f() { format!(\"{lonely}\") }"),
            ("crates/view/src/b_tests.rs", "fn f() { lonely() }"),
            ("crates/view/src/b.rs", "#[cfg(test)]\nmod tests { fn f() { lonely() } }"),
            ("xtask/src/b.rs", "use iowhy_sim::a::lonely;"),
        ] {
            assert_eq!(found(&[item, user]), 0, "{user:?}");
        }
        assert_eq!(found(&[("crates/iowhy/src/a.rs", item.1)]), 0);
    }
}
