//! `cargo xtask docs`: every link, path and command that a page names must exist, and every page of the book must be listed.
//! The book is built where mdbook is installed; nothing is installed, and the sources can be read without it.

mod page;
pub(crate) mod samples;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use clap::error::ErrorKind;

use self::page::Page;
use crate::steps::{self, Ending};

/// Folders that have no pages of the project.
const NO_PAGES: [&str; 2] = ["target", ".git"];
/// Pages about the past: what they name may be gone.
const PAST: [&str; 2] = ["CHANGELOG.md", "docs/decisions"];
/// Files and folders at the root that a page may name in code.
const ROOTS: [&str; 6] = ["crates/", "cases/", "docs/", "lab-guest/", "python/", "xtask/"];

/// Problems of a command that is only named.
const INCOMPLETE: [ErrorKind; 3] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::InvalidValue,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
];

pub(crate) fn run(root: &Path) -> ExitCode {
    check(root).exit_code()
}

/// Checks all pages and builds the book.
pub(crate) fn check(root: &Path) -> Ending {
    let pages = match read(root) {
        Ok(pages) => pages,
        Err(error) => return Ending::Failed(format!("the pages cannot be read: {error}")),
    };
    let mut complaints = unlisted(&pages);
    let (mut links, mut commands) = (0, 0);
    for (path, page) in &pages {
        links += page.links.len();
        commands += page.commands.len() + page.mentions.len();
        let of_page = page.links.iter().filter_map(|link| broken(root, &pages, path, link));
        complaints.extend(of_page.map(|why| format!("{}: {why}", path.display())));
        if PAST.iter().any(|past| path.starts_with(past)) {
            continue;
        }
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let uncaptured = samples::uncaptured(&text).into_iter();
        complaints.extend(uncaptured.map(|line| {
            format!(
                "{}:{line}: output that `cargo xtask capture` does not write, without a reason",
                path.display()
            )
        }));
        let wrong = |line: &String, whole| refused(line, whole).map(|why| format!("`{line}`: {why}"));
        let typed = page.commands.iter().filter_map(|line| wrong(line, true));
        let mentioned = page.mentions.iter().filter_map(|line| wrong(line, false));
        let gone = page.code.iter().filter(|code| names_path(code) && !root.join(code).exists());
        let gone = gone.map(|code| format!("`{code}` does not exist"));
        complaints.extend(typed.chain(mentioned).chain(gone).map(|why| format!("{}: {why}", path.display())));
    }
    println!("   {} pages, {links} links, {commands} commands", pages.len());
    if !complaints.is_empty() {
        return Ending::Failed(complaints.join("\n"));
    }
    build(root)
}

fn build(root: &Path) -> Ending {
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("   mdbook is not installed: checked, not built");
        return Ending::Passed;
    }
    steps::command(Command::new("mdbook").args(["build", "docs"]).current_dir(root))
}

/// All pages by their path below the root.
fn read(root: &Path) -> std::io::Result<BTreeMap<PathBuf, Page>> {
    let parsed = |path: PathBuf| {
        let text = std::fs::read_to_string(root.join(&path))?;
        Ok((path, Page::parse(&text)))
    };
    files(root)?.into_iter().map(parsed).collect()
}

/// Paths of all pages below the root, in order.
pub(crate) fn files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && !NO_PAGES.iter().any(|no| name == *no) {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Pages of the book that are missing in its table of contents.
fn unlisted(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let summary = Path::new("docs/SUMMARY.md");
    let Some(contents) = pages.get(summary) else { return vec!["docs/SUMMARY.md is missing".to_owned()] };
    let listed: BTreeSet<PathBuf> = contents.links.iter().map(|link| Path::new("docs").join(link)).collect();
    let of_book = pages.keys().filter(|path| path.starts_with("docs") && *path != summary);
    of_book
        .filter(|path| !listed.contains(*path))
        .map(|path| format!("{}: not in docs/SUMMARY.md", path.display()))
        .collect()
}

/// What is wrong with a link of a page; links to other sites are not tried.
fn broken(root: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = match file {
        "" => from.to_owned(),
        _ => plain(&from.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !root.join(&to).exists() {
        return Some(format!("link to {link}: {} does not exist", to.display()));
    }
    let known = anchor.is_empty() || pages.get(&to).is_none_or(|page| page.anchors.contains(anchor));
    (!known).then(|| format!("link to {link}: {} has no such heading", to.display()))
}

/// A path without `..`, in text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Why a command line of a page would be refused. A mention (not `whole`) may end before what its options and it are given.
fn refused(line: &str, whole: bool) -> Option<String> {
    let words = words::of_command(line);
    // A placeholder of a page stands for a number.
    let number =
        |word: &String| if matches!(word.as_str(), "PID" | "N") { "1".to_owned() } else { word.clone() };
    let words: Vec<String> = words.iter().map(number).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cargo", "xtask", name, ..] => {
            (!crate::names_command(name)).then(|| format!("xtask has no command {name}"))
        }
        ["iowhy", ..] => match iowhy::cli::Cli::try_parse_from(&words) {
            Err(error) if error.exit_code() != 0 && (whole || !INCOMPLETE.contains(&error.kind())) => {
                Some(error.to_string().lines().next().unwrap_or("refused").to_owned())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether code in a page is a path of this repository.
fn names_path(code: &str) -> bool {
    let path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    ROOTS.iter().any(|root| code.starts_with(root)) && code.chars().all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(texts: &[(&str, &str)]) -> BTreeMap<PathBuf, Page> {
        texts.iter().map(|(path, text)| (PathBuf::from(path), Page::parse(text))).collect()
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let root = crate::root();
        let pages = pages(&[("README.md", "# One *two*, three?\n"), ("docs/install.md", "## Here\n")]);
        let wrong = |link: &str| broken(&root, &pages, Path::new("docs/install.md"), link);
        for good in ["../README.md#one-two-three", "#here", "../LICENSE-MIT", "https://example.org/none"] {
            assert_eq!(wrong(good), None, "{good}");
        }
        for bad in ["../README.md#two", "#there", "none.md", "../../README.md.old"] {
            assert!(wrong(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_command_must_parse() {
        for good in
            ["iowhy bench --rw randread .", "sudo iowhy attach PID --time 10s", "cargo xtask tidy", "ls"]
        {
            assert_eq!(refused(good, true), None, "{good}");
        }
        for bad in ["iowhy bench --no-such-option", "sudo iowhy attach twelve --now", "cargo xtask nothing"] {
            assert!(refused(bad, true).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_mention_may_leave_out_what_is_given() {
        assert!(refused("iowhy compare", true).is_some() && refused("iowhy doctor --try", true).is_some());
        assert!(refused("iowhy compare", false).is_none() && refused("iowhy doctor --try", false).is_none());
        assert!(refused("iowhy doctor --tries", false).is_some());
    }

    #[test]
    fn a_page_of_the_book_must_be_listed() {
        let both = pages(&[("docs/SUMMARY.md", "- [a](a.md)\n"), ("docs/a.md", ""), ("docs/b.md", "")]);
        assert_eq!(unlisted(&both), ["docs/b.md: not in docs/SUMMARY.md"]);
    }

    #[test]
    fn code_that_is_a_path_is_known() {
        assert!(names_path("crates/core/src") && names_path("docs/install.md"));
        assert!(!names_path("crates/<name>/src") && !names_path("docs") && !names_path("iowhy docs/"));
    }
}
