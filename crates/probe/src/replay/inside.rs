//! Plans that are carried out inside other control groups than ours.
//!
//! A process of ours is moved there before it knows the plan, so that all it does (files of ours, page cache, transfers) is
//! under the limits of the group and charged to it. It gets the owner of its files and the plan, and answers, over a socket, a
//! line of JSON each.
//!
//! Invariants: of a group nothing is changed but that this one process is in it for a while; our own membership is never
//! changed; the process is gone and reaped when the plan is dropped, and it dies with us.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::problem::{Problem, Severity};
use iowhy_core::replay::{Placed, PlacedGroup, Plan};
use iowhy_linux::control_group::ControlGroups;
use iowhy_linux::identity::{self, FileOwner, FilesAs};
use iowhy_linux::mounts;
use iowhy_linux::names::Dir;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Round, Stage};
use crate::interrupt;

/// Makes the command of a process that calls [`serve`] and does nothing else.
pub type Carrier<'a> = &'a dyn Fn() -> Command;

/// Signals are looked at so often while the other process works.
const LOOK: Duration = Duration::from_millis(100);
/// Longer no run takes, with what goes before it: a limit may make bringing a file into the cache very slow.
const LONGEST: Duration = Duration::from_secs(120);
/// So long the other process may take to end of its own accord.
const TO_END: Duration = Duration::from_millis(500);
/// Numbers of the file systems of control groups (statfs(2)).
const MAGIC: [u64; 2] = [0x0027_e0eb, 0x6367_7270];
/// What asks for a run.
const RUN: &str = "run";

/// Where a plan is carried out.
#[derive(Debug)]
pub enum Ground {
    /// In this process.
    Here(Box<Stage>),
    /// In a process of ours inside other control groups.
    Inside(Inside),
}

impl Ground {
    /// Sets a plan up where it is to run.
    ///
    /// # Errors
    /// As [`Stage::set`]; a group is gone or may not be entered; we are inside a group that the plan must be outside of.
    pub fn set(plan: Plan, carrier: Carrier<'_>) -> Result<Ground, Problem> {
        let Some(placed) = &plan.placed else {
            return Stage::set(plan).map(|stage| Ground::Here(Box::new(stage)));
        };
        let missing = missing(placed, &ControlGroups::of_process(None).hierarchies())?;
        if missing.is_empty() {
            return Stage::set(plan).map(|stage| Ground::Here(Box::new(stage)));
        }
        Inside::start(&missing, &plan, carrier).map(Ground::Inside)
    }

    /// As [`Stage::lengthen`]. Inside other groups nothing is lengthened: whether it was done.
    pub fn lengthen(&mut self, times: u32) -> bool {
        match self {
            Ground::Here(stage) => stage.lengthen(times),
            Ground::Inside(_) => return false,
        }
        true
    }

    /// As [`Stage::go_ahead`]. Inside other groups each run begins where the plan does.
    pub fn go_ahead(&self, part: f64) {
        if let Ground::Here(stage) = self {
            stage.go_ahead(part);
        }
    }

    /// As [`Stage::run`].
    ///
    /// # Errors
    /// As there; the process inside the groups ended early.
    pub fn run(&mut self) -> Result<Round, Problem> {
        match self {
            Ground::Here(stage) => stage.run(),
            Ground::Inside(inside) => inside.run(),
        }
    }
}

/// The groups that are still to be entered. `ours`: the directories of each hierarchy that we are in, innermost first.
fn missing<'a>(placed: &'a Placed, ours: &[impl AsRef<[PathBuf]>]) -> Result<Vec<&'a PlacedGroup>, Problem> {
    let within = |group: &str| ours.iter().flat_map(AsRef::as_ref).any(|dir| dir == Path::new(group));
    if let Some(group) = placed.outside.iter().find(|group| within(group)) {
        let above = Path::new(group).parent().unwrap_or(Path::new("/"));
        return Err(Problem::refused(format!(
            "iowhy itself is inside the control group `{group}`: nothing can be replayed without its limit"
        ))
        .hint(format!(
            "run it outside: `sudo sh -c 'echo $$ > {}/cgroup.procs && exec iowhy prove RECORD'`",
            above.display()
        )));
    }
    let innermost =
        |group: &str| ours.iter().filter_map(|dirs| dirs.as_ref().first()).any(|dir| dir == Path::new(group));
    Ok(placed.inside.iter().filter(|group| !innermost(&group.directory)).collect())
}

/// What the other process answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// The plan is set up.
    Ready,
    /// It was carried out.
    Ran(Round),
    /// It could not be.
    Failed { refused: bool, message: String, hint: Option<String> },
}

impl Answer {
    fn of(problem: Problem) -> Answer {
        let Problem { severity, message, hint } = problem;
        Answer::Failed { refused: severity == Severity::Refused, message, hint }
    }
}

/// A process of ours inside control groups, with a plan.
#[derive(Debug)]
pub struct Inside {
    child: Child,
    stream: UnixStream,
    /// For words.
    groups: String,
}

impl Inside {
    fn start(groups: &[&PlacedGroup], plan: &Plan, carrier: Carrier<'_>) -> Result<Inside, Problem> {
        let names: Vec<String> = groups.iter().map(|group| format!("`{}`", group.directory)).collect();
        let names = names.join(" and ");
        let cannot =
            |error: std::io::Error| Problem::failed(format!("cannot start a process for {names}: {error}"));
        let (stream, theirs) = UnixStream::pair().map_err(cannot)?;
        stream.set_read_timeout(Some(LOOK)).map_err(cannot)?;
        let mut command = carrier();
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        // Starting it and moving it takes our own rights; files it makes as we do here.
        let owner = FileOwner::of_thread().map(|owner| (owner.uid, owner.gid, owner.groups));
        let root = identity::as_self();
        let child = command.spawn().map_err(cannot)?;
        // Our copy of the other end goes, so that its end is seen.
        drop(command);
        // From here on dropping ends and reaps it.
        let mut inside = Inside { child, stream, groups: names };
        for group in groups {
            enter(group, inside.child.id())?;
        }
        drop(root);
        let handed_over = |error| Problem::failed(format!("a plan cannot be handed over: {error}"));
        let owner = serde_json::to_string(&owner).map_err(handed_over)?;
        let plan = serde_json::to_string(plan).map_err(handed_over)?;
        match inside.ask(&format!("{owner}\n{plan}"))? {
            Answer::Ready => Ok(inside),
            other => Err(inside.unexpected(other)),
        }
    }

    fn run(&mut self) -> Result<Round, Problem> {
        match self.ask(RUN)? {
            Answer::Ran(round) => Ok(round),
            other => Err(self.unexpected(other)),
        }
    }

    /// Sends a line and waits for the answer; a signal to us ends the other process.
    fn ask(&mut self, line: &str) -> Result<Answer, Problem> {
        let begun = Instant::now();
        if (&self.stream).write_all(format!("{line}\n").as_bytes()).is_err() {
            return Err(self.ended());
        }
        let mut answer = Vec::new();
        let mut reader = BufReader::new(&self.stream);
        while answer.last() != Some(&b'\n') {
            match reader.read_until(b'\n', &mut answer) {
                Ok(0) => return Err(self.ended()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if interrupt::requested() {
                        self.interrupt();
                        self.end_kindly();
                        return Err(Problem::failed("interrupted during a replay"));
                    }
                    if begun.elapsed() > LONGEST {
                        self.end();
                        let groups = &self.groups;
                        let message = format!("a replay inside {groups} took longer than 120 s");
                        return Err(Problem::failed(message));
                    }
                }
                Err(_) => return Err(self.ended()),
            }
        }
        serde_json::from_slice(&answer)
            .map_err(|error| Problem::failed(format!("the answer from {} is damaged: {error}", self.groups)))
    }

    fn unexpected(&self, answer: Answer) -> Problem {
        match answer {
            Answer::Failed { refused, message, hint } => {
                let severity = if refused { Severity::Refused } else { Severity::Failed };
                Problem { severity, message, hint }
            }
            _ => Problem::failed(format!("an answer from {} came out of turn", self.groups)),
        }
    }

    /// It ended without an answer: killed for want of memory, most likely.
    fn ended(&mut self) -> Problem {
        let how = self.end().map_or(String::new(), |status| format!(" ({status})"));
        Problem::failed(format!("the replay inside {} ended early{how}", self.groups))
            .hint("a limit of memory there may be too small for it")
    }

    /// Ends the run that the process is in the midst of.
    fn interrupt(&mut self) {
        // A process that has ended is reaped here, and its number another's.
        if let (Ok(None), Some(pid)) =
            (self.child.try_wait(), rustix::process::Pid::from_raw(self.child.id().cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Tells the process that nothing more comes, so that it removes what it made and ends; one that does not is killed.
    fn end_kindly(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let begun = Instant::now();
        while begun.elapsed() < TO_END {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.end();
    }

    /// Ends the process, if it still runs, and reaps it.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        // Nothing is to be done where it has ended already.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.end_kindly();
    }
}

/// Moves a process into a group.
fn enter(group: &PlacedGroup, process: u32) -> Result<(), Problem> {
    let directory = Path::new(&group.directory);
    let name = &group.directory;
    let limits: Vec<&str> = group.limits.iter().map(|limit| limit.words.as_str()).collect();
    let gone = || {
        Problem::refused(format!(
            "the control group `{name}`, in which the program ran, is gone ({})",
            limits.join("; ")
        ))
        .hint("prove it while the group is there: `sudo iowhy --prove -- CMD`")
    };
    // A record names the directory, and whoever made the record may exchange what it names: a process number goes nowhere
    // else than into the file of a control group.
    let is_group = |file: BorrowedFd<'_>| {
        rustix::fs::fstatfs(file).is_ok_and(|system| MAGIC.contains(&(system.f_type as u64)))
    };
    let opened = Dir::open_real(directory).and_then(|held| {
        if !is_group(held.as_fd()) {
            return Err(ErrorKind::NotFound.into());
        }
        let procs = held.open_file(c"cgroup.procs", OFlags::WRONLY)?;
        if is_group(procs.as_fd()) { Ok(procs) } else { Err(ErrorKind::NotFound.into()) }
    });
    let moved = opened.and_then(|procs| File::from(procs).write_all(process.to_string().as_bytes()));
    let Err(error) = moved else { return Ok(()) };
    let file = directory.join("cgroup.procs");
    let cannot = Problem::refused(format!(
        "the program ran inside the control group `{name}`, and a replay cannot be moved there: {error}"
    ));
    Err(match error.kind() {
        ErrorKind::NotFound => gone(),
        ErrorKind::PermissionDenied => cannot
            .hint(format!("it takes the right to write `{}`: `sudo iowhy prove RECORD`", file.display())),
        ErrorKind::ReadOnlyFilesystem => {
            let table = mounts::read();
            let mount = mounts::above(&table, directory).map_or(directory, |mount| mount.point.as_path());
            cannot.hint(format!("make it writable: `sudo mount -o remount,rw {}`", mount.display()))
        }
        _ => cannot,
    })
}

/// The other side: gets a plan over stdin, which must be a socket, and carries it out as often as it is asked to.
///
/// # Errors
/// It was not started by [`Ground::set`].
pub fn serve() -> Result<(), Problem> {
    let not_ours =
        || Problem::refused("this command carries out parts of `iowhy prove`, which starts it itself");
    // Who asked is gone: so are we, in the midst of a run too.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    interrupt::install();
    let stdin = std::io::stdin();
    let socket = rustix::fs::fstat(stdin.as_fd())
        .is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode) == rustix::fs::FileType::Socket);
    if !socket {
        return Err(not_ours());
    }
    let stream = UnixStream::from(stdin.as_fd().try_clone_to_owned().map_err(|_| not_ours())?);
    let mut lines = BufReader::new(&stream).lines();
    let answer = |answer: Answer| {
        let line = serde_json::to_string(&answer).map_err(|_| not_ours())?;
        (&stream).write_all(format!("{line}\n").as_bytes()).map_err(|_| not_ours())
    };
    let (Some(Ok(owner)), Some(Ok(plan))) = (lines.next(), lines.next()) else { return Err(not_ours()) };
    let _files = match files_of(&owner) {
        Ok(files) => files,
        Err(problem) => return answer(Answer::of(problem)),
    };
    let plan: Plan = serde_json::from_str(&plan).map_err(|_| not_ours())?;
    let stage = match Stage::set(plan) {
        Ok(stage) => stage,
        Err(problem) => return answer(Answer::of(problem)),
    };
    answer(Answer::Ready)?;
    while let Some(Ok(line)) = lines.next() {
        if line != RUN {
            return Err(not_ours());
        }
        answer(stage.run().map_or_else(Answer::of, Answer::Ran))?;
    }
    Ok(())
}

/// Takes the identity for files that the other side had.
fn files_of(line: &str) -> Result<FilesAs, Problem> {
    let cannot = |error: String| Problem::failed(format!("the files of a replay cannot be made: {error}"));
    let owner: Option<(u32, u32, Vec<u32>)> =
        serde_json::from_str(line).map_err(|e| cannot(e.to_string()))?;
    let Some((uid, gid, groups)) = owner else { return Ok(FilesAs::unchanged()) };
    FileOwner { uid, gid, groups }.enter().map_err(|e| cannot(e.to_string()))
}

#[cfg(test)]
#[path = "inside_tests.rs"]
mod tests;
