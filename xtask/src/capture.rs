//! `cargo xtask capture`: runs the commands that pages name between markers and writes what they print, unedited, with commit, CPUs
//! and kernel. `--check` only says which blocks are older than the product. A command runs in a folder of its own under
//! target/capture, into which the files of `docs/samples` are copied; a marker may choose the lines that are shown.
//!
//! `<!-- capture: COMMAND -->` or `<!-- capture 1-20,31: COMMAND -->` begins a block, `<!-- end of capture -->` ends it.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str =
    "usage: cargo xtask capture [--check] [FILTER], FILTER is part of a page's path or of a command";
const BEGIN: &str = "<!-- capture";
const END: &str = "<!-- end of capture -->";
/// What decides about the output.
const PRODUCT: [&str; 2] = ["crates", "Cargo.lock"];
/// Files that commands of pages use.
const SAMPLES: &str = "docs/samples";
/// Columns of a captured screen.
const WIDTH: &str = "120";

/// What a step may fail with: text for people.
type Outcome<T> = Result<T, String>;

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (only_check, filter) = match arguments {
        [] => (false, ""),
        ["--check"] => (true, ""),
        ["--check", filter] => (true, *filter),
        [filter] if !filter.starts_with('-') => (false, *filter),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match if only_check { check(root, filter) } else { capture(root, filter) } {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("capture: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A block of a page: the lines of its markers, and what stands in the first.
#[derive(Debug, PartialEq)]
struct Block {
    begin: usize,
    end: usize,
    command: String,
    /// Lines of the output that are shown, from 1; empty: all.
    shown: Vec<RangeInclusive<usize>>,
}

/// The blocks of a page, in order.
fn blocks(text: &str) -> Outcome<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(marker) = line.strip_prefix(BEGIN) {
            let marker = marker.strip_suffix("-->").and_then(|inner| inner.split_once(": "));
            let (shown, command) = marker.ok_or(format!("line {}: no `: COMMAND -->`", number + 1))?;
            let shown = ranges(shown.trim()).ok_or(format!("line {}: no lines as `1-20,31`", number + 1))?;
            let command = command.trim().to_owned();
            if open.replace(Block { begin: number, end: 0, command, shown }).is_some() {
                return Err(format!("line {}: the block before has no `{END}`", number + 1));
            }
        } else if line == END {
            let block = open.take().ok_or(format!("line {}: no block is open", number + 1))?;
            blocks.push(Block { end: number, ..block });
        }
    }
    match open {
        None => Ok(blocks),
        Some(block) => Err(format!("line {}: the block has no `{END}`", block.begin + 1)),
    }
}

fn ranges(text: &str) -> Option<Vec<RangeInclusive<usize>>> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter(|part| !part.is_empty()).map(one).collect()
}

/// Pages that hold blocks, with them.
fn pages(root: &Path, filter: &str) -> Outcome<Vec<(PathBuf, String, Vec<Block>)>> {
    let mut pages = Vec::new();
    for path in crate::docs::files(root).map_err(|error| error.to_string())? {
        let text = std::fs::read_to_string(root.join(&path)).map_err(|error| error.to_string())?;
        let mut found = blocks(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        if !path.display().to_string().contains(filter) {
            found.retain(|block| block.command.contains(filter));
        }
        if !found.is_empty() {
            pages.push((path, text, found));
        }
    }
    Ok(pages)
}

/// Runs every command again and writes the pages.
fn capture(root: &Path, filter: &str) -> Outcome<bool> {
    let pages = pages(root, filter)?;
    if !pages.is_empty() {
        build(root)?;
    }
    let origin = origin(root)?;
    let target = crate::target(root);
    let mut good = true;
    for (path, text, blocks) in &pages {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (number, block) in blocks.iter().enumerate().rev() {
            println!("{}: {}", path.display(), block.command);
            let folder =
                target.join("capture").join(format!("{}-{number}", path.display()).replace('/', "-"));
            match output(root, &folder, &target.join("release"), &block.command) {
                Ok(said) => {
                    let written = written(block, &said, &origin);
                    lines.splice(block.begin + 1..block.end, written.lines().map(str::to_owned));
                }
                Err(why) => {
                    good = false;
                    println!("   kept as it is: {why}");
                }
            }
        }
        let text = lines.join("\n") + "\n";
        std::fs::write(root.join(path), text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(good)
}

/// What a command prints on stdout and stderr, in order, and that it ended well. A CMD that iowhy runs may end otherwise.
fn output(root: &Path, folder: &Path, binaries: &Path, command: &str) -> Outcome<String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    for entry in std::fs::read_dir(root.join(SAMPLES)).into_iter().flatten().flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).map_err(failed)?;
    }
    // As root `sudo` is left out: with it the programs would run as the user who called it, who is root too.
    let typed = if crate::steps::is_root() { command.replace("sudo ", "") } else { command.to_owned() };
    let path = std::env::var("PATH").unwrap_or_default();
    let ran = crate::iowhy("sh")
        .args(["-c", &format!("exec 2>&1\n{typed}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binaries.display()))
        .env("COLUMNS", WIDTH)
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", folder)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run sh: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    if ran.status.success() { Ok(said) } else { Err(format!("{}:\n{said}", ran.status)) }
}

/// The lines between the markers.
fn written(block: &Block, said: &str, origin: &str) -> String {
    let mut text = format!("```\n$ {}\n", block.command);
    let mut omitted = false;
    for (number, line) in said.lines().enumerate() {
        let shown = block.shown.is_empty() || block.shown.iter().any(|range| range.contains(&(number + 1)));
        if shown {
            text.push_str(line.trim_end());
            text.push('\n');
        } else if !omitted {
            text.push_str("...\n");
        }
        omitted = !shown;
    }
    // Writing to a string does not fail.
    let _ = writeln!(text, "```\n\n{origin}");
    text
}

/// The one line that says where a capture, or kept runs, come from.
pub(crate) fn origin(root: &Path) -> Outcome<String> {
    let commit = git(root, &["rev-parse", "--short", "HEAD"])?;
    let date = git(root, &["log", "-1", "--format=%cs"])?;
    let changed = [&["status", "--porcelain", "--"][..], &PRODUCT].concat();
    let changes = if git(root, &changed)?.is_empty() { "" } else { " with changes" };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(format!("Captured at commit {commit}{changes} ({date}), {cpus} CPUs, Linux {}.", kernel.trim()))
}

/// Says which blocks are older than the product. Whether none is.
fn check(root: &Path, filter: &str) -> Outcome<bool> {
    let mut good = true;
    for (path, text, blocks) in pages(root, filter)? {
        let lines: Vec<&str> = text.lines().collect();
        for block in blocks {
            let commit = commit_of(&lines[block.begin + 1..block.end]);
            let age = match commit {
                None => "never captured".to_owned(),
                Some(commit) => {
                    let range = format!("{commit}..HEAD");
                    let count = [&["rev-list", "--count", &range, "--"][..], &PRODUCT].concat();
                    match git(root, &count) {
                        Ok(count) if count == "0" => continue,
                        Ok(count) => format!("{count} commits of the product since {commit}"),
                        Err(_) => format!("commit {commit} is not in this repository"),
                    }
                }
            };
            println!("{}: {}: {age}", path.display(), block.command);
            good = false;
        }
    }
    Ok(good)
}

fn commit_of<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix("Captured at commit ")?.split(' ').next())
}

fn git(root: &Path, arguments: &[&str]) -> Outcome<String> {
    let ran = Command::new("git").args(arguments).current_dir(root).output();
    let ran = ran.map_err(|error| format!("cannot run git: {error}"))?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

fn build(root: &Path) -> Outcome<()> {
    let arguments = ["build", "--release", "--quiet", "--package", "iowhy"];
    let status = Command::new("cargo").args(arguments).current_dir(root).stdin(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err("the release build failed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n<!-- capture: iowhy x -->\nold\nCaptured at commit 1a2b3c4 (2026-11-23), 2 CPUs, Linux 6.\n\
                        <!-- end of capture -->\n<!-- capture 1-2,5: iowhy y: z -->\n<!-- end of capture -->\n";

    #[test]
    fn blocks_are_found_with_their_commands_and_lines() {
        let found = blocks(PAGE).unwrap();
        assert_eq!((found[0].begin, found[0].end, found[0].command.as_str()), (1, 4, "iowhy x"));
        assert_eq!((found[1].command.as_str(), &found[1].shown), ("iowhy y: z", &vec![1..=2, 5..=5]));
        let lines: Vec<&str> = PAGE.lines().collect();
        assert_eq!(commit_of(&lines[2..4]), Some("1a2b3c4"));
        assert_eq!(commit_of(&lines[6..6]), None);
    }

    #[test]
    fn a_block_without_its_end_or_command_is_refused() {
        for bad in [
            "<!-- capture: x -->\n",
            "<!-- end of capture -->\n",
            "<!-- capture x -->\n",
            "<!-- capture a: x -->\n",
        ] {
            assert!(blocks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn omitted_lines_leave_one_mark() {
        let block = Block { begin: 0, end: 1, command: "c".to_owned(), shown: vec![1..=1, 4..=4] };
        let text = written(&block, "one\ntwo\nthree\nfour  \nfive\nsix\n", "Captured.");
        assert_eq!(text, "```\n$ c\none\n...\nfour\n...\n```\n\nCaptured.\n");
    }
}
