//! One watch from start to end: starts or finds the program, keeps the sources going, and closes the profile.

use std::ffi::OsString;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::profile::{Profile, Tier};

/// What to watch.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A command that we start. Its stdin, stdout and stderr are ours.
    Command {
        /// Program, looked up in PATH as a shell does.
        program: OsString,
        /// Arguments.
        arguments: Vec<OsString>,
    },
    /// A process that runs already, with its threads and children from now on.
    Process {
        /// Its number.
        pid: u32,
        /// Watch at most so long; `None`: until it ends or we are interrupted.
        limit: Option<Duration>,
    },
}

/// How to watch.
pub struct Options<'a> {
    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path: such a thread is
    /// active, and takes its part of the wall clock.
    pub on_path: &'a dyn Fn(&[&str]) -> bool,
    /// Use no tier above this one.
    pub tier: Tier,
    /// Whether short bursts of system-call tracing are wanted (tier 3 only).
    pub call_bursts: bool,
}

/// Watches until the subject ends, its time is over, or SIGINT or SIGTERM arrives (a command is sent the signal too,
/// and is waited for).
///
/// # Errors
/// A command that cannot be started, a process that is not there or may not be watched at all; the message says which
/// setting forbids it and the command that changes it.
pub fn watch(subject: &Subject, options: &Options<'_>) -> Result<Profile, Problem> {
    let _ = options;
    Err(Problem::failed(format!("cannot watch {subject:?}: the watcher is not joined together yet")))
}
