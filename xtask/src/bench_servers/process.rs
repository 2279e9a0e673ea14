//! Commands in process groups of their own, which end with their value, and waiting that a signal ends.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_probe::interrupt;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// What a benchmark step may fail with: text for people.
pub(super) type Outcome<T> = Result<T, String>;

/// No command takes longer, and no server to end.
const MAX_COMMAND: Duration = Duration::from_secs(180);
const MAX_END: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A command in a process group of its own.
pub(super) struct Group {
    child: Child,
    /// The signal that makes it end well.
    stop: Option<Signal>,
    said: File,
    errors: File,
}

impl Group {
    /// Starts it; what it says goes to files without a name.
    pub(super) fn start(command: &mut Command, stop: Option<Signal>) -> Outcome<Group> {
        let file = || tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"));
        let (said, errors) = (file()?, file()?);
        let copy = |file: &File| file.try_clone().map(Stdio::from).map_err(|error| error.to_string());
        command.stdin(Stdio::null()).stdout(copy(&said)?).stderr(copy(&errors)?).process_group(0);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
        Ok(Group { child, stop, said, errors })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn runs(&mut self) -> Outcome<bool> {
        self.child.try_wait().map(|ended| ended.is_none()).map_err(|error| error.to_string())
    }

    /// Waits for its end, at most so long. False: it runs on.
    fn ends(&mut self, most: Duration) -> bool {
        let begun = Instant::now();
        while self.runs().unwrap_or(false) {
            if begun.elapsed() > most {
                return false;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        true
    }

    /// Waits until it ends of itself.
    pub(super) fn end(mut self) -> Outcome<String> {
        let begun = Instant::now();
        while self.runs()? {
            if begun.elapsed() > MAX_COMMAND {
                return Err(format!("it runs on after {} s", MAX_COMMAND.as_secs()));
            }
            pause(BETWEEN_LOOKS)?;
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            let errors = text(&self.errors);
            return Err(errors.lines().last().map_or_else(|| status.to_string(), str::to_owned));
        }
        Ok(text(&self.said))
    }

    /// All that it said so far, errors last.
    pub(super) fn said(&self) -> String {
        text(&self.said) + &text(&self.errors)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The number of one that has been waited for may be another's by now.
        if !self.runs().unwrap_or(false) {
            return;
        }
        let pid = Pid::from_child(&self.child);
        if let Some(stop) = self.stop {
            let _ = kill_process(pid, stop);
            if self.ends(MAX_END) {
                return;
            }
            eprintln!("bench-servers: process {} does not end, it is killed", self.id());
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

fn text(mut file: &File) -> String {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs a command to its end, and returns what it printed.
pub(super) fn finish(command: &mut Command) -> Outcome<String> {
    Group::start(command, None)?.end()
}

/// Waits; a signal ends that.
pub(super) fn pause(time: Duration) -> Outcome<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if interrupt::requested() {
            return Err("interrupted".to_owned());
        }
        std::thread::sleep(time.saturating_sub(begun.elapsed()).min(BETWEEN_LOOKS));
    }
    Ok(())
}
