//! What each signal means to iowhy, in one table.
//!
//! Invariant: every signal whose default action ends a process, and that can be caught, is in the table with a
//! decision. What a request to stop leads to is decided elsewhere.

mod at_start;
mod listener;

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;

pub use at_start::{ignored_at_start, open_files_at_start, streams_closed_at_start};
pub use listener::{Arrival, Signals};

/// What a signal is to iowhy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A request to stop, from a person, a terminal or a supervisor.
    Stop,
    /// A message or timer that ends a process which does not expect it: a request to stop, unless a command that runs
    /// under iowhy may expect it.
    Message,
    /// The limit on our own CPU time is reached: to stop now is better than to be killed a little later.
    Limit,
    /// The program is broken, or somebody asks for a core dump: nothing can go on.
    Fault,
    /// A write exceeds the limit on file sizes. It fails with EFBIG besides, which says more.
    FileSize,
    /// Left as it is: it cannot be caught, does not end a process, or is handled elsewhere (SIGPIPE).
    Leave,
}

/// The highest signal number of Linux.
pub const MAX_SIGNAL: c_int = 64;

/// What this signal is to iowhy.
pub fn meaning(signal: c_int) -> Meaning {
    match signal {
        libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT => Meaning::Stop,
        libc::SIGUSR1 | libc::SIGUSR2 | libc::SIGALRM | libc::SIGVTALRM | libc::SIGPROF => Meaning::Message,
        libc::SIGPOLL | libc::SIGPWR | libc::SIGSTKFLT => Meaning::Message,
        // The C library keeps the two below SIGRTMIN for itself.
        n if (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&n) => Meaning::Message,
        libc::SIGXCPU => Meaning::Limit,
        libc::SIGILL | libc::SIGTRAP | libc::SIGABRT | libc::SIGFPE | libc::SIGSYS => Meaning::Fault,
        libc::SIGSEGV | libc::SIGBUS => Meaning::Fault,
        libc::SIGXFSZ => Meaning::FileSize,
        _ => Meaning::Leave,
    }
}

/// The signals for which `pick` holds.
pub fn all(pick: impl Fn(Meaning) -> bool) -> impl Iterator<Item = c_int> {
    (1..=MAX_SIGNAL).filter(move |signal| pick(meaning(*signal)))
}

/// Whether a terminal sends this signal to its foreground process group.
pub fn is_from_terminal(signal: c_int) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGHUP)
}

/// What a signal does now; `None` for one that cannot be asked about.
pub fn action(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: an all-zero `sigaction` is a valid value to be overwritten; a null new action only queries.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &mut present) == 0).then_some(present)
    }
}

/// Whether the signal is ignored at present.
pub fn is_ignored(signal: c_int) -> bool {
    action(signal).is_some_and(|present| present.sa_sigaction == libc::SIG_IGN)
}

/// Has a write beyond the limit on file sizes (RLIMIT_FSIZE) fail with EFBIG instead of ending the process. Commands that
/// iowhy starts get the original disposition: see [`ignored_at_start`].
pub fn keep_file_size_signal_from_ending_us() {
    set_plain(libc::SIGXFSZ, true);
}

/// Sets what a signal does to nothing or to its default. Async-signal-safe.
pub fn set_plain(signal: c_int, ignore: bool) {
    // SAFETY: the zeroed structure has an empty mask and no flags, and needs no handler.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
        libc::sigaction(signal, &new, ptr::null_mut());
    }
}

/// Lets us wait for our children: where SIGCHLD is ignored, the kernel reaps them and nobody learns their exit codes.
pub fn keep_ended_children() {
    let discards =
        |a: &libc::sigaction| a.sa_sigaction == libc::SIG_IGN || a.sa_flags & libc::SA_NOCLDWAIT != 0;
    if action(libc::SIGCHLD).as_ref().is_some_and(discards) {
        set_plain(libc::SIGCHLD, false);
    }
}

/// Whether the kernel told us that our terminal went away.
static HUNG_UP: AtomicBool = AtomicBool::new(false);

/// The kernel sent SIGHUP. Async-signal-safe.
pub fn note_hang_up() {
    HUNG_UP.store(true, Ordering::Relaxed);
}

/// Whether the terminal that we were started from is gone: the kernel said so, or stdin, stdout or stderr is a terminal that
/// hung up. False where SIGHUP is ignored (nohup): then that is to change nothing.
pub fn terminal_is_gone() -> bool {
    if ignored_at_start(libc::SIGHUP) {
        return false;
    }
    HUNG_UP.load(Ordering::Relaxed)
        || (0..3).any(|stream| {
            // SAFETY: `termios` is plain data, which the kernel fills; the descriptor is a plain number, and is only asked.
            let rc = unsafe {
                let mut state: libc::termios = std::mem::zeroed();
                libc::tcgetattr(stream, &mut state)
            };
            rc != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EIO)
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;

    const ROLE: &str = "IOWHY_TEST_SIGNAL";

    /// Runs in a child process only: it raises a signal, whose default action tells its kind.
    #[test]
    fn child_that_raises_a_signal() {
        let Ok(signal) = std::env::var(ROLE) else { return };
        let signal = signal.parse().unwrap();
        set_plain(signal, false);
        // SAFETY: raise(3) takes any number.
        unsafe { libc::raise(signal) };
        std::process::exit(0);
    }

    #[test]
    fn every_signal_that_would_end_us_has_a_meaning() {
        let reserved = |n| (libc::SIGRTMIN() - 2..libc::SIGRTMIN()).contains(&n) || n == 32;
        let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        let left: Vec<c_int> = (1..=MAX_SIGNAL)
            .filter(|n| meaning(*n) == Meaning::Leave && !stops.contains(n) && !reserved(*n))
            .collect();
        let ends = |signal: &c_int| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "signals::tests::child_that_raises_a_signal", "--nocapture"]);
            child.env(ROLE, signal.to_string()).stdout(std::process::Stdio::null());
            child.status().unwrap().signal() == Some(*signal)
        };
        let ending: Vec<c_int> = left.into_iter().filter(ends).collect();
        assert_eq!(ending, [libc::SIGKILL, libc::SIGPIPE]);
        assert!(ends(&libc::SIGPOLL), "the child shows what signals do");
    }

    #[test]
    fn ignored_signals_are_known_from_before_main() {
        if let Ok(expected) = std::env::var("IOWHY_TEST_IGNORED") {
            let found: Vec<String> =
                (1..=MAX_SIGNAL).filter(|n| ignored_at_start(*n)).map(|n| n.to_string()).collect();
            assert_eq!(found.join(" "), expected);
            return;
        }
        let run = |ignored: [c_int; 2]| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "signals::tests::ignored_signals_are_known_from_before_main"]);
            let mut expected: Vec<c_int> = (1..=MAX_SIGNAL)
                // The runtime of Rust gives children SIGPIPE as by default.
                .filter(|n| ignored_at_start(*n) && *n != libc::SIGPIPE || ignored.contains(n))
                .collect();
            expected.dedup();
            let expected: Vec<String> = expected.iter().map(c_int::to_string).collect();
            child.env("IOWHY_TEST_IGNORED", expected.join(" "));
            // SAFETY: the closure makes only async-signal-safe calls.
            unsafe {
                child.pre_exec(move || {
                    ignored.iter().for_each(|n| set_plain(*n, true));
                    Ok(())
                })
            };
            child.output().unwrap()
        };
        let ran = run([libc::SIGUSR1, libc::SIGXFSZ]);
        assert!(ran.status.success(), "{ran:?}");
    }
}
