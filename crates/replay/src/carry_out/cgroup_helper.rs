//! A process that enters control groups and carries a plan out there, so that its files, page cache and transfers are
//! limited by them and charged to them. It enters before it gets the plan. Protocol: lines of JSON over a socket.
//!
//! Invariants: it is the only change to a group; iowhy's own membership never changes; it is reaped when dropped and dies
//! with iowhy.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::problem::{Problem, Severity};
use iowhy_core::replay::{PlacedGroup, Plan};
use iowhy_linux::identity::{self, FileOwner, FilesAs};
use iowhy_linux::mounts;
use iowhy_linux::names::Dir;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::local::{LocalReplay, RunOutcome};
use iowhy_probe::interrupt;

/// Makes the command of a process that calls [`serve`] and nothing else.
pub type HelperCommand<'a> = &'a dyn Fn() -> Command;

/// Interval of checks for signals while the helper works.
const POLL: Duration = Duration::from_millis(100);
/// For one run with its preparation: a limit may make filling the cache very slow.
const MAX_ANSWER: Duration = Duration::from_secs(120);
/// For the helper to end by itself before it is killed.
const MAX_EXIT: Duration = Duration::from_millis(500);
/// CGROUP_SUPER_MAGIC and CGROUP2_SUPER_MAGIC (statfs(2)).
const MAGIC: [u64; 2] = [0x0027_e0eb, 0x6367_7270];
/// Request for a run.
const RUN: &str = "run";

/// An answer of the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Ready,
    Ran(RunOutcome),
    Failed { refused: bool, message: String, hint: Option<String> },
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Answer {
        let Problem { severity, message, hint } = problem;
        Answer::Failed { refused: severity == Severity::Refused, message, hint }
    }
}

/// A helper inside control groups, with a plan.
#[derive(Debug)]
pub struct CgroupHelper {
    child: Child,
    stream: UnixStream,
    /// Their names, for messages.
    groups: String,
}

impl CgroupHelper {
    pub(super) fn start(
        groups: &[&PlacedGroup],
        plan: &Plan,
        command: HelperCommand<'_>,
    ) -> Result<CgroupHelper, Problem> {
        let names: Vec<String> = groups.iter().map(|group| format!("`{}`", group.directory)).collect();
        let names = names.join(" and ");
        let cannot = |error: std::io::Error| {
            Problem::failed(format!("cannot start a helper process for {names}: {error}"))
        };
        let (stream, theirs) = UnixStream::pair().map_err(cannot)?;
        stream.set_read_timeout(Some(POLL)).map_err(cannot)?;
        let mut command = command();
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        // Starting and moving it takes iowhy's own rights; it makes files as this thread does.
        let owner = FileOwner::of_thread().map(|owner| (owner.uid, owner.gid, owner.groups));
        let root = identity::as_self();
        let child = command.spawn().map_err(cannot)?;
        // Closes this side's copy of its socket, so that its end is seen.
        drop(command);
        // From here on a drop ends and reaps it.
        let mut helper = CgroupHelper { child, stream, groups: names };
        for group in groups {
            enter(group, helper.child.id())?;
        }
        drop(root);
        let not_sent =
            |error| Problem::failed(format!("cannot send the plan to the helper process: {error}"));
        let owner = serde_json::to_string(&owner).map_err(not_sent)?;
        let plan = serde_json::to_string(plan).map_err(not_sent)?;
        match helper.ask(&format!("{owner}\n{plan}"))? {
            Answer::Ready => Ok(helper),
            other => Err(helper.unexpected(other)),
        }
    }

    pub(super) fn run(&mut self) -> Result<RunOutcome, Problem> {
        match self.ask(RUN)? {
            Answer::Ran(outcome) => Ok(outcome),
            other => Err(self.unexpected(other)),
        }
    }

    /// Sends a line and waits for the answer; a signal to iowhy ends the helper.
    fn ask(&mut self, line: &str) -> Result<Answer, Problem> {
        let begun = Instant::now();
        if (&self.stream).write_all(format!("{line}\n").as_bytes()).is_err() {
            return Err(self.ended_early());
        }
        let mut answer = Vec::new();
        let mut reader = BufReader::new(&self.stream);
        while answer.last() != Some(&b'\n') {
            match reader.read_until(b'\n', &mut answer) {
                Ok(0) => return Err(self.ended_early()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if interrupt::requested() {
                        self.interrupt();
                        self.close();
                        return Err(Problem::failed("interrupted during a replay"));
                    }
                    if begun.elapsed() > MAX_ANSWER {
                        self.kill();
                        let groups = &self.groups;
                        let message = format!("a replay inside {groups} took longer than 120 s");
                        return Err(Problem::failed(message));
                    }
                }
                Err(_) => return Err(self.ended_early()),
            }
        }
        serde_json::from_slice(&answer).map_err(|error| {
            Problem::failed(format!(
                "the answer of the helper process in {} is damaged: {error}",
                self.groups
            ))
        })
    }

    fn unexpected(&self, answer: Answer) -> Problem {
        match answer {
            Answer::Failed { refused, message, hint } => {
                let severity = if refused { Severity::Refused } else { Severity::Failed };
                Problem { severity, message, hint }
            }
            _ => Problem::failed(format!("unexpected answer of the helper process in {}", self.groups)),
        }
    }

    /// Ended without an answer: most likely killed by a memory limit.
    fn ended_early(&mut self) -> Problem {
        let how = self.kill().map_or(String::new(), |status| format!(" ({status})"));
        Problem::failed(format!("the replay inside {} ended early{how}", self.groups))
            .hint("the memory limit there may be too small for it")
    }

    /// Ends the current run.
    fn interrupt(&mut self) {
        // After the process has ended its number may be another's.
        if let (Ok(None), Some(pid)) =
            (self.child.try_wait(), rustix::process::Pid::from_raw(self.child.id().cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Closes the socket, at which the helper removes its files and ends; after a while it is killed.
    fn close(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let begun = Instant::now();
        while begun.elapsed() < MAX_EXIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
    }

    /// Kills the helper if it still runs, and reaps it.
    fn kill(&mut self) -> Option<std::process::ExitStatus> {
        // An error means that it has ended.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for CgroupHelper {
    fn drop(&mut self) {
        self.close();
    }
}

/// Moves a process into a control group.
fn enter(group: &PlacedGroup, process: u32) -> Result<(), Problem> {
    let directory = Path::new(&group.directory);
    let name = &group.directory;
    let limits: Vec<&str> = group.limits.iter().map(|limit| limit.words.as_str()).collect();
    let gone = || {
        Problem::refused(format!(
            "the control group `{name}` of the recorded run is gone ({})",
            limits.join("; ")
        ))
        .hint("prove it while the group is there: `sudo iowhy --prove -- CMD`")
    };
    // The directory comes from a record, and its author may replace it: a process number is written to a file of a control
    // group only.
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
        "cannot move the replay into the control group `{name}` of the recorded run: {error}"
    ));
    Err(match error.kind() {
        ErrorKind::NotFound => gone(),
        ErrorKind::PermissionDenied => {
            cannot.hint(format!("this needs write access to `{}`: `sudo iowhy prove RECORD`", file.display()))
        }
        ErrorKind::ReadOnlyFilesystem => {
            let table = mounts::read();
            let mount = mounts::above(&table, directory).map_or(directory, |mount| mount.point.as_path());
            cannot.hint(format!("make it writable: `sudo mount -o remount,rw {}`", mount.display()))
        }
        _ => cannot,
    })
}

/// The helper's side: reads a plan from stdin, which must be a socket, and runs it on each request.
///
/// # Errors
/// iowhy did not start this process.
pub fn serve() -> Result<(), Problem> {
    let not_ours = || Problem::refused("`iowhy prove` starts this command itself");
    // The helper dies with iowhy, even during a run.
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
    let _files = match enter_owner(&owner) {
        Ok(files) => files,
        Err(problem) => return answer(Answer::from(problem)),
    };
    let plan: Plan = serde_json::from_str(&plan).map_err(|_| not_ours())?;
    let replay = match LocalReplay::prepare(plan) {
        Ok(replay) => replay,
        Err(problem) => return answer(Answer::from(problem)),
    };
    answer(Answer::Ready)?;
    while let Some(Ok(line)) = lines.next() {
        if line != RUN {
            return Err(not_ours());
        }
        answer(replay.run().map_or_else(Answer::from, Answer::Ran))?;
    }
    Ok(())
}

/// Makes files as the user that the other side named.
fn enter_owner(line: &str) -> Result<FilesAs, Problem> {
    let cannot = |error: String| Problem::failed(format!("cannot make the files of a replay: {error}"));
    let owner: Option<(u32, u32, Vec<u32>)> =
        serde_json::from_str(line).map_err(|e| cannot(e.to_string()))?;
    let Some((uid, gid, groups)) = owner else { return Ok(FilesAs::unchanged()) };
    FileOwner { uid, gid, groups }.enter().map_err(|e| cannot(e.to_string()))
}

#[cfg(test)]
#[path = "cgroup_helper_tests.rs"]
mod tests;
