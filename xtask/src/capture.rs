//! `cargo xtask capture`: the source of every sample output in the pages. It runs the commands that pages name between markers, in
//! folders below target/capture that it removes, and writes what they print, unedited, with commit, CPUs and kernel.
//! `<!-- capture: COMMAND -->` begins a block, `<!-- end of capture -->` ends it; `capture 1-9,/text/+2: COMMAND` shows only lines 1 to
//! 9 and each line with the text and two more. Lines `<!-- prepare: COMMAND -->` before a block run first, in the same folder, which
//! has the files of `docs/samples`. One command is run once for all pages. `<!-- static: REASON -->` marks output that is not captured.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::docs::samples::BEGIN;

const USAGE: &str =
    "usage: cargo xtask capture [--check] [FILTER], FILTER is part of a page's path or of a command";
const END: &str = "<!-- end of capture -->";
const PREPARE: &str = "<!-- prepare: ";
/// What decides about the output.
const PRODUCT: [&str; 2] = ["crates", "Cargo.lock"];
/// Where the folder of a run is mounted for root, in a mount namespace of its own; others' output is given this name instead.
const NEUTRAL: &str = "/srv";
/// Files that commands of pages use.
const SAMPLES: &str = "docs/samples";
/// Columns of a captured screen.
const WIDTH: &str = "100";
/// A command that takes longer is ended, so that a capture ends unattended.
const MAX_TIME: &str = "180s";

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
    /// Commands that run before it in the same folder.
    prepare: Vec<String>,
    /// Parts of the output that are shown; empty: all.
    shown: Vec<Part>,
}

/// Lines of an output.
#[derive(Debug, PartialEq)]
enum Part {
    /// From one number to another, from 1.
    Lines(usize, usize),
    /// Each line with this text, and this number of lines behind it.
    With(String, usize),
}

/// The blocks of a page, in order.
fn blocks(text: &str) -> Outcome<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut prepare = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(marker) = line.strip_prefix(BEGIN) {
            let marker = marker.strip_suffix("-->").and_then(|inner| inner.split_once(": "));
            let (shown, command) = marker.ok_or(format!("line {}: no `: COMMAND -->`", number + 1))?;
            let shown =
                parts(shown.trim()).ok_or(format!("line {}: no lines as `1-20,/text/+3`", number + 1))?;
            let command = command.trim().to_owned();
            let prepare = std::mem::take(&mut prepare);
            if open.replace(Block { begin: number, end: 0, command, prepare, shown }).is_some() {
                return Err(format!("line {}: the block before has no `{END}`", number + 1));
            }
        } else if let Some(marker) = line.strip_prefix(PREPARE) {
            prepare.push(marker.trim_end_matches("-->").trim().to_owned());
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

fn parts(mut text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let part;
        if let Some(pattern) = text.strip_prefix('/') {
            let (wanted, rest) = pattern.split_once('/')?;
            let (more, rest) = rest.split_once(',').unwrap_or((rest, ""));
            let more = if more.is_empty() { 0 } else { more.strip_prefix('+')?.parse().ok()? };
            part = Part::With(wanted.to_owned(), more);
            text = rest;
        } else {
            let (lines, rest) = text.split_once(',').unwrap_or((text, ""));
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            part = Part::Lines(first.parse().ok()?, last.parse().ok()?);
            text = rest;
        }
        parts.push(part);
    }
    Some(parts)
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
    let folders = target.join("capture");
    let mut said: HashMap<String, Outcome<String>> = HashMap::new();
    let mut good = true;
    for (path, text, blocks) in &pages {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for block in blocks.iter().rev() {
            let key = [&block.prepare[..], std::slice::from_ref(&block.command)].concat().join("\n");
            let begun = Instant::now();
            let number = said.len();
            let said = said.entry(key).or_insert_with(|| {
                let folder = folders.join(number.to_string());
                output(root, &folder, &target.join("release"), block)
            });
            println!("{:6.1} s  {}: {}", begun.elapsed().as_secs_f64(), path.display(), block.command);
            match said {
                Ok(said) => {
                    let written = written(block, said, &origin);
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
    if folders.exists() {
        std::fs::remove_dir_all(&folders).map_err(|error| format!("{}: {error}", folders.display()))?;
    }
    Ok(good)
}

/// What a command prints on stdout and stderr, in order, and that it ended well. A CMD that iowhy runs may end otherwise.
fn output(root: &Path, folder: &Path, binaries: &Path, block: &Block) -> Outcome<String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    for entry in std::fs::read_dir(root.join(SAMPLES)).into_iter().flatten().flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).map_err(failed)?;
    }
    for command in &block.prepare {
        typed(folder, binaries, command)?;
    }
    typed(folder, binaries, &block.command).map(|said| neutral(&said, &folder.display().to_string()))
}

/// Output with [`NEUTRAL`] for the folder of the run: where a checkout lies is nobody's business. Spaces behind the path keep the columns.
fn neutral(said: &str, folder: &str) -> String {
    let mut parts = said.split(folder);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (path, rest) = part.split_at(part.find(char::is_whitespace).unwrap_or(part.len()));
        let gap = if rest.starts_with("  ") { folder.len().saturating_sub(NEUTRAL.len()) } else { 0 };
        text.push_str(&format!("{NEUTRAL}{path}{}{rest}", " ".repeat(gap)));
    }
    text
}

fn typed(folder: &Path, binaries: &Path, command: &str) -> Outcome<String> {
    // As root `sudo` is left out: with it the programs would run as the user who called it, who is root too.
    let typed = if crate::steps::is_root() { command.replace("sudo ", "") } else { command.to_owned() };
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("exec 2>&1\n{typed}");
    let limited = ["timeout", MAX_TIME, "sh", "-c", &script];
    let mut run = if crate::steps::is_root() {
        let mounted = format!("mount --bind . {NEUTRAL} && cd {NEUTRAL} && HOME={NEUTRAL} exec \"$@\"");
        let mut run = crate::iowhy("unshare");
        run.args(["--mount", "sh", "-c", &mounted, "sh"]).args(limited);
        run
    } else {
        let mut run = crate::iowhy(limited[0]);
        run.args(&limited[1..]);
        run
    };
    let ran = run
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
    if ran.status.success() { Ok(said) } else { Err(format!("`{command}`: {}:\n{said}", ran.status)) }
}

/// The lines between the markers.
fn written(block: &Block, said: &str, origin: &str) -> String {
    let mut text = format!("```\n$ {}\n", block.command);
    let mut omitted = false;
    let mut following = 0;
    for (number, line) in said.lines().enumerate() {
        let number = number + 1;
        let by_number =
            |part: &Part| matches!(part, Part::Lines(first, last) if (*first..=*last).contains(&number));
        for part in &block.shown {
            if let Part::With(wanted, more) = part
                && line.contains(wanted.as_str())
            {
                following = following.max(more + 1);
            }
        }
        if block.shown.is_empty() || following > 0 || block.shown.iter().any(by_number) {
            text.push_str(line.trim_end());
            text.push('\n');
            omitted = false;
        } else if !omitted {
            text.push_str("...\n");
            omitted = true;
        }
        following = following.saturating_sub(1);
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
                        <!-- end of capture -->\n<!-- prepare: mkdir d -->\n<!-- capture 1-2,/a b/+1,5: iowhy y: z -->\n<!-- end of capture -->\n";

    #[test]
    fn blocks_are_found_with_their_commands_and_lines() {
        let found = blocks(PAGE).unwrap();
        assert_eq!((found[0].begin, found[0].end, found[0].command.as_str()), (1, 4, "iowhy x"));
        assert_eq!(
            (found[1].command.as_str(), &found[1].shown),
            ("iowhy y: z", &vec![Part::Lines(1, 2), Part::With("a b".to_owned(), 1), Part::Lines(5, 5)])
        );
        assert!(found[0].prepare.is_empty() && found[1].prepare == ["mkdir d"]);
        let lines: Vec<&str> = PAGE.lines().collect();
        assert_eq!(commit_of(&lines[2..4]), Some("1a2b3c4"));
        assert_eq!(commit_of(&lines[7..7]), None);
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
        let shown = vec![Part::Lines(1, 1), Part::With("our".to_owned(), 1)];
        let block = Block { begin: 0, end: 1, command: "c".to_owned(), prepare: Vec::new(), shown };
        let text = written(&block, "one\ntwo\nthree\nfour  \nfive\nsix\nseven\n", "Captured.");
        assert_eq!(text, "```\n$ c\none\n...\nfour\nfive\n...\n```\n\nCaptured.\n");
    }

    #[test]
    fn the_folder_of_a_run_has_a_neutral_name_and_columns_stay() {
        let said = "file          size\n/home/x/a.log  1 KiB\ncd /home/x/b now";
        assert_eq!(neutral(said, "/home/x"), "file          size\n/srv/a.log     1 KiB\ncd /srv/b now");
        assert_eq!(neutral("nothing", "/home/x"), "nothing");
    }
}
