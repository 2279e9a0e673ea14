//! Ctrl-C, SIGTERM and SIGHUP as a flag that every loop looks at: what is known so far is printed, and a second
//! signal ends the process at once.
//!
//! Non-goal: the exit code (the binary's). Invariant: a signal that was ignored when we started (`nohup`) stays
//! ignored; sleeping system calls end with EINTR, because SA_RESTART is off.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether somebody asked us to stop.
#[inline]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
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
    REQUESTED.store(false, Ordering::Relaxed);
}

/// The handler: sets the flag, or ends the process the default way when it is already set.
extern "C" fn on_signal(signal: libc::c_int) {
    if REQUESTED.swap(true, Ordering::Relaxed) {
        dispose(signal, libc::SIG_DFL);
        // SAFETY: raise(3) is async-signal-safe; the signal is delivered when the handler returns.
        unsafe { libc::raise(signal) };
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
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const ROLE: &str = "IOWHY_TEST_SIGNALS";

    /// Runs in a child process only: the flag is process-wide and other tests look at it.
    #[test]
    fn child_that_raises_signals() {
        let Ok(count) = std::env::var(ROLE) else { return };
        install();
        install();
        for _ in 0..count.parse::<u32>().unwrap() {
            // SAFETY: raising a signal whose handler was just installed.
            unsafe { libc::raise(libc::SIGTERM) };
        }
        if !requested() {
            std::process::exit(3);
        }
        clear();
        std::process::exit(if requested() { 4 } else { 5 });
    }

    fn child(signals: u32) -> std::process::ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "interrupt::tests::child_that_raises_signals", "--nocapture"])
            .env(ROLE, signals.to_string())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap()
    }

    #[test]
    fn the_first_signal_is_a_request_and_the_second_ends_the_process() {
        assert_eq!(child(0).code(), Some(3), "nothing asked, nothing requested");
        assert_eq!(child(1).code(), Some(5), "one signal: requested, then cleared");
        assert_eq!(child(2).signal(), Some(libc::SIGTERM), "two signals: ended the default way");
    }
}
