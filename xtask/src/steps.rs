//! Runs the steps of a speed in turn: each prints its name and its time, and a table of all stands at the end. A failed step
//! does not end the run. Every skip is gathered, and one that `skips.toml` does not list is a failure.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::skips::Skips;

/// How a step ended.
pub(crate) enum Ending {
    Passed,
    /// What is worth repeating at the end, where it is found at once.
    Failed(String),
    Skipped(String),
}

impl Ending {
    /// For a command whose only step this is.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Ending::Passed => ExitCode::SUCCESS,
            Ending::Failed(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
            Ending::Skipped(why) => {
                println!("skipped: {why}");
                ExitCode::SUCCESS
            }
        }
    }
}

/// What the steps of one run share.
pub(crate) struct Run {
    pub(crate) root: PathBuf,
    pub(crate) begun: Instant,
    pub(crate) skips: Skips,
}

type Body = Box<dyn Fn(&mut Run) -> Ending>;

pub(crate) struct Step {
    name: &'static str,
    body: Body,
}

pub(crate) fn step(name: &'static str, body: impl Fn(&mut Run) -> Ending + 'static) -> Step {
    Step { name, body: Box::new(body) }
}

/// Runs all steps, failing ones included, and sums up. `aim` is printed beside the time and fails nothing: machines differ.
pub(crate) fn run(root: &Path, aim: Duration, steps: &[Step]) -> ExitCode {
    let mut run = Run { root: root.to_owned(), begun: Instant::now(), skips: Skips::default() };
    let mut failed = 0;
    let mut table = String::new();
    let mut repeated = String::new();
    for step in steps {
        println!("== {}", step.name);
        let begun = Instant::now();
        let result = match (step.body)(&mut run) {
            Ending::Passed => "ok",
            Ending::Failed(what) => {
                failed += 1;
                if !what.is_empty() {
                    repeated.push_str(&format!("== what failed in {}\n{}\n", step.name, what.trim_end()));
                }
                "FAILED"
            }
            Ending::Skipped(why) => {
                run.skips.add(&why, is_root());
                "skipped"
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        println!("== {}: {result} ({seconds:.0} s)\n", step.name);
        table.push_str(&format!("{:24} {result:8} {seconds:6.0} s\n", step.name));
    }
    let (skips, unlisted) = run.skips.summary();
    print!("{repeated}{skips}{table}");
    println!(
        "{:24} {:8} {:6.0} s of {} s",
        "total",
        if failed + unlisted == 0 { "ok" } else { "FAILED" },
        run.begun.elapsed().as_secs_f64(),
        aim.as_secs()
    );
    if failed + unlisted == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn cargo(run: &Run, arguments: &[&str]) -> Ending {
    command(Command::new("cargo").args(arguments).current_dir(&run.root))
}

/// How much of a failed command's messages is repeated at the end.
const MAX_REPEATED_LINES: usize = 60;

/// Runs a command whose messages are shown as they come, and repeated at the end if it fails.
pub(crate) fn command(command: &mut Command) -> Ending {
    let mut child = match command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Ending::Failed(format!("cannot run {command:?}: {error}")),
    };
    let mut messages = Vec::new();
    for line in
        child.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines()).map_while(Result::ok)
    {
        eprintln!("{line}");
        messages.push(line);
    }
    match child.wait() {
        Ok(status) if status.success() => Ending::Passed,
        Ok(_) => {
            messages.truncate(MAX_REPEATED_LINES);
            Ending::Failed(messages.join("\n"))
        }
        Err(error) => Ending::Failed(format!("cannot wait for {command:?}: {error}")),
    }
}

/// Another command of xtask as a step: its lines are shown, and the skips in them gathered.
pub(crate) fn own(run: &mut Run, arguments: &[&str]) -> Ending {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Ending::Failed(format!("cannot find xtask itself: {error}")),
    };
    let spawned = Command::new(program)
        .args(arguments)
        .current_dir(&run.root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return Ending::Failed(format!("cannot run xtask {}: {error}", arguments.join(" "))),
    };
    let mut last = Vec::new();
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
    {
        println!("{line}");
        if let Some((_, reason)) = line.split_once("skipped: ") {
            run.skips.add(reason, is_root());
        }
        last.push(line);
        if last.len() > MAX_REPEATED_LINES {
            last.remove(0);
        }
    }
    if child.wait().is_ok_and(|status| status.success()) {
        Ending::Passed
    } else {
        Ending::Failed(last.join("\n"))
    }
}
