//! Signals that request a stop, as a flag that every loop reads. A second signal ends the process after [`last_act`] ran.
//!
//! Invariants: an ignored signal (`nohup`) stays ignored. Sleeping calls end with EINTR (no SA_RESTART). A signal that
//! arrives twice within 0.2 s is one request (timeout(1) signals the process and its group), and so is any number of SIGHUP.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use iowhy_linux::signals::{self, Meaning};

use iowhy_linux::clock::monotonic_ns;

use crate::fault;
use crate::last_act;

/// When the first signal came, by CLOCK_MONOTONIC; 0 before it.
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);

/// A signal this soon after the first is its echo.
const ECHO_NS: u64 = 200_000_000;

/// Whether a signal requested a stop.
#[inline]
pub fn requested() -> bool {
    REQUESTED_NS.load(Ordering::Relaxed) != 0
}

/// Starts listening. Idempotent.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let requests = |m| matches!(m, Meaning::Stop | Meaning::Message | Meaning::Limit);
        for signal in signals::all(requests).filter(|signal| !signals::is_ignored(*signal)) {
            handle(signal);
        }
        fault::install();
    });
}

/// Requests a stop if the controlling terminal is gone: SIGHUP may have come before the handler was installed.
pub fn check_terminal() {
    if signals::terminal_is_gone() {
        let _ = REQUESTED_NS.compare_exchange(0, monotonic_ns().max(1), Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Forgets a request, so that a later one is a first one again.
pub fn clear() {
    REQUESTED_NS.store(0, Ordering::Relaxed);
}

/// The handler: notes the time of the first signal; a later one ends the process the default way.
/// clock_gettime(2), sigaction(2) and raise(3) are async-signal-safe.
extern "C" fn on_signal(signal: libc::c_int) {
    let now_ns = monotonic_ns().max(1);
    match REQUESTED_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
        // Of a terminal that went away the kernel and the shell tell, each in its own time: that is no impatience.
        Err(first_ns) if now_ns.saturating_sub(first_ns) > ECHO_NS && signal != libc::SIGHUP => {
            last_act::run();
            fault::end_by(signal);
        }
        Ok(_) | Err(_) => {}
    }
}

/// Sets a handler. It cannot fail for the catchable signals of the table.
fn handle(signal: libc::c_int) {
    // SAFETY: the structure is fully initialised (zero is an empty mask), and the handler has the signature of one without
    // SA_SIGINFO and calls only async-signal-safe functions.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_signal as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(signal, &new, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;
    use crate::last_act::LastAct;

    const ROLE: &str = "IOWHY_TEST_SIGNALS";
    const LAST: &str = "IOWHY_TEST_LAST_WRITES";
    const SIGNAL: &str = "IOWHY_TEST_SIGNAL_NUMBER";

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
            last_act::arm(vec![
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
            let signal = std::env::var(SIGNAL).map_or(libc::SIGTERM, |number| number.parse().unwrap());
            // SAFETY: raising a signal whose handler was just installed.
            unsafe { libc::raise(signal) };
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

    /// How a process ends that gets this signal after each of these pauses, and whether what was armed was done.
    fn ends(signal: libc::c_int, pauses_ms: &str) -> (Option<i32>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let setting = dir.path().join("setting");
        std::fs::write(&setting, "0").unwrap();
        std::fs::write(dir.path().join("note"), "setting=128").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "interrupt::tests::child_that_raises_signals", "--nocapture"]);
        command.env(ROLE, pauses_ms).env(LAST, dir.path()).env(SIGNAL, signal.to_string());
        // No core file of a fault that is raised on purpose.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the closure makes only async-signal-safe calls, with a pointer to plain data of its own.
        unsafe {
            command.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                Ok(())
            })
        };
        let ended = command.stdout(std::process::Stdio::null()).status().unwrap();
        (ended.signal(), std::fs::read(setting).unwrap() == b"128")
    }

    #[test]
    fn every_signal_that_would_end_the_process_puts_back_what_was_armed() {
        let requests = |m| matches!(m, Meaning::Stop | Meaning::Message | Meaning::Limit);
        // All wait side by side: the second of each comes after the time of an echo.
        std::thread::scope(|scope| {
            for signal in signals::all(requests).filter(|n| !signals::is_ignored(*n)) {
                // Of the many without a name the first and the last stand for all.
                if (libc::SIGRTMIN() + 1..libc::SIGRTMAX()).contains(&signal) {
                    continue;
                }
                scope.spawn(move || {
                    assert_eq!(ends(signal, "0"), (None, false), "{signal}: one is a request");
                    let two = ends(signal, "0 250");
                    let expected = if signal == libc::SIGHUP { (None, false) } else { (Some(signal), true) };
                    assert_eq!(two, expected, "{signal}: two");
                });
            }
            for signal in signals::all(|m| m == Meaning::Fault) {
                scope.spawn(move || assert_eq!(ends(signal, "0"), (Some(signal), true), "{signal}"));
            }
        });
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
