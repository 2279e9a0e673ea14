//! Faults (SIGSEGV, SIGBUS, SIGABRT and the like): changed settings are restored, then the process ends by the
//! signal.
//!
//! Invariants: a fault that [`crate::sigbus`] repairs restores nothing. A fault signal sent by another process ends
//! this one, unless the signal was ignored at the start.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use iowhy_core::problem::Problem;
use iowhy_linux::signals::{self, MAX_SIGNAL, Meaning};

use crate::{last_act, sigbus};

/// The previous handlers: the Rust runtime reports stack overflows from SIGSEGV and SIGBUS.
static PREVIOUS: OnceLock<[Option<libc::sigaction>; MAX_SIGNAL as usize + 1]> = OnceLock::new();

/// Handles every fault from now on. Idempotent.
pub(crate) fn install() {
    PREVIOUS.get_or_init(|| {
        let faults = || signals::all(|meaning| meaning == Meaning::Fault);
        let mut previous = [None; MAX_SIGNAL as usize + 1];
        faults().for_each(|signal| previous[signal as usize] = signals::action(signal));
        faults().for_each(handle);
        previous
    });
}

/// A guard of a mapping against pages that vanish, with the handler that it needs.
///
/// # Errors
/// Fails when too many guards are alive.
pub fn guard() -> Result<sigbus::Guard, Problem> {
    install();
    sigbus::Guard::new()
}

fn handle(signal: c_int) {
    // SAFETY: the structure is fully initialised (zero is an empty mask); the handler has the signature of SA_SIGINFO and makes
    // only async-signal-safe calls. The runtime gives each thread an alternate stack, which a stack overflow needs.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_fault as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(signal, &new, std::ptr::null_mut());
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler. A positive code comes from the kernel alone, with
    // an address; for the others it is the sender that is told. getpid(2) is async-signal-safe.
    let (address, sent, by_us) = unsafe {
        let sent = (*info).si_code <= 0;
        (if sent { 0 } else { (*info).si_addr().addr() }, sent, sent && (*info).si_pid() == libc::getpid())
    };
    if signal == libc::SIGBUS && !sent && sigbus::repaired(address) {
        return;
    }
    let previous = PREVIOUS.get().and_then(|all| all[signal as usize].as_ref());
    let handler = previous.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    if handler == libc::SIG_IGN && sent && !by_us {
        return;
    }
    last_act::run();
    // The runtime examines addresses only. Of a signal without one it would make nothing, and go on.
    if !sent && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        pass_on(previous, signal, info, context);
        let resolved = signals::action(signal).is_none_or(|now| now.sa_sigaction != libc::SIG_DFL);
        if resolved {
            return;
        }
    }
    end_by(signal);
}

/// Has a signal end the process when the handler returns. Async-signal-safe.
pub(crate) fn end_by(signal: c_int) {
    signals::set_plain(signal, false);
    // SAFETY: raise(3) takes any number.
    unsafe { libc::raise(signal) };
}

/// Passes a fault on to the previous handler.
fn pass_on(
    previous: Option<&libc::sigaction>,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let Some(action) = previous else { return };
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: SA_SIGINFO says that this is the type of the handler, and it is neither SIG_DFL nor SIG_IGN.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(action.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: without SA_SIGINFO this is the type of the handler, and it is neither SIG_DFL nor SIG_IGN.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(action.sa_sigaction) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use rustix::mm::{MapFlags, ProtFlags};

    use super::*;
    use crate::interrupt;
    use crate::last_act::LastAct;

    const KIND: &str = "IOWHY_TEST_FAULT";
    const SETTING: &str = "IOWHY_TEST_FAULT_SETTING";

    #[inline(never)]
    #[allow(unconditional_recursion)] // To overflow the stack is its purpose.
    fn overflow(depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 512]);
        overflow(depth + 1) + room[7]
    }

    /// Loads a byte of a page behind the end of a file.
    fn load_vanished_page(guard: Option<&sigbus::Guard>) {
        let file = tempfile::tempfile().unwrap();
        let bytes = rustix::param::page_size();
        // SAFETY: a fresh mapping of an empty file; loading from it raises SIGBUS, which is what is tested.
        unsafe {
            let null = std::ptr::null_mut();
            let page = rustix::mm::mmap(null, bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap();
            if let Some(guard) = guard {
                guard.cover(page.cast::<u8>(), bytes);
            }
            std::ptr::read_volatile(page.cast::<u8>());
        }
        assert!(guard.is_some_and(sigbus::Guard::vanished));
    }

    /// Runs in a child process only: it is to die.
    #[test]
    fn child_that_faults() {
        let Ok(kind) = std::env::var(KIND) else { return };
        let held = kind.starts_with("guard").then(|| guard().unwrap());
        interrupt::install();
        let guard = held.or_else(|| kind.contains("later").then(|| guard().unwrap()));
        let file = CString::new(std::env::var(SETTING).unwrap()).unwrap();
        last_act::arm(vec![LastAct::Write { file, content: b"128".to_vec() }]);
        // SAFETY: a load from an address where nothing is mapped ends the process, which is tested; kill(2) takes any numbers.
        unsafe {
            match kind.as_str() {
                "address" => std::ptr::read_volatile(std::hint::black_box(8) as *const u64),
                "stack" => overflow(0),
                "guarded, repaired" | "later guard, repaired" => {
                    load_vanished_page(guard.as_ref());
                    std::process::exit(7)
                }
                "page" | "guarded, page" | "later guard, page" => {
                    load_vanished_page(None);
                    0
                }
                "abort" => std::process::abort(),
                sent => {
                    let signal: c_int = sent.rsplit(' ').next().unwrap().parse().unwrap();
                    let own = libc::getpid().to_string();
                    // Another process sends it.
                    Command::new("sh").args(["-c", &format!("kill -{signal} {own}")]).status().unwrap();
                    // Another thread may be the one that gets it.
                    let wait_s = if signals::ignored_at_start(signal) { 1 } else { 60 };
                    std::thread::sleep(std::time::Duration::from_secs(wait_s));
                    std::process::exit(8)
                }
            }
        };
        std::process::exit(9);
    }

    /// How a child ends: by which signal or with which code, and whether what was armed was done.
    fn ends(kind: &str, ignored: Option<c_int>) -> (Option<c_int>, Option<i32>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let setting = dir.path().join("setting");
        std::fs::write(&setting, "0").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "fault::tests::child_that_faults", "--nocapture"]);
        command.env(KIND, kind).env(SETTING, &setting);
        // No core file of a fault that is meant.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the closure makes only async-signal-safe calls, with a pointer to plain data of its own.
        unsafe {
            command.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                ignored.into_iter().for_each(|signal| signals::set_plain(signal, true));
                Ok(())
            })
        };
        let ended = command.output().unwrap().status;
        (ended.signal(), ended.code(), std::fs::read(setting).unwrap() == b"128")
    }

    #[test]
    fn a_fault_restores_settings_and_then_ends_the_process_as_before() {
        for ignored in [None, Some(libc::SIGSEGV)] {
            let ended = ends("address", ignored);
            assert_eq!(ended, (Some(libc::SIGSEGV), None, true), "ignored at the start: {ignored:?}");
        }
        assert_eq!(ends("abort", None), (Some(libc::SIGABRT), None, true));
        assert_eq!(ends("abort", Some(libc::SIGABRT)), (Some(libc::SIGABRT), None, true));
        // The runtime says that the stack overflowed, and aborts.
        assert_eq!(ends("stack", None), (Some(libc::SIGABRT), None, true));
        for kind in ["page", "guarded, page", "later guard, page"] {
            assert_eq!(ends(kind, None), (Some(libc::SIGBUS), None, true), "{kind}");
        }
    }

    #[test]
    fn a_page_that_is_repaired_restores_nothing() {
        for kind in ["guarded, repaired", "later guard, repaired"] {
            assert_eq!(ends(kind, None), (None, Some(7), false), "{kind}");
        }
    }

    #[test]
    fn one_fault_from_another_process_is_enough_and_is_not_swallowed() {
        std::thread::scope(|scope| {
            for signal in signals::all(|meaning| meaning == Meaning::Fault) {
                scope.spawn(move || {
                    let once = ends(&format!("sent {signal}"), None);
                    assert_eq!(once, (Some(signal), None, true), "{signal}");
                    let ignored = ends(&format!("sent {signal}"), Some(signal));
                    assert_eq!(ignored, (None, Some(8), false), "{signal} was ignored at the start");
                });
            }
        });
        let guarded = ends(&format!("guarded, sent {}", libc::SIGBUS), None);
        assert_eq!(guarded, (Some(libc::SIGBUS), None, true));
    }
}
