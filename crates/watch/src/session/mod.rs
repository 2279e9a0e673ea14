//! One watch from start to end: starts or finds the program, runs the event loop, and closes the profile.
//! Invariant: whatever is refused on the way (descriptors, memory for rings, rights, entries of `/proc`) becomes a limitation
//! in the profile; it ends neither the watch nor the program.

mod before;
mod by_process;
mod close;
mod counted;
mod counting;
mod duty;
mod event_loop;
mod files;
mod groups;
mod hidden;
mod observer;
mod opening;
mod options;
mod programs;
mod recording;
mod requests;
mod served;
mod sockets;
mod state;
mod thread_set;

use std::ffi::OsString;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::profile::{End, Profile};
use iowhy_linux::clock::monotonic_ns;
use iowhy_linux::identity::Identity;
use iowhy_linux::signals::is_from_terminal;
use iowhy_linux::terminal::Terminal;

use crate::child::{Adoption, Child, Existing, Refusal};
use crate::event_log::EventLog;
use crate::perf;
use iowhy_linux::process::usable;
use iowhy_linux::signals::{Arrival, Signals};

use event_loop::{EventLoop, Roots, Target, Turn};
use requests::{Answer, Reach, Requests};

pub use observer::Observer;
pub use options::Options;

/// What to watch.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A command that we start. Its stdin, stdout and stderr are ours.
    Command {
        /// Program, looked up in PATH as a shell does.
        program: OsString,
        /// Arguments.
        arguments: Vec<OsString>,
        /// Who runs it; `None`: we do.
        identity: Option<Identity>,
    },
    /// A process that runs already, with its threads and children from now on.
    Process {
        /// Its number.
        pid: u32,
        /// Watch at most so long; `None`: until it ends or we are interrupted.
        limit: Option<Duration>,
    },
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Sums and samples.
    pub profile: Profile,
    /// What has a time of its own, where [`Options::keep_events`] asked for it.
    pub events: Option<EventLog>,
}

/// Watches until the subject ends, its time is over, or SIGINT, SIGTERM, SIGHUP or SIGQUIT arrives. A command gets the
/// signal too, and is waited for; who sends the same signal again ends the watch and leaves the command alone (SIGINT and
/// SIGHUP: within five seconds; from the keyboard: only SIGQUIT).
///
/// Watching a command ends with the process that was started, as in time(1): processes that it leaves behind are
/// named in the limitations and run on.
///
/// # Errors
/// A command that cannot be started, with the exit code of a shell; a process that is not there or may not be watched at
/// all, with ours. The message says which setting forbids it and the command that changes it.
pub fn watch(subject: &Subject, options: &Options<'_>) -> Result<Watched, Refusal> {
    usable()?;
    match subject {
        Subject::Command { program, arguments, identity } => {
            // Refused like a shell does, before anything else happens.
            crate::child::find(program, identity.as_ref())?;
            command(program, arguments, identity.as_ref(), options)
        }
        Subject::Process { pid, limit } => Ok(process(*pid, *limit, options)?),
    }
}

fn command(
    program: &OsString,
    arguments: &[OsString],
    identity: Option<&Identity>,
    options: &Options<'_>,
) -> Result<Watched, Refusal> {
    let rights = perf::rights().at_most(options.tier);
    let mut event_loop = EventLoop::new(options, rights);
    // Before the fork: from then on signals may be for the command.
    let signals = Signals::listen();
    let mut adoption = Adoption::begin();
    let mut child = Child::hold(program, arguments, identity)?;
    event_loop.open(&Roots::Command(child.pid()));
    event_loop.begin();
    (options.begun)();
    child.release()?;
    event_loop.released();
    let mut requests = Requests::default();
    let end = loop {
        match event_loop
            .turn(&Target { pidfd: child.pidfd(), signals: signals.as_ref(), stop: None }, &mut adoption)
        {
            Turn::Signal(arrival) => match requests.answer(arrival, reach(&arrival, &child)) {
                Answer::Nothing => {}
                Answer::PassOn(signal) => child.signal(signal),
                Answer::End => break End::Running,
            },
            Turn::Quiet => {}
        }
        if let Some(end) = child.ended() {
            break end;
        }
        if let Some(signal) = child.stopped() {
            stop_like_the_command(signal, &child, identity);
        }
    };
    Ok(if end == End::Running {
        let watched = event_loop.close(end, None, &mut adoption);
        child.leave();
        watched
    } else {
        event_loop.close(end, Some(child), &mut adoption)
    })
}

fn process(pid: u32, limit: Option<Duration>, options: &Options<'_>) -> Result<Watched, Problem> {
    let existing = Existing::open(pid)?;
    let rights = perf::rights().at_most(options.tier);
    let mut event_loop = EventLoop::new(options, rights);
    let signals = Signals::listen();
    let mut adoption = Adoption::none();
    event_loop.open(&Roots::Process(pid));
    event_loop.begin();
    (options.begun)();
    let deadline_ns =
        limit.map(|l| monotonic_ns().saturating_add(u64::try_from(l.as_nanos()).unwrap_or(u64::MAX)));
    event_loop.until(deadline_ns);
    let mut requests = Requests::default();
    let end = loop {
        match event_loop
            .turn(&Target { pidfd: existing.pidfd(), signals: signals.as_ref(), stop: None }, &mut adoption)
        {
            Turn::Signal(arrival) if requests.answer(arrival, Reach::NotOurs) == Answer::End => {
                break End::Running;
            }
            Turn::Signal(_) | Turn::Quiet => {}
        }
        if existing.ended() {
            break End::Gone;
        }
        if deadline_ns.is_some_and(|d| monotonic_ns() >= d) {
            break End::Running;
        }
    };
    Ok(event_loop.close(end, None, &mut adoption))
}

/// Whom a signal to us reached. The terminal signals the whole foreground group. Of senders only timeout(1) is known to do
/// that: it leads our group and is our parent, while a shell that leads the group of a script signals one process.
fn reach(arrival: &Arrival, child: &Child) -> Reach {
    if !child.in_our_group() {
        return Reach::UsAlone;
    }
    if arrival.from_kernel {
        if !is_from_terminal(arrival.signal) {
            // A timer of iowhy (alarm(2) is kept over exec), or a limit.
            return Reach::UsAlone;
        }
        // A terminal that goes away tells the leader of the session alone; that is us where a terminal window runs
        // nothing but iowhy.
        // SAFETY: both calls take and return plain numbers.
        let leading = unsafe { libc::getsid(0) == libc::getpid() };
        return if arrival.signal == libc::SIGHUP && leading { Reach::UsAlone } else { Reach::CommandToo };
    }
    // SAFETY: both calls take nothing and return plain numbers.
    let (parent, leader) = unsafe { (libc::getppid(), libc::getpgrp()) };
    let by_leader = u32::try_from(leader).is_ok_and(|leader| leader == arrival.sender) && parent == leader;
    let sender = format!("/proc/{}/comm", arrival.sender);
    if by_leader && std::fs::read_to_string(sender).is_ok_and(|name| name.trim_end() == "timeout") {
        Reach::CommandToo
    } else {
        Reach::UsAlone
    }
}

/// Ctrl-Z in a program that handles the key itself: we stop as well, so that the shell gets its prompt back. The shell
/// continues the whole group, the command with us.
fn stop_like_the_command(signal: i32, child: &Child, identity: Option<&Identity>) {
    let other = identity.filter(|identity| identity.switches()).map(|identity| identity.uid);
    if stop_is_meant_for_us(signal, child.in_our_group(), Terminal::controlling(), other) {
        // SAFETY: raise(3) takes any number.
        unsafe { libc::raise(signal) };
    }
}

/// Whether a stop of the command comes from the user of a terminal, and its shell can continue us. The kernel itself sends
/// SIGTTIN and SIGTTOU to the whole group. A command of another user stops us only on a terminal of that user: elsewhere
/// it could leave iowhy stopped for ever, and a second Ctrl-Z is the way to the prompt.
fn stop_is_meant_for_us(
    signal: i32,
    in_our_group: bool,
    terminal: Option<Terminal>,
    other_user: Option<u32>,
) -> bool {
    signal == libc::SIGTSTP
        && in_our_group
        && terminal.is_some_and(|terminal| {
            terminal.is_ours() && other_user.is_none_or(|uid| terminal.owner() == Some(uid))
        })
}

#[cfg(test)]
mod tests;
