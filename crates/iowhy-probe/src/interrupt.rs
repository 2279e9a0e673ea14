//! Ctrl-C, SIGTERM and SIGHUP as a flag that every loop looks at: what is known so far is printed, and a second
//! signal ends the process at once.
//!
//! Non-goal: the exit code (the binary's). Invariants: a signal that was ignored when we started (`nohup`) stays
//! ignored; what was armed with [`put_back_at_the_end`] is done before a second signal ends the process; sleeping system calls end with EINTR, because SA_RESTART is off; a signal that arrives twice in one
//! breath is one request, because timeout(1) signals both the process and its group.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::clock::monotonic_ns;

/// When the first signal came, by CLOCK_MONOTONIC; 0 before it.
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);

/// A signal this soon after the first is its echo.
const ECHO_NS: u64 = 200_000_000;

/// Whether somebody asked us to stop.
#[inline]
pub fn requested() -> bool {
    REQUESTED_NS.load(Ordering::Relaxed) != 0
}

/// Starts listening. Idempotent.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            if !ignored(signal) {
                dispose(signal, on_signal as *const () as libc::sighandler_t);
            }
        }
    });
}

/// Forgets a request, so that a later one is a first one again.
pub fn clear() {
    REQUESTED_NS.store(0, Ordering::Relaxed);
}

/// One thing to do before a second signal ends the process.
#[derive(Clone, Debug)]
pub enum LastAct {
    /// This is written into a file.
    Write {
        /// The file.
        file: CString,
        /// What belongs into it.
        content: Vec<u8>,
    },
    /// The name goes.
    Remove {
        /// The directory that it is in, open as long as the act is armed.
        directory: RawFd,
        /// The name there.
        name: CString,
    },
    /// This is called with a descriptor that is open as long as the act is armed; whether it succeeded. Only system calls
    /// may stand in it: a signal handler may neither allocate nor take a lock.
    Call {
        /// What is called.
        act: fn(RawFd, u64) -> bool,
        /// With what.
        descriptor: RawFd,
        /// And how.
        argument: u64,
    },
}

/// What a second signal does; null is nothing.
static LAST_ACTS: AtomicPtr<Vec<LastAct>> = AtomicPtr::new(std::ptr::null_mut());

/// Arms what a second signal does before it ends the process, in this order, up to the first that fails; an empty
/// list disarms. It replaces what was armed before.
pub fn put_back_at_the_end(acts: Vec<LastAct>) {
    let new = if acts.is_empty() { std::ptr::null_mut() } else { Box::into_raw(Box::new(acts)) };
    // The old list stays in memory: a handler on another thread may be reading it. It is a few paths, once a run.
    LAST_ACTS.store(new, Ordering::Release);
}

/// Does what is armed. open(2), write(2), close(2) and unlinkat(2) are async-signal-safe, and so is what is called.
fn act_last() {
    let armed = LAST_ACTS.load(Ordering::Acquire);
    // SAFETY: null, or a list that is never changed or freed once it was stored.
    let Some(acts) = (unsafe { armed.as_ref() }) else { return };
    for act in acts {
        let done = match act {
            // SAFETY: `name` ends in a nul byte, and lives for ever.
            LastAct::Remove { directory, name } => unsafe {
                libc::unlinkat(*directory, name.as_ptr(), 0) == 0
            },
            // SAFETY: `file` ends in a nul byte, and the content is as long as is said; both live for ever.
            LastAct::Write { file, content } => unsafe {
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let written = fd >= 0
                    && libc::write(fd, content.as_ptr().cast(), content.len()) == content.len() as isize;
                if fd >= 0 {
                    libc::close(fd);
                }
                written
            },
            LastAct::Call { act, descriptor, argument } => act(*descriptor, *argument),
        };
        if !done {
            return;
        }
    }
}

/// The handler: notes the time of the first signal; a later one ends the process the default way.
/// clock_gettime(2), sigaction(2) and raise(3) are async-signal-safe.
extern "C" fn on_signal(signal: libc::c_int) {
    let now_ns = monotonic_ns().max(1);
    match REQUESTED_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first_ns) if now_ns.saturating_sub(first_ns) > ECHO_NS => {
            act_last();
            dispose(signal, libc::SIG_DFL);
            // SAFETY: raise(3) takes any number; the signal is delivered when the handler returns.
            unsafe { libc::raise(signal) };
        }
        Ok(_) | Err(_) => {}
    }
}

/// Whether the signal is ignored at present.
fn ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid value to be overwritten; a null new action only queries.
    let (present, rc) = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        let rc = libc::sigaction(signal, std::ptr::null(), &mut present);
        (present, rc)
    };
    rc == 0 && present.sa_sigaction == libc::SIG_IGN
}

/// Sets what a signal does. Async-signal-safe. It cannot fail for the catchable signals used here.
fn dispose(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: the structure is fully initialised (zero is an empty mask and no flags), and `action` is either
    // SIG_DFL or `on_signal`, which has the signature of a handler without SA_SIGINFO and calls only
    // async-signal-safe functions.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = action;
        libc::sigaction(signal, &new, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const ROLE: &str = "IOWHY_TEST_SIGNALS";
    const LAST: &str = "IOWHY_TEST_LAST_WRITES";

    /// Runs in a child process only: the flag is process-wide and other tests look at it.
    #[test]
    fn child_that_raises_signals() {
        let Ok(pauses_ms) = std::env::var(ROLE) else { return };
        install();
        install();
        if let Ok(directory) = std::env::var(LAST) {
            let path = |name: &str| CString::new(format!("{directory}/{name}")).unwrap();
            let opened = std::fs::File::open(&directory).unwrap();
            let remove = |name: &str| LastAct::Remove {
                directory: opened.as_raw_fd(),
                name: CString::new(name).unwrap(),
            };
            put_back_at_the_end(vec![
                LastAct::Write { file: path("setting"), content: b"128".to_vec() },
                LastAct::Call { act: |_, argument| argument == 7, descriptor: -1, argument: 7 },
                remove("note"),
                LastAct::Call { act: |_, _| false, descriptor: -1, argument: 0 },
                remove("kept"),
            ]);
            // Open until the process ends.
            std::mem::forget(opened);
        }
        for pause_ms in pauses_ms.split_whitespace() {
            std::thread::sleep(std::time::Duration::from_millis(pause_ms.parse().unwrap()));
            // SAFETY: raising a signal whose handler was just installed.
            unsafe { libc::raise(libc::SIGTERM) };
        }
        if !requested() {
            std::process::exit(3);
        }
        clear();
        std::process::exit(if requested() { 4 } else { 5 });
    }

    /// How a process ends that gets SIGTERM after each of these pauses.
    fn child(pauses_ms: &str) -> std::process::ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "interrupt::tests::child_that_raises_signals", "--nocapture"])
            .env(ROLE, pauses_ms)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap()
    }

    #[test]
    fn the_first_signal_is_a_request_and_a_later_one_ends_the_process() {
        assert_eq!(child("").code(), Some(3), "nothing asked, nothing requested");
        assert_eq!(child("0").code(), Some(5), "one signal: requested, then cleared");
        assert_eq!(child("0 250").signal(), Some(libc::SIGTERM), "two signals: ended the default way");
    }

    #[test]
    fn the_second_signal_puts_back_what_was_armed_and_the_first_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let ends = |pauses_ms: &str| {
            std::fs::write(at("setting"), "0").unwrap();
            std::fs::write(at("note"), "setting=128").unwrap();
            std::fs::write(at("kept"), "behind an act that fails").unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "interrupt::tests::child_that_raises_signals", "--nocapture"]);
            command.env(ROLE, pauses_ms).env(LAST, dir.path()).stdout(std::process::Stdio::null());
            (command.status().unwrap().signal(), std::fs::read(at("setting")).unwrap(), at("note").exists())
        };
        assert_eq!(ends("0"), (None, b"0".to_vec(), true));
        assert_eq!(ends("0 250"), (Some(libc::SIGTERM), b"128".to_vec(), false));
        assert!(at("kept").exists(), "nothing is done behind an act that failed");
    }

    #[test]
    fn an_ignored_signal_stays_ignored() {
        let run = |command: &str| {
            let exe = std::env::current_exe().unwrap();
            let test = "--exact interrupt::tests::child_that_raises_signals --nocapture";
            let shell = format!("{command} exec '{}' {test} > /dev/null", exe.display());
            Command::new("sh").args(["-c", &shell]).env(ROLE, "0").status().unwrap()
        };
        assert_eq!(run("").code(), Some(5));
        assert_eq!(run("trap '' TERM;").code(), Some(3));
    }
}
